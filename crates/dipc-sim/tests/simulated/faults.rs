use crate::plain_client::{NoAnswer, ask, collect, moment, patience, recording, send, start_session, stop};
use dipc_sim::{Fault, Runtime, ScopedFault, Speed};
use dipc_wire::{
    Command as _, CommandId, DecodeError, HResult, ProcessInfo3, ServerError, SessionId, StopTracing,
};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn runtime(fault: Fault) -> (Runtime, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let builder = Runtime::builder().replay(recording(100_000)).fault(fault);
    (builder.start_in(folder.path()).unwrap(), folder)
}

fn ask_info(runtime: &Runtime) -> Result<(), NoAnswer> {
    send(runtime, &ProcessInfo3.to_bytes().unwrap(), patience()).map(drop)
}

#[test]
fn never_answer() {
    let (runtime, _folder) = runtime(Fault::NeverAnswer);
    let silence = send(&runtime, &ProcessInfo3.to_bytes().unwrap(), moment());
    assert!(matches!(silence, Err(NoAnswer::Transport(error)) if error.is_timeout()));
}

#[test]
fn answer_late() {
    let (runtime, _folder) = runtime(Fault::AnswerLate(Duration::from_millis(300)));
    let asked = Instant::now();
    ask_info(&runtime).unwrap();
    assert!(asked.elapsed() >= Duration::from_millis(300));
}

#[test]
fn wrong_magic() {
    let (runtime, _folder) = runtime(Fault::WrongMagic);
    assert!(matches!(ask_info(&runtime), Err(NoAnswer::Decode(DecodeError::WrongMagic { .. }))));
}

#[test]
fn wrong_size() {
    let (runtime, _folder) = runtime(Fault::WrongSize);
    assert!(matches!(ask_info(&runtime), Err(NoAnswer::Decode(DecodeError::WrongSize { size: 7 }))));
}

#[test]
fn error() {
    let (runtime, _folder) = runtime(Fault::Error(HResult::NOT_SUPPORTED));
    assert_eq!(ask(&runtime, &ProcessInfo3), Err(ServerError::new(HResult::NOT_SUPPORTED)));
    assert_eq!(ask(&runtime, &collect()), Err(ServerError::new(HResult::NOT_SUPPORTED)));
    assert_eq!(runtime.session_count(), 0);
}

#[test]
fn close_after_header() {
    let (runtime, _folder) = runtime(Fault::CloseAfterHeader);
    assert!(matches!(ask_info(&runtime), Err(NoAnswer::End(20))));
    let session = send(&runtime, &collect().to_bytes().unwrap(), patience()).map(drop);
    assert!(matches!(session, Err(NoAnswer::End(20))));
}

#[test]
fn close_in_stream() {
    let (runtime, _folder) = runtime(Fault::CloseInStream { after: 70_001 });
    let (_, answer) = start_session(&runtime);
    assert!(answer.rest() == recording(100_000)[..70_001]);
    assert!(!runtime.has_died());
    ask_info(&runtime).unwrap();
}

#[test]
fn one_byte_at_a_time() {
    let (runtime, _folder) = runtime(Fault::OneByteAtATime);
    let (id, answer) = start_session(&runtime);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| answer.rest());
        stop(&runtime, id);
        assert!(reader.join().unwrap() == recording(100_000));
    });
}

#[test]
fn never_stop() {
    let (runtime, _folder) = runtime(Fault::NeverStop);
    let (id, mut answer) = start_session(&runtime);
    while answer.behind.len() < 100_000 {
        let mut buffer = [0; 10_000];
        let count = answer.connection.read(&mut buffer, patience()).unwrap();
        answer.behind.extend(&buffer[..count]);
    }
    let silence = send(&runtime, &StopTracing { session: id }.to_bytes().unwrap(), moment());
    assert!(matches!(silence, Err(NoAnswer::Transport(error)) if error.is_timeout()));
    assert!(!answer.is_closed(moment()));
    assert_eq!(runtime.session_count(), 1);
}

