//! A connection that takes longer than one attempt to make it.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use dipc_client::dipc_wire::{CommandId, Feed, Message, MessageReader, encode_ok};
use dipc_client::{Address, Deadline, ProviderConfig, SessionConfig, SessionId, Target};

const ID: SessionId = SessionId(0x7f00_dead_0000);
/// Long enough for a crowded machine; a test that uses all of it has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of times that the connections to the server are checked while none is accepted: several
/// attempts' time.
const LOOKS: usize = 10;

fn receive(stream: &mut TcpStream) -> Message {
    let (mut reader, mut buffer) = (MessageReader::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "no whole command came");
        if let Feed::Message { message, .. } = reader.feed(&buffer[..count]).unwrap() {
            return message;
        }
    }
}

/// The ports of unanswered connection attempts to `server`.
fn attempts(server: SocketAddr) -> BTreeSet<u16> {
    const SYN_SENT: &str = "02";
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let port = |address: &str| u16::from_str_radix(address.split(':').nth(1).unwrap(), 16).unwrap();
    let rows = table.lines().skip(1).map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let rows = rows.filter(|row| port(row[2]) == server.port() && row[3] == SYN_SENT);
    rows.map(|row| port(row[1])).collect()
}

#[test]
fn a_stop_resumes_the_connection_that_it_began() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn({
        let listener = listener.try_clone().unwrap();
        move || {
            let mut stream = listener.accept().unwrap().0;
            assert_eq!(receive(&mut stream).header.command, CommandId::COLLECT_TRACING_6);
            stream.write_all(&encode_ok(&ID).unwrap()).unwrap();
            stream.write_all(b"Nettrace").unwrap();
            stream
        }
    });
    let target = Target::at(address.to_string().parse::<Address>().unwrap());
    let provider = ProviderConfig { name: "Provider".into(), ..Default::default() };
    let mut session = target.start_session(&SessionConfig::new([provider])).unwrap();
    let stream = serving.join().unwrap();

    // The system answers no connection beyond those that wait to be accepted, like a slow network.
    rustix::net::listen(&listener, 0).unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(500)) {
        waiting.push(stream);
    }
    session.request_stop().unwrap();
    let (mut ports, mut bytes) = (BTreeSet::new(), vec![0; 64]);
    assert_eq!(session.read(&mut bytes, Deadline::after(PATIENCE)).unwrap(), 8);
    for _ in 0..LOOKS {
        ports.extend(attempts(address));
        let error = session.read(&mut bytes, Deadline::after(Duration::from_millis(20))).unwrap_err();
        assert!(error.is_deadline(), "{error:?}");
    }
    assert_eq!(ports.len(), 1, "each attempt began again");

    let stopping = std::thread::spawn(move || {
        for _ in &waiting {
            listener.accept().unwrap();
        }
        let mut connection = listener.accept().unwrap().0;
        assert_eq!(receive(&mut connection).header.command, CommandId::STOP_TRACING);
        stream.shutdown(std::net::Shutdown::Both).unwrap();
        connection.write_all(&encode_ok(&ID).unwrap()).unwrap();
    });
    let started = Instant::now();
    while session.read(&mut bytes, Deadline::after(PATIENCE)).unwrap() > 0 {
        assert!(started.elapsed() < PATIENCE, "the session is not stopped");
    }
    stopping.join().unwrap();
}
