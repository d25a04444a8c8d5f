//! Lists of methods of a running process.
#![cfg(target_os = "linux")]

use std::ops::ControlFlow;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use dipc_client::{Deadline, ListPiece, LiveNames, LiveNamesOptions, Target, Timeouts};
use dipc_sim::Runtime;

fn deadline() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

/// The next list, if it arrives in time.
fn next_list(names: &mut LiveNames) -> Vec<u8> {
    let end = Instant::now() + Duration::from_secs(20);
    let mut list = Vec::new();
    while Instant::now() < end {
        match names.next_piece() {
            Some(ListPiece::Bytes(bytes)) => list.extend(bytes),
            Some(_) => return list,
            None => thread::yield_now(),
        }
    }
    panic!("the list did not end");
}

#[test]
fn the_list_is_a_recording_and_comes_again_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().rate(1000).start_in(folder.path()).unwrap();
    let target = Target::at(runtime.address());
    let mut names =
        LiveNames::start(&target, LiveNamesOptions::default().with_compiled_methods(true), |error| {
            panic!("{error}")
        });
    assert!(!names.request_now(), "the first list has not ended");
    assert!(next_list(&mut names).starts_with(b"Nettrace"));
    assert!(names.request_now());
    assert!(next_list(&mut names).starts_with(b"Nettrace"));
    drop(names);
    let end = Instant::now() + Duration::from_secs(20);
    while runtime.session_count() > 0 {
        assert!(Instant::now() < end, "its sessions are left");
        thread::yield_now();
    }
}

#[test]
fn errors_are_passed_on_and_the_list_ends() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().start_in(folder.path()).unwrap();
    let target = Target::at(runtime.address()).with_timeouts(Timeouts::each(Duration::from_secs(5)));
    drop(runtime);
    let (errors, received) = mpsc::channel();
    let mut names =
        LiveNames::start(&target, LiveNamesOptions::default().with_compiled_methods(true), move |error| {
            errors.send(error).unwrap();
        });
    assert_eq!(next_list(&mut names), []);
    // One from the session that reports methods, and one from the list.
    assert_eq!(received.try_iter().count(), 2);
}

#[test]
fn a_list_can_be_broken_off() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().rate(1000).start_in(folder.path()).unwrap();
    let target = Target::at(runtime.address());
    let list = target.list_methods().unwrap();
    assert!(!list.read(deadline(), || false, |_| ControlFlow::Break(())).unwrap());
    let mut bytes = Vec::new();
    let is_whole = target.list_methods().unwrap().read(
        deadline(),
        || false,
        |piece| {
            bytes.extend_from_slice(piece);
            ControlFlow::Continue(())
        },
    );
    assert!(is_whole.unwrap() && bytes.starts_with(b"Nettrace"));
}
