use crate::plain_client::patience;
use dipc_sim::Runtime;
use dipc_wire::{Command as _, Feed, MessageReader, ProcessInfo3, decode_reply};
use std::process::Command;

/// Set for the copy of this test that has a `TMPDIR` of its own.
const INNER: &str = "DIPC_SIM_TEST_HAS_PRIVATE_TMPDIR";

/// Discovery reads the `TMPDIR` that a process had at its start, so this test starts itself again with
/// another `TMPDIR`, and is both the runtime and the client there.
#[test]
fn a_simulated_runtime_is_discovered() {
    if std::env::var_os(INNER).is_some() {
        return be_found();
    }
    let folder = tempfile::tempdir().unwrap();
    let name = "discovery::a_simulated_runtime_is_discovered";
    let output = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env("TMPDIR", folder.path())
        .env(INNER, "1")
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown}{}", String::from_utf8_lossy(&output.stderr));
    assert!(shown.contains("1 passed"), "{shown}");
}

fn be_found() {
    let runtime = Runtime::builder().start_in(&std::env::temp_dir()).unwrap();
    let pid = std::process::id();
    let endpoint = dipc_transport::find(pid).unwrap();
    assert_eq!(endpoint.path, runtime.endpoint_path());
    assert!(dipc_transport::discover().endpoints.contains(&endpoint));

    // This process listens on the socket, so the check of the peer passes.
    let mut connection = endpoint.connect(patience()).unwrap();
    connection.write_all(&ProcessInfo3.to_bytes().unwrap(), patience()).unwrap();
    let mut reader = MessageReader::new();
    let mut buffer = [0; 1024];
    let message = loop {
        let count = connection.read(&mut buffer, patience()).unwrap();
        match reader.feed(&buffer[..count]).unwrap() {
            Feed::NeedMore(missing) => assert!(count > 0, "{missing} bytes are missing"),
            Feed::Message { message, .. } => break message,
        }
    };
    let info = decode_reply::<ProcessInfo3>(&message).unwrap().unwrap();
    assert_eq!(info.process_id, u64::from(pid));
    assert_eq!(info.clr_version, "9.0.1");
}
