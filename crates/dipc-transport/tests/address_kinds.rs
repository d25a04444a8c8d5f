//! Scenarios over every kind of address: the system's own sockets or pipes, and TCP.

use std::thread;
use std::time::{Duration, Instant};

use dipc_transport::{Address, Canceller, Connection, Deadline, Error, Listener, Operation, PeerCheck};
use tempfile::TempDir;

/// Long enough for a crowded machine; a test that uses all of it has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// The wait of tests that expect a time-out.
const SHORT: Duration = Duration::from_millis(50);
/// More bytes than the buffers between two peers hold.
const MUCH: usize = 16 << 20;

#[derive(Clone, Copy)]
enum Kind {
    /// The system's own: a Unix domain socket or a named pipe.
    Local,
    Tcp,
}

struct Place {
    address: Address,
    _folder: TempDir,
}

impl Place {
    fn new(kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = match kind {
            Kind::Tcp => "127.0.0.1:0".parse().unwrap(),
            Kind::Local if cfg!(windows) => {
                Address::Pipe(format!("dipc-test-{}", folder.path().file_name().unwrap().display()))
            }
            Kind::Local => Address::from(folder.path().join("socket")),
        };
        Self { address, _folder: folder }
    }

    fn listen(&self) -> Listener {
        Listener::bind(&self.address).unwrap()
    }
}

fn patient() -> Deadline {
    Deadline::after(PATIENCE)
}

fn connect(listener: &Listener) -> Connection {
    Connection::connect(listener.address(), PeerCheck::Any, patient()).unwrap()
}

fn pair(kind: Kind) -> (Connection, Connection, Place) {
    let place = Place::new(kind);
    let mut listener = place.listen();
    let client = connect(&listener);
    (client, listener.accept(patient()).unwrap(), place)
}

/// Asserts that `started` was long enough ago for a time-out of [`SHORT`], and not nearly as long as
/// [`PATIENCE`].
fn assert_timed_out(error: &Error, operation: Operation, started: Instant) {
    assert!(matches!(error, Error::TimedOut { operation: found, .. } if *found == operation), "{error:?}");
    assert!(error.is_timeout());
    assert!(started.elapsed() >= SHORT, "gave up after {:?}", started.elapsed());
    assert!(started.elapsed() < PATIENCE, "gave up after {:?}", started.elapsed());
}

fn bytes_go_both_ways_and_the_end_is_zero(kind: Kind) {
    let (mut client, mut server, _place) = pair(kind);
    let mut buffer = [0; 16];
    client.write_all(b"ping", patient()).unwrap();
    assert_eq!(server.read(&mut buffer, patient()).unwrap(), 4);
    assert_eq!(&buffer[..4], b"ping");
    server.write_all(b"pong!", patient()).unwrap();
    assert_eq!(client.read(&mut buffer, patient()).unwrap(), 5);
    assert_eq!(&buffer[..5], b"pong!");

    drop(server);
    assert_eq!(client.read(&mut buffer, patient()).unwrap(), 0);
    assert_eq!(client.read(&mut buffer, patient()).unwrap(), 0);
    // Over TCP the peer's refusal has to arrive first.
    let error = loop {
        match client.write_all(b"anybody?", patient()) {
            Ok(()) => thread::sleep(Duration::from_millis(1)),
            Err(error) => break error,
        }
    };
    assert!(error.is_disconnected(), "{error:?}");
}

fn bytes_written_before_the_end_are_read(kind: Kind) {
    let (mut client, mut server, _place) = pair(kind);
    server.write_all(b"last words", patient()).unwrap();
    drop(server);
    let mut buffer = [0; 4];
    assert_eq!(client.read(&mut buffer, patient()).unwrap(), 4);
    assert_eq!(client.read(&mut buffer, patient()).unwrap(), 4);
    assert_eq!(client.read(&mut buffer, patient()).unwrap(), 2);
    assert_eq!(client.read(&mut buffer, patient()).unwrap(), 0);
}

fn one_listener_serves_many_clients(kind: Kind) {
    let place = Place::new(kind);
    let mut listener = place.listen();
    let mut servers = Vec::new();
    for turn in 0..5_u8 {
        let mut client = connect(&listener);
        let mut server = listener.accept(patient()).unwrap();
        client.write_all(&[turn], patient()).unwrap();
        assert_eq!(server.read(&mut [0; 8], patient()).unwrap(), 1);
        servers.push((client, server));
    }
    for (client, server) in &mut servers {
        server.write_all(b"!", patient()).unwrap();
        assert_eq!(client.read(&mut [0; 8], patient()).unwrap(), 1);
    }
}

