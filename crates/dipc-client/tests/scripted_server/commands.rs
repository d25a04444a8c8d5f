//! Commands with only a result as their reply, and blocked commands.

use std::time::Duration;

use dipc_client::dipc_wire::{
    ApplyStartupHook, AttachProfiler, CommandId, DisablePerfMap, EnablePerfMap, HResult, Message,
    ProcessInfo3Reply, Request, SetEnvironmentVariable, StartupProfiler, StopTracing, encode_error,
    encode_ok,
};
use dipc_client::{Error, ErrorKind, Hazard, PerfMapType, Target, Uuid};

use crate::server::{ID, Server, reply, sent_by};

const CLASS: Uuid = Uuid::from_u128(0x1111_1111_2222_3333_4444_5555_5555_5555);

fn ok() -> Vec<u8> {
    encode_ok(&HResult::OK).unwrap()
}

type Act = fn(&Target) -> Result<(), Error>;

/// Each command with only a result as its reply, and the request it sends.
fn orders() -> Vec<(Act, Request)> {
    let set = |value: Option<&str>| SetEnvironmentVariable { name: "A".into(), value: value.map(Into::into) };
    let profiler = AttachProfiler {
        timeout_ms: 1500,
        profiler: CLASS,
        path: "/p.so".into(),
        client_data: vec![1, 2, 3],
    };
    vec![
        (|it| it.set_environment_variable("A", Some("ü😀")), set(Some("ü😀")).into()),
        (|it| it.set_environment_variable("A", Some("")), set(Some("")).into()),
        (|it| it.set_environment_variable("A", None), set(None).into()),
        (
            |it| it.enable_perf_map(PerfMapType::JIT_DUMP),
            EnablePerfMap { kind: PerfMapType::JIT_DUMP }.into(),
        ),
        (|it| it.disable_perf_map(), DisablePerfMap.into()),
        (|it| it.apply_startup_hook("/hook.dll"), ApplyStartupHook { path: "/hook.dll".into() }.into()),
        (|it| it.attach_profiler(CLASS, "/p.so", Duration::from_millis(1500), &[1, 2, 3]), profiler.into()),
        (
            |it| it.startup_profiler(CLASS, "/p.so"),
            StartupProfiler { profiler: CLASS, path: "/p.so".into() }.into(),
        ),
    ]
}

#[test]
fn orders_arrive_as_they_were_given() {
    for (act, request) in orders() {
        let sent = sent_by(|target| act(&target.clone().without_safeguards()).unwrap(), ok());
        assert_eq!(sent, [request]);
    }
    let sent = sent_by(|target| target.stop(ID).unwrap(), encode_ok(&ID).unwrap());
    assert_eq!(sent, [StopTracing { session: ID }.into()]);
}

#[test]
fn an_order_is_refused_in_each_of_the_ways_that_there_are() {
    let no_payload = Message::new(CommandId::OK, Vec::new()).unwrap().to_bytes().unwrap();
    for (act, request) in orders() {
        let try_with = |bytes: Vec<u8>| {
            let server = Server::answering(bytes);
            act(&server.target().without_safeguards())
        };
        try_with(no_payload.clone()).unwrap();
        let kind = |bytes| try_with(bytes).unwrap_err().kind();
        assert_eq!(kind(encode_error(HResult::FAIL)), ErrorKind::Refused, "{request:?}");
        assert_eq!(kind(encode_ok(&HResult::FAIL).unwrap()), ErrorKind::Refused, "{request:?}");
        assert_eq!(kind(encode_error(HResult::OK)), ErrorKind::Refused, "{request:?}");
        assert_eq!(kind(b"HTTP/1.1 400 Bad Request".to_vec()), ErrorKind::Protocol, "{request:?}");
        let error = try_with(encode_error(HResult::UNKNOWN_COMMAND)).unwrap_err();
        let name = request.command().name();
        assert!(matches!(error, Error::UnknownCommand { command, .. } if Some(command) == name), "{error:?}");
    }
}

#[test]
fn a_name_that_no_variable_can_have_is_not_sent() {
    let server = Server::answering(ok());
    for name in ["", "A=B", "="] {
        let error = server.target().set_environment_variable(name, Some("")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    }
    let error = server.target().set_environment_variable("A\0B", Some("")).unwrap_err();
    assert!(matches!(error, Error::Encode { command: "SetEnvironmentVariable", .. }), "{error:?}");
    server.assert_seen(&[]);
}

#[test]
fn a_variable_is_removed_only_where_that_does_not_end_the_process() {
    let (info, perf_map) = (CommandId::PROCESS_INFO_3, CommandId::ENABLE_PERF_MAP);
    let set = CommandId::SET_ENVIRONMENT_VARIABLE;
    let server = |os: &'static str, refusal: HResult| {
        Server::start(move |request, mut connection| {
            let bytes = match request {
                Request::ProcessInfo3(_) => {
                    let mut info = ProcessInfo3Reply::<String>::default();
                    os.clone_into(&mut info.os);
                    encode_ok(&info).unwrap()
                }
                Request::EnablePerfMap(_) => encode_error(refusal),
                _ => ok(),
            };
            reply(&mut connection, &bytes);
        })
    };
    for (os, refusal, questions) in [
        ("Linux", HResult::INVALID_ARGUMENT, &[info, perf_map][..]),
        ("Linux", HResult::UNKNOWN_COMMAND, &[info, perf_map]),
        // CoreCLR does not have perf maps on other systems.
        ("Windows", HResult::NOT_SUPPORTED, &[info]),
        ("macOS", HResult::NOT_SUPPORTED, &[info]),
    ] {
        let server = server(os, refusal);
        server.target().set_environment_variable("A", None).unwrap();
        server.assert_seen(&[questions, &[set]].concat());
    }

    let server = server("Linux", HResult::NOT_SUPPORTED);
    let error = server.target().set_environment_variable("A", None).unwrap_err();
    assert!(matches!(&error, Error::Blocked { hazard: Hazard::UnsetInNativeAot, .. }), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Blocked);
    assert!(error.to_string().contains("may be"), "{error}");
    server.assert_seen(&[info, perf_map]);
    server.target().without_safeguards().set_environment_variable("A", None).unwrap();
    server.assert_seen(&[set]);
}
