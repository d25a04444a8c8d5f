//! Every event that the target sent is in the recording, once.

use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::Workload;

/// The workload's own providers, and nothing else.
pub(crate) const WORKLOAD: &str = "Workload-Typed:0xffffffffffffffff:5,Workload-Nested:0xffffffffffffffff:5";

/// Ids of the runtime's own events.
const GC_START: u64 = 1;
const EXCEPTION_THROWN: u64 = 80;

on_each_runtime!(
    emitted_events_are_counted_exactly,
    a_session_with_rundown_is_whole,
    duration_ends_a_session
);

fn emitted_events_are_counted_exactly(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let recording = workload.record(&["--providers", WORKLOAD, "--rundown", "false"]);
    workload.run("emit 5000");
    let recorded = recording.interrupt();

    let stat = recorded.stat(0);
    stat.assert_whole();
    assert_eq!(stat.lost(), 0);
    let phases = ["Request/Start", "Request/Stop"];
    for name in ["Ints", "Floats", "Strings", "Bytes", phases[0], phases[1], "Enumy", "Nothing"] {
        assert_eq!(stat.count("Workload-Typed", name), 5000, "{name}: {}", stat.0);
    }
    let complaints = complaints(runtime, 5000);
    assert_eq!(stat.count("Workload-Typed", "EventSourceMessage"), complaints);
    assert_eq!(stat.provider("Workload-Typed"), 40_000 + complaints);
    assert_eq!(stat.provider("Workload-Nested"), 5000);
    assert_eq!(stat.count("Workload-Nested", "Nested"), 5000);
}

/// How many messages of its own an EventSource adds to so many rounds of `emit`: since .NET 5 one for each
/// Enumy event, whose argument is an enum that is written as an int, up to the limit that it sets itself.
pub(crate) fn complaints(runtime: Runtime, rounds: u64) -> u64 {
    if runtime == Runtime::Net3_1 { 0 } else { rounds.min(16) }
}

/// The default profile: the runtime's own events, the sampler where there is one, and at the end a list of
/// all methods.
fn a_session_with_rundown_is_whole(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let recording = workload.record(&[]);
    workload.run("throw 7");
    workload.run("gc 2 3");
    workload.run("spin 200");
    let stat = recording.interrupt().stat(0);
    stat.assert_whole();
    assert_eq!(stat.lost(), 0);
    assert_eq!(stat.runtime_events(EXCEPTION_THROWN), 7, "{}", stat.0);
    assert!(stat.runtime_events(GC_START) >= 3, "{}", stat.0);
    if runtime != Runtime::NativeAot9 {
        assert!(stat.provider("Microsoft-DotNETCore-SampleProfiler") > 50, "{}", stat.0);
        assert!(stat.provider("Microsoft-Windows-DotNETRuntimeRundown") > 500, "{}", stat.0);
    }
    assert_eq!(stat.0["process_id"], workload.pid());
}

fn duration_ends_a_session(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let arguments = ["--providers", WORKLOAD, "--rundown", "false", "--duration", "00:00:00:02"];
    let mut recording = workload.record(&arguments);
    // A busy machine may not get far within the time.
    let mut emitted = 0_u64;
    while !recording.is_over() {
        workload.run("emit 1");
        emitted += 1;
    }
    let stat = recording.finish().stat(0);
    stat.assert_whole();
    // One command has these eight and another one.
    let [typed, nested] = ["Workload-Typed", "Workload-Nested"].map(|provider| stat.provider(provider));
    assert!(typed > 0 && typed <= 8 * emitted && nested <= emitted, "{emitted}: {}", stat.0);
}
