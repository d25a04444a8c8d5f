//! The problems of the overview, and the commands that it recommends.

use std::path::Path;
use std::process::Command;

use nettrace_synth::TraceHeader;
use nettrace_synth::clr::{EXTERNAL, MANAGED, Method, Recording};
use serde_json::Value;

use crate::{json, printed, recording, recording_in};

/// A recording on two processors that names `Task.InternalWait` at 0x1000, `Shop.Cart.Pay` at 0x2000 and the
/// pool's `Dispatch` at 0x3000.
fn named() -> Recording {
    let mut recording = Recording::with_header(TraceHeader { processors: 2, ..TraceHeader::default() });
    recording.module(1, "/r/System.Private.CoreLib.dll").module(2, "/a/Shop.dll");
    recording.method(&Method::new(0x1000, "System.Threading.Tasks.Task", "InternalWait"));
    recording.method(&Method { module: 2, ..Method::new(0x2000, "Shop.Cart", "Pay") });
    recording.method(&Method::new(0x3000, "System.Threading.ThreadPoolWorkQueue", "Dispatch"));
    recording.stacks(&[&[0x1008, 0x2008, 0x3008], &[0x2008, 0x3008]]);
    recording
}

/// Adds samples of a worker of the pool each 10 ms of 3 s: stack 1 waits for a task, stack 2 works.
fn samples(recording: &mut Recording, thread: u64, stack: impl Fn(u64) -> u32) {
    for ms in (0..=3000).step_by(10) {
        let stack = stack(ms);
        let mode = if stack == 1 { EXTERNAL } else { MANAGED };
        recording.at(ms * 1_000_000).thread(thread).sample(stack, mode);
    }
}

/// Returns the finding of the overview that begins so.
fn finding(folder: &Path, begin: &str) -> Option<Value> {
    let overview = json(folder, &["report", "x.nettrace", "--format", "json"]);
    let findings = overview["findings"].as_array().unwrap().iter();
    findings.into_iter().find(|finding| finding["text"].as_str().unwrap().starts_with(begin)).cloned()
}

