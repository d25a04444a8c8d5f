//! A thousand connections at one hub. Alone in its process, since it counts the process's memory and threads.
#![cfg(target_os = "linux")]

use std::collections::HashSet;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use dipc_transport::{Deadline, Hub, HubEvent, raise_descriptor_limit};

/// Long enough for a crowded machine; a test that uses all of it has failed.
fn patient() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// Returns a field of `/proc/self/status`, in kilobytes or as a count.
fn of_this_process(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let value = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap();
    value.split_ascii_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn a_thousand_connections_cost_little_and_their_end_is_reported() {
    const MANY: usize = 1000;
    let limit = raise_descriptor_limit().unwrap().unwrap();
    // Both sides of each connection are here.
    assert!(limit.now.is_none_or(|now| now > 2 * MANY as u64 + 200), "{limit:?}");
    assert!(limit.now >= limit.before || limit.now.is_none(), "{limit:?}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("port");
    let mut hub = Hub::bind(&path).unwrap();
    let threads = of_this_process("Threads");
    let memory = of_this_process("VmRSS");
    let mut clients = Vec::new();
    let mut tokens = HashSet::new();
    for _ in 0..MANY {
        clients.push(UnixStream::connect(&path).unwrap());
        match hub.next(patient()).unwrap() {
            HubEvent::Accepted(token) => assert!(tokens.insert(token)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((tokens.len(), hub.len()), (MANY, MANY));
    let grown = of_this_process("VmRSS").saturating_sub(memory);
    eprintln!("{MANY} connections: {grown} kB more");
    assert_eq!(of_this_process("Threads"), threads);
    assert!(grown < 2 * MANY as u64, "{grown} kB");

    // Each is reached, and answers.
    for (turn, client) in clients.iter_mut().enumerate() {
        client.write_all(&u32::try_from(turn).unwrap().to_le_bytes()).unwrap();
    }
    let mut heard = HashSet::new();
    while heard.len() < MANY {
        let HubEvent::Readable(token) = hub.next(patient()).unwrap() else {
            panic!("only words are expected")
        };
        let mut word = [0; 4];
        assert_eq!(hub.read(token, &mut word).unwrap(), Some(4));
        assert!(heard.insert(u32::from_le_bytes(word)));
    }

    drop(clients);
    while !tokens.is_empty() {
        match hub.next(patient()).unwrap() {
            HubEvent::Closed(token) => assert!(tokens.remove(&token)),
            other => panic!("{other:?}"),
        }
    }
    assert!(hub.is_empty());
}
