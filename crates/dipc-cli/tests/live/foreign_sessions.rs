//! Sessions of Meters by other tools, at the same time as the commands that read counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use dipc_client::{Deadline, Keywords, Level, ProviderConfig, Rundown, SessionConfig, Target};
use serde_json::json;

use crate::monitor::{Monitor, await_that};
use crate::program::{Running, dipc};
use crate::runtime::Runtime;
use crate::workload::{McpServer, Workload};

/// A session of another tool for the Meters of a process.
struct ForeignSession {
    values: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl ForeignSession {
    /// Starts the session; `id` names the session and the client as a tool does.
    fn start(pid: u32, id: &str, meter: &str, instrument: &str) -> Self {
        let provider = ProviderConfig {
            keywords: Keywords(2),
            level: Level::INFORMATIONAL,
            name: "System.Diagnostics.Metrics".to_owned(),
            arguments: format!("{id};Metrics={meter};RefreshInterval=1;MaxTimeSeries=1000;MaxHistograms=10"),
        };
        let config = SessionConfig::new([provider]).with_rundown(Rundown::Off);
        let mut session = Target::from_pid(pid).unwrap().start_session(&config).unwrap();
        let needle: Vec<u8> = instrument.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let (values, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, over) = (Arc::clone(&values), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while !over.load(Ordering::Relaxed) {
                let read = session.poll_read(&mut buffer, Deadline::after(Duration::from_millis(50)));
                let Some(count) = read.unwrap() else { continue };
                assert!(count > 0, "the stream of the other tool has ended");
                let found = buffer[..count].windows(needle.len()).filter(|bytes| *bytes == needle).count();
                counted.fetch_add(u64::try_from(found).unwrap(), Ordering::Relaxed);
            }
        });
        Self { values, is_over, thread: Some(thread) }
    }

    fn count(&self) -> u64 {
        self.values.load(Ordering::Relaxed)
    }

    /// Waits for the values of at least one interval that begins from here on.
    fn await_values(&self, when: &str) {
        // The values of an interval arrive together, and one interval may be on its way.
        for _ in 0..2 {
            let count = self.count();
            await_that(when, || self.count() > count);
        }
    }
}

impl Drop for ForeignSession {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(thread::JoinHandle::join);
        assert!(thread::panicking() || matches!(ended, Some(Ok(()))), "the other tool's session has failed");
    }
}

/// Runs each command that reads counters beside the session of another tool, all of them at once, so that
/// each also begins and ends beside each.
fn run_during_session(pid: u32, foreign: &ForeignSession, meter: &str, instrument: &str) {
    foreign.await_values("the other tool has values before");
    let (process, folder) = (pid.to_string(), tempfile::tempdir().unwrap());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, recording) = (path("values.csv"), path("events.nettrace"));
    let condition = format!("counter {meter}/{instrument} > 1e15");
    let counters = ["-p", &process, "--counters", meter];
    let command = |name: &'static str| ["-q", "counters", name].into_iter().chain(counters);
    let timed = |name: &'static str| command(name).chain(["--duration", "1500ms"]);
    // The first runs alone: beside others, it could meet dotnet/runtime#119014.
    let commands = [
        timed("collect").chain(["-o", &*file]).collect::<Vec<_>>(),
        command("list").collect(),
        timed("serve").chain(["--listen", "127.0.0.1:0"]).collect(),
        timed("push").chain(["--otlp", "http://127.0.0.1:9"]).collect(),
        timed("monitor").collect(),
        ["-q", "trace", "-p", &process, "--keep", "10s", "--snapshot-on", &*condition]
            .into_iter()
            .chain(["--duration", "1500ms", "-o", &*recording])
            .collect(),
    ];
    drop(Running::start(dipc(commands[0].iter().copied())).finish());
    let rule = json!({
        "Trigger": {"Type": "EventMeter", "Settings": {
            "MeterName": meter, "InstrumentName": instrument, "GreaterThan": 1e15, "SlidingWindowDuration": "00:00:10",
        }},
        "Actions": [{"Type": "CollectTrace", "Settings": {"Profile": "Cpu"}}],
    });
    let monitor = Monitor::start(pid, &json!({"Rule": rule}));
    let running: Vec<_> =
        commands.iter().map(|command| Running::start(dipc(command.iter().copied()))).collect();
    monitor.await_rule("Rule", "Running", 0);
    for (command, running) in commands.iter().zip(running) {
        let finished = running.finish();
        assert!(finished.code.is_some(), "{command:?}: {finished:?}");
    }
    foreign.await_values("the other tool has values beside dipc monitor");
    drop(monitor.interrupt());
    foreign.await_values("the other tool has values after all commands have ended");
}

/// A workload that counts all the time.
fn count(workload: &mut Workload, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        workload.run("counters 5");
        thread::sleep(Duration::from_millis(100));
    }
}

/// Runs all commands during a session of a workload's Meter.
fn run_during_workload_session(id: &str) {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    workload.run("counters 1");
    let pid = workload.pid();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| count(&mut workload, &is_over));
        let result = std::panic::catch_unwind(|| {
            let foreign = ForeignSession::start(pid, id, "Workload.Meter", "orders");
            run_during_session(pid, &foreign, "Workload.Meter", "orders");
        });
        is_over.store(true, Ordering::Relaxed);
        result.unwrap();
    });
}

#[test]
fn a_shared_session_of_another_tool_continues() {
    run_during_workload_session("SessionId=SHARED;ClientId=another-tool");
}

#[test]
fn an_exclusive_session_of_another_tool_continues() {
    run_during_workload_session("SessionId=another-session");
}

#[test]
fn a_shared_session_of_another_tool_continues_in_net_10() {
    let Some(server) = McpServer::start() else { return };
    let (meter, instrument) = ("System.Runtime", "dotnet.gc.collections");
    let foreign =
        ForeignSession::start(server.pid(), "SessionId=SHARED;ClientId=another-tool", meter, instrument);
    run_during_session(server.pid(), &foreign, meter, instrument);
}

/// A client with two sessions ends the Meters of all, as the runtime counts it once and releases it twice.
#[test]
fn meters_that_another_tool_ends_are_requested_again() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    workload.run("counters 1");
    let (pid, folder) = (workload.pid(), tempfile::tempdir().unwrap());
    let file = folder.path().join("values.jsonl");
    let (process, path) = (pid.to_string(), file.to_str().unwrap());
    let arguments = ["counters", "collect", "-p", &process, "--counters", r"Meter\Workload.Meter"];
    let mut collecting = Running::start(dipc(arguments.into_iter().chain(["--format", "jsonl", "-o", path])));
    let values = || std::fs::read_to_string(&file).unwrap_or_default().matches("\"orders\"").count();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| count(&mut workload, &is_over));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            await_that("there are values", || values() > 0);
            for _ in 0..2 {
                let id = "SessionId=SHARED;ClientId=twice";
                drop(ForeignSession::start(pid, id, "Workload.Meter", "orders"));
            }
            collecting.until_said("have been silent for");
            let before = values();
            await_that("there are values again", || values() > before);
        }));
        is_over.store(true, Ordering::Relaxed);
        result.unwrap();
    });
}