/// Returns the cause of this kind.
fn cause(folder: &Path, kind: &str) -> Option<Value> {
    let overview = json(folder, &["report", "x.nettrace", "--format", "json"]);
    overview["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == kind).cloned()
}

fn folder_with(recording: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.nettrace"), recording).unwrap();
    folder
}

#[test]
fn a_pool_with_only_blocked_workers_starves() {
    // Two workers on two processors. From 1 s to 3 s both wait, and before that one works.
    let mut recording = named();
    samples(&mut recording, 7, |_| 1);
    samples(&mut recording, 8, |ms| if ms < 1000 { 2 } else { 1 });
    let folder = folder_with(&recording.bytes());
    let found = cause(folder.path(), "starvation").expect("a cause");
    let text = "The thread pool is starved: all 2 workers were blocked 66.67% of the time in Cart.Pay, waiting for tasks: \
                synchronous code over asynchronous";
    assert_eq!((&found["text"], &found["is_problem"]), (&text.into(), &true.into()));
    assert_eq!(found["method"], "Cart.Pay");
    let text = "All 2 workers of the pool were blocked for 2.00 s, 2.00 s at the longest: 100.00% of their waits in \
                Shop!Shop.Cart.Pay(), 100.00% for tasks (synchronous code that waits for asynchronous)";
    let report = printed(folder.path(), &["report", "x.nettrace", "threadpool"]);
    assert!(report.contains(text), "{report}");
    let report = json(folder.path(), &["report", "x.nettrace", "threadpool", "--format", "json"]);
    assert_eq!(report["starvation"]["total_ns"], 2_000_000_000_u64);
}

#[test]
fn a_pool_with_fewer_workers_than_processors_does_not_starve() {
    let mut recording = named();
    samples(&mut recording, 7, |_| 1);
    assert_eq!(cause(folder_with(&recording.bytes()).path(), "starvation"), None);
    // Nor does one of whose workers one always works.
    let mut recording = named();
    samples(&mut recording, 7, |_| 1);
    samples(&mut recording, 8, |_| 2);
    assert_eq!(cause(folder_with(&recording.bytes()).path(), "starvation"), None);
}

/// Waits of 5 ms for one lock by two threads in turn, in 2 s.
fn lock_waits(count: u64) -> Vec<u8> {
    let mut recording = named();
    for number in 0..count {
        recording.thread(7 + number % 2).at(number * 10_000_000).contention_start(5, 8);
        recording.at((number * 10 + 5) * 1_000_000).contention_stop(5e6);
    }
    recording.thread(9).at(2_000_000_000).contention_start(5, 8).bytes()
}

#[test]
fn many_waits_for_one_lock_are_a_convoy() {
    let folder = folder_with(&lock_waits(200));
    let found = cause(folder.path(), "lock-convoy").expect("a cause");
    let text = "3 threads wait for one lock 16.67% of their time";
    assert_eq!((&found["text"], &found["is_problem"]), (&text.into(), &true.into()));
    assert_eq!(found["evidence"], serde_json::json!(["201 waits, 1.00 s together, 5.00 ms at the longest"]));
    // The causes are those of `dipc why`.
    let why = json(folder.path(), &["why", "x.nettrace", "--format", "json"]);
    let why = &why["findings"][0];
    assert_eq!((&why["kind"], &why["cause"]), (&found["id"], &found["text"]));
    assert_eq!((&why["evidence"], &why["command"]), (&found["evidence"], &found["command"]));
    let folder = folder_with(&lock_waits(99));
    assert_eq!(cause(folder.path(), "lock-convoy"), None);
    let few = finding(folder.path(), "99 waits for locks, ").expect("a fact");
    assert_eq!(few["is_problem"], false);
}

/// The figures of a sentence, with their units.
fn figures(text: &str) -> Vec<String> {
    let words: Vec<_> =
        text.split_whitespace().map(|word| word.trim_matches([',', ':', ';', '(', ')'])).collect();
    let mut figures = Vec::new();
    for (at, word) in
        words.iter().enumerate().filter(|(_, word)| word.starts_with(|first: char| first.is_ascii_digit()))
    {
        let unit =
            words.get(at + 1).filter(|unit| ["s", "ms", "µs", "ns", "B", "KB", "MB", "GB"].contains(unit));
        figures.push(unit.map_or_else(|| (*word).to_owned(), |unit| format!("{word} {unit}")));
    }
    figures
}

#[test]
fn the_command_of_a_finding_prints_its_figures() {
    let mut seen = Vec::new();
    for (of, name) in [
        ("traces", "net10-all.nettrace"),
        ("traces", "net10-gcverbose.nettrace"),
        ("traces", "net10-sample.nettrace"),
        ("traces", "net9-joined.nettrace"),
        ("traces", "net9-background.nettrace"),
        ("traces", "v6-record-trace.nettrace"),
        ("reference", "net9-web.nettrace"),
        ("stacks", "net9-deadlock.nettrace"),
    ] {
        let (folder, path) = recording_in(of, name);
        // A name that a shell would not take as it is.
        let file = "it's a recording.nettrace";
        std::fs::rename(path, folder.path().join(file)).unwrap();
        let overview = json(folder.path(), &["report", file, "--format", "json"]);
        let shown = printed(folder.path(), &["report", file]);
        for finding in overview["findings"].as_array().unwrap() {
            let command = finding["command"].as_str().unwrap();
            assert!(shown.lines().any(|line| line.trim() == command), "{command}: {shown}");
            let command = command.replacen("dipc", env!("CARGO_BIN_EXE_dipc"), 1);
            let output =
                Command::new("sh").current_dir(folder.path()).args(["-c", &command]).output().unwrap();
            let answer = String::from_utf8(output.stdout).unwrap();
            let text = finding["text"].as_str().unwrap();
            assert_eq!(output.status.code(), Some(0), "{name}: {command}");
            // Causes have figures of their own, such as rates.
            let is_cause = finding["confidence"].is_string();
            for figure in figures(text).into_iter().filter(|_| !is_cause) {
                // The table of requests has the unit above the column.
                let number = figure.split(' ').next().unwrap();
                let is_there =
                    answer.contains(&figure) || (finding["report"] == "requests" && answer.contains(number));
                assert!(is_there, "{name}: {figure} of {text:?} by {command}:\n{answer}");
            }
            seen.push(finding["report"].as_str().unwrap().to_owned());
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["alloc", "contention", "exceptions", "gc", "jit", "requests", "topN"]);
}

#[test]
fn the_cpu_samples_of_a_machine_are_in_the_overview() {
    let (folder, file) = recording("v6-record-trace.nettrace");
    let file = file.to_str().unwrap();
    let overview = json(folder.path(), &["report", file, "--format", "json"]);
    let missing: Vec<_> =
        overview["missing"].as_array().unwrap().iter().map(|part| part["report"].as_str().unwrap()).collect();
    assert!(!missing.contains(&"topN"), "{missing:?}");
    let mut texts = overview["findings"].as_array().unwrap().iter().map(|it| it["text"].as_str().unwrap());
    assert!(texts.any(|text| text.starts_with("10.1 s of CPU time in 10,064 samples: ")), "{overview:#}");
}
