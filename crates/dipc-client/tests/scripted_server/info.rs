//! Behaviour common to all commands, shown with the process commands; and the environment.

use std::thread;
use std::time::Instant;

use dipc_client::dipc_wire::{
    CommandId, Environment, EnvironmentReply, HResult, Message, ProcessInfo1Reply, ProcessInfo2Reply,
    ProcessInfo3Reply, Request, encode_error, encode_ok,
};
use dipc_client::{Error, ErrorKind, Target, Timeouts, Uuid};

use crate::server::{PATIENCE, SHORT, Server, patient, refuse, reply};

fn info_1() -> ProcessInfo1Reply {
    let mut info = ProcessInfo1Reply::<String>::new(7, Uuid::nil());
    info.command_line = "/app/server --port 80".into();
    info
}

fn info_2() -> ProcessInfo2Reply {
    let first = ProcessInfo1Reply::new(7, Uuid::nil());
    ProcessInfo2Reply::new(first, String::new(), "6.0.36".into())
}

fn info_3() -> ProcessInfo3Reply {
    let first = ProcessInfo1Reply::new(7, Uuid::nil());
    let second = ProcessInfo2Reply::new(first, String::new(), "9.0.1".into());
    ProcessInfo3Reply::new(second, "linux-x64".into())
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
fn detects_a_runtime_without_process_commands() {
    let server = server_with_info(0);
    let target = server.target();
    for error in [target.info().unwrap_err(), target.environment().unwrap_err(), target.resume().unwrap_err()]
    {
        assert!(matches!(error, Error::UnknownCommand { .. }), "{error:?}");
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
fn malformed_replies_are_protocol_errors() {
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
        // Its message contains the cause: printing the chain of causes would repeat it.
        assert!(std::error::Error::source(&error).is_none(), "{error:?}");
        assert!(error.to_string().contains("socket"), "{error}");
    }
}

#[test]
fn a_cut_reply_is_not_a_malformed_reply() {
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
    let error = server.target_with(Timeouts::default().with_request(SHORT)).info().unwrap_err();
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
        let (header, bytes) = Environment(variables()).to_bytes().unwrap();
        let announced = EnvironmentReply::new(announced(header.incoming_bytes));
        let mut together = encode_ok(&announced).unwrap();
        together.extend_from_slice(&bytes[..bytes.len() - cut]);
        // Pieces that end neither at the end of the reply nor at that of a string.
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
fn the_environment_follows_the_reply() {
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

#[test]
fn nobody_there_is_unreachable() {
    let folder = tempfile::tempdir().unwrap();
    let error = Target::from_path(folder.path().join("socket")).info().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(Target::from_pid(u32::MAX).unwrap_err().kind(), ErrorKind::Unreachable);
}
