//! The client against servers that do what no runtime should, and what old runtimes did.

use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dipc_client::dipc_transport::{Connection, Listener};
use dipc_client::dipc_wire::{
    CollectTracing4, CommandId, Environment, EnvironmentReply, Feed, HResult, Message, MessageReader,
    ProcessInfo1Reply, ProcessInfo2Reply, ProcessInfo3Reply, Request, encode_error, encode_ok,
};
use dipc_client::{
    Canceller, Collect, Deadline, Error, ErrorKind, ProviderConfig, Rundown, Session, SessionId, Target,
    Timeouts,
};
use tempfile::TempDir;

/// Long enough for a crowded machine; a test that needs it all has failed.
const PATIENCE: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(50);
const ID: SessionId = SessionId(0x7f00_dead_0000);

fn patient() -> Deadline {
    Deadline::after(PATIENCE)
}

/// A listening thread that hands each request to a script, with the connection it came on.
struct Server {
    folder: TempDir,
    seen: Receiver<CommandId>,
    canceller: Canceller,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(mut script: impl FnMut(Request, Connection) + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut listener = Listener::bind(folder.path().join("socket")).unwrap();
        let canceller = listener.canceller();
        let (sender, seen) = channel();
        let thread = thread::spawn(move || {
            while let Ok(mut connection) = listener.accept(Deadline::never()) {
                let request = Request::decode(&receive(&mut connection)).unwrap();
                sender.send(request.command()).unwrap();
                script(request, connection);
            }
        });
        Self { folder, seen, canceller, thread: Some(thread) }
    }

    /// Answers every command with the same bytes.
    fn answering(bytes: Vec<u8>) -> Self {
        Self::start(move |_, mut connection| connection.write_all(&bytes, patient()).unwrap())
    }

    fn target(&self) -> Target {
        Target::from_path(self.folder.path().join("socket"))
    }

    fn target_with(&self, timeouts: Timeouts) -> Target {
        self.target().with_timeouts(timeouts)
    }

    /// The commands that have come so far, and no others.
    fn assert_seen(&self, expected: &[CommandId]) {
        assert_eq!(self.seen.try_iter().collect::<Vec<_>>(), expected);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.canceller.cancel();
        let result = self.thread.take().map(JoinHandle::join);
        if !thread::panicking() {
            assert!(matches!(result, Some(Ok(()))), "the server failed");
        }
    }
}

fn receive(connection: &mut Connection) -> Message {
    let (mut reader, mut buffer) = (MessageReader::new(), [0; 4096]);
    loop {
        let count = connection.read(&mut buffer, patient()).unwrap();
        assert_ne!(count, 0, "a client that connects sends a whole command");
        if let Feed::Message { message, used } = reader.feed(&buffer[..count]).unwrap() {
            assert_eq!(used, count, "a client sends nothing behind its command");
            return message;
        }
    }
}

fn reply(connection: &mut Connection, bytes: &[u8]) {
    connection.write_all(bytes, patient()).unwrap();
}

fn refuse(connection: &mut Connection) {
    reply(connection, &encode_error(HResult::UNKNOWN_COMMAND));
}

fn info_1() -> ProcessInfo1Reply {
    ProcessInfo1Reply { process_id: 7, command_line: "/app/server --port 80".into(), ..Default::default() }
}

fn info_2() -> ProcessInfo2Reply {
    ProcessInfo2Reply { process_id: 7, clr_version: "6.0.36".into(), ..Default::default() }
}

fn info_3() -> ProcessInfo3Reply {
    let (clr_version, runtime_identifier) = ("9.0.1".into(), "linux-x64".into());
    ProcessInfo3Reply { version: 1, process_id: 7, clr_version, runtime_identifier, ..Default::default() }
}

/// A server that knows the ProcessInfo commands up to `newest`.
fn server_with_info(newest: u8) -> Server {
    Server::start(move |request, mut connection| match request {
        Request::ProcessInfo3(_) if newest >= 3 => reply(&mut connection, &encode_ok(&info_3()).unwrap()),
        Request::ProcessInfo2(_) if newest >= 2 => reply(&mut connection, &encode_ok(&info_2()).unwrap()),
        Request::ProcessInfo1(_) if newest >= 1 => reply(&mut connection, &encode_ok(&info_1()).unwrap()),
        _ => refuse(&mut connection),
    })
}

const INFO_COMMANDS: [CommandId; 3] =
    [CommandId::PROCESS_INFO_3, CommandId::PROCESS_INFO_2, CommandId::PROCESS_INFO_1];

