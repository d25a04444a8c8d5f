//! Sessions in a real .NET runtime that the client drops: the NativeAOT build of the workload does not need
//! .NET.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dipc_client::{
    Deadline, Error, ErrorKind, Format, HResult, Level, ProviderConfig, Providers, Rundown, Session,
    SessionConfig, Target, Timeouts,
};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum number of sessions of a runtime.
const SESSIONS: usize = 64;

struct Workload {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    folder: TempDir,
}

impl Workload {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("workload");
        testdata::install("workload/nativeaot/workload-9.xz", &program);
        let mut command = Command::new(&program);
        command.env("TMPDIR", folder.path()).env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let commands = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut workload = Self { child, commands, answers, folder };
        assert_eq!(workload.answer(), format!("ready {}", workload.child.id()));
        workload
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn command(&mut self, command: &str) {
        writeln!(self.commands, "{command}").unwrap();
    }

    fn target(&self) -> Target {
        Target::from_pid(self.child.id()).unwrap()
    }

    /// Fails unless the runtime can start all its sessions again. It is killed before they are dropped:
    /// stopping that many would take seconds.
    fn assert_no_session_runs(mut self) {
        let target = self.target();
        let mut sessions: Vec<Session> = (0..SESSIONS).map(|_| start(&target)).collect();
        // The runtime may have ended such a session instead of a dropped one: on finding that nobody reads a
        // stream it disables the session by number, an address that a new session may have by then.
        let error = loop {
            match target.start_session(&collect()) {
                Ok(session) => sessions.push(session),
                Err(error) => break error,
            }
            assert!(sessions.len() < SESSIONS + 3, "room for more than {SESSIONS} sessions");
        };
        assert!(
            matches!(&error, Error::Refused { reason, .. } if reason.hresult == HResult::FAIL),
            "room for more than {SESSIONS} sessions: {error:?}"
        );
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        drop(sessions);
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect() -> SessionConfig {
    SessionConfig::new(Providers::parse("Workload-Typed:0xffffffffffffffff:5").unwrap())
}

fn start(target: &Target) -> Session {
    target.start_session(&collect()).unwrap()
}

fn read_to_end(session: &mut Session) -> Vec<u8> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match session.read(&mut buffer, Deadline::after(PATIENCE)).unwrap() {
            0 => return bytes,
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

#[test]
fn the_process_commands_are_answered() {
    let workload = Workload::start();
    let info = workload.target().info().unwrap();
    assert_eq!((info.process_id, info.command), (u64::from(workload.child.id()), "ProcessInfo3"));
    assert!(info.clr_version.unwrap().starts_with("9.0."));
    assert!(info.command_line.contains("workload"));
    let environment = workload.target().environment().unwrap();
    assert!(environment.contains(&format!("TMPDIR={}", workload.folder.path().display())), "{environment:?}");
    workload.target().resume().unwrap();
}

#[test]
fn a_session_is_stopped_while_its_stream_is_read() {
    for (format, beginning) in
        [(Format::NETTRACE, &b"Nettrace"[..]), (Format::NETPERF, b"\x14\0\0\0!FastSerialization.1")]
    {
        let mut workload = Workload::start();
        let mut session = workload.target().start_session(&collect().with_format(format)).unwrap();
        assert_eq!(session.command(), "CollectTracing4");
        workload.command("emit 10");
        assert!(workload.answer().starts_with("ok emit"));
        let stopper = session.stopper();
        let stop = thread::spawn(move || stopper.stop());
        let stream = read_to_end(&mut session);
        stop.join().unwrap().unwrap();
        assert!(stream.starts_with(beginning), "{:?}", &stream[..32]);
        // The runtime's own mark of a whole stream.
        assert_eq!(stream.last(), Some(&1), "the null tag");
        assert!(stream.windows(8).any(|bytes| bytes == b"R\0e\0q\0u\0"), "the metadata of RequestStart");
        workload.assert_no_session_runs();
    }
}

#[test]
fn a_session_stops_itself_after_its_time_in_a_flood() {
    let mut workload = Workload::start();
    let mut session = start(&workload.target());
    // More than the stream holds: the runtime waits for its reader in the middle of the stop.
    workload.command("flood 4 200000");
    assert!(workload.answer().starts_with("ok flood"));
    session.stop_after(Duration::from_millis(100));
    let mut stream = Vec::new();
    session.reader().read_to_end(&mut stream).unwrap();
    assert!(stream.starts_with(b"Nettrace") && stream.len() > 1 << 20, "{} bytes", stream.len());
    assert_eq!(stream.last(), Some(&1), "the null tag");
    // The runtime has answered: it serves the next command at once.
    assert!(workload.target().info().is_ok());
    workload.assert_no_session_runs();
}

#[test]
fn events_come_while_the_session_runs_and_one_of_them_stops_it() {
    let mut workload = Workload::start();
    let mut session = start(&workload.target());
    let stopper = session.stopper();
    workload.command("emit 10");
    assert!(workload.answer().starts_with("ok emit"));
    let mut events = session.events().unwrap();
    let mut starts = 0;
    while let Some(event) = events.next().unwrap() {
        if event.name() == "RequestStart" {
            starts += 1;
            // Nothing else ends this session: it was observed to stay alive.
            stopper.request_stop().unwrap();
        }
    }
    assert_eq!((starts, events.loss().total(), events.truncated_at()), (10, 0, None));
    workload.assert_no_session_runs();
}

#[test]
fn a_dropped_idle_session_leaks_nothing() {
    let workload = Workload::start();
    for _ in 0..3 {
        let started = Instant::now();
        drop(start(&workload.target()));
        assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    }
    workload.assert_no_session_runs();
}

#[test]
fn a_session_dropped_in_a_flood_leaks_nothing() {
    let mut workload = Workload::start();
    let session = start(&workload.target());
    workload.command("flood 4 200000");
    // Until the stream is full: no byte of it has been read.
    assert!(workload.answer().starts_with("ok flood"));
    let started = Instant::now();
    drop(session);
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    workload.assert_no_session_runs();
}

#[test]
fn a_session_cancelled_in_a_flood_leaks_nothing() {
    let mut workload = Workload::start();
    let session = start(&workload.target());
    workload.command("flood 4 200000");
    assert!(workload.answer().starts_with("ok flood"));
    session.canceller().cancel();
    drop(session);
    workload.assert_no_session_runs();
}

#[test]
fn a_runtime_that_waits_for_another_client_stops_a_dropped_session_later() {
    let mut workload = Workload::start();
    let timeouts = Timeouts::default().with_abandon(Duration::from_millis(200));
    let dropped = start(&workload.target().with_timeouts(timeouts));
    let mut slow = start(&workload.target());
    workload.command("flood 4 200000");
    assert!(workload.answer().starts_with("ok flood"));
    // Its only thread now waits in this stop for a stream without a reader.
    let stopper = slow.stopper();
    let stop = thread::spawn(move || stopper.stop());
    let impatient = Timeouts::default().with_request(Duration::from_millis(200));
    let impatient = workload.target().with_timeouts(impatient);
    let asked = Instant::now();
    while impatient.info().is_ok() {
        assert!(asked.elapsed() < PATIENCE, "the stop does not wait for its stream");
    }

    let started = Instant::now();
    drop(dropped);
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    assert!(read_to_end(&mut slow).len() > 1 << 20);
    stop.join().unwrap().unwrap();
    workload.assert_no_session_runs();
}

#[test]
fn a_killed_target_ends_the_stream_and_the_session_is_dropped_at_once() {
    let mut workload = Workload::start();
    let mut session = start(&workload.target());
    // The beginning is written after the reply, so it is waited for.
    let mut beginning = [0; 8];
    assert_eq!(session.read(&mut beginning, Deadline::after(PATIENCE)).unwrap(), 8);
    assert_eq!(&beginning, b"Nettrace");
    workload.child.kill().unwrap();
    workload.child.wait().unwrap();
    read_to_end(&mut session);
    session.stopper().stop().unwrap();
    let error = Target::from_pid(workload.child.id()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error:?}");
}

#[test]
fn does_not_send_commands_that_would_end_the_target() {
    let mut workload = Workload::start();
    // .NET 9 dies from the last three.
    let provider = collect().providers.remove(0).provider;
    let loud = ProviderConfig { level: Level(6), ..provider.clone() };
    let nameless = ProviderConfig { name: String::new(), ..provider.clone() };
    for refused in [
        SessionConfig::new::<ProviderConfig>([]),
        SessionConfig::new([loud]),
        SessionConfig::new([nameless]),
        SessionConfig::new(vec![provider; 1001]),
        collect().with_buffer_mb(0),
        collect().with_format(Format(2)),
    ] {
        let error = workload.target().start_session(&refused).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { .. }), "{error:?}");
    }
    assert!(workload.child.try_wait().unwrap().is_none());
    workload.assert_no_session_runs();
}

#[test]
fn a_session_may_have_all_that_the_limits_allow() {
    let workload = Workload::start();
    let names = (0..1000).map(|i| ProviderConfig {
        level: Level::VERBOSE,
        name: format!("P{i}"),
        ..ProviderConfig::default()
    });
    let most =
        SessionConfig::new(names.collect::<Vec<_>>()).with_buffer_mb(u32::MAX).with_rundown(Rundown::Off);
    let mut session = workload.target().start_session(&most).unwrap();
    session.stopper().stop().unwrap();
    assert!(read_to_end(&mut session).starts_with(b"Nettrace"));
}
