//! A process that invents runtimes at a port.

#![cfg(unix)]

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use dipc_client::dipc_wire::Advertise;
use dipc_client::{Deadline, PortEvent, PortServer, Uuid};

/// Maximum number of runtimes of one process that a port keeps without a connection.
const MAX_ABSENT: usize = 16;
/// Maximum number of events that a port keeps for a caller that takes none, apart from events of connected
/// runtimes.
const MAX_EVENTS: usize = 1000;
/// Maximum number of ended connections that the port has not noticed yet: the queue of a listening socket is
/// shorter.
const MAX_CONNECTIONS: usize = 256;
const RUNTIMES: u128 = 3000;

#[test]
fn one_process_cannot_fill_a_port_with_runtimes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("port");
    let port = PortServer::bind(path.clone()).unwrap();
    for cookie in 0..RUNTIMES {
        let mut stream = UnixStream::connect(&path).unwrap();
        let advertise = Advertise::new(Uuid::from_u128(cookie), 1);
        stream.write_all(&advertise.to_bytes().unwrap()).unwrap();
        drop(stream);
    }
    // The last one, which keeps its connection, is served like any other.
    let last = Uuid::from_u128(RUNTIMES);
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(&Advertise::new(last, 1).to_bytes().unwrap()).unwrap();

    let deadline = Instant::now() + Duration::from_secs(60);
    let is_settled = || {
        let runtimes = port.runtimes();
        runtimes.iter().any(|runtime| runtime.cookie() == last) && runtimes.len() <= MAX_ABSENT + 1
    };
    while !is_settled() {
        assert!(
            Instant::now() < deadline,
            "{} runtimes: {:?}",
            port.runtimes().len(),
            port.runtimes().last()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut events = 0;
    while let Ok(event) = port.next(Deadline::after(Duration::ZERO)) {
        assert!(!matches!(event, PortEvent::Error(_)), "{event:?}");
        events += 1;
    }
    assert!(events <= MAX_EVENTS + 2 * MAX_CONNECTIONS, "{events} events are kept");
}
