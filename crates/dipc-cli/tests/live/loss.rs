//! Where the runtime drops events, every one of them is either in the recording or counted as lost.

use std::time::Duration;

use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::Workload;

/// The numbered events alone.
pub(crate) const FLOOD: &str = "Workload-Typed:0x20:5";

/// From one thread, and not for long: a runtime says nothing of a thread that never found room, and nothing of what a thread
/// lost between the last sequence point before its end (they come about once a second) and its end. With four threads and a
/// million events one recording in ten lacks such a tail (seen on 9.0.20: the thread is in no later sequence point).
const FLOODING: &str = "flood 1 300000";
const SENT: u64 = 300_000;

on_each_runtime!(received_and_lost_are_what_was_sent, loss_can_be_made_a_failure);

fn received_and_lost_are_what_was_sent(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let recording = workload.record(&["--providers", FLOOD, "--rundown", "false", "--buffersize", "1"]);
    workload.run(FLOODING);
    // Room again for the one event that the runtime adds at the end, or it would be one more lost.
    std::thread::sleep(Duration::from_millis(500));
    let stat = recording.interrupt().stat(0);
    stat.assert_whole();
    assert_eq!(stat.count("Microsoft-DotNETCore-EventPipe", "ProcessInfo"), 1, "{}", stat.0);
    let received = stat.count("Workload-Typed", "Tick");
    assert!(received > 0 && stat.lost() > 0, "1 MB does not hold this flood: {}", stat.0);
    assert_eq!(received + stat.lost(), SENT);
}

fn loss_can_be_made_a_failure(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let flood = ["--providers", FLOOD, "--rundown", "false", "--buffersize", "1", "--fail-on-loss"];
    let recording = workload.record(&flood);
    workload.run(FLOODING);
    let recorded = recording.interrupt();
    assert_eq!(recorded.program.code, Some(7), "{}", recorded.program.stderr);

    let recording = workload.record(&flood);
    workload.run("flood 1 10");
    let stat = recording.interrupt().stat(0);
    assert_eq!((stat.count("Workload-Typed", "Tick"), stat.lost()), (10, 0));
}
