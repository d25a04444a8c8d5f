//! Unix domain sockets: their files, their peers, their queues.
#![cfg(unix)]

use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use dipc_transport::{Address, Connection, Deadline, Error, Listener, Operation, PeerCheck};
use socket2::{Domain, SockAddr, Socket, Type};
use tempfile::TempDir;

/// Long enough for a crowded machine; a test that uses all of it has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// The wait of tests that expect a time-out.
const SHORT: Duration = Duration::from_millis(50);

fn patient() -> Deadline {
    Deadline::after(PATIENCE)
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    (folder, path)
}

fn connect(path: &Path, deadline: Deadline) -> Result<Connection, Error> {
    Connection::connect(&Address::from(path), PeerCheck::Any, deadline)
}

fn pair(path: &Path) -> (Connection, Connection) {
    let mut listener = Listener::bind(path).unwrap();
    let client = connect(path, patient()).unwrap();
    (client, listener.accept(patient()).unwrap())
}

/// Asserts that `started` was long enough ago for a time-out of [`SHORT`], and not nearly as long as
/// [`PATIENCE`].
fn assert_timed_out(error: &Error, operation: Operation, started: Instant) {
    assert!(matches!(error, Error::TimedOut { operation: found, .. } if *found == operation), "{error:?}");
    assert!(error.is_timeout());
    assert!(started.elapsed() >= SHORT, "gave up after {:?}", started.elapsed());
    assert!(started.elapsed() < PATIENCE, "gave up after {:?}", started.elapsed());
}

#[test]
fn both_sides_know_their_peer() {
    let (_folder, path) = folder();
    let (client, server) = pair(&path);
    for peer in [client.peer(), server.peer()] {
        assert_eq!(peer.pid, Some(std::process::id()));
        assert_eq!(peer.uid, Some(rustix::process::geteuid().as_raw()));
        assert_eq!(peer.gid, Some(rustix::process::getegid().as_raw()));
    }
}

#[test]
fn another_listener_than_the_expected_one_gets_no_byte() {
    let (_folder, path) = folder();
    let mut listener = Listener::bind(&path).unwrap();
    let (pid, uid) = (std::process::id() + 1, rustix::process::geteuid().as_raw());
    let error =
        Connection::connect(&Address::from(&*path), PeerCheck::Process { pid, uid }, patient()).unwrap_err();
    assert!(
        matches!(error, Error::PeerMismatch { found, .. } if found.pid == Some(std::process::id())),
        "{error:?}"
    );
    assert!(error.is_unreachable());
    let mut received = [0; 8];
    assert_eq!(listener.accept(patient()).unwrap().read(&mut received, patient()).unwrap(), 0);
}

#[test]
fn a_read_from_a_listener_that_does_not_accept_ends_at_its_deadline() {
    let (_folder, path) = folder();
    let _listener = UnixListener::bind(&path).unwrap();
    let mut client = connect(&path, patient()).unwrap();
    client.write_all(b"hello", patient()).unwrap();
    let started = Instant::now();
    let error = client.read(&mut [0; 8], Deadline::after(SHORT)).unwrap_err();
    assert_timed_out(&error, Operation::Read, started);
}

/// Creates a listener with room for one connection that waits for `accept`.
fn crowded_listener(path: &Path) -> Socket {
    let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    listener.bind(&SockAddr::unix(path).unwrap()).unwrap();
    listener.listen(0).unwrap();
    listener
}

#[test]
fn a_full_queue_is_waited_for_until_the_deadline() {
    let (_folder, path) = folder();
    let listener = crowded_listener(&path);
    let _first = connect(&path, patient()).unwrap();
    let started = Instant::now();
    let error = connect(&path, Deadline::after(SHORT)).unwrap_err();
    assert_timed_out(&error, Operation::Connect, started);

    let waiting = thread::spawn({
        let path = path.clone();
        move || connect(&path, patient())
    });
    thread::sleep(SHORT);
    let _accepted = listener.accept().unwrap();
    waiting.join().unwrap().unwrap();
}

#[test]
fn closing_with_unread_bytes_is_a_disconnection() {
    let (_folder, path) = folder();
    let (client, mut server) = pair(&path);
    server.write_all(b"unread", patient()).unwrap();
    drop(client);
    assert!(server.read(&mut [0; 8], patient()).unwrap_err().is_disconnected());
}

#[test]
fn addresses_without_a_listener_have_their_own_errors() {
    let (folder, path) = folder();
    let error = connect(&path, patient()).unwrap_err();
    assert!(matches!(error, Error::NoSocket { .. }), "{error:?}");

    drop(UnixListener::bind(&path).unwrap());
    let error = connect(&path, patient()).unwrap_err();
    assert!(matches!(error, Error::Stale { .. }), "{error:?}");
    assert!(error.is_unreachable() && error.help().is_some());

    let file = folder.path().join("file");
    std::fs::write(&file, "text").unwrap();
    let error = connect(&file, patient()).unwrap_err();
    assert!(matches!(error, Error::NotASocket { .. }), "{error:?}");
}

#[test]
fn a_path_longer_than_a_socket_address_is_listened_on_and_reached() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("d".repeat(120)).join("e".repeat(200));
    std::fs::create_dir_all(&deep).unwrap();
    let path = deep.join("dotnet-diagnostic-1-2-socket");
    let mut listener = Listener::bind(&path).unwrap();
    assert!(std::fs::symlink_metadata(&path).unwrap().file_type().is_socket());
    let mut client = connect(&path, patient()).unwrap();
    client.write_all(b"deep", patient()).unwrap();
    assert_eq!(listener.accept(patient()).unwrap().read(&mut [0; 8], patient()).unwrap(), 4);
    drop(listener);
    assert!(!path.exists());

    let error = connect(&deep.join("n".repeat(110)), patient()).unwrap_err();
    assert!(matches!(error, Error::PathTooLong { limit: 107, .. }), "{error:?}");
    let error = connect(&folder.path().join("x".repeat(120)).join("socket"), patient()).unwrap_err();
    assert!(matches!(error, Error::NoSocket { .. }), "{error:?}");
}

#[test]
fn a_listener_replaces_only_dead_sockets() {
    let (folder, path) = folder();
    drop(UnixListener::bind(&path).unwrap());
    let listener = Listener::bind(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    let error = Listener::bind(&path).unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error:?}");
    drop(listener);
    assert!(!path.exists());

    let file = folder.path().join("file");
    std::fs::write(&file, "text").unwrap();
    assert!(matches!(Listener::bind(&file).unwrap_err(), Error::InUse { .. }));
    assert_eq!(std::fs::read(&file).unwrap(), b"text");
}

#[test]
fn a_listener_does_not_remove_its_successor() {
    let (_folder, path) = folder();
    let first = Listener::bind(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut second = Listener::bind(&path).unwrap();
    drop(first);
    let mut stream = UnixStream::connect(&path).unwrap();
    drop(second.accept(patient()).unwrap());
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn no_descriptor_is_inherited_by_a_child() {
    let (_folder, path) = folder();
    let (_client, _server) = pair(&path);
    let _listener = Listener::bind(&path).unwrap();
    let output = std::process::Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
    let listing = String::from_utf8(output.stdout).unwrap();
    assert!(listing.contains("/proc/"), "{listing}");
    assert!(!listing.contains("socket:") && !listing.contains("anon_inode"), "{listing}");
}