fn a_read_without_an_answer_ends_at_its_deadline(kind: Kind) {
    let (mut client, mut server, _place) = pair(kind);
    let started = Instant::now();
    let error = client.read(&mut [0; 8], Deadline::after(SHORT)).unwrap_err();
    assert_timed_out(&error, Operation::Read, started);
    assert!(error.to_string().contains(&client.address().to_string()), "{error}");
    // Later bytes are still read.
    server.write_all(b"late", patient()).unwrap();
    assert_eq!(client.read(&mut [0; 8], patient()).unwrap(), 4);
}

fn a_write_without_a_reader_ends_at_its_deadline(kind: Kind) {
    let (mut client, _server, _place) = pair(kind);
    let started = Instant::now();
    let error = client.write_all(&vec![0; MUCH], Deadline::after(SHORT)).unwrap_err();
    assert_timed_out(&error, Operation::Write, started);
}

fn an_accept_without_a_client_ends_at_its_deadline(kind: Kind) {
    let place = Place::new(kind);
    let mut listener = place.listen();
    let started = Instant::now();
    let error = listener.accept(Deadline::after(SHORT)).unwrap_err();
    assert_timed_out(&error, Operation::Accept, started);
    let _client = connect(&listener);
    listener.accept(patient()).unwrap();
}

fn available_bytes_are_read_even_after_the_deadline(kind: Kind) {
    let (mut client, mut server, _place) = pair(kind);
    server.write_all(b"late", patient()).unwrap();
    assert_eq!(client.read(&mut [0; 8], patient()).unwrap(), 4);
    server.write_all(b"later", patient()).unwrap();
    // Until it has arrived, over TCP.
    let count = loop {
        match client.read(&mut [0; 8], Deadline::at(Instant::now())) {
            Ok(count) => break count,
            Err(error) => assert!(error.is_timeout(), "{error:?}"),
        }
    };
    assert_eq!(count, 5);
}

fn a_write_larger_than_all_buffers_arrives_whole(kind: Kind) {
    let (mut client, mut server, _place) = pair(kind);
    let sent: Vec<u8> = (0..MUCH).map(|i| u8::try_from(i % 251).unwrap()).collect();
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

fn cancel_soon(cancellers: Vec<Canceller>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        thread::sleep(SHORT);
        cancellers.iter().for_each(Canceller::cancel);
    })
}

fn a_pending_read_is_cancelled_from_another_thread(kind: Kind) {
    let (mut client, mut server, _place) = pair(kind);
    let started = Instant::now();
    let cancelling = cancel_soon(vec![client.canceller()]);
    let error = client.read(&mut [0; 8], patient()).unwrap_err();
    assert!(matches!(error, Error::Cancelled { operation: Operation::Read, .. }), "{error:?}");
    assert!(started.elapsed() < PATIENCE);
    cancelling.join().unwrap();

    // It stays cancelled, even if bytes could be read or written.
    server.write_all(b"more", patient()).unwrap();
    assert!(client.read(&mut [0; 8], patient()).unwrap_err().is_cancelled());
    assert!(client.write_all(b"more", patient()).unwrap_err().is_cancelled());
    // Only renewing it ends that; the peer is not affected.
    let former = client.canceller();
    client.renew_canceller();
    former.cancel();
    assert_eq!(client.read(&mut [0; 8], patient()).unwrap(), 4);
    client.write_all(b"again", patient()).unwrap();
    assert_eq!(server.read(&mut [0; 8], patient()).unwrap(), 5);
    client.canceller().cancel();
    assert!(client.read(&mut [0; 8], patient()).unwrap_err().is_cancelled());
}

fn a_pending_write_and_a_pending_accept_are_cancelled_from_another_thread(kind: Kind) {
    let place = Place::new(kind);
    let mut listener = place.listen();
    let mut client = connect(&listener);
    let mut server = listener.accept(patient()).unwrap();
    client.write_all(b"before", patient()).unwrap();
    let cancelling = cancel_soon(vec![client.canceller(), listener.canceller()]);
    assert!(client.write_all(&vec![0; MUCH], patient()).unwrap_err().is_cancelled());
    assert!(listener.accept(patient()).unwrap_err().is_cancelled());
    cancelling.join().unwrap();
    // Connections that were accepted before are not affected.
    assert_eq!(server.read(&mut [0; 6], patient()).unwrap(), 6);
}

