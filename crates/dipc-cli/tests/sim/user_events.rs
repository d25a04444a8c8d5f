//! Recordings of events in the kernel's user_events, where there are none.

use crate::{Sim, run};

/// Few kernels have user_events, and this runtime refuses to write to them.
#[test]
fn a_refused_recording_leaves_no_file_and_names_another_way() {
    let sim = Sim::start(1, &[]);
    let recording = sim.folder.path().join("app.nettrace");
    let output = recording.to_str().unwrap();
    let (code, _, messages) =
        run(&["trace", "--endpoint", sim.endpoint(), "--user-events", "-o", output, "--duration", "1s"]);
    assert_eq!(code, Some(4), "{messages}");
    assert!(messages.contains("user_events: ") || messages.contains("CollectTracing5"), "{messages}");
    assert!(!recording.exists());
    let left: Vec<_> = sim.folder.path().read_dir().unwrap().flatten().map(|file| file.path()).collect();
    assert!(left.iter().all(|path| sim.endpoints.contains(path)), "{left:?}");
}

#[test]
fn what_needs_a_stream_is_refused_at_once() {
    let refused = |arguments: &[&str]| {
        let (code, _, messages) = run(&[&["trace", "-p", "1", "--user-events"], arguments].concat());
        assert_eq!(code, Some(2), "{messages}");
        messages
    };
    refused(&["--keep", "10s"]);
    refused(&["--rotate", "10MB"]);
    assert!(refused(&["-o", "-"]).contains("--user-events need a file"));
    let stopping = refused(&["--stopping-event-provider-name", "Microsoft-Windows-DotNETRuntime"]);
    assert!(stopping.contains("ends a session with a stream"), "{stopping}");
}
