//! Every fault of the simulated runtime against every command of the client: the right outcome, no hang, no
//! leak.
//!
//! One test, since it counts the descriptors and the threads of its process. `--nocapture` shows the table.

#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use dipc_client::dipc_wire::CommandId;
use dipc_client::{
    Deadline, Dump, Error, ErrorKind, Level, PerfMapType, ProviderConfig, SessionConfig, SessionId, Target,
    Timeouts, Uuid,
};
use dipc_sim::{Fault, Runtime, Version};

/// Maximum time of each step here.
const STEP: Duration = Duration::from_millis(300);
/// The same where a loaded machine was too slow for what has to succeed.
const LONG_STEP: Duration = Duration::from_secs(5);
/// A time that no command may reach, with any number of steps: this is a hang, and not a slow machine.
const HANG: Duration = Duration::from_secs(60);

/// The faults that are tested at a time.
const THREADS: usize = 4;

const GUID: Uuid = Uuid::from_u128(0x1111_1111_2222_3333_4444_5555_5555_5555);
/// The file of the simulated dumps.
const DUMP: &str = "core";

type Call = fn(&Target, &Path) -> Result<(), Error>;

/// The commands, with a function that calls each.
const COMMANDS: &[(&str, Call)] = &[
    ("info", |target, _| target.info().map(drop)),
    ("environment", |target, _| target.environment().map(drop)),
    ("set-env", |target, _| target.set_environment_variable("A", Some("b"))),
    ("resume", |target, _| target.resume()),
    ("perfmap on", |target, _| target.enable_perf_map(PerfMapType::ALL)),
    ("perfmap off", |target, _| target.disable_perf_map()),
    ("startup-hook", |target, folder| {
        // A running runtime ends if the file does not exist, even a simulated one.
        let hook = folder.join("hook.dll");
        fs::write(&hook, "").unwrap();
        target.apply_startup_hook(hook.to_str().unwrap())
    }),
    ("dump", |target, folder| target.dump(&Dump::new(folder.join(DUMP).to_str().unwrap())).map(drop)),
    ("attach-profiler", |target, folder| {
        let library = folder.join("profiler.so");
        fs::write(&library, "").unwrap();
        target.attach_profiler(GUID, library.to_str().unwrap(), Duration::ZERO, b"data")
    }),
    ("startup-profiler", |target, _| target.startup_profiler(GUID, "/profiler.so")),
    ("stop", |target, _| target.stop(SessionId(0x10))),
    ("collect", |target, _| collect(target)),
];

/// A session that is read for a while, stopped, and read to its end.
fn collect(target: &Target) -> Result<(), Error> {
    let provider = ProviderConfig { name: "Provider".into(), level: Level::VERBOSE, ..Default::default() };
    let mut session = target.start_session(&SessionConfig::new([provider]))?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match session.read(&mut buffer, Deadline::after(STEP)) {
            Ok(0) => return Ok(()),
            Ok(_) if session.bytes_read() < 10_000 => {}
            Ok(_) => session.request_stop()?,
            Err(error) if error.is_deadline() => session.request_stop()?,
            Err(error) => return Err(error),
        }
    }
}

/// The required outcome of a command with a fault; `None` for success.
fn expected(fault: Fault, command: &str) -> Option<ErrorKind> {
    let collects = command == "collect";
    match fault {
        Fault::NeverAnswer | Fault::AnswerLate(_) => Some(ErrorKind::TimedOut),
        Fault::WrongMagic | Fault::WrongSize => Some(ErrorKind::Protocol),
        Fault::Error(_) => Some(ErrorKind::Refused),
        Fault::CloseAfterHeader | Fault::Oversize => Some(ErrorKind::Disconnected),
        Fault::NeverStop if collects || command == "stop" => Some(ErrorKind::TimedOut),
        Fault::StaleSocket => Some(ErrorKind::Unreachable),
        // The reader judges the stream: a truncated stream simply ends. The owner of the socket is checked
        // where it is discovered, and not where it is given by path, as here.
        _ => None,
    }
}

/// The number of descriptors and threads of this process.
fn held() -> (usize, usize) {
    let count = |folder: &str| fs::read_dir(folder).unwrap().count();
    (count("/proc/self/fd"), count("/proc/self/task"))
}

fn recording() -> Vec<u8> {
    testdata::bytes("traces/net10-typed.nettrace.xz")
}

/// Calls a command at a runtime with a fault. Returns the outcome, and the time that it took.
fn attempt(fault: Fault, call: Call, recording: &[u8], step: Duration) -> (Result<(), Error>, Duration) {
    let folder = tempfile::tempdir().unwrap();
    let builder = Runtime::builder().version(Version::NET9).replay(recording.to_vec());
    let runtime = match fault {
        // Whether a session can be stopped concerns only sessions that begin.
        Fault::NeverStop => builder.fault_on(CommandId::STOP_TRACING, fault),
        _ => builder.fault(fault),
    };
    let runtime = runtime.start_in(folder.path()).unwrap();
    let target = Target::at(runtime.address()).with_timeouts(Timeouts::each(step)).without_safeguards();
    let started = Instant::now();
    let outcome = call(&target, folder.path());
    (outcome, started.elapsed())
}

/// Calls every command at runtimes with a fault. Returns a row of the table, and the calls with another
/// outcome than the required one.
fn check(written: &str, recording: &[u8]) -> (String, Vec<String>) {
    let fault: Fault = written.parse().unwrap();
    let mut wrong = Vec::new();
    if fault == Fault::ForeignOwner && !rustix::process::geteuid().is_root() {
        let _ = writeln!(std::io::stderr(), "!!! NOT RUN {written}: only root can give a socket away");
        return (format!("{written:<32} not run"), wrong);
    }
    let mut line = format!("{written:<32}");
    for (command, call) in COMMANDS {
        let expected = expected(fault, command);
        let (mut outcome, mut took) = attempt(fault, *call, recording, STEP);
        if expected != Some(ErrorKind::TimedOut)
            && outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::TimedOut)
        {
            (outcome, took) = attempt(fault, *call, recording, LONG_STEP);
        }

        let kind = outcome.as_ref().err().map(Error::kind);
        let shown = kind.map_or("ok".into(), |kind| format!("{kind:?}"));
        write!(line, " {command}:{shown}").unwrap();
        let what = format!("{written} with {command}: {outcome:?} after {took:?}");
        if kind != expected {
            wrong.push(what.clone());
        }
        assert!(took < HANG, "{what}");
        if let Err(error) = outcome {
            assert!(!error.to_string().is_empty());
        }
    }
    (line, wrong)
}

#[test]
fn every_fault_with_every_command_ends_as_it_should_and_leaves_nothing() {
    let recording = recording();
    let before = held();
    let faults: Vec<_> = Fault::SYNTAX.iter().map(|syntax| syntax.example).collect();
    let check_some =
        |faults: &[&str]| faults.iter().map(|fault| check(fault, &recording)).collect::<Vec<_>>();
    // Most of the time is waiting for time limits.
    let rows: Vec<_> = thread::scope(|scope| {
        let some = faults.chunks(faults.len().div_ceil(THREADS));
        let threads: Vec<_> = some.map(|faults| scope.spawn(move || check_some(faults))).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    for (line, _) in &rows {
        println!("{line}");
    }
    let wrong: Vec<_> = rows.into_iter().flat_map(|(_, wrong)| wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Threads that were asked to end may need a moment.
    let deadline = Instant::now() + HANG;
    while held() != before && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(held(), before, "descriptors and threads");
}
