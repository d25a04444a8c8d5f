//! Descriptors that are sent with bytes.
#![cfg(unix)]

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use dipc_transport::{Connection, Deadline, Error, Listener, Operation, PeerCheck};

const PATIENCE: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(50);

fn patient() -> Deadline {
    Deadline::after(PATIENCE)
}

fn pair() -> (Connection, Connection) {
    let folder = tempfile::tempdir().unwrap();
    let mut listener = Listener::bind(folder.path().join("socket")).unwrap();
    let client = Connection::connect(listener.address(), PeerCheck::Any, patient()).unwrap();
    (client, listener.accept(patient()).unwrap())
}

/// Counts the descriptors of this process with `text` in their names.
#[cfg(target_os = "linux")]
fn open_here(text: &str) -> usize {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let names = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    names.filter(|name| name.to_string_lossy().contains(text)).count()
}

#[test]
fn the_peer_writes_to_the_received_file() {
    let (mut client, mut server) = pair();
    let mut file = tempfile::tempfile().unwrap();
    client.write_all(b"request", patient()).unwrap();
    client.send_with_descriptors(b"\0", &[file.as_fd()], patient()).unwrap();

    assert_eq!(server.read(&mut [0; 7], patient()).unwrap(), 7);
    let mut buffer = [1; 16];
    let received = server.receive_with_descriptors(&mut buffer, 1, patient()).unwrap();
    assert_eq!((received.bytes, buffer[0], received.surplus), (1, 0, false));
    let [descriptor] = <[_; 1]>::try_from(received.descriptors).unwrap();
    assert!(rustix::io::fcntl_getfd(&descriptor).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
    File::from(descriptor).write_all(b"an event").unwrap();

    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "an event");
}

#[test]
fn bytes_without_descriptors_are_received_as_well() {
    let (mut client, mut server) = pair();
    client.write_all(b"plain", patient()).unwrap();
    let received = server.receive_with_descriptors(&mut [0; 16], 3, patient()).unwrap();
    assert_eq!((received.bytes, received.descriptors.len(), received.surplus), (5, 0, false));
    drop(client);
    let received = server.receive_with_descriptors(&mut [0; 16], 3, patient()).unwrap();
    assert_eq!(received.bytes, 0);
}

#[cfg(target_os = "linux")]
#[test]
fn descriptors_beyond_the_limit_are_closed() {
    use std::os::fd::BorrowedFd;

    let (mut client, mut server) = pair();
    let file = tempfile::Builder::new().prefix("surplus-").tempfile().unwrap();
    let name = file.path().file_name().unwrap().to_str().unwrap().to_owned();
    let all: Vec<BorrowedFd<'_>> = std::iter::repeat_n(file.as_fd(), 253).collect();
    let before = open_here(&name);

    // More descriptors than the limit.
    client.send_with_descriptors(b"!", &all, patient()).unwrap();
    let received = server.receive_with_descriptors(&mut [0; 4], 2, patient()).unwrap();
    assert_eq!((received.bytes, received.descriptors.len(), received.surplus), (1, 2, true));
    assert_eq!(open_here(&name), before + 2);
    drop(received);

    // The maximum that one message holds.
    client.send_with_descriptors(b"!", &all, patient()).unwrap();
    let received = server.receive_with_descriptors(&mut [0; 4], usize::MAX, patient()).unwrap();
    assert_eq!((received.descriptors.len(), received.surplus), (253, false));
    drop(received);

    // To a plain read.
    client.send_with_descriptors(b"!", &all, patient()).unwrap();
    assert_eq!(server.read(&mut [0; 4], patient()).unwrap(), 1);
    // To a peer that closes before it reads them.
    client.send_with_descriptors(b"!", &all, patient()).unwrap();
    drop(server);
    assert_eq!(open_here(&name), before);

    let more: Vec<BorrowedFd<'_>> = std::iter::repeat_n(file.as_fd(), 254).collect();
    let (mut client, _server) = pair();
    let error = client.send_with_descriptors(b"!", &more, patient()).unwrap_err();
    assert!(error.to_string().contains("too many descriptors"), "{error}");
    let error = client.send_with_descriptors(b"", &more[..1], patient()).unwrap_err();
    assert!(error.to_string().contains("along with bytes"), "{error}");
}

#[test]
fn receiving_ends_at_its_deadline_and_is_cancelled() {
    let (mut client, mut server) = pair();
    let started = Instant::now();
    let error = server.receive_with_descriptors(&mut [0; 4], 1, Deadline::after(SHORT)).unwrap_err();
    assert!(matches!(error, Error::TimedOut { operation: Operation::Read, .. }), "{error:?}");
    assert!(started.elapsed() >= SHORT && started.elapsed() < PATIENCE);
    let file = tempfile::tempfile().unwrap();
    client.canceller().cancel();
    assert!(client.send_with_descriptors(b"!", &[file.as_fd()], patient()).unwrap_err().is_cancelled());
}

#[test]
fn tcp_carries_no_descriptors() {
    let mut listener = Listener::bind("127.0.0.1:0".parse::<dipc_transport::Address>().unwrap()).unwrap();
    let mut client = Connection::connect(listener.address(), PeerCheck::Any, patient()).unwrap();
    let _server = listener.accept(patient()).unwrap();
    let file = tempfile::tempfile().unwrap();
    let error = client.send_with_descriptors(b"!", &[file.as_fd()], patient()).unwrap_err();
    assert!(matches!(error, Error::Unsupported { operation: Operation::Write, .. }), "{error:?}");
    let error = client.receive_with_descriptors(&mut [0; 4], 1, patient()).unwrap_err();
    assert!(matches!(error, Error::Unsupported { operation: Operation::Read, .. }), "{error:?}");
}
