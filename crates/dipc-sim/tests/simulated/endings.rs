use crate::plain_client::{ask, connect, patience, recording, start_session};
use dipc_sim::{Error, Fault, Runtime, Speed};
use dipc_wire::{Command as _, ProcessInfo3};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

#[test]
fn the_socket_has_the_name_of_the_process_and_is_for_its_user_only() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().pid(4711).key(98765).start_in(folder.path()).unwrap();
    let path = folder.path().join("dotnet-diagnostic-4711-98765-socket");
    assert_eq!(runtime.endpoint_path(), path);
    assert_eq!(runtime.pid(), 4711);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(ask(&runtime, &ProcessInfo3).unwrap().process_id, 4711);
    drop(runtime);
    assert!(!path.exists());
}

#[test]
fn dropping_ends_every_conversation_and_waits_for_its_threads() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder()
        .replay(recording(20_000_000))
        .speed(Speed::BytesPerSecond(1))
        .fault_on(ProcessInfo3::ID, Fault::NeverAnswer)
        .start_in(folder.path())
        .unwrap();
    // A silent client, a client that waits for an answer, and a session.
    let mut silent = connect(&runtime);
    let mut waiting = connect(&runtime);
    waiting.write_all(&ProcessInfo3.to_bytes().unwrap(), patience()).unwrap();
    let (_, answer) = start_session(&runtime);
    let path = runtime.endpoint_path().to_owned();

    let dropped = Instant::now();
    drop(runtime);
    // Each of them alone would have taken at least a minute.
    assert!(dropped.elapsed() < Duration::from_secs(20));
    assert!(!path.exists());
    for connection in [&mut silent, &mut waiting] {
        match connection.read(&mut [0; 10], patience()) {
            Ok(count) => assert_eq!(count, 0),
            Err(error) => assert!(error.is_disconnected(), "{error}"),
        }
    }
    assert!(answer.rest().len() < 1000);
}

#[test]
fn a_client_that_does_not_read_does_not_keep_the_runtime_from_ending() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().replay(recording(20_000_000)).start_in(folder.path()).unwrap();
    let (_, answer) = start_session(&runtime);
    std::thread::sleep(Duration::from_millis(100));
    let dropped = Instant::now();
    drop(runtime);
    assert!(dropped.elapsed() < Duration::from_secs(20));
    drop(answer);
}

#[test]
fn a_second_runtime_cannot_take_the_name_of_a_living_one() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().start_in(folder.path()).unwrap();
    let second = Runtime::builder().start_in(folder.path());
    assert!(matches!(second, Err(Error::Transport(dipc_transport::Error::InUse { .. }))));
    assert!(ask(&runtime, &ProcessInfo3).is_ok());
}

#[test]
fn a_folder_that_does_not_exist_is_an_error() {
    let error = Runtime::builder().start_in("/no/such/folder".as_ref()).unwrap_err();
    assert!(error.to_string().contains("/no/such/folder"), "{error}");
}

#[test]
fn an_identity_that_cannot_be_sent_is_an_error_of_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut identity = dipc_sim::Identity::new(1, dipc_sim::Version::NET9);
    identity.command_line = "x".repeat(40_000);
    let error = Runtime::builder().identity(identity).start_in(folder.path()).unwrap_err();
    assert!(matches!(error, Error::Reply { command: "ProcessInfo", .. }), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
