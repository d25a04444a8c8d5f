//! Runtimes that connect to a port.

use crate::plain_client::{Peer, patience};
use dipc_sim::{Fault, Runtime, Version};
use dipc_transport::{Connection, Listener};
use dipc_wire::{Advertise, Command, HResult, ProcessInfo2, ResumeRuntime, decode_reply};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use uuid::uuid;

fn port(folder: &TempDir, tags: &str) -> dipc_wire::PortConfig {
    format!("{}{tags}", folder.path().join("port").display()).parse().unwrap()
}

fn listen(folder: &TempDir) -> Listener {
    Listener::bind(folder.path().join("port")).unwrap()
}

/// Accepts the next connection and reads its Advertise message.
fn accept(listener: &mut Listener) -> (Connection, Advertise) {
    let mut connection = listener.accept(patience()).unwrap();
    let mut bytes = Vec::new();
    while bytes.len() < Advertise::LEN {
        let mut buffer = [0; Advertise::LEN];
        let count = connection.read(&mut buffer[bytes.len()..], patience()).unwrap();
        assert!(count > 0);
        bytes.extend(&buffer[bytes.len()..bytes.len() + count]);
    }
    (connection, Advertise::from_bytes(&bytes).unwrap())
}

fn ask<C: Command>(connection: Connection, command: &C) -> C::Reply {
    let answer = Peer(connection).send(&command.to_bytes().unwrap(), patience()).unwrap();
    decode_reply::<C>(&answer.message).unwrap().unwrap()
}

#[test]
fn a_runtime_advertises_and_reconnects_after_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let mut listener = listen(&folder);
    let cookie = uuid!("123e4567-e89b-12d3-a456-426614174000");
    let runtime = Runtime::builder().pid(4711).cookie(cookie).connect(&port(&folder, "")).unwrap();
    let expected = Advertise::new(cookie, 4711);

    let (first, advertise) = accept(&mut listener);
    assert_eq!(advertise, expected);
    assert!(runtime.state().suspended);
    assert_eq!(ask(first, &ProcessInfo2).runtime_cookie, cookie);
    let (second, advertise) = accept(&mut listener);
    assert_eq!(advertise, expected);
    assert_eq!(ask(second, &ResumeRuntime), HResult::OK);
    assert!(!runtime.state().suspended);
    // The runtime reconnects also after a connection that was closed without a command.
    drop(accept(&mut listener));
    assert_eq!(accept(&mut listener).1, expected);
    drop(runtime);
    assert!(Path::new(port(&folder, "").address()).exists(), "the port is the tool's, not the runtime's");
}

#[test]
fn a_runtime_on_a_nosuspend_port_is_not_suspended() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().connect(&port(&folder, ",nosuspend")).unwrap();
    assert!(!runtime.state().suspended);
}

#[test]
fn a_runtime_connects_once_its_port_opens_and_ends_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().connect(&port(&folder, "")).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let mut listener = listen(&folder);
    let (connection, _) = accept(&mut listener);
    drop(listener);
    drop(connection);
    let dropped = Instant::now();
    drop(runtime);
    assert!(dropped.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_session_continues_during_the_next_connection() {
    let folder = tempfile::tempdir().unwrap();
    let mut listener = listen(&folder);
    let recording = crate::plain_client::recording(100_000);
    let runtime = Runtime::builder().replay(recording.clone()).connect(&port(&folder, ",nosuspend")).unwrap();
    let (first, _) = accept(&mut listener);
    let collect = crate::plain_client::collect().to_bytes().unwrap();
    let stream = Peer(first).send(&collect, patience()).unwrap();
    let (second, _) = accept(&mut listener);
    assert_eq!(runtime.session_count(), 1);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| stream.rest());
        let (id, _) = runtime.sessions().remove(0);
        assert_eq!(ask(second, &dipc_wire::StopTracing { session: id }), id);
        assert!(reader.join().unwrap() == recording);
    });
}

#[test]
fn many_runtimes_share_a_port_and_have_their_own_cookies() {
    const COUNT: usize = 100;
    let folder = tempfile::tempdir().unwrap();
    let mut listener = listen(&folder);
    let builder = Runtime::builder().version(Version::NET10);
    let runtimes: Vec<_> = (0..COUNT).map(|_| builder.clone().connect(&port(&folder, "")).unwrap()).collect();
    let cookies: BTreeSet<_> = (0..COUNT)
        .map(|_| {
            let (connection, advertise) = accept(&mut listener);
            assert_eq!(ask(connection, &ProcessInfo2).runtime_cookie, advertise.runtime_cookie);
            advertise.runtime_cookie
        })
        .collect();
    let known: BTreeSet<_> = runtimes.iter().map(|runtime| runtime.identity().runtime_cookie).collect();
    assert_eq!(known.len(), COUNT);
    assert!(cookies.is_subset(&known));
}

#[test]
fn a_dead_runtime_does_not_connect() {
    let folder = tempfile::tempdir().unwrap();
    let mut listener = listen(&folder);
    let runtime = Runtime::builder().fault(Fault::StaleSocket).connect(&port(&folder, "")).unwrap();
    assert!(runtime.has_died());
    assert!(listener.accept(crate::plain_client::moment()).unwrap_err().is_timeout());
}

#[test]
fn a_serial_runtime_connects_again_once_it_has_answered() {
    const LATE: Duration = Duration::from_millis(300);
    let folder = tempfile::tempdir().unwrap();
    let mut listener = listen(&folder);
    let builder = Runtime::builder().serial().fault(Fault::AnswerLate(LATE));
    let _runtime = builder.connect(&port(&folder, "")).unwrap();
    let (mut first, _) = accept(&mut listener);
    let asked = Instant::now();
    first.write_all(&ProcessInfo2.to_bytes().unwrap(), patience()).unwrap();
    let (_second, _) = accept(&mut listener);
    assert!(asked.elapsed() >= LATE, "{:?}", asked.elapsed());
}

#[test]
fn a_serial_runtime_connects_again_while_a_session_streams() {
    let folder = tempfile::tempdir().unwrap();
    let mut listener = listen(&folder);
    let runtime = Runtime::builder().serial().connect(&port(&folder, ",nosuspend")).unwrap();
    let (first, _) = accept(&mut listener);
    let collect = crate::plain_client::collect().to_bytes().unwrap();
    let _stream = Peer(first).send(&collect, patience()).unwrap();
    let (second, _) = accept(&mut listener);
    let (id, _) = runtime.sessions().remove(0);
    assert_eq!(ask(second, &dipc_wire::StopTracing { session: id }), id);
}

#[test]
fn a_port_can_be_a_tcp_address() {
    let mut listener = Listener::bind("127.0.0.1:0".parse::<dipc_transport::Address>().unwrap()).unwrap();
    let address = listener.address().to_string();
    let runtime = Runtime::builder().connect(&address.parse().unwrap()).unwrap();
    let (connection, advertise) = accept(&mut listener);
    assert_eq!(advertise.runtime_cookie, runtime.identity().runtime_cookie);
    assert_eq!(ask(connection, &ProcessInfo2).runtime_cookie, advertise.runtime_cookie);
    assert_eq!(runtime.endpoint_path(), Path::new(&address));
    assert_eq!(runtime.address(), *listener.address());
}
