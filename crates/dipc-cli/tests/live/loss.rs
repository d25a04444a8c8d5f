//! Where the runtime drops events, every one of them is either in the recording or counted as lost.

use crate::program::Recording;
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::Workload;

/// The numbered events alone.
pub(crate) const FLOOD: &str = "Workload-Typed:0x20:5";

on_each_runtime!(received_and_lost_are_what_was_sent, loss_can_be_made_a_failure);

fn received_and_lost_are_what_was_sent(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let recording =
        Recording::start(workload.pid(), &["--providers", FLOOD, "--rundown", "false", "--buffersize", "1"]);
    workload.run("flood 4 300000");
    let stat = recording.interrupt().stat(0);
    stat.assert_whole();
    let received = stat.count("Workload-Typed", "Tick");
    assert!(received > 0 && stat.lost() > 0, "1 MB does not hold this flood: {}", stat.0);
    assert_eq!(received + stat.lost(), 4 * 300_000);
}

fn loss_can_be_made_a_failure(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let flood = ["--providers", FLOOD, "--rundown", "false", "--buffersize", "1", "--fail-on-loss"];
    let recording = Recording::start(workload.pid(), &flood);
    workload.run("flood 4 300000");
    let recorded = recording.interrupt();
    assert_eq!(recorded.program.code, Some(7), "{}", recorded.program.stderr);

    let recording = Recording::start(workload.pid(), &flood);
    workload.run("flood 1 10");
    let stat = recording.interrupt().stat(0);
    assert_eq!((stat.count("Workload-Typed", "Tick"), stat.lost()), (10, 0));
}
