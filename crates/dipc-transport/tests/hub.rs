//! Many connections, watched by one thread.

use std::time::Duration;

use dipc_transport::{Address, Connection, Deadline, Error, Hub, HubEvent, Operation, PeerCheck, Token};
use tempfile::TempDir;

/// Long enough for a crowded machine; a test that uses all of it has failed.
const PATIENCE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);

fn patient() -> Deadline {
    Deadline::after(PATIENCE)
}

fn hub() -> (TempDir, Hub) {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().file_name().unwrap().display().to_string();
    let address = if cfg!(windows) { Address::Pipe(name) } else { Address::from(folder.path().join("port")) };
    let hub = Hub::bind(address).unwrap();
    (folder, hub)
}

fn connect(hub: &Hub) -> Connection {
    Connection::connect(hub.address(), PeerCheck::Any, patient()).unwrap()
}

fn next(hub: &mut Hub) -> HubEvent {
    hub.next(patient()).unwrap()
}

fn accepted(hub: &mut Hub) -> Token {
    match next(hub) {
        HubEvent::Accepted(token) => token,
        other => panic!("{other:?}"),
    }
}

fn assert_quiet(hub: &mut Hub) {
    let error = hub.next(Deadline::after(SHORT)).unwrap_err();
    assert!(matches!(error, Error::TimedOut { operation: Operation::Accept, .. }), "{error:?}");
}

#[test]
fn a_connection_is_reported_from_its_beginning_to_its_end() {
    let (_folder, mut hub) = hub();
    assert_quiet(&mut hub);
    let mut client = connect(&hub);
    let token = accepted(&mut hub);
    assert_eq!(hub.peer(token).unwrap().pid, Some(std::process::id()));
    assert_eq!((hub.len(), hub.process_len(std::process::id())), (1, 1));
    assert_quiet(&mut hub);

    client.write_all(b"hello", patient()).unwrap();
    assert_eq!(next(&mut hub), HubEvent::Readable(token));
    let mut buffer = [0; 3];
    assert_eq!(hub.read(token, &mut buffer).unwrap(), Some(3));
    // Remaining bytes are reported again.
    assert_eq!(next(&mut hub), HubEvent::Readable(token));
    assert_eq!(hub.read(token, &mut buffer).unwrap(), Some(2));
    assert_eq!(hub.read(token, &mut buffer).unwrap(), None);
    assert_quiet(&mut hub);

    client.write_all(b"bye", patient()).unwrap();
    drop(client);
    assert_eq!(next(&mut hub), HubEvent::Readable(token));
    assert_eq!(hub.read(token, &mut buffer).unwrap(), Some(3));
    assert_eq!(next(&mut hub), HubEvent::Closed(token));
    assert!(hub.is_empty() && hub.peer(token).is_none());
    assert_eq!(hub.process_len(std::process::id()), 0);
    assert_eq!(hub.read(token, &mut buffer).unwrap(), None);
    assert!(hub.take(token).unwrap().is_none());
}

#[test]
fn a_connection_is_taken_out_for_an_exchange_and_watched_again() {
    let (_folder, mut hub) = hub();
    let mut client = connect(&hub);
    let token = accepted(&mut hub);
    let mut server = hub.take(token).unwrap().unwrap();
    assert!(hub.is_empty());
    server.write_all(b"question", patient()).unwrap();
    assert_eq!(client.read(&mut [0; 16], patient()).unwrap(), 8);
    client.write_all(b"answer", patient()).unwrap();
    assert_eq!(server.read(&mut [0; 4], patient()).unwrap(), 4);
    assert_quiet(&mut hub);

    // The rest of the answer is reported once it is back.
    let again = hub.watch(server).unwrap();
    assert_ne!(again, token);
    assert_eq!(next(&mut hub), HubEvent::Readable(again));
    assert_eq!(hub.read(again, &mut [0; 16]).unwrap(), Some(2));
    hub.close(again);
    assert_eq!(client.read(&mut [0; 16], patient()).unwrap(), 0);
    assert_quiet(&mut hub);
}

