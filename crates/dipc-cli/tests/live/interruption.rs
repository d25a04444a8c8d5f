//! Ctrl-C, twice, and a target that dies in the middle.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use rustix::process::Signal;

use crate::loss::FLOOD;
use crate::program::{Recorded, Recording, Running, await_next_request, dipc};
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::Workload;

on_each_runtime!(
    an_interrupted_flood_is_whole,
    a_killed_target_leaves_a_whole_prefix,
    a_second_interrupt_keeps_the_received_part,
    one_action_of_many_signals_leaves_nothing_out,
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

fn a_second_interrupt_keeps_the_received_part(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let recording = flooded(&mut workload);
    // A stopped process answers no request to stop the session.
    workload.halt();
    recording.signal(Signal::INT);
    await_next_request();
    recording.signal(Signal::INT);
    let recorded = recording.finish();
    assert_cut(&recorded);
}

/// As a closed terminal, `timeout` and a key that bounces send them.
fn one_action_of_many_signals_leaves_nothing_out(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let arguments = ["--providers", FLOOD, "--buffersize", "16"];
    let mut recording = workload.record(&arguments);
    workload.send(ENDLESS);
    recording.until(ENOUGH);
    for signal in [Signal::HUP, Signal::HUP, Signal::INT, Signal::TERM, Signal::INT] {
        recording.signal(signal);
        std::thread::sleep(Duration::from_millis(30));
    }
    let stat = recording.finish().stat(0);
    stat.assert_whole();
    // A program compiled ahead of time has no methods to list.
    let has_rundown = stat.provider("Microsoft-Windows-DotNETRuntimeRundown") > 0;
    assert_eq!(has_rundown, runtime != Runtime::NativeAot9, "{}", stat.0);
}

/// A runtime that does not answer does not keep `dipc` from exiting.
#[test]
fn an_interrupt_during_the_request_for_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, output) = (folder.path().join("socket"), folder.path().join("out.nettrace"));
    let listener = UnixListener::bind(&socket).unwrap();
    let fixed = ["trace", "--endpoint", socket.to_str().unwrap(), "-o", output.to_str().unwrap()];
    let running = Running::start(dipc(fixed.into_iter().chain(["--timeout", "600s"])));
    let (mut connection, _) = listener.accept().unwrap();
    connection.read_exact(&mut [0; 20]).unwrap();
    running.signal(Signal::INT);
    running.finish().with_code(1).assert_error_names(&["interrupted", "nothing was recorded"]);
    assert!(!output.exists(), "nothing was recorded, so nothing is left behind");
}

/// The recording ends too early, and what is in it is what was sent first: of each thread the numbers from 0
/// on, with gaps only where the runtime says that it lost some.
fn assert_cut(recorded: &Recorded) {
    let stat = recorded.stat(6);
    assert_eq!(stat.0["truncated"], true, "{}", stat.0);
    let (mut next, mut last) = (BTreeMap::<u64, u64>::new(), BTreeMap::new());
    let (mut ticks, mut missing) = (0, 0);
    let mut events = nettrace::Reader::new(fs::File::open(recorded.file()).unwrap()).unwrap();
    while let Some(event) = events.next().unwrap() {
        last.insert(event.thread_id(), event.time());
        if event.metadata().name() != "Tick" {
            continue;
        }
        let fields = event.fields().map(|field| field.unwrap());
        let numbers: BTreeMap<_, _> = fields
            .map(|(name, value)| (name.to_string(), value.to_string().parse::<u64>().unwrap()))
            .collect();
        let (thread, number) = (numbers["thread"], numbers["i"]);
        let expected = next.entry(thread).or_default();
        assert!(number >= *expected, "twice or out of order: {number} of {thread}");
        missing += number - *expected;
        *expected = number + 1;
        ticks += 1;
    }
    assert!(ticks > 10_000, "{}", stat.0);
    assert_eq!(next.len(), 2, "both threads are there");
    // A last sequence point may report the loss of events that would have followed the last one of a thread:
    // the cut left no later one whose number shows the gap.
    let gaps = events.loss().gaps().iter();
    let at_the_end = gaps.filter(|gap| gap.after.is_some() && gap.after.as_ref() == last.get(&gap.thread));
    missing += at_the_end.map(|gap| gap.events).sum::<u64>();
    assert_eq!(missing, stat.lost(), "{}", stat.0);
}
