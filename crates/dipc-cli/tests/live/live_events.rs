//! `dipc events` of a process: events as they happen.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{dipc, run};
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::{McpServer, Workload, await_providers};

on_each_runtime!(
    events_are_shown_within_a_second,
    shows_collections_and_exceptions_by_default,
    the_exit_code_is_that_of_the_program_that_was_started,
    a_process_that_is_killed_ends_the_events,
);

const PATIENCE: Duration = Duration::from_secs(120);

/// `dipc events` of a process, and its lines as they come.
struct Live {
    child: Child,
    lines: Receiver<String>,
    messages: Receiver<String>,
    /// The messages read so far.
    said: String,
}

impl Live {
    /// Starts it, and waits until the session runs in the target.
    fn start(arguments: &[&str]) -> Self {
        let mut child = dipc(["events"].iter().chain(arguments).copied()).spawn().unwrap();
        let lines = lines(child.stdout.take().unwrap());
        let messages = lines_of_messages(&mut child);
        let mut live = Self { child, lines, messages, said: String::new() };
        while !live.said.contains("Started        : ") {
            let said = live.messages.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{}", live.said));
            live.said += &(said + "\n");
        }
        live
    }

    /// Starts it for a process, with lines of JSON.
    fn of_pid(pid: u32, arguments: &[&str]) -> Self {
        let pid = pid.to_string();
        Self::start(&[&["-p", &pid, "--format", "jsonl"], arguments].concat())
    }

    /// The same for the workload, with its events from now on.
    fn of(workload: &Workload, arguments: &[&str]) -> Self {
        let live = Self::of_pid(workload.pid(), arguments);
        await_providers(workload.runtime());
        live
    }

    fn event(&self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(PATIENCE).expect("an event")).unwrap()
    }

    /// The events up to one of that name.
    fn until(&self, name: &str) -> Vec<Value> {
        let mut events = Vec::new();
        while events.last().is_none_or(|event: &Value| event["name"] != name) {
            events.push(self.event());
        }
        events
    }

    /// Waits for its end; the exit code, and all messages.
    fn finish(mut self) -> (i32, String) {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        self.said.extend(self.messages.iter().map(|line| line + "\n"));
        (status.code().expect("no signal ends it"), std::mem::take(&mut self.said))
    }

    fn interrupt(self) -> (i32, String) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.finish()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(pipe: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(pipe).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    lines
}

fn lines_of_messages(child: &mut Child) -> Receiver<String> {
    lines(child.stderr.take().unwrap())
}

/// A loaded machine may be late this often.
const ATTEMPTS: u32 = 40;
const SECOND: Duration = Duration::from_secs(1);

const TYPED: [&str; 2] = ["--provider", "Workload-Typed"];

fn events_are_shown_within_a_second(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let live = Live::of(&workload, &TYPED);
    let start = live.said.split("Started        : ").nth(1).unwrap().split(',').next().unwrap();
    let start = SystemTime::from(start.parse::<jiff::Timestamp>().unwrap());
    let mut shortest = Duration::MAX;
    for _ in 0..ATTEMPTS {
        workload.send("emit 1");
        let events = live.until("Nothing");
        let now = SystemTime::now();
        workload.done("emit 1");
        let happened = start + Duration::from_nanos(events.last().unwrap()["time_ns"].as_u64().unwrap());
        // The header has milliseconds.
        shortest = shortest.min(now.duration_since(happened).unwrap_or_default());
        let names: Vec<_> = events.iter().map(|event| event["name"].as_str().unwrap()).collect();
        for name in ["Ints", "Floats", "Strings", "Request/Start", "Request/Stop", "Enumy"] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        assert_eq!(events[0]["fields"]["ui"], 0, "{events:?}");
        if shortest < SECOND {
            break;
        }
    }
    assert!(shortest < SECOND, "{shortest:?}");
    let (code, said) = live.interrupt();
    assert_eq!(code, 0, "{said}");
    // No other events of the program are requested.
    assert!(
        said.contains("Workload-Typed                          0xFFFFFFFFFFFFFFFF  Verbose(5)"),
        "{said}"
    );
    assert!(!said.contains("Microsoft-Windows-DotNETRuntime "), "{said}");
    assert!(said.contains(" 0 lost, in "), "{said}");
}

fn shows_collections_and_exceptions_by_default(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let live = Live::of(&workload, &[]);
    workload.run("gc 2 1");
    workload.run("throw 1");
    let events = live.until("Exception/Start");
    let starts: Vec<_> = events.iter().filter(|event| event["name"] == "GC/Start").collect();
    assert_eq!(starts.len(), 1, "{events:?}");
    assert_eq!(starts[0]["fields"]["Depth"], 2);
    // In order of time, and none of the thousands that the sampler and the compiler have.
    assert!(events.is_sorted_by_key(|event| event["time_ns"].as_i64()), "{events:?}");
    let is_flood = |event: &Value| {
        let name = event["name"].as_str().unwrap();
        name.starts_with("Thread/Sample") || name.starts_with("Method/")
    };
    assert!(!events.iter().any(is_flood), "{events:?}");
    assert_eq!(live.interrupt().0, 0);

    // Ticks of allocation are verbose, which the filter asks for.
    let live = Live::of(&workload, &["--event", "GC/AllocationTick", "--head", "2"]);
    workload.run("alloc 10");
    assert_eq!(
        (live.event()["name"].clone(), live.event()["level"].clone()),
        ("GC/AllocationTick".into(), 5.into())
    );
    let (code, said) = live.finish();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("Showed 2 events"), "{said}");
}

