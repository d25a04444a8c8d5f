//! Sessions: their streams and their stops.

use std::io::Read as _;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use dipc_client::dipc_transport::Connection;
use dipc_client::dipc_wire::{CommandId, HResult, Request, encode_error, encode_ok};
use dipc_client::{Deadline, Error, ErrorKind, Session, Timeouts};

use crate::collect::collect;
use crate::server::{ID, PATIENCE, SHORT, Server, patient, reply};

/// A server's behaviour in a session.
struct Stream {
    connection: Connection,
}

/// A server that sends `beginning` in one piece with the reply of a session, and answers its stop with
/// `stop`.
fn streaming_server(
    beginning: &'static [u8],
    mut stop: impl FnMut(&mut Option<Stream>, Connection) + Send + 'static,
) -> Server {
    let mut stream = None;
    Server::start(move |request, mut connection| match request {
        Request::CollectTracing6(_) => {
            let mut bytes = encode_ok(&ID).unwrap();
            bytes.extend_from_slice(beginning);
            reply(&mut connection, &bytes);
            stream = Some(Stream { connection });
        }
        Request::StopTracing(command) => {
            assert_eq!(command.session, ID);
            stop(&mut stream, connection);
        }
        other => panic!("{other:?}"),
    })
}

fn well_behaved_stop(stream: &mut Option<Stream>, mut connection: Connection) {
    if let Some(Stream { connection: mut stream }) = stream.take() {
        reply(&mut stream, b" and its rundown");
    }
    reply(&mut connection, &encode_ok(&ID).unwrap());
}

fn read_to_end(session: &mut Session) -> Vec<u8> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 5]);
    loop {
        match session.read(&mut buffer, patient()).unwrap() {
            0 => return bytes,
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

#[test]
fn the_stream_begins_with_the_rest_of_the_reply_and_ends_after_the_stop() {
    let server = streaming_server(b"Nettrace", well_behaved_stop);
    let mut session = server.target().start_session(&collect()).unwrap();
    let mut buffer = [0; 3];
    assert_eq!(session.read(&mut buffer, patient()).unwrap(), 3);
    assert_eq!(&buffer, b"Net");
    let stopper = session.stopper();
    let stop = thread::spawn(move || stopper.stop());
    assert_eq!(read_to_end(&mut session), b"trace and its rundown");
    stop.join().unwrap().unwrap();
    assert_eq!(session.bytes_read(), 24);

    // Another session may have the id by now: nothing is sent any more.
    session.stopper().stop().unwrap();
    drop(session);
    server.assert_seen(&[CommandId::COLLECT_TRACING_6, CommandId::STOP_TRACING]);
}

#[test]
fn a_read_can_be_repeated_after_its_deadline() {
    let server = streaming_server(b"Nettrace", well_behaved_stop);
    let mut session = server.target().start_session(&collect()).unwrap();
    let mut buffer = [0; 64];
    assert_eq!(session.read(&mut buffer, patient()).unwrap(), 8);
    let error = session.read(&mut buffer, Deadline::after(SHORT)).unwrap_err();
    assert!(error.is_deadline(), "{error:?}");
    session.stopper().stop().unwrap();
    assert_eq!(read_to_end(&mut session), b" and its rundown");
}

#[test]
fn a_reader_of_a_silent_session_names_the_silence_and_can_be_repeated() {
    let server = streaming_server(b"Nettrace", well_behaved_stop);
    let timeouts = Timeouts::default().with_silence(SHORT);
    let mut session = server.target_with(timeouts).start_session(&collect()).unwrap();
    let (mut bytes, address) = (Vec::new(), server.target().address().clone());
    for _ in 0..2 {
        let error = session.reader().read_to_end(&mut bytes).unwrap_err();
        assert_eq!((bytes.as_slice(), error.kind()), (&b"Nettrace"[..], std::io::ErrorKind::TimedOut));
        let error = error.downcast::<Error>().unwrap();
        let Error::Silent { after, .. } = &error else { panic!("{error:?}") };
        assert!(*after >= SHORT && error.is_deadline() && error.kind() == ErrorKind::TimedOut, "{error:?}");
        let seconds = after.as_secs_f64();
        let text =
            format!("CollectTracing6: {address}: the session is silent: nothing came within {seconds:.1} s");
        assert!(error.to_string().starts_with(&text), "{error}");
    }
    session.stopper().stop().unwrap();
    session.reader().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"Nettrace and its rundown");
}

#[test]
fn a_quiet_session_is_read_until_its_scheduled_stop() {
    let server = streaming_server(b"Nettrace", well_behaved_stop);
    let timeouts = Timeouts::default().with_silence(SHORT);
    let mut session = server.target_with(timeouts).start_session(&collect()).unwrap();
    session.stop_after(SHORT * 4);
    let mut bytes = Vec::new();
    session.reader().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"Nettrace and its rundown");
}