#[test]
fn a_busy_connection_does_not_starve_the_others() {
    const BYTES: usize = 4000;
    let (_folder, mut hub) = hub();
    let mut talker = connect(&hub);
    let talking = accepted(&mut hub);
    let mut other = connect(&hub);
    let quiet = accepted(&mut hub);
    assert_quiet(&mut hub);
    talker.write_all(&[0; BYTES], patient()).unwrap();
    assert_eq!(next(&mut hub), HubEvent::Readable(talking));
    // From here on the talker always has bytes to read.
    other.write_all(b"x", patient()).unwrap();
    let _third = connect(&hub);
    let (mut is_heard, mut is_accepted) = (false, false);
    for _ in 1..BYTES {
        if is_heard && is_accepted {
            return;
        }
        hub.read(talking, &mut [0; 1]).unwrap();
        match next(&mut hub) {
            HubEvent::Accepted(_) => is_accepted = true,
            HubEvent::Readable(token) if token == quiet => {
                is_heard = true;
                hub.read(quiet, &mut [0; 1]).unwrap();
            }
            event => assert_eq!(event, HubEvent::Readable(talking)),
        }
    }
    panic!("while one connection talked, another was heard: {is_heard}, a third accepted: {is_accepted}");
}

#[cfg(unix)]
#[test]
fn a_client_that_leaves_before_it_is_accepted_does_not_block_the_next() {
    let (_folder, mut hub) = hub();
    drop(connect(&hub));
    let _next = connect(&hub);
    let first = accepted(&mut hub);
    // Linux accepts the first as well, and then reports that it has gone; macOS does not report it.
    let events: Vec<_> = (0..2).map_while(|_| hub.next(Deadline::after(SHORT)).ok()).collect();
    let is_accepted = |event: &HubEvent| matches!(event, HubEvent::Accepted(_));
    let both = events.contains(&HubEvent::Closed(first)) && events.iter().any(is_accepted);
    assert!(both || events.is_empty(), "{events:?}");
    assert_eq!(hub.len(), 1);
}

#[test]
fn a_client_beyond_the_limit_waits_until_there_is_room() {
    let (_folder, mut hub) = hub();
    hub.set_limit(2);
    // One after the other: a named pipe has room for one client that is not accepted yet.
    let first = connect(&hub);
    let token = accepted(&mut hub);
    let _second = connect(&hub);
    accepted(&mut hub);
    let mut third = connect(&hub);
    third.write_all(b"hello", patient()).unwrap();
    assert_quiet(&mut hub);
    drop(first);
    assert_eq!(next(&mut hub), HubEvent::Closed(token));
    let third = accepted(&mut hub);
    assert_eq!(next(&mut hub), HubEvent::Readable(third));
    hub.set_limit(3);
    let _fourth = connect(&hub);
    accepted(&mut hub);
}

#[test]
fn waiting_is_cancelled_from_another_thread() {
    let (_folder, mut hub) = hub();
    let canceller = hub.canceller();
    let cancelling = std::thread::spawn(move || {
        std::thread::sleep(SHORT);
        canceller.cancel();
    });
    assert!(hub.next(patient()).unwrap_err().is_cancelled());
    assert!(hub.next(patient()).unwrap_err().is_cancelled());
    cancelling.join().unwrap();
}

#[test]
fn repeated_wakes_are_reported_once() {
    let (_folder, mut hub) = hub();
    let waker = hub.waker();
    waker.wake();
    waker.wake();
    assert_eq!(next(&mut hub), HubEvent::Woken);
    let waking = std::thread::spawn(move || {
        std::thread::sleep(SHORT);
        waker.wake();
    });
    assert_eq!(next(&mut hub), HubEvent::Woken);
    waking.join().unwrap();
    assert_quiet(&mut hub);
}