fn the_exit_code_is_that_of_the_program_that_was_started(runtime: Runtime) {
    let Some(command) = runtime.workload() else { return };
    if runtime == Runtime::Net3_1 {
        // Its runtime connects to no port.
        return;
    }
    let mut words: Vec<_> = ["events", "--provider", "Workload-Typed", "--event", "Nothing", "--"]
        .into_iter()
        .map(str::to_owned)
        .collect();
    words.extend(
        [command.get_program()]
            .into_iter()
            .chain(command.get_args())
            .map(|it| it.to_string_lossy().into_owned()),
    );
    words.extend(["emit 3".to_owned(), "quit 3".to_owned()]);
    let mut command = dipc(words.iter().map(String::as_str));
    command.env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
    let finished = crate::program::Running::start(command).finish().with_code(3);
    let shown = finished.text();
    assert_eq!(shown.lines().filter(|line| line.contains("Workload-Typed/Nothing")).count(), 3, "{shown}");
    assert!(finished.stderr.contains("Showed 3 events, 0 lost"), "{}", finished.stderr);
}

fn a_process_that_is_killed_ends_the_events(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let live = Live::of(&workload, &TYPED);
    workload.run("emit 1");
    live.until("Nothing");
    workload.kill();
    let (code, said) = live.finish();
    assert_eq!(code, 6, "{said}");
    assert!(said.contains("the process has probably ended; everything received before was shown"), "{said}");
}

/// A reader that has left is noticed even without events.
#[test]
fn a_closed_pipe_ends_the_session() {
    let Some(workload) = Workload::start(Runtime::NativeAot9) else { return };
    let pid = workload.pid().to_string();
    let mut command = dipc(["events", "-p", &pid, "--provider", "Workload-Typed"]);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn events_of_net10_are_shown_as_they_happen() {
    let Some(mut server) = McpServer::start() else { return };
    let live = Live::of_pid(server.pid(), &["--clrevents", "threading+gc", "--clreventlevel", "verbose"]);
    let mut shortest = Duration::MAX;
    for id in 0..ATTEMPTS {
        while live.lines.try_recv().is_ok() {}
        let sent = Instant::now();
        server.request(100 + id, "tools/list", "{}");
        assert_eq!(live.event()["provider"], "Microsoft-Windows-DotNETRuntime");
        shortest = shortest.min(sent.elapsed());
        if shortest < SECOND {
            break;
        }
    }
    assert!(shortest < SECOND, "{shortest:?}");
    assert_eq!(live.interrupt().0, 0);
}

/// Said before anything is recorded; and only of the runtime that has none.
#[test]
fn a_runtime_without_a_sampler_is_named_at_once() {
    const WARNING: &str = "warning: the process is a NativeAOT program, which has no sampler";
    let said = |pid: u32, arguments: &[&str]| {
        let pid = pid.to_string();
        let fixed = ["trace", "-p", &pid, "-o", "/dev/null", "--duration", "100ms"];
        run(fixed.iter().chain(arguments).copied()).with_code(0).stderr
    };
    for runtime in Runtime::ALL {
        let Some(workload) = Workload::start(runtime) else { continue };
        let is_native = runtime == Runtime::NativeAot9;
        let stderr = said(workload.pid(), &[]);
        assert_eq!(stderr.contains(WARNING), is_native, "{runtime:?}: {stderr}");
        if is_native {
            assert!(stderr.find(WARNING) < stderr.find("Output File"), "{stderr}");
            // As a sidecar sees it, without a pid to look at.
            let socket = workload.socket();
            let socket = socket.to_str().unwrap();
            let other = run(["trace", "--endpoint", socket, "-o", "/dev/null", "--duration", "100ms"]);
            assert!(other.stderr.contains(WARNING), "{}", other.stderr);
            let samples = ["--profile", "dotnet-sampled-thread-time", "--duration", "100ms"];
            let pid = workload.pid().to_string();
            let events = run(["events", "-p", &pid].iter().chain(&samples).copied());
            assert!(events.stderr.contains(WARNING), "{}", events.stderr);
        }
        let without = said(workload.pid(), &["--profile", "gc-collect"]);
        assert!(!without.contains(WARNING), "{runtime:?}: {without}");
    }
    if let Some(server) = McpServer::start() {
        assert!(!said(server.pid(), &[]).contains(WARNING));
    }
}