fn a_canceller_outlives_its_connection(kind: Kind) {
    let (client, _server, _place) = pair(kind);
    let canceller = client.canceller();
    drop(client);
    canceller.cancel();
    assert!(canceller.is_cancelled());
}

fn an_address_is_listened_on_once(kind: Kind) {
    let place = Place::new(kind);
    let listener = place.listen();
    let error = Listener::bind(listener.address()).unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error:?}");
    let address = listener.address().clone();
    drop(listener);
    let error = Connection::connect(&address, PeerCheck::Any, patient()).unwrap_err();
    assert!(matches!(error, Error::NoSocket { .. }) && error.is_unreachable(), "{error:?}");
}

/// Defines a test of each kind for each function.
macro_rules! on_each_kind {
    ($($name:ident),+ $(,)?) => { $(
        mod $name {
            #[test]
            fn local() {
                super::$name(super::Kind::Local);
            }

            #[test]
            fn tcp() {
                super::$name(super::Kind::Tcp);
            }
        }
    )+ };
}

on_each_kind!(
    bytes_go_both_ways_and_the_end_is_zero,
    bytes_written_before_the_end_are_read,
    one_listener_serves_many_clients,
    a_read_without_an_answer_ends_at_its_deadline,
    a_write_without_a_reader_ends_at_its_deadline,
    an_accept_without_a_client_ends_at_its_deadline,
    available_bytes_are_read_even_after_the_deadline,
    a_write_larger_than_all_buffers_arrives_whole,
    a_pending_read_is_cancelled_from_another_thread,
    a_pending_write_and_a_pending_accept_are_cancelled_from_another_thread,
    a_canceller_outlives_its_connection,
    an_address_is_listened_on_once,
    another_listener_than_the_expected_one_gets_no_byte,
);

#[test]
fn local_peers_are_known_and_tcp_peers_are_not() {
    let (client, server, _place) = pair(Kind::Local);
    for peer in [client.peer(), server.peer()] {
        assert_eq!(peer.pid, Some(std::process::id()));
    }
    let (client, server, _place) = pair(Kind::Tcp);
    for peer in [client.peer(), server.peer()] {
        assert_eq!((peer.pid, peer.uid, peer.gid), (None, None, None));
    }
}

fn another_listener_than_the_expected_one_gets_no_byte(kind: Kind) {
    let place = Place::new(kind);
    let mut listener = place.listen();
    let check = PeerCheck::Server { pid: std::process::id() + 1 };
    let error = Connection::connect(listener.address(), check, patient()).unwrap_err();
    assert!(matches!(error, Error::PeerMismatch { .. }) && error.is_unreachable(), "{error:?}");
    match listener.accept(Deadline::after(SHORT)) {
        Ok(mut server) => assert_eq!(server.read(&mut [0; 8], patient()).unwrap(), 0),
        // A client that closed its pipe before it was accepted is no longer accepted.
        Err(error) => assert!(cfg!(windows) && error.is_timeout(), "{error:?}"),
    }
}

#[cfg(windows)]
#[test]
fn a_busy_pipe_is_waited_for_until_the_deadline() {
    let place = Place::new(Kind::Local);
    let mut listener = place.listen();
    let _first = connect(&listener);
    let started = Instant::now();
    let error = Connection::connect(listener.address(), PeerCheck::Any, Deadline::after(SHORT)).unwrap_err();
    assert_timed_out(&error, Operation::Connect, started);
    let address = listener.address().clone();
    let waiting = thread::spawn(move || Connection::connect(&address, PeerCheck::Any, patient()).map(drop));
    thread::sleep(SHORT);
    let _accepted = listener.accept(patient()).unwrap();
    waiting.join().unwrap().unwrap();
}

#[test]
fn the_address_of_another_system_is_refused() {
    let foreign = if cfg!(windows) { Address::Unix("/tmp/x".into()) } else { Address::Pipe("x".into()) };
    let error = Connection::connect(&foreign, PeerCheck::Any, patient()).unwrap_err();
    assert!(matches!(error, Error::Unsupported { operation: Operation::Connect, .. }), "{error:?}");
    let error = Listener::bind(&foreign).unwrap_err();
    assert!(matches!(error, Error::Unsupported { operation: Operation::Listen, .. }), "{error:?}");
}