#[test]
fn a_silence_limit_ends_the_reads_of_a_session_that_is_stopped_later() {
    let server = streaming_server(b"Nettrace", well_behaved_stop);
    let mut session = server.target().start_session(&collect()).unwrap();
    session.stop_after(PATIENCE * 2);
    session.limit_silence(SHORT);
    let mut bytes = Vec::new();
    let error = session.reader().read_to_end(&mut bytes).unwrap_err().downcast::<Error>().unwrap();
    assert!(matches!(error, Error::Silent { .. }), "{error:?}");
    session.request_stop().unwrap();
    session.limit_silence(PATIENCE);
    session.reader().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"Nettrace and its rundown");
}

#[test]
fn a_stream_that_never_begins_is_a_distinct_error() {
    let server = streaming_server(b"", well_behaved_stop);
    let timeouts = Timeouts::default().with_first_bytes(SHORT);
    let mut session = server.target_with(timeouts).start_session(&collect()).unwrap();
    let error = session.read(&mut [0; 8], patient()).unwrap_err();
    assert!(matches!(error, Error::NoStream { .. }), "{error:?}");
    assert!(!error.is_deadline() && error.kind() == ErrorKind::TimedOut);
}

#[test]
fn a_stop_that_is_not_answered_is_given_up_and_can_be_repeated() {
    let (mut kept, mut asked) = (Vec::new(), 0);
    let server = streaming_server(b"Nettrace", move |stream, connection| {
        asked += 1;
        if asked == 1 { kept.push(connection) } else { well_behaved_stop(stream, connection) }
    });
    // The second stop is answered at once, for which this is ample.
    let timeouts = Timeouts::default().with_stop(Duration::from_secs(2));
    let mut session = server.target_with(timeouts).start_session(&collect()).unwrap();
    let error = session.stopper().stop().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error:?}");
    session.stopper().stop().unwrap();
    session.stopper().stop().unwrap();
    assert_eq!(read_to_end(&mut session), b"Nettrace and its rundown");
    let stop = CommandId::STOP_TRACING;
    server.assert_seen(&[CommandId::COLLECT_TRACING_6, stop, stop]);
}

#[test]
fn a_stop_is_not_given_up_while_the_stream_flows() {
    let server = streaming_server(b"Nettrace", |stream, mut connection| {
        let Some(Stream { connection: mut stream }) = stream.take() else { panic!("stopped twice") };
        // Many times the client's silent wait.
        for _ in 0..60 {
            reply(&mut stream, b"rundown ");
            thread::sleep(SHORT);
        }
        reply(&mut connection, &encode_ok(&ID).unwrap());
    });
    let timeouts = Timeouts::default().with_stop(SHORT * 20);
    let mut session = server.target_with(timeouts).start_session(&collect()).unwrap();
    let stopper = session.stopper();
    let stop = thread::spawn(move || stopper.stop());
    assert_eq!(read_to_end(&mut session).len(), 8 + 60 * 8);
    stop.join().unwrap().unwrap();
}

