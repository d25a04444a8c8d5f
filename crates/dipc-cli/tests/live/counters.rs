//! `dipc counters` of a process.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Running, dipc};
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::Workload;

on_each_runtime!(what_the_program_counts_is_what_comes, a_condition_ends_the_wait);

const PATIENCE: Duration = Duration::from_secs(120);

/// The whole lines of a file that is being written.
fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The sum of a member over the lines of a counter.
fn sum(lines: &[Value], name: &str, member: &str) -> f64 {
    lines.iter().filter(|line| line["name"] == name).filter_map(|line| line[member].as_f64()).sum()
}

/// Waits until the file is as said.
fn until(file: &Path, is_so: impl Fn(&[Value]) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so(&lines(file)) {
        assert!(Instant::now() < deadline, "{:?}", lines(file));
        thread::sleep(Duration::from_millis(20));
    }
}

fn what_the_program_counts_is_what_comes(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    // The program's EventSource is there, so that each runtime knows it when it is asked for.
    workload.run("counters 1");
    let folder = tempfile::tempdir().unwrap();
    let (file, pid) = (folder.path().join("counted.jsonl"), workload.pid().to_string());
    let arguments =
        ["counters", "collect", "-p", &pid, "--format", "jsonl", "--refresh-interval", "0.5", "-o"];
    let wanted = ["--counters", "Workload-Counters,Workload.Meter"];
    let counting = Running::start(dipc(arguments.into_iter().chain([file.to_str().unwrap()]).chain(wanted)));
    until(&file, |lines| lines.iter().any(|line| line["name"] == "requests"));
    let before = lines(&file);
    workload.run("counters 700");
    workload.run("counters 300");
    until(&file, |lines| {
        sum(lines, "requests", "increment") - sum(&before, "requests", "increment") >= 1000.0
    });
    let has_meters = runtime != Runtime::Net3_1;
    if has_meters {
        until(&file, |lines| sum(lines, "orders", "increment") >= 1000.0);
    }
    counting.signal(Signal::INT);
    let finished = counting.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let lines = lines(&file);
    let counted = |name: &str, member: &str| sum(&lines, name, member) - sum(&before, name, member);
    assert!((counted("requests", "increment") - 1000.0).abs() < 0.5, "{lines:?}");
    assert!((counted("latency", "count") - 1000.0).abs() < 0.5, "{lines:?}");
    if has_meters {
        assert!((sum(&lines, "orders", "increment") - 1000.0).abs() < 0.5, "{lines:?}");
        assert!((sum(&lines, "order.size", "count") - 1000.0).abs() < 0.5, "{lines:?}");
        let order = lines.iter().find(|line| line["name"] == "orders").unwrap();
        assert_eq!((&order["kind"], &order["unit"]), (&"counter".into(), &"{order}".into()));
        assert!(order["tags"]["city"].is_string() && order["tags"]["tier"].is_string(), "{order}");
    }
}

fn a_condition_ends_the_wait(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    workload.run("counters 1");
    let pid = workload.pid().to_string();
    let counters = |condition: &'static str, duration: &'static str| {
        let arguments = ["--counters", "Workload-Counters", "--until", condition, "--duration", duration];
        dipc(["counters", "monitor", "-p", &pid, "--refresh-interval", "0.2"].into_iter().chain(arguments))
    };
    let unmet = Running::start(counters("requests > 1e9", "1500ms")).finish();
    assert_eq!(unmet.code, Some(5), "{unmet:?}");
    assert!(unmet.stderr.contains("--until"), "{unmet:?}");
    let mut waiting = Running::start(counters("Workload-Counters/requests > 10", "100s"));
    let deadline = Instant::now() + PATIENCE;
    while !waiting.is_over() {
        assert!(Instant::now() < deadline, "it waits on");
        workload.run("counters 50");
        thread::sleep(Duration::from_millis(20));
    }
    let met = waiting.finish();
    assert_eq!(met.code, Some(0), "{met:?}");
    assert!(met.stderr.contains("Met            : Workload-Counters Requests: "), "{met:?}");
}

/// Clients of the Meters' shared session have to agree on its settings: the second takes over those of the first.
#[test]
fn a_second_client_joins_the_session_of_meters() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    workload.run("counters 1");
    let folder = tempfile::tempdir().unwrap();
    let pid = workload.pid().to_string();
    let start = |name: &str, interval: &'static str| {
        let file = folder.path().join(name);
        let path = file.to_str().unwrap().to_owned();
        let arguments =
            ["counters", "collect", "-p", &pid, "--format", "jsonl", "--counters", "Workload.Meter"];
        let rest = ["--refresh-interval", interval, "-o", &*path];
        (Running::start(dipc(arguments.into_iter().chain(rest))), file)
    };
    let is_counted = |lines: &[Value]| lines.iter().any(|line| line["name"] == "temperature");
    let (first, first_file) = start("first.jsonl", "0.5");
    until(&first_file, is_counted);
    let (second, second_file) = start("second.jsonl", "2");
    until(&second_file, is_counted);
    for running in [first, second] {
        running.signal(Signal::INT);
        let finished = running.finish();
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }
}
