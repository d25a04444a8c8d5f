//! The target outlives a client that vanishes, and so does its willingness to be traced.

use rustix::process::Signal;

use crate::counts::{WORKLOAD, complaints};
use crate::loss::FLOOD;
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::Workload;

on_each_runtime!(a_killed_client_leaves_the_target_as_it_was);

fn a_killed_client_leaves_the_target_as_it_was(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let flood = "flood 2 300000";
    for _ in 0..3 {
        let mut recording = workload.record(&["--providers", FLOOD, "--rundown", "false"]);
        workload.send(flood);
        recording.until(100_000);
        recording.signal(Signal::KILL);
        assert_eq!(recording.finish().program.code, None, "a signal ended it");
        workload.done(flood);
    }
    let recording = workload.record(&["--providers", WORKLOAD, "--rundown", "false"]);
    workload.run("emit 100");
    let stat = recording.interrupt().stat(0);
    stat.assert_whole();
    assert_eq!(
        (stat.lost(), stat.provider("Workload-Nested"), stat.provider("Workload-Typed")),
        (0, 100, 800 + complaints(runtime, 100))
    );
}