#[test]
fn a_requested_stop_needs_no_thread() {
    let server = streaming_server(b"Nettrace", |stream, mut connection| {
        let Some(Stream { connection: mut stream }) = stream.take() else { panic!("stopped twice") };
        // Far more than fits into the connection: a client that waited for the answer would wait for itself.
        reply(&mut stream, &vec![0; 8 << 20]);
        drop(stream);
        reply(&mut connection, &encode_ok(&ID).unwrap());
    });
    let mut session = server.target().start_session(&collect()).unwrap();
    session.request_stop().unwrap();
    session.request_stop().unwrap();
    session.stopper().stop().unwrap();
    let mut bytes = Vec::new();
    session.reader().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len(), 8 + (8 << 20));
    // Its id may be another session's by now.
    session.request_stop().unwrap();
    drop(session);
    server.assert_seen(&[CommandId::COLLECT_TRACING_6, CommandId::STOP_TRACING]);
}

#[test]
fn a_read_stops_the_session_when_its_time_has_come() {
    let server = streaming_server(b"Nettrace", well_behaved_stop);
    let mut session = server.target().start_session(&collect()).unwrap();
    let started = Instant::now();
    session.stop_after(SHORT);
    let mut text = String::new();
    session.reader().read_to_string(&mut text).unwrap();
    assert_eq!(text, "Nettrace and its rundown");
    assert!(started.elapsed() >= SHORT);
    server.assert_seen(&[CommandId::COLLECT_TRACING_6, CommandId::STOP_TRACING]);
}

#[test]
fn a_read_with_a_deadline_stops_the_session_too() {
    let server = streaming_server(b"Nettrace", well_behaved_stop);
    let mut session = server.target().start_session(&collect()).unwrap();
    session.stop_after(SHORT * 3);
    let (mut bytes, mut buffer, mut deadlines) = (Vec::new(), [0; 64], 0);
    loop {
        match session.read(&mut buffer, Deadline::after(SHORT)) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error) => {
                assert!(error.is_deadline(), "{error:?}");
                deadlines += 1;
            }
        }
    }
    assert_eq!(bytes, b"Nettrace and its rundown");
    assert!(deadlines > 0);
}

#[test]
fn a_stop_that_is_refused_is_an_error_of_the_read_and_can_be_requested_again() {
    let mut asked = 0;
    let server = streaming_server(b"Nettrace", move |stream, mut connection| {
        asked += 1;
        if asked == 1 {
            reply(&mut connection, &encode_error(HResult::FAIL));
        } else {
            well_behaved_stop(stream, connection);
        }
    });
    let mut session = server.target().start_session(&collect()).unwrap();
    let mut buffer = [0; 64];
    assert_eq!(session.read(&mut buffer, patient()).unwrap(), 8);
    session.request_stop().unwrap();
    let error = session.read(&mut buffer, Deadline::never()).unwrap_err();
    assert!(matches!(error, Error::Refused { command: "StopTracing", .. }), "{error:?}");
    session.request_stop().unwrap();
    assert_eq!(read_to_end(&mut session), b" and its rundown");
    let stop = CommandId::STOP_TRACING;
    server.assert_seen(&[CommandId::COLLECT_TRACING_6, stop, stop]);
}

#[test]
fn a_requested_stop_that_is_not_answered_ends_a_read_without_a_deadline() {
    let (mut kept, mut asked) = (Vec::new(), 0);
    let server = streaming_server(b"Nettrace", move |stream, connection| {
        asked += 1;
        if asked == 1 { kept.push(connection) } else { well_behaved_stop(stream, connection) }
    });
    let timeouts = Timeouts::default().with_stop(SHORT * 4);
    let mut session = server.target_with(timeouts).start_session(&collect()).unwrap();
    session.request_stop().unwrap();
    let mut bytes = Vec::new();
    let error = session.reader().read_to_end(&mut bytes).unwrap_err();
    assert_eq!((bytes.as_slice(), error.kind()), (&b"Nettrace"[..], std::io::ErrorKind::TimedOut));
    let error = error.downcast::<Error>().unwrap();
    assert!(matches!(error, Error::NotStopped { .. }) && !error.is_deadline(), "{error:?}");
    // Dropping it stops it.
    drop(session);
    let stop = CommandId::STOP_TRACING;
    server.assert_seen(&[CommandId::COLLECT_TRACING_6, stop, stop]);
}