#[test]
fn info_falls_back_to_the_newest_form_that_is_known() {
    let server = server_with_info(3);
    let info = server.target().info().unwrap();
    assert_eq!((info.process_id, info.command), (7, "ProcessInfo3"));
    assert_eq!(info.runtime_identifier.as_deref(), Some("linux-x64"));
    server.assert_seen(&INFO_COMMANDS[..1]);

    let server = server_with_info(2);
    let info = server.target().info().unwrap();
    assert_eq!((info.command, info.clr_version.as_deref()), ("ProcessInfo2", Some("6.0.36")));
    assert_eq!(info.runtime_identifier, None);
    server.assert_seen(&INFO_COMMANDS[..2]);

    let server = server_with_info(1);
    let info = server.target().info().unwrap();
    assert_eq!((info.command, info.command_line.as_str()), ("ProcessInfo", "/app/server --port 80"));
    assert_eq!((info.clr_version, info.managed_entrypoint_assembly), (None, None));
    server.assert_seen(&INFO_COMMANDS);
}

#[test]
fn a_runtime_without_process_commands_is_told_apart() {
    let server = server_with_info(0);
    let target = server.target();
    for error in [target.info().unwrap_err(), target.environment().unwrap_err(), target.resume().unwrap_err()]
    {
        assert!(matches!(error, Error::Unknown { .. }), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}

#[test]
fn another_error_is_not_fallen_back_on() {
    let server = Server::answering(encode_error(HResult::BAD_ENCODING));
    let error = server.target().info().unwrap_err();
    assert!(
        matches!(&error, Error::Refused { command: "ProcessInfo3", reason, .. } if reason.hresult == HResult::BAD_ENCODING),
        "{error:?}"
    );
    assert_eq!(error.kind(), ErrorKind::Refused);
    server.assert_seen(&INFO_COMMANDS[..1]);
}

#[test]
fn an_error_reply_without_a_failure_code_is_an_error() {
    let server = Server::answering(encode_error(HResult(0)));
    assert_eq!(server.target().info().unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(server.target().resume().unwrap_err().kind(), ErrorKind::Refused);
}

#[test]
fn what_is_no_reply_is_a_protocol_error() {
    let good = encode_ok(&info_3()).unwrap();
    let mut wrong_magic = good.clone();
    wrong_magic[7] = b'J';
    let mut wrong_size = good.clone();
    wrong_size[14..16].copy_from_slice(&19_u16.to_le_bytes());
    let mut no_reply = good.clone();
    no_reply[16..18].copy_from_slice(&[0x04, 0x08]);
    let cut_payload = Message::new(CommandId::OK, good[20..60].to_vec()).unwrap().to_bytes().unwrap();
    for bytes in [wrong_magic, wrong_size, no_reply, cut_payload, b"HTTP/1.1 400 Bad Request\r\n".to_vec()] {
        let server = Server::answering(bytes);
        let error = server.target().info().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error:?}");
        assert!(error.to_string().contains("socket"), "{error}");
    }
}

#[test]
fn a_connection_that_ends_within_the_reply_is_told_from_a_bad_reply() {
    let good = encode_ok(&info_3()).unwrap();
    for length in [0, 5, 20, good.len() - 1] {
        let server = Server::answering(good[..length].to_vec());
        let error = server.target().info().unwrap_err();
        assert!(matches!(error, Error::Incomplete { received, .. } if received == length), "{error:?}");
    }
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let mut kept = Vec::new();
    let server = Server::start(move |_, connection| kept.push(connection));
    let started = Instant::now();
    let error = server.target_with(Timeouts { request: SHORT, ..Timeouts::default() }).info().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error:?}");
    assert!(started.elapsed() >= SHORT && started.elapsed() < PATIENCE, "{:?}", started.elapsed());
}

#[test]
fn a_reply_may_come_byte_by_byte() {
    let server = Server::start(|_, mut connection| {
        for byte in encode_ok(&info_3()).unwrap() {
            reply(&mut connection, &[byte]);
            thread::yield_now();
        }
    });
    assert_eq!(server.target().info().unwrap().clr_version.as_deref(), Some("9.0.1"));
}

fn environment_server(announced: impl Fn(u32) -> u32 + Send + 'static, cut: usize) -> Server {
    Server::start(move |_, mut connection| {
        let (header, bytes) = Environment(variables()).encode().unwrap();
        let incoming_bytes = announced(header.incoming_bytes);
        let mut together = encode_ok(&EnvironmentReply { incoming_bytes, ..header }).unwrap();
        together.extend_from_slice(&bytes[..bytes.len() - cut]);
        // Pieces that end neither where the reply does nor where a string does.
        for piece in together.chunks(1013) {
            // The client may have seen enough.
            if connection.write_all(piece, patient()).is_err() {
                return;
            }
        }
    })
}

fn variables() -> Vec<String> {
    (0..2000).map(|i| format!("VARIABLE_{i}=value ü😀 {}", "x".repeat(i % 97))).collect()
}

#[test]
fn the_environment_is_read_from_behind_the_reply() {
    let server = environment_server(|length| length, 0);
    assert_eq!(server.target().environment().unwrap(), variables());
}

#[test]
fn an_environment_of_a_wrong_length_is_an_error() {
    let server = environment_server(|length| length, 1);
    assert_eq!(server.target().environment().unwrap_err().kind(), ErrorKind::Disconnected);
    let server = environment_server(|length| length - 1, 0);
    assert_eq!(server.target().environment().unwrap_err().kind(), ErrorKind::Protocol);
    let server = environment_server(|_| u32::MAX, 0);
    let error = server.target().environment().unwrap_err();
    assert!(matches!(error, Error::EnvironmentTooLarge { announced: u32::MAX, .. }), "{error:?}");
}

#[test]
fn a_resume_needs_no_payload_in_its_reply_but_heeds_one() {
    let empty = Message::new(CommandId::OK, Vec::new()).unwrap().to_bytes().unwrap();
    Server::answering(empty).target().resume().unwrap();
    Server::answering(encode_ok(&HResult(0)).unwrap()).target().resume().unwrap();
    let error = Server::answering(encode_ok(&HResult::FAIL).unwrap()).target().resume().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
}

fn collect() -> Collect {
    let provider =
        ProviderConfig { keywords: 1, level: 4, name: "Some-Provider".into(), arguments: String::new() };
    Collect::new([provider])
}

const COLLECT_COMMANDS: [CommandId; 4] = [
    CommandId::COLLECT_TRACING_4,
    CommandId::COLLECT_TRACING_3,
    CommandId::COLLECT_TRACING_2,
    CommandId::COLLECT_TRACING_1,
];

/// A server that knows the CollectTracing commands up to `newest`, and sends an empty stream.
fn server_with_collect(newest: u8) -> Server {
    Server::start(move |request, mut connection| {
        let known =
            request.command().set == CommandId::COLLECT_TRACING_1.set && request.command().id <= newest + 1;
        if known {
            reply(&mut connection, &encode_ok(&ID).unwrap());
        } else {
            refuse(&mut connection);
        }
    })
}

#[test]
fn collect_falls_back_to_the_newest_form_that_is_known() {
    let names = ["CollectTracing4", "CollectTracing3", "CollectTracing2", "CollectTracing"];
    for (tried, name) in names.into_iter().enumerate() {
        let server = server_with_collect(4 - u8::try_from(tried).unwrap());
        let mut session = server.target().collect(&collect()).unwrap();
        assert_eq!((session.command(), session.id()), (name, ID));
        assert_eq!(session.read(&mut [0; 8], patient()).unwrap(), 0);
        server.assert_seen(&COLLECT_COMMANDS[..=tried]);
    }
    let server = server_with_collect(0);
    assert!(matches!(server.target().collect(&collect()).unwrap_err(), Error::Unknown { .. }));
    server.assert_seen(&COLLECT_COMMANDS);
}

#[test]
fn what_no_known_form_can_say_is_an_error_and_not_sent() {
    let cases = [
        (3, Collect { rundown: Rundown::Keyword(1), ..collect() }, "CollectTracing4", 1),
        (2, Collect { stackwalk: false, ..collect() }, "CollectTracing3", 2),
        (1, Collect { rundown: Rundown::Off, ..collect() }, "CollectTracing2", 3),
    ];
    for (newest, collect, needed, tried) in cases {
        let server = server_with_collect(newest);
        let error = server.target().collect(&collect).unwrap_err();
        assert!(matches!(error, Error::NotExpressible { command, .. } if command == needed), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        server.assert_seen(&COLLECT_COMMANDS[..tried]);
    }
}

#[test]
fn everything_asked_for_arrives() {
    let (sender, receiver) = channel();
    let server = Server::start(move |request, mut connection| {
        sender.send(request).unwrap();
        reply(&mut connection, &encode_ok(&ID).unwrap());
    });
    let wanted = Collect { buffer_mb: 3, rundown: Rundown::Keyword(0x42), stackwalk: false, ..collect() };
    let mut session = server.target().collect(&wanted).unwrap();
    assert_eq!(session.read(&mut [0; 8], patient()).unwrap(), 0);
    let Request::CollectTracing4(sent) = receiver.recv().unwrap() else { panic!("not the newest form") };
    let expected = CollectTracing4 {
        buffer_mb: 3,
        format: wanted.format,
        rundown_keyword: 0x42,
        request_stackwalk: false,
        providers: wanted.providers,
    };
    assert_eq!(sent, expected);
}

#[test]
fn more_than_fits_into_a_message_is_refused_here() {
    let server = server_with_collect(4);
    let provider = ProviderConfig { name: "x".repeat(33_000), ..ProviderConfig::default() };
    let error = server.target().collect(&Collect::new([provider])).unwrap_err();
    assert!(matches!(error, Error::Encode { command: "CollectTracing4", .. }), "{error:?}");
}

/// What a server does with a session.
struct Stream {
    connection: Connection,
}

/// A server whose session sends `beginning` in one piece with the reply, and whose stop is answered by `stop`.
fn streaming_server(
    beginning: &'static [u8],
    mut stop: impl FnMut(&mut Option<Stream>, Connection) + Send + 'static,
) -> Server {
    let mut stream = None;
    Server::start(move |request, mut connection| match request {
        Request::CollectTracing4(_) => {
            let mut bytes = encode_ok(&ID).unwrap();
            bytes.extend_from_slice(beginning);
            reply(&mut connection, &bytes);
            stream = Some(Stream { connection });
        }
        Request::StopTracing(command) => {
            assert_eq!(command.0, ID);
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
fn the_stream_begins_with_what_came_with_the_reply_and_ends_after_the_stop() {
    let server = streaming_server(b"Nettrace", well_behaved_stop);
    let mut session = server.target().collect(&collect()).unwrap();
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
    server.assert_seen(&[CommandId::COLLECT_TRACING_4, CommandId::STOP_TRACING]);
}

#[test]
fn a_read_can_be_repeated_after_its_deadline() {
    let server = streaming_server(b"Nettrace", well_behaved_stop);
    let mut session = server.target().collect(&collect()).unwrap();
    let mut buffer = [0; 64];
    assert_eq!(session.read(&mut buffer, patient()).unwrap(), 8);
    let error = session.read(&mut buffer, Deadline::after(SHORT)).unwrap_err();
    assert!(error.is_deadline(), "{error:?}");
    session.stopper().stop().unwrap();
    assert_eq!(read_to_end(&mut session), b" and its rundown");
}

#[test]
fn a_session_whose_stream_never_begins_is_an_error_of_its_own() {
    let server = streaming_server(b"", well_behaved_stop);
    let timeouts = Timeouts { first_bytes: SHORT, ..Timeouts::default() };
    let mut session = server.target_with(timeouts).collect(&collect()).unwrap();
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
    let timeouts = Timeouts { stop: Duration::from_secs(2), ..Timeouts::default() };
    let mut session = server.target_with(timeouts).collect(&collect()).unwrap();
    let error = session.stopper().stop().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error:?}");
    session.stopper().stop().unwrap();
    session.stopper().stop().unwrap();
    assert_eq!(read_to_end(&mut session), b"Nettrace and its rundown");
    let stop = CommandId::STOP_TRACING;
    server.assert_seen(&[CommandId::COLLECT_TRACING_4, stop, stop]);
}

#[test]
fn a_stop_is_not_given_up_while_the_stream_flows() {
    let server = streaming_server(b"Nettrace", |stream, mut connection| {
        let Some(Stream { connection: mut stream }) = stream.take() else { panic!("stopped twice") };
        // Many times what the client waits in silence.
        for _ in 0..60 {
            reply(&mut stream, b"rundown ");
            thread::sleep(SHORT);
        }
        reply(&mut connection, &encode_ok(&ID).unwrap());
    });
    let timeouts = Timeouts { stop: SHORT * 20, ..Timeouts::default() };
    let mut session = server.target_with(timeouts).collect(&collect()).unwrap();
    let stopper = session.stopper();
    let stop = thread::spawn(move || stopper.stop());
    assert_eq!(read_to_end(&mut session).len(), 8 + 60 * 8);
    stop.join().unwrap().unwrap();
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
    drop(server.target().collect(&collect()).unwrap());
    receiver.recv_timeout(PATIENCE).unwrap();
    server.assert_seen(&[CommandId::COLLECT_TRACING_4, CommandId::STOP_TRACING]);
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
    let timeouts = Timeouts { abandon: SHORT, ..Timeouts::default() };
    let session = server.target_with(timeouts).collect(&collect()).unwrap();
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
fn dropping_a_session_whose_runtime_answers_nobody_is_bounded() {
    // It accepts no second connection: its only thread waits for the stream to be read.
    let (sender, receiver) = channel::<()>();
    let server = Server::start(move |_, mut connection| {
        let answered = connection.write_all(&encode_ok(&ID).unwrap(), patient());
        // The client of the second connection has gone by then.
        assert!(receiver.recv().is_err() && answered.map_or_else(|error| error.is_disconnected(), |()| true));
    });
    let timeouts = Timeouts { abandon: SHORT, ..Timeouts::default() };
    let session = server.target_with(timeouts).collect(&collect()).unwrap();
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
    let mut session = server.target().collect(&collect()).unwrap();
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

#[test]
fn nobody_there_is_unreachable() {
    let folder = tempfile::tempdir().unwrap();
    let error = Target::from_path(folder.path().join("socket")).info().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(Target::from_pid(u32::MAX).unwrap_err().kind(), ErrorKind::Unreachable);
}