#[test]
fn die_in_the_middle() {
    let (runtime, _folder) = runtime(Fault::DieInTheMiddle { after: 12_345 });
    let (id, answer) = start_session(&runtime);
    assert!(answer.rest() == recording(100_000)[..12_345]);
    assert!(runtime.has_died());
    // The killed process leaves a socket file without a listener.
    let deadline = patience();
    let stale = loop {
        let peer = dipc_transport::PeerCheck::Any;
        match dipc_transport::Connection::connect(&runtime.address(), peer, deadline) {
            // A connection may still be accepted between the end of the stream and that of the listener.
            Ok(_) => assert!(!deadline.is_over(), "session {id}: the dead runtime still listens"),
            Err(dipc_transport::Error::NoSocket { .. }) => assert!(!deadline.is_over(), "the socket is gone"),
            Err(error) => break error,
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(matches!(stale, dipc_transport::Error::Stale { .. }), "{stale}");
    let path = runtime.endpoint_path().to_owned();
    drop(runtime);
    assert!(!path.exists());
}

#[test]
fn a_fault_on_one_command_leaves_the_others_alone() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder()
        .fault_on(CommandId::STOP_TRACING, Fault::Error(HResult::FAIL))
        .start_in(folder.path())
        .unwrap();
    ask_info(&runtime).unwrap();
    assert_eq!(ask(&runtime, &StopTracing { session: SessionId(1) }), Err(ServerError::new(HResult::FAIL)));
}

#[test]
fn faults_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder()
        .replay(recording(50_000))
        .speed(Speed::Over(Duration::from_millis(200)))
        .fault(Fault::OneByteAtATime)
        .fault(Fault::CloseInStream { after: 30_000 })
        .start_in(folder.path())
        .unwrap();
    let (_, answer) = start_session(&runtime);
    assert!(answer.rest() == recording(50_000)[..30_000]);
}

#[test]
fn oversize() {
    let (runtime, _folder) = runtime(Fault::Oversize);
    assert!(matches!(ask_info(&runtime), Err(NoAnswer::End(len)) if len > 100 && len < 65_535));
}

#[test]
fn damage_in_stream() {
    let (runtime, _folder) = runtime(Fault::DamageInStream { after: 60_000 });
    let (id, answer) = start_session(&runtime);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| answer.rest());
        stop(&runtime, id);
        let (stream, whole) = (reader.join().unwrap(), recording(100_000));
        let wrong: Vec<_> = (0..whole.len()).filter(|at| stream[*at] != whole[*at]).collect();
        assert_eq!(wrong, (60_000..60_000 + Fault::DAMAGED_BYTES).collect::<Vec<_>>());
        assert_eq!(stream.len(), whole.len());
    });
}

#[test]
fn stop_reply_before_stream_end() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = recording(8_000_000);
    let runtime = Runtime::builder()
        .replay(bytes.clone())
        .fault(Fault::StopReplyBeforeStreamEnd)
        .start_in(folder.path())
        .unwrap();
    let (id, answer) = start_session(&runtime);
    // The reply arrives although the unread bytes exceed any socket buffer.
    stop(&runtime, id);
    assert!(answer.rest() == bytes);
}

#[test]
fn stale_socket() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().fault(Fault::StaleSocket).start_in(folder.path()).unwrap();
    assert!(runtime.has_died());
    let peer = dipc_transport::PeerCheck::Any;
    let error = dipc_transport::Connection::connect(&runtime.address(), peer, patience()).unwrap_err();
    assert!(matches!(error, dipc_transport::Error::Stale { .. }), "{error}");
    let path = runtime.endpoint_path().to_owned();
    drop(runtime);
    assert!(!path.exists());
}

/// Root can give a socket to another user; other users get an error.
#[test]
fn foreign_owner() {
    use std::os::unix::fs::MetadataExt as _;
    let folder = tempfile::tempdir().unwrap();
    let is_root = std::fs::metadata(folder.path()).unwrap().uid() == 0;
    match Runtime::builder().fault(Fault::ForeignOwner).start_in(folder.path()) {
        Ok(runtime) => {
            assert!(is_root);
            assert_eq!(std::fs::metadata(runtime.endpoint_path()).unwrap().uid(), Fault::FOREIGN_USER);
        }
        Err(error) => {
            assert!(!is_root && matches!(error, dipc_sim::Error::Owner { .. }), "{error}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
}

#[test]
fn a_fault_on_the_nth_request_spares_all_others() {
    let folder = tempfile::tempdir().unwrap();
    let refused = Fault::Error(HResult::FAIL);
    let builder = Runtime::builder()
        .scoped_fault(ScopedFault::new(refused).on(ProcessInfo3::ID).nth(2))
        .scoped_fault(ScopedFault::new(Fault::CloseAfterHeader).nth(4));
    let runtime = builder.start_in(folder.path()).unwrap();
    // Requests of other commands are not counted, except by a fault of all requests.
    assert_eq!(ask(&runtime, &StopTracing { session: SessionId(1) }), Ok(SessionId(1)));
    ask_info(&runtime).unwrap();
    assert_eq!(ask(&runtime, &ProcessInfo3), Err(ServerError::new(HResult::FAIL)));
    assert!(matches!(ask_info(&runtime), Err(NoAnswer::End(20))));
    ask_info(&runtime).unwrap();
}
