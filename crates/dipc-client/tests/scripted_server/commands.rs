//! The commands whose reply is a result, and those that are blocked.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dipc_client::dipc_wire::{
    ApplyStartupHook, AttachProfiler, CommandId, DisablePerfMap, EnablePerfMap, HResult, Message,
    ProcessInfo3Reply, Request, SetEnvironmentVariable, StartupProfiler, StopTracing, encode_error,
    encode_ok,
};
use dipc_client::{Error, ErrorKind, Hazard, PerfMapType, Startup, Target, Uuid};

use crate::server::{ID, PATIENCE, Server, reply, sent_by};

const CLASS: Uuid = Uuid::from_u128(0x1111_1111_2222_3333_4444_5555_5555_5555);

fn ok() -> Vec<u8> {
    encode_ok(&HResult::OK).unwrap()
}

type Act = fn(&Target) -> Result<(), Error>;

/// Each command whose reply is a result, and the request it sends.
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
        // CoreCLR has no perf maps on other systems.
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

/// A thread of this process with a name that shows a runtime's state.
struct Named {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Named {
    fn start(name: &str) -> Self {
        let (end, ended) = channel::<()>();
        let wait = move || assert!(ended.recv().is_err());
        let thread = thread::Builder::new().name(name.into()).spawn(wait).unwrap();
        Self { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        self.end = None;
        self.thread.take().map(JoinHandle::join);
    }
}

/// A thread gets its name only when it runs.
fn wait_for(target: &Target, startup: Startup) {
    let started = Instant::now();
    while target.startup().unwrap() != startup {
        assert!(started.elapsed() < PATIENCE, "not seen to be {startup:?}");
        thread::yield_now();
    }
}

/// The server is this process, which thereby acts as the runtime: no other test here may look at its threads.
#[test]
#[cfg(target_os = "linux")]
fn what_endangers_a_runtime_depends_on_whether_it_is_suspended() {
    let version = Arc::new(Mutex::new("9.0.1"));
    let server = Server::start({
        let version = Arc::clone(&version);
        move |request, mut connection| match request {
            Request::ProcessInfo3(_) => {
                let clr_version = version.lock().unwrap().to_string();
                let mut info = ProcessInfo3Reply::<String>::default();
                (info.version, info.clr_version) = (1, clr_version);
                reply(&mut connection, &encode_ok(&info).unwrap());
            }
            _ => reply(&mut connection, &ok()),
        }
    });
    let target = server.target();
    let hook = std::env::current_exe().unwrap();
    let hook = hook.to_str().unwrap();
    let blocked = |path: &str| match target.apply_startup_hook(path).unwrap_err() {
        Error::Blocked { command: "ApplyStartupHook", hazard, .. } => hazard,
        error => panic!("{error:?}"),
    };
    assert_eq!(target.startup().unwrap(), Startup::Unknown);
    assert_eq!(blocked(hook), Hazard::StartupUnknown);
    for (path, expected) in [
        ("hook.dll", "the path is not absolute"),
        ("", "the path is not absolute"),
        ("/a:b.dll", "a colon divides two paths"),
        ("/no/such/hook.dll", "No such file or directory (os error 2)"),
        ("/", "it is not a file"),
    ] {
        let hazard = blocked(path);
        assert!(matches!(&hazard, Hazard::HookNotFound { why, .. } if why == expected), "{hazard:?}");
    }
    target.enable_perf_map(PerfMapType::ALL).unwrap();
    server.assert_seen(&[CommandId::ENABLE_PERF_MAP]);

    let server_thread = Named::start(".NET EventPipe");
    wait_for(&target, Startup::Suspended);
    target.apply_startup_hook(hook).unwrap();
    assert!(matches!(blocked("/no/such/hook.dll"), Hazard::HookNotFound { .. }));
    let error = target.enable_perf_map(PerfMapType::ALL).unwrap_err();
    assert!(
        matches!(&error, Error::Blocked { hazard: Hazard::PerfMapWhileSuspended { version }, .. } if version == "9.0.1"),
        "{error:?}"
    );
    server.assert_seen(&[CommandId::APPLY_STARTUP_HOOK, CommandId::PROCESS_INFO_3]);
    *version.lock().unwrap() = "10.0.5";
    target.enable_perf_map(PerfMapType::ALL).unwrap();
    server.assert_seen(&[CommandId::PROCESS_INFO_3, CommandId::ENABLE_PERF_MAP]);

    let finalizer = Named::start(".NET Finalizer");
    wait_for(&target, Startup::Running);
    assert_eq!(blocked(hook), Hazard::HookWhileRunning);
    target.clone().without_safeguards().apply_startup_hook("no/such").unwrap();
    server.assert_seen(&[CommandId::APPLY_STARTUP_HOOK]);
    drop((server_thread, finalizer));
}
