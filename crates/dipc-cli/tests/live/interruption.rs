//! Ctrl-C, twice, and a target that dies in the middle.

use std::collections::BTreeMap;

use rustix::process::Signal;
use serde_json::Value;

use crate::loss::FLOOD;
use crate::program::{Recorded, Recording};
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::Workload;

on_each_runtime!(
    an_interrupted_flood_is_whole,
    a_killed_target_leaves_a_whole_prefix,
    a_second_interrupt_keeps_what_is_there,
);

/// More than any test waits for.
const ENDLESS: &str = "flood 2 2000000000";
/// Some seconds of flood at most, some blocks at least.
const ENOUGH: u64 = 3 << 20;

fn flooded(workload: &mut Workload) -> Recording {
    let arguments = ["--providers", FLOOD, "--rundown", "false", "--buffersize", "16"];
    let mut recording = workload.record(&arguments);
    workload.send(ENDLESS);
    recording.until(ENOUGH);
    recording
}

fn an_interrupted_flood_is_whole(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let recording = flooded(&mut workload);
    let recorded = recording.interrupt();
    recorded.stat(0).assert_whole();
}

fn a_killed_target_leaves_a_whole_prefix(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let recording = flooded(&mut workload);
    workload.kill();
    let recorded = recording.finish();
    assert_cut(&recorded);
}

fn a_second_interrupt_keeps_what_is_there(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let recording = flooded(&mut workload);
    // A stopped process answers no request to stop the session.
    workload.signal(Signal::STOP);
    recording.signal(Signal::INT);
    std::thread::sleep(std::time::Duration::from_millis(300));
    recording.signal(Signal::INT);
    let recorded = recording.finish();
    assert_cut(&recorded);
}

/// The recording ends too early, and what is in it is what was sent first: of each thread the numbers from 0 on, with gaps only
/// where the runtime says that it lost some.
fn assert_cut(recorded: &Recorded) {
    let stat = recorded.stat(6);
    assert_eq!(stat.0["truncated"], true, "{}", stat.0);
    let mut next: BTreeMap<u64, u64> = BTreeMap::new();
    let mut missing = 0;
    let ticks: Vec<Value> = recorded.events(6, &["--event", "Tick"]);
    assert!(ticks.len() > 10_000, "{}", stat.0);
    for tick in &ticks {
        let number = |field: &str| tick["fields"][field].as_u64().unwrap();
        let expected = next.entry(number("thread")).or_default();
        assert!(number("i") >= *expected, "twice or out of order: {tick}");
        missing += number("i") - *expected;
        *expected = number("i") + 1;
    }
    assert_eq!(next.len(), 2, "both threads are there");
    assert_eq!(missing, stat.lost(), "{}", stat.0);
}
