//! The target outlives a client that vanishes, and so does its willingness to be traced.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::counts::{WORKLOAD, complaints};
use crate::loss::FLOOD;
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::Workload;

/// Longer than a runtime takes to notice.
const PATIENCE: Duration = Duration::from_secs(60);

on_each_runtime!(a_killed_client_leaves_the_target_as_it_was);

fn a_killed_client_leaves_the_target_as_it_was(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    // Between floods: runtimes themselves do not always survive it in the middle of one (NativeAOT 9.0.20
    // dies of a segmentation fault about once in six times).
    let sockets = workload.sockets();
    for _ in 0..3 {
        let mut recording = workload.record(&["--providers", FLOOD, "--rundown", "false"]);
        workload.run("flood 1 20000");
        recording.until(100_000);
        recording.signal(Signal::KILL);
        assert_eq!(recording.finish().program.code, None, "a signal ended it");
        // The runtime finds out when it has something to send.
        workload.run("flood 1 100");
        let deadline = Instant::now() + PATIENCE;
        while workload.sockets() > sockets {
            assert!(Instant::now() < deadline, "the runtime keeps the session");
            std::thread::sleep(Duration::from_millis(5));
        }
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
