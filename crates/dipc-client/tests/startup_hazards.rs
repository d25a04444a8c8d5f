//! Hazards of a runtime, by the state that the threads of its process show. The server is this process, which
//! thereby acts as the runtime: no other test may look at its threads.
#![cfg(target_os = "linux")]

#[expect(dead_code, reason = "the servers of the other tests")]
#[path = "scripted_server/server.rs"]
mod server;

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use dipc_client::dipc_wire::{CommandId, HResult, ProcessInfo3Reply, Request, encode_ok};
use dipc_client::{Dump, Error, Hazard, PerfMapType, Startup, Target};

use crate::server::{PATIENCE, Server, refuse, reply};

fn ok() -> Vec<u8> {
    encode_ok(&HResult::OK).unwrap()
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

#[test]
fn hazards_depend_on_whether_the_runtime_is_suspended() {
    let version = Arc::new(Mutex::new("9.0.1"));
    let server = Server::start({
        let version = Arc::clone(&version);
        move |request, mut connection| match request {
            Request::ProcessInfo3(_) if version.lock().unwrap().is_empty() => refuse(&mut connection),
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

    // The runtime is in no library of its own.
    let dump = Dump::new("/core");
    *version.lock().unwrap() = "8.0.28";
    let error = target.dump(&dump).unwrap_err();
    assert!(
        matches!(&error, Error::Blocked { hazard: Hazard::DumpInSingleFile { version }, .. } if version == "8.0.28"),
        "{error:?}"
    );
    server.assert_seen(&[CommandId::PROCESS_INFO_3]);
    target.clone().without_safeguards().dump(&dump).unwrap();
    server.assert_seen(&[CommandId::GENERATE_CORE_DUMP_3]);
    // An unknown version does not block the command.
    let asked = [CommandId::PROCESS_INFO_3, CommandId::PROCESS_INFO_2, CommandId::GENERATE_CORE_DUMP_3];
    for (unknown, asked) in [("10.0.5", &[asked[0], asked[2]][..]), ("", &asked)] {
        *version.lock().unwrap() = unknown;
        target.dump(&dump).unwrap();
        server.assert_seen(asked);
    }
    drop((server_thread, finalizer));
}
