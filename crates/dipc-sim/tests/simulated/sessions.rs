use crate::plain_client::{ask, collect, patience, recording, send, start_session, stop};
use dipc_sim::{Runtime, Speed};
use dipc_wire::{CollectTracing2, Command as _, HResult, ServerError, decode_reply};
use std::thread;
use std::time::{Duration, Instant};

/// Reads the whole stream on one thread while the session is stopped on this one.
fn record(runtime: &Runtime, run: Duration) -> Vec<u8> {
    let (id, answer) = start_session(runtime);
    thread::scope(|scope| {
        let reader = scope.spawn(|| answer.rest());
        thread::sleep(run);
        stop(runtime, id);
        reader.join().unwrap()
    })
}

#[test]
fn a_stopped_session_is_the_recording_byte_for_byte_at_every_speed() {
    let bytes = recording(300_000);
    for speed in [
        Speed::Max,
        Speed::Over(Duration::from_millis(100)),
        Speed::Over(Duration::from_secs(3600)),
        Speed::BytesPerSecond(1_000_000),
        Speed::BytesPerSecond(0),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let runtime = Runtime::builder().replay(bytes.clone()).speed(speed).start_in(folder.path()).unwrap();
        for run in [Duration::ZERO, Duration::from_millis(60)] {
            assert!(record(&runtime, run) == bytes, "{speed:?}, stopped after {run:?}");
        }
        assert_eq!(runtime.session_count(), 0);
    }
}

#[test]
fn a_stream_over_400_ms_ends_no_earlier() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder()
        .replay(recording(10_000))
        .speed(Speed::Over(Duration::from_millis(400)))
        .end_with_recording()
        .start_in(folder.path())
        .unwrap();
    let started = Instant::now();
    let (_, answer) = start_session(&runtime);
    assert!(answer.rest() == recording(10_000));
    assert!(started.elapsed() >= Duration::from_millis(400));
}

#[test]
fn a_stream_stays_open_after_the_recording_until_the_stop() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().replay(recording(1000)).start_in(folder.path()).unwrap();
    let (id, mut answer) = start_session(&runtime);
    while answer.behind.len() < 1000 {
        let mut buffer = [0; 1000];
        let count = answer.connection.read(&mut buffer, patience()).unwrap();
        answer.behind.extend(&buffer[..count]);
    }
    assert!(!answer.is_closed(crate::plain_client::moment()));
    assert_eq!(runtime.session_count(), 1);
    stop(&runtime, id);
    assert!(answer.is_closed(patience()));
}

#[test]
fn several_sessions_at_once_have_their_own_ids_and_streams() {
    let bytes = recording(500_000);
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder()
        .replay(bytes.clone())
        .speed(Speed::Over(Duration::from_secs(60)))
        .start_in(folder.path())
        .unwrap();
    let sessions: Vec<_> = (0..8).map(|_| start_session(&runtime)).collect();
    assert_eq!(runtime.session_count(), 8);
    let mut ids: Vec<_> = sessions.iter().map(|(id, _)| *id).collect();
    thread::scope(|scope| {
        let readers: Vec<_> = sessions.into_iter().map(|(_, answer)| scope.spawn(|| answer.rest())).collect();
        for id in ids.iter().rev() {
            stop(&runtime, *id);
        }
        assert!(readers.into_iter().all(|reader| reader.join().unwrap() == bytes));
    });
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 8);
}

#[test]
fn the_sixty_fifth_session_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().start_in(folder.path()).unwrap();
    let mut sessions: Vec<_> = (0..64).map(|_| start_session(&runtime)).collect();
    assert_eq!(ask(&runtime, &collect()), Err(ServerError::new(HResult::FAIL)));
    let (id, mut answer) = sessions.pop().unwrap();
    stop(&runtime, id);
    assert!(answer.is_closed(patience()));
    let answer = send(&runtime, &collect().to_bytes().unwrap(), patience()).unwrap();
    assert!(decode_reply::<CollectTracing2>(&answer.message).unwrap().is_ok());
}

#[test]
fn a_session_closes_when_its_client_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder()
        .replay(recording(4_000_000))
        .speed(Speed::Over(Duration::from_secs(3600)))
        .start_in(folder.path())
        .unwrap();
    let (_, answer) = start_session(&runtime);
    assert_eq!(runtime.session_count(), 1);
    drop(answer);
    let deadline = patience();
    while runtime.session_count() > 0 {
        assert!(!deadline.is_over(), "the session goes on without its client");
        thread::sleep(Duration::from_millis(5));
    }
    // The runtime itself continues.
    assert!(ask(&runtime, &collect()).is_ok());
}

#[test]
fn stopping_waits_for_the_stream_to_be_read() {
    let bytes = recording(8_000_000);
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().replay(bytes.clone()).start_in(folder.path()).unwrap();
    let (id, answer) = start_session(&runtime);
    thread::scope(|scope| {
        let stopper = scope.spawn(|| stop(&runtime, id));
        // The unread bytes exceed any socket buffer, so the stream cannot have ended.
        thread::sleep(Duration::from_millis(200));
        assert!(!stopper.is_finished());
        assert!(answer.rest() == bytes);
        stopper.join().unwrap();
    });
}
