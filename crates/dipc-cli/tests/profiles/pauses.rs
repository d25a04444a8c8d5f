//! Pauses of the garbage collector in thread time.

use nettrace_synth::nettrace::Trace;
use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader, Value as Field, payload, stack_bytes};
use serde_json::Value;

use crate::{dipc, json, method_and_sample, method_load, printed};

const SUSPEND_START: u32 = 3;
const SUSPEND_STOP: u32 = 4;
const RESTART_STOP: u32 = 5;

/// Threads 7 and 8 run `P.SetOrAdd`, whose samples come each millisecond, and thread 8 stops the other for 3
/// ms. The events of a thread stand together, those of thread 8 at the end, as a runtime writes them.
fn recording() -> Vec<u8> {
    let mut trace =
        Trace::new(&TraceHeader { frequency: 1_000_000_000, sync_ticks: 0, ..TraceHeader::default() });
    let kind = |id, event_id| Metadata {
        id,
        provider: "Microsoft-Windows-DotNETRuntime".into(),
        event_id,
        version: 1,
        ..Metadata::default()
    };
    let [method, sample] = method_and_sample();
    trace.metadata_block(&[
        method,
        sample,
        kind(SUSPEND_START, 9),
        kind(SUSPEND_STOP, 8),
        kind(RESTART_STOP, 3),
    ]);
    trace.stack_block(1, &[stack_bytes(&[0x1008], 8)]);
    let managed = || payload(&[Field::UInt32(2)]);
    let mut events = vec![(1, 7, 0, method_load(0x1000, "P", "SetOrAdd", "void  ()"))];
    events.extend([1, 2, 6, 7].map(|ms| (2, 7, ms * 1_000_000, managed())));
    events.extend([1, 2].map(|ms| (2, 8, ms * 1_000_000, managed())));
    let reason = payload(&[Field::UInt32(1), Field::UInt32(1), Field::UInt16(9)]);
    events.push((SUSPEND_START, 8, 2_200_000, reason));
    events.push((SUSPEND_STOP, 8, 2_300_000, payload(&[Field::UInt16(9)])));
    events.push((RESTART_STOP, 8, 5_200_000, payload(&[Field::UInt16(9)])));
    events.extend([6, 7].map(|ms| (2, 8, ms * 1_000_000, managed())));
    let mut block = EventBlock::v4();
    for ((metadata_id, thread, timestamp, payload), number) in events.into_iter().zip(1..) {
        block.event(&Event {
            metadata_id,
            sequence: number,
            thread,
            capture_thread: thread,
            stack_id: u32::from(metadata_id == 2),
            timestamp,
            payload,
            ..Event::default()
        });
    }
    trace.event_block(&block);
    trace.finish()
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
