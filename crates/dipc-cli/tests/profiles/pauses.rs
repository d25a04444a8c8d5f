//! Pauses of the garbage collector in thread time.

use nettrace_synth::clr::{MANAGED, Method, Recording};
use serde_json::Value;

use crate::{dipc, json, printed};

/// Threads 7 and 8 run `P.SetOrAdd`, whose samples come each millisecond, and thread 8 stops the other for 3
/// ms. The events of a thread stand together, those of thread 8 at the end, as a runtime writes them.
fn recording() -> Vec<u8> {
    let mut recording = Recording::new();
    recording.stacks(&[&[0x1008]]).thread(7).method(&Method::new(0x1000, "P", "SetOrAdd"));
    let samples = |recording: &mut Recording, times: &[u64]| {
        for ms in times {
            recording.at(ms * 1_000_000).sample(1, MANAGED);
        }
    };
    samples(&mut recording, &[1, 2, 6, 7]);
    samples(recording.thread(8), &[1, 2]);
    recording.at(2_200_000).suspend_begin(1).at(2_300_000).suspend_end().at(5_200_000).restart_end();
    samples(&mut recording, &[6, 7]);
    recording.bytes()
}

/// Returns the exclusive and the blocked weight of a row of `topN`.
fn weights(answer: &Value, name: &str) -> Option<(u64, Option<u64>)> {
    let row = answer["rows"].as_array().unwrap().iter().find(|row| row["frame"].as_str() == Some(name))?;
    Some((row["exclusive"].as_u64().unwrap(), row["blocked"].as_u64()))
}

#[test]
fn a_pause_is_not_charged_to_the_method_that_it_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.nettrace"), recording()).unwrap();
    let report = |more: &[&str]| {
        json(folder.path(), &[&["report", "x.nettrace", "topN", "--format", "json"], more].concat())
    };
    let method = "?!P.SetOrAdd()";
    // Six milliseconds of each thread. Of the pause one thread works, the other one is stopped.
    let answer = report(&[]);
    assert_eq!(weights(&answer, method), Some((6_000_000, Some(3_000_000))), "{answer:#}");
    assert_eq!(weights(&answer, "GC pause"), Some((6_000_000, Some(3_000_000))), "{answer:#}");
    assert_eq!(
        (&answer["total"], &answer["samples"], &answer["blocked"]),
        (&12_000_000.into(), &6.into(), &3_000_000.into())
    );
    let before = report(&["--no-gc-frame"]);
    assert_eq!(weights(&before, method), Some((12_000_000, Some(0))), "{before:#}");
    assert_eq!(weights(&before, "GC pause"), None, "{before:#}");
    let managed = report(&["--by", "cpu"]);
    assert_eq!(weights(&managed, "GC pause"), Some((6_000_000, None)), "{managed:#}");
    // As dotnet-trace has it.
    assert_eq!(weights(&report(&["--idle"]), "GC pause"), None);

    // A part of the pause.
    let part = report(&["--from", "3ms", "--to", "4ms"]);
    assert_eq!(weights(&part, "GC pause"), Some((2_000_000, Some(1_000_000))), "{part:#}");

    let collapsed = |more: &[&str]| {
        printed(folder.path(), &[&["convert", "x.nettrace", "-f", "folded", "-o", "-"], more].concat())
    };
    assert!(collapsed(&[]).contains("P.SetOrAdd();GC pause 6000000\n"), "{}", collapsed(&[]));
    assert!(!collapsed(&["--no-gc-frame"]).contains("GC pause"));
    let stacks = printed(folder.path(), &["report", "x.nettrace", "stacks"]);
    assert!(stacks.contains("GC pause"), "{stacks}");
    let overview = printed(folder.path(), &["report", "x.nettrace"]);
    assert!(overview.contains("9.00 ms of work: 66.67% P.SetOrAdd, 33.33% GC pause"), "{overview}");
    assert!(overview.contains("3.00 ms blocked in the midst of work: 100% GC pause"), "{overview}");
    for format in ["speedscope", "chromium", "firefox", "perfetto", "html"] {
        let converted = dipc(folder.path(), &["convert", "x.nettrace", "-f", format, "-o", "-"]);
        assert_eq!(converted.status.code(), Some(0), "{format}");
    }
}

#[test]
fn blocked_time_can_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.nettrace"), recording()).unwrap();
    let topn = ["report", "x.nettrace", "topN", "--no-blocked"];
    let answer = json(folder.path(), &[&topn[..], &["--format", "json"]].concat());
    assert_eq!((&answer["total"], answer.get("blocked")), (&9_000_000.into(), None), "{answer:#}");
    assert_eq!(weights(&answer, "GC pause"), Some((3_000_000, None)), "{answer:#}");
    let shown = printed(folder.path(), &topn);
    assert!(shown.contains("thread time: 9.00 ms, 3.00 ms of blocked threads left out"), "{shown}");
}
