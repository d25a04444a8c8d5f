//! Connections over real sockets, with peers that do not behave.

use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use dipc_transport::{Address, Connection, Deadline, Error, Listener, Operation, PeerCheck};
use socket2::{Domain, SockAddr, Socket, Type};
use tempfile::TempDir;

/// Long enough for a crowded machine; a test that needs it all has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// What is waited for where the wait must end in a time-out.
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

/// `started` was long enough ago for a time-out of [`SHORT`], and not nearly as long as [`PATIENCE`].
fn assert_timed_out(error: &Error, operation: Operation, started: Instant) {
    assert!(matches!(error, Error::TimedOut { operation: found, .. } if *found == operation), "{error:?}");
    assert!(error.is_timeout());
    assert!(started.elapsed() >= SHORT, "gave up after {:?}", started.elapsed());
    assert!(started.elapsed() < PATIENCE, "gave up after {:?}", started.elapsed());
}

#[test]
fn bytes_go_both_ways_and_the_end_is_zero() {
    let (_folder, path) = folder();
    let (mut client, mut server) = pair(&path);
    let mut buffer = [0; 16];

    client.write_all(b"ping", patient()).unwrap();
    assert_eq!(server.read(&mut buffer, patient()).unwrap(), 4);
    assert_eq!(&buffer[..4], b"ping");
    server.write_all(b"pong!", patient()).unwrap();
    assert_eq!(client.read(&mut buffer, patient()).unwrap(), 5);
    assert_eq!(&buffer[..5], b"pong!");

    drop(server);
    assert_eq!(client.read(&mut buffer, patient()).unwrap(), 0);
    let error = client.write_all(b"anybody?", patient()).unwrap_err();
    assert!(error.is_disconnected(), "{error:?}");
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
fn a_read_ends_at_its_deadline_when_nobody_answers() {
    let (_folder, path) = folder();
    let (mut client, _server) = pair(&path);
    let started = Instant::now();
    let error = client.read(&mut [0; 8], Deadline::after(SHORT)).unwrap_err();
    assert_timed_out(&error, Operation::Read, started);
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
}

#[test]
fn a_read_ends_at_its_deadline_when_nobody_accepts() {
    let (_folder, path) = folder();
    let _listener = UnixListener::bind(&path).unwrap();
    let mut client = connect(&path, patient()).unwrap();
    client.write_all(b"hello", patient()).unwrap();
    let started = Instant::now();
    let error = client.read(&mut [0; 8], Deadline::after(SHORT)).unwrap_err();
    assert_timed_out(&error, Operation::Read, started);
}

#[test]
fn a_write_ends_at_its_deadline_when_nobody_reads() {
    let (_folder, path) = folder();
    let (mut client, _server) = pair(&path);
    let started = Instant::now();
    let error = client.write_all(&vec![0; 16 << 20], Deadline::after(SHORT)).unwrap_err();
    assert_timed_out(&error, Operation::Write, started);
}

#[test]
fn an_accept_ends_at_its_deadline_when_nobody_connects() {
    let (_folder, path) = folder();
    let mut listener = Listener::bind(&path).unwrap();
    let started = Instant::now();
    let error = listener.accept(Deadline::after(SHORT)).unwrap_err();
    assert_timed_out(&error, Operation::Accept, started);
}

#[test]
fn what_is_there_is_read_even_after_the_deadline() {
    let (_folder, path) = folder();
    let (mut client, mut server) = pair(&path);
    server.write_all(b"late", patient()).unwrap();
    assert_eq!(client.read(&mut [0; 8], Deadline::at(Instant::now())).unwrap(), 4);
}

#[test]
fn a_write_larger_than_all_buffers_arrives_whole() {
    let (_folder, path) = folder();
    let (mut client, mut server) = pair(&path);
    let sent: Vec<u8> = (0..8_u32 << 20).map(|i| (i % 251) as u8).collect();
    let expected = sent.clone();
    let writer = thread::spawn(move || client.write_all(&sent, patient()).unwrap());
    let (mut received, mut buffer) = (Vec::new(), vec![0; 10_007]);
    loop {
        match server.read(&mut buffer, patient()).unwrap() {
            0 => break,
            count => received.extend_from_slice(&buffer[..count]),
        }
    }
    writer.join().unwrap();
    assert!(received == expected, "{} of {} bytes", received.len(), expected.len());
}

/// A listener with room for one connection that waits for `accept`.
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
fn a_pending_read_is_cancelled_from_another_thread() {
    let (_folder, path) = folder();
    let (mut client, mut server) = pair(&path);
    let canceller = client.canceller();
    let started = Instant::now();
    let cancelling = thread::spawn(move || {
        thread::sleep(SHORT);
        canceller.cancel();
    });
    let error = client.read(&mut [0; 8], patient()).unwrap_err();
    assert!(matches!(error, Error::Cancelled { operation: Operation::Read, .. }), "{error:?}");
    assert!(started.elapsed() < PATIENCE);
    cancelling.join().unwrap();

    // It stays cancelled, even where something could be read or written.
    server.write_all(b"more", patient()).unwrap();
    assert!(client.read(&mut [0; 8], patient()).unwrap_err().is_cancelled());
    assert!(client.write_all(b"more", patient()).unwrap_err().is_cancelled());
    // Unless it is renewed; the other side is not concerned.
    let former = client.canceller();
    client.renew_canceller();
    former.cancel();
    assert_eq!(client.read(&mut [0; 8], patient()).unwrap(), 4);
    client.write_all(b"again", patient()).unwrap();
    assert_eq!(server.read(&mut [0; 8], patient()).unwrap(), 5);
    client.canceller().cancel();
    assert!(client.read(&mut [0; 8], patient()).unwrap_err().is_cancelled());
}

#[test]
fn closing_with_something_unread_is_a_disconnection() {
    let (_folder, path) = folder();
    let (client, mut server) = pair(&path);
    server.write_all(b"unread", patient()).unwrap();
    drop(client);
    assert!(server.read(&mut [0; 8], patient()).unwrap_err().is_disconnected());
}

#[test]
fn a_pending_write_and_a_pending_accept_are_cancelled_from_another_thread() {
    let (_folder, path) = folder();
    let mut listener = Listener::bind(&path).unwrap();
    let mut client = connect(&path, patient()).unwrap();
    let _server = listener.accept(patient()).unwrap();
    let cancellers = [client.canceller(), listener.canceller()];
    let cancelling = thread::spawn(move || {
        thread::sleep(SHORT);
        cancellers.iter().for_each(dipc_transport::Canceller::cancel);
    });
    assert!(client.write_all(&vec![0; 16 << 20], patient()).unwrap_err().is_cancelled());
    assert!(listener.accept(patient()).unwrap_err().is_cancelled());
    cancelling.join().unwrap();
}

#[test]
fn a_canceller_outlives_its_connection() {
    let (_folder, path) = folder();
    let (client, _server) = pair(&path);
    let canceller = client.canceller();
    drop(client);
    canceller.cancel();
    assert!(canceller.is_cancelled());
}

#[test]
fn what_is_no_listening_socket_has_an_error_of_its_own() {
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
fn a_listener_replaces_only_what_is_dead() {
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