#[test]
fn a_stop_requested_by_another_thread_is_seen_to_by_the_read() {
    let server = streaming_server(b"Nettrace", well_behaved_stop);
    let mut session = server.target().start_session(&collect()).unwrap();
    let stopper = session.stopper();
    let request = thread::spawn(move || {
        thread::sleep(SHORT);
        stopper.request_stop()
    });
    let mut bytes = Vec::new();
    session.reader().read_to_end(&mut bytes).unwrap();
    request.join().unwrap().unwrap();
    assert_eq!(bytes, b"Nettrace and its rundown");
}

#[test]
fn a_dropped_session_is_stopped_and_drained() {
    let (sender, receiver) = channel();
    let server = streaming_server(b"Nettrace", move |stream, mut connection| {
        let Some(Stream { connection: mut stream }) = stream.take() else { panic!("stopped twice") };
        // Far more than fits into the connection: it has to be read for this to return.
        reply(&mut stream, &vec![0; 8 << 20]);
        drop(stream);
        let _ = connection.write_all(&encode_ok(&ID).unwrap(), patient());
        sender.send(()).unwrap();
    });
    drop(server.target().start_session(&collect()).unwrap());
    receiver.recv_timeout(PATIENCE).unwrap();
    server.assert_seen(&[CommandId::COLLECT_TRACING_6, CommandId::STOP_TRACING]);
}

#[test]
fn dropping_a_session_that_does_not_stop_is_bounded_and_closes_its_stream() {
    let (sender, receiver) = channel();
    let server = streaming_server(b"Nettrace", move |stream, connection| {
        let Some(Stream { connection: mut stream }) = stream.take() else { panic!("stopped twice") };
        let end = stream.read(&mut [0; 8], patient());
        sender.send(end.map(|count| count == 0)).unwrap();
        drop(connection);
    });
    let timeouts = Timeouts::default().with_abandon(SHORT);
    let session = server.target_with(timeouts).start_session(&collect()).unwrap();
    let started = Instant::now();
    drop(session);
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    // Closed with nothing unread, or with the beginning unread.
    match receiver.recv_timeout(PATIENCE).unwrap() {
        Ok(ended) => assert!(ended),
        Err(error) => assert!(error.is_disconnected(), "{error:?}"),
    }
}

#[test]
fn dropping_a_session_of_a_hung_runtime_is_bounded() {
    // It accepts no second connection: its only thread waits for the stream to be read.
    let (sender, receiver) = channel::<()>();
    let server = Server::start(move |_, mut connection| {
        let answered = connection.write_all(&encode_ok(&ID).unwrap(), patient());
        // The client of the second connection has gone by then.
        assert!(receiver.recv().is_err() && answered.map_or_else(|error| error.is_disconnected(), |()| true));
    });
    let timeouts = Timeouts::default().with_abandon(SHORT);
    let session = server.target_with(timeouts).start_session(&collect()).unwrap();
    let started = Instant::now();
    drop(session);
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    drop(sender);
}

#[test]
fn a_cancelled_session_reads_no_more_and_is_still_stopped() {
    let (sender, receiver) = channel();
    let server = streaming_server(b"Nettrace", move |stream, connection| {
        well_behaved_stop(stream, connection);
        sender.send(()).unwrap();
    });
    let mut session = server.target().start_session(&collect()).unwrap();
    let mut buffer = [0; 64];
    assert_eq!(session.read(&mut buffer, patient()).unwrap(), 8);
    let canceller = session.canceller();
    let cancelling = thread::spawn(move || {
        thread::sleep(SHORT);
        canceller.cancel();
    });
    assert_eq!(session.read(&mut buffer, patient()).unwrap_err().kind(), ErrorKind::Cancelled);
    cancelling.join().unwrap();
    let started = Instant::now();
    drop(session);
    assert!(started.elapsed() < Timeouts::default().abandon, "{:?}", started.elapsed());
    receiver.recv_timeout(PATIENCE).unwrap();
}
