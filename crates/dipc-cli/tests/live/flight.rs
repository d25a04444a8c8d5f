//! The flight recorder: snapshots of the last events, complete and with names, however the process ends.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::program::{Finished, Running, Stat, dipc, run, stat};
use crate::runtime::{Runtime, on_each_runtime, on_runtimes};
use crate::workload::{McpServer, Target, WebServer, Workload, await_providers};

on_each_runtime!(
    a_signal_and_the_end_of_the_process_leave_snapshots,
    an_exception_leaves_a_snapshot_and_the_end
);

const PATIENCE: Duration = Duration::from_secs(120);

/// `dipc trace --keep` of a process.
struct Flight {
    folder: tempfile::TempDir,
    running: Running,
}

impl Flight {
    /// Starts it, and waits until the session runs.
    fn start(pid: u32, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (output, pid) = (folder.path().join("out.nettrace"), pid.to_string());
        let fixed = ["trace", "-p", &pid, "-o", output.to_str().unwrap()];
        let mut command = dipc(fixed.into_iter().chain(arguments.iter().copied()));
        command.stderr(File::create(folder.path().join("messages")).unwrap());
        let mut flight = Self { folder, running: Running::start(command) };
        flight.until("Keeping        : ", 1);
        flight
    }

    fn messages(&self) -> String {
        fs::read_to_string(self.folder.path().join("messages")).unwrap()
    }

    /// Waits until this many lines begin with a string.
    fn until(&mut self, start: &str, count: usize) {
        let deadline = Instant::now() + PATIENCE;
        let is_there =
            |messages: &str| messages.lines().filter(|line| line.starts_with(start)).count() >= count;
        while !is_there(&self.messages()) {
            assert!(!self.running.is_over() || is_there(&self.messages()), "{}", self.messages());
            assert!(Instant::now() < deadline, "{start} does not come: {}", self.messages());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Requests a snapshot, and waits for it, the `count`th. Runtimes send their events ten times a second:
    /// the snapshot waits for the events before the request.
    fn request_snapshot(&mut self, count: usize) {
        self.running.signal(Signal::USR1);
        self.until("Snapshot", count);
    }

    /// The snapshots, oldest first, each with its line.
    fn snapshots(&self) -> Vec<(PathBuf, String)> {
        let lines = self.messages();
        let lines = lines.lines().filter_map(|line| line.strip_prefix("Snapshot       : "));
        lines.map(|line| (PathBuf::from(line.split(", ").next().unwrap()), line.to_owned())).collect()
    }

    /// Waits for the end of the program, which is to have a code; no file is there but the snapshots, and
    /// what is known of a crash.
    fn finish(self, code: i32) -> (Vec<(PathBuf, String)>, tempfile::TempDir) {
        let (snapshots, messages) = (self.snapshots(), self.messages());
        let Self { folder, running } = self;
        let finished = running.finish();
        let messages = fs::read_to_string(folder.path().join("messages")).unwrap_or(messages);
        assert_eq!(finished.code, Some(code), "{messages}");
        let lines = messages.lines().filter_map(|line| line.strip_prefix("Snapshot       : "));
        let all: Vec<_> =
            lines.map(|line| (PathBuf::from(line.split(", ").next().unwrap()), line.to_owned())).collect();
        assert!(all.len() >= snapshots.len());
        let files = fs::read_dir(folder.path()).unwrap().count();
        let crashes = messages.lines().filter(|line| line.starts_with("Facts ")).count();
        assert_eq!(files, all.len() + crashes + 1, "{messages}");
        (all, folder)
    }
}

/// Waits until the runtime reports the methods that it compiles. `dipc` starts a session for that after the
/// one that it shows; `sockets` is the number of open ones before both. Runtimes handle requests one after
/// the other, so the session runs when a later request has its answer.
fn await_compiled_methods(workload: &Workload, sockets: usize) {
    let deadline = Instant::now() + PATIENCE;
    while workload.sockets() < sockets + 2 {
        assert!(Instant::now() < deadline, "the second session does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    run(["info", "-p", &workload.pid().to_string()]).with_code(0);
}

/// Waits until the first thread of a process has worked for some time from now.
fn await_work(target: &Target, time: Duration) {
    let schedstat = format!("/proc/{}/schedstat", target.pid());
    let worked = || {
        let text = fs::read_to_string(&schedstat).unwrap();
        Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
    };
    let (end, deadline) = (worked() + time, Instant::now() + PATIENCE);
    while worked() < end {
        assert!(Instant::now() < deadline, "{:?} of {end:?}", worked());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A snapshot that is whole and has lost nothing.
fn whole(snapshot: &(PathBuf, String)) -> Stat {
    let stat = stat(&snapshot.0, 0);
    stat.assert_whole();
    assert_eq!(stat.lost(), 0, "{}", snapshot.1);
    stat
}

fn top(snapshot: &(PathBuf, String)) -> Finished {
    run(["report", snapshot.0.to_str().unwrap(), "topN", "--inclusive", "-n", "1000"]).with_code(0)
}

/// The methods should be callers of what runs: the sampler stops a thread where the runtime lets it, which
/// may be never in a leaf.
#[track_caller]
fn assert_named(snapshot: &(PathBuf, String), methods: &[&str]) {
    let report = top(snapshot);
    for method in methods {
        assert!(report.text().contains(method), "{method}: {}{}", report.text(), report.stderr);
    }
    assert!(!report.stderr.contains("have no name"), "{}", report.stderr);
}

fn a_signal_and_the_end_of_the_process_leave_snapshots(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let mut arguments = vec!["--keep", "60s,64MB", "--providers", "Workload-Typed:FFFFFFFFFFFFFFFF:5"];
    if runtime != Runtime::NativeAot9 {
        arguments.extend(["--profile", "dotnet-common,dotnet-sampled-thread-time"]);
    }
    let mut flight = Flight::start(workload.pid(), &arguments);
    await_providers(runtime);
    workload.run("spin 1000");
    workload.run("flood 2 500");
    flight.request_snapshot(1);
    workload.run("flood 1 300");
    workload.run("spin 1000");
    flight.request_snapshot(2);
    workload.kill();
    let (snapshots, _folder) = flight.finish(6);
    let [asked, again, crash] = &snapshots[..] else { panic!("{snapshots:?}") };
    for snapshot in [asked, again] {
        assert!(snapshot.1.contains(": asked for"), "{}", snapshot.1);
    }
    // Its signal is known until its parent, this test, waits for it.
    let is_end = |end: &str| crash.1.ends_with(&format!(": the process {end}"));
    assert!(is_end("was killed by SIGKILL") || is_end("crashed or was killed"), "{}", crash.1);
    assert_eq!(whole(asked).count("Workload-Typed", "Tick"), 1000);
    for snapshot in [again, crash] {
        assert_eq!(whole(snapshot).count("Workload-Typed", "Tick"), 1300);
    }
    if runtime != Runtime::NativeAot9 {
        for snapshot in [asked, again, crash] {
            assert_named(snapshot, &["Spin.Hot(int)", "Program.Main(string[])"]);
        }
    }
}

fn an_exception_leaves_a_snapshot_and_the_end(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let condition = "exception System.TimeoutException or exception InvalidOp*";
    let arguments = ["--keep", "8MB", "--profile", "gc-collect", "--snapshot-on", condition];
    let more = ["--after", "1s", "--max-snapshots", "1"];
    let mut flight = Flight::start(workload.pid(), &[&arguments[..], &more[..]].concat());
    await_providers(runtime);
    workload.run("throw 3");
    flight.until("Snapshot", 1);
    let (snapshots, _folder) = flight.finish(0);
    let [snapshot] = &snapshots[..] else { panic!("{snapshots:?}") };
    assert!(snapshot.1.contains(": exception System.InvalidOperationException: "), "{}", snapshot.1);
    // All three: one second more is in it.
    assert_eq!(whole(snapshot).runtime_events(80), 3);
    assert!(workload.run("version").starts_with(char::is_numeric), "it runs on");
}

#[test]
fn drops_the_oldest_events_and_keeps_their_names() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let sockets = workload.sockets();
    let mut flight = Flight::start(workload.pid(), &["--keep", "2s"]);
    await_compiled_methods(&workload, sockets);
    // Compiled now, and dropped before the snapshot.
    workload.run("spin 500");
    workload.run("jit 5");
    workload.run("spin 5000");
    flight.running.signal(Signal::QUIT);
    flight.until("Snapshot", 1);
    workload.kill();
    let (snapshots, _folder) = flight.finish(6);
    let asked = &snapshots[0];
    whole(asked);
    let file = asked.0.to_str().unwrap();
    let samples = run(["events", file, "--event", "Thread/Sample", "--format", "jsonl"]).with_code(0);
    let times: Vec<u64> = samples.json_lines().map(|line| line["time_ns"].as_u64().unwrap()).collect();
    let (first, last) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    let kept = last - first;
    assert!((1_900_000_000..2_700_000_000).contains(&kept), "{kept} ns are kept");
    assert!(*first > 2_000_000_000, "what was before is dropped: {first}");
    let compiled = run(["events", file, "--event", "Method/LoadVerbose"]).with_code(0).text();
    assert!(compiled.contains("Gen"), "{compiled}");
    assert!(top(asked).text().contains("Spin.Hot(int)"));
}

#[test]
fn without_a_reason_the_end_of_the_recording_is_one() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let flight = Flight::start(workload.pid(), &["--keep", "60s"]);
    workload.run("spin 500");
    flight.running.signal(Signal::INT);
    let (snapshots, _folder) = flight.finish(0);
    let [snapshot] = &snapshots[..] else { panic!("{snapshots:?}") };
    assert!(snapshot.1.ends_with(": the recording ended"), "{}", snapshot.1);
    whole(snapshot);
    assert_named(snapshot, &["Spin.Hot(int)"]);
    let flight = Flight::start(workload.pid(), &["--keep", "60s", "--snapshot-on", "crash"]);
    flight.running.signal(Signal::INT);
    assert_eq!(flight.finish(0).0, []);
}

/// A program that ends on command, and the remains of its ring.
fn crashed(runtime: Runtime, way: &str, limit: Option<&str>) -> Option<(PathBuf, String, tempfile::TempDir)> {
    let program = runtime.program("crash/crash.dll")?;
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{} exec \"$@\"", limit.unwrap_or_default()), "sh"]);
    command.arg(program.get_program()).args(program.get_args()).arg(way);
    command.env("DOTNET_DbgEnableMiniDump", "0");
    let mut target = Target::start(command);
    assert!(target.line().starts_with("ready "));
    let flight = Flight::start(target.pid(), &["--keep", "30s,64MB"]);
    target.send("go");
    if way == "kill" {
        // It works by itself, and the work of these seconds is what has to be left.
        await_work(&target, Duration::from_millis(1500));
        target.kill();
    }
    let code = if way == "exit" { 0 } else { 6 };
    let (snapshots, folder) = flight.finish(code);
    let [snapshot] = &snapshots[..] else { panic!("{way}: {snapshots:?}") };
    let stat = whole(snapshot);
    assert_named(snapshot, &["Crash.Main(string[])"]);
    // LastWork is replaced while it runs, so the name of its last code may be in what the crash takes along.
    // Fib has no place where the sampler can stop it once its code is optimized: then all samples are in
    // LastWork.
    let methods = top(snapshot).text();
    assert!(["Crash.Fib(int)", "Crash.LastWork(int)"].iter().any(|name| methods.contains(name)), "{methods}");
    println!("{way}: {}; {} samples", snapshot.1, stat.provider("Microsoft-DotNETCore-SampleProfiler"));
    Some((snapshot.0.clone(), snapshot.1.clone(), folder))
}

/// What the stream of a crash lacks is said, and what can be had stands beside the snapshot.
#[test]
fn a_crash_is_described_in_a_companion_of_its_snapshot() {
    let Some(program) = Runtime::Net9_0.program("crash/crash.dll") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("input"), "go\n").unwrap();
    let (output, core) = (path("out.nettrace"), path("core.%p.%t"));
    let script = "exec \"$@\" < \"$INPUT\"";
    let mut command = dipc(["trace", "--keep", "30s,64MB", "-o", &output, "--", "sh", "-c", script, "sh"]);
    command.arg(program.get_program()).args(program.get_args()).arg("unhandled");
    command.env("INPUT", path("input")).env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
    command.env("DOTNET_DbgEnableMiniDump", "1").env("DOTNET_DbgMiniDumpName", &core);
    let finished = Running::start(command).finish().with_code(134);
    assert!(finished.stderr.contains("\nMissing        : the events of its last 100 ms"), "{finished:?}");
    assert!(!finished.stderr.contains("the stream ended in the middle"), "{finished:?}");
    let crash = finished.stderr.lines().find_map(|line| line.strip_prefix("Facts          : "));
    let text = fs::read_to_string(crash.unwrap_or_else(|| panic!("{finished:?}"))).unwrap();
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.trim_end() == name).unwrap_or_else(|| panic!("{name}: {text}")).1
    };
    let cause = "the process crashed with SIGABRT, because of an unhandled exception";
    assert_eq!(value("Cause"), cause);
    assert_eq!(value("Reason"), "the process crashed with SIGABRT");
    // A report of the snapshot begins with it.
    let report = run(["report", value("Snapshot"), "--format", "json"]).with_code(0).json();
    let finding = &report["findings"][0];
    assert_eq!((&finding["report"], &finding["is_problem"]), (&"crash".into(), &true.into()), "{report}");
    assert_eq!(finding["id"], "death");
    let begin = format!("{}: System.", cause.replacen("the", "The", 1));
    assert!(finding["text"].as_str().unwrap().starts_with(&begin), "{finding}");
    assert_eq!(value("Exit status"), "ended by signal 6, SIGABRT");
    // createdump fills in the time, which nobody knows before.
    let core = core.replace("%p", value("Process")).replace("%t", "");
    assert!(value("Core dump").starts_with(&core) && PathBuf::from(value("Core dump")).is_file(), "{text}");
    assert!(!value("Kernel's core").is_empty());
    // The exception without an event.
    assert!(text.contains("\nUnhandled exception. System."), "{text}");
}

/// `cpu-usage` is an EventCounter; 9.0 and later have a Meter of the same provider beside it, with other
/// names.
fn check_counter(pid: u32) {
    for condition in
        ["counter System.Runtime/cpu-usage >= 0", r"counter EventCounters\System.Runtime/cpu-usage >= 0"]
    {
        let arguments = ["--keep", "8MB", "--snapshot-on", condition, "--max-snapshots", "1"];
        let mut flight = Flight::start(pid, &arguments);
        flight.until("Snapshot", 1);
        let (snapshots, _folder) = flight.finish(0);
        let [snapshot] = &snapshots[..] else { panic!("{snapshots:?}") };
        assert!(snapshot.1.contains(": counter System.Runtime/cpu-usage = "), "{}", snapshot.1);
    }
    let pid = pid.to_string();
    let until = ["--until", "cpu-usage >= 0", "--duration", "60s", "--format", "jsonl", "-o", "-"];
    let collect = run(["counters", "collect", "-p", &pid].into_iter().chain(until)).with_code(0);
    assert!(
        collect.stderr.contains("Met            : counter System.Runtime/cpu-usage = "),
        "{}",
        collect.stderr
    );
}

fn a_counter_leaves_a_snapshot(runtime: Runtime) {
    let Some(workload) = Workload::start(runtime) else { return };
    check_counter(workload.pid());
}

on_runtimes!(a_counter_leaves_a_snapshot: net_3_1, net_9_0);

#[test]
fn a_counter_of_net10_leaves_a_snapshot() {
    let Some(server) = McpServer::start() else { return };
    check_counter(server.pid());
}

#[test]
fn a_killed_program_leaves_its_last_seconds() {
    crashed(Runtime::Net9_0, "kill", None);
}

#[test]
fn fail_fast_leaves_its_last_seconds() {
    crashed(Runtime::Net9_0, "failfast", None);
}

/// The exception itself may be missing: runtimes send what they have ten times a second, and a crash takes
/// the last of it along.
fn an_unhandled_exception_leaves_its_last_seconds(runtime: Runtime) {
    crashed(runtime, "unhandled", None);
}

on_runtimes!(an_unhandled_exception_leaves_its_last_seconds: net_8_0, net_9_0);

#[test]
fn a_stack_overflow_leaves_its_last_seconds() {
    crashed(Runtime::Net9_0, "overflow", None);
}

#[test]
fn memory_that_runs_out_leaves_its_last_seconds() {
    crashed(Runtime::Net9_0, "memory", Some("export DOTNET_GCHeapHardLimit=0x10000000;"));
    crashed(Runtime::Net9_0, "memory", Some("ulimit -v 4000000; export DOTNET_GCRegionRange=0x40000000;"));
}

#[test]
fn an_orderly_end_leaves_a_snapshot_with_the_runtimes_own_list() {
    let Some((_, line, _folder)) = crashed(Runtime::Net9_0, "exit", None) else { return };
    assert!(line.ends_with(": the process ended"), "{line}");
}

#[test]
fn a_killed_program_of_net10_leaves_its_last_seconds() {
    let Some(mut server) = McpServer::start() else { return };
    let mut flight = Flight::start(server.pid(), &["--keep", "20s"]);
    for id in 0..40 {
        server.request(100 + id, "tools/list", "{}");
    }
    flight.request_snapshot(1);
    for id in 0..40 {
        server.request(200 + id, "tools/list", "{}");
    }
    flight.request_snapshot(2);
    server.kill();
    let (snapshots, _folder) = flight.finish(6);
    assert_eq!(snapshots.len(), 3);
    for snapshot in &snapshots {
        whole(snapshot);
        assert!(top(snapshot).text().contains("Utf8JsonReader"), "{}", top(snapshot).text());
        println!("net10 kill: {}", snapshot.1);
    }
}

#[test]
fn rotated_recordings_have_names_and_all_events() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (output, pid) = (folder.path().join("out.nettrace"), workload.pid().to_string());
    let fixed = ["trace", "-p", &pid, "-o", output.to_str().unwrap(), "--rotate", "2MB"];
    let providers = ["--providers", "Workload-Typed:FFFFFFFFFFFFFFFF:5"];
    let profile = ["--profile", "dotnet-common,dotnet-sampled-thread-time"];
    let sockets = workload.sockets();
    let running = Running::start(dipc(fixed.into_iter().chain(providers).chain(profile)));
    let files = || {
        let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> =
            entries.filter(|path| path.extension().is_some_and(|it| it == "nettrace")).collect();
        files.sort_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
        files
    };
    let deadline = Instant::now() + PATIENCE;
    while fs::read_dir(folder.path()).unwrap().next().is_none() {
        assert!(Instant::now() < deadline, "no file is begun");
        std::thread::sleep(Duration::from_millis(10));
    }
    await_compiled_methods(&workload, sockets);
    let mut ticks = 0;
    while files().len() < 3 {
        assert!(Instant::now() < deadline, "{:?}", files());
        workload.run("flood 2 10000");
        ticks += 20_000;
        workload.run("spin 300");
    }
    running.signal(Signal::INT);
    let finished = running.finish().with_code(0);
    let files = files();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), files.len(), "{}", finished.stderr);
    let mut found = 0;
    for file in &files {
        let stat = stat(file, 0);
        stat.assert_whole();
        found += stat.count("Workload-Typed", "Tick") + stat.lost();
        let (file, line) = (file.clone(), finished.stderr.clone());
        assert_named(&(file, line), &["Spin.Hot(int)"]);
    }
    assert_eq!(found, ticks, "{}", finished.stderr);
    // Rates of each file are of its own time, and these times add up to that of the session.
    let duration = |command: &str, file: &PathBuf| {
        let output = run([command, file.to_str().unwrap(), "--format", "json"]).with_code(0).text();
        serde_json::from_str::<serde_json::Value>(&output).unwrap()["duration_ns"].as_u64().unwrap()
    };
    let total = duration("stat", files.last().unwrap());
    let own: Vec<_> = files.iter().map(|file| duration("report", file)).collect();
    let sum: u64 = own.iter().sum();
    assert!(sum >= total && sum < total + total / 4, "{own:?} of {total}");
}

#[test]
fn snapshots_a_web_request_by_status_and_by_path() {
    let Some(server) = WebServer::start() else { return };
    server.request();
    for (condition, reason) in [
        ("request status = 404", ": request GET /nosuch"),
        ("request path /nos* > 1us", ": request GET /nosuch"),
    ] {
        let arguments = ["--keep", "8MB", "--snapshot-on", condition, "--max-snapshots", "1"];
        let mut flight = Flight::start(server.pid(), &[&arguments[..], &["--providers", HOSTING]].concat());
        // The EventSource of the logging library is told of its filter a moment after the session has begun.
        let deadline = Instant::now() + PATIENCE;
        server.request();
        assert!(flight.snapshots().is_empty(), "{}", flight.messages());
        while flight.snapshots().is_empty() {
            server.request();
            server.request_for("/nosuch");
            assert!(Instant::now() < deadline, "{condition}: {}", flight.messages());
            let waited = Instant::now();
            while flight.snapshots().is_empty() && waited.elapsed() < Duration::from_secs(1) {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        flight.until("Snapshot", 1);
        let (snapshots, _folder) = flight.finish(0);
        let [snapshot] = &snapshots[..] else { panic!("{snapshots:?}") };
        assert!(snapshot.1.contains(reason), "{condition}: {}", snapshot.1);
        let file = snapshot.0.to_str().unwrap();
        let tried = run(["rules", "test", file, "--snapshot-on", condition]).with_code(0).text();
        assert!(tried.contains("request GET /nosuch"), "{tried}");
    }
}

const HOSTING: &str = "Microsoft.AspNetCore.Hosting:FFFFFFFFFFFFFFFF:4";

#[test]
fn a_condition_is_tried_on_a_snapshot_that_it_made() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let condition = "exception InvalidOperationException";
    let arguments = ["--keep", "8MB", "--snapshot-on", condition, "--max-snapshots", "1", "--after", "500ms"];
    let mut flight = Flight::start(workload.pid(), &arguments);
    workload.run("throw 2");
    flight.until("Snapshot", 1);
    let (snapshots, _folder) = flight.finish(0);
    let file = snapshots[0].0.to_str().unwrap();
    let test = |condition| run(["rules", "test", file, "--snapshot-on", condition]);
    let tried = test(condition).with_code(0).text();
    assert!(tried.contains("exception System.InvalidOperationException: "), "{tried}");
    assert!(tried.ends_with("Met 2 times; 1 snapshot\n"), "{tried}");
    assert_eq!(test("exception TimeoutException").with_code(1).text(), "Met 0 times; 0 snapshots\n");
    let wrong = test("exception X and").with_code(2);
    assert!(
        wrong.stderr.contains("a condition is expected") && wrong.stderr.contains("at character 16"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn an_event_that_the_collector_defines_leaves_a_snapshot() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let condition = "event Microsoft-Windows-DotNETRuntime/GC/CommittedUsage";
    let arguments = ["--keep", "8MB", "--snapshot-on", condition, "--max-snapshots", "1"];
    let providers = ["--providers", "Workload-Typed:FFFFFFFFFFFFFFFF:5"];
    let mut flight = Flight::start(workload.pid(), &[&arguments[..], &providers].concat());
    workload.run("gc 1 1");
    flight.until("Snapshot", 1);
    let (snapshots, _folder) = flight.finish(0);
    let [snapshot] = &snapshots[..] else { panic!("{snapshots:?}") };
    assert!(snapshot.1.ends_with("/GC/CommittedUsage"), "{}", snapshot.1);
}

/// The handler of a signal that another process sends removes the runtime's socket, and the process goes on:
/// no stop reaches it, and its events never end.
#[test]
fn a_session_that_cannot_be_stopped_is_left_with_its_events() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    workload.run("keep 10");
    let pid = workload.pid();
    let flight = Flight::start(pid, &["--keep", "10s"]);
    let id = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(id, Signal::SEGV).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while run(["info", "-p", &pid.to_string()]).code == Some(0) {
        assert!(Instant::now() < deadline, "its socket stays");
        std::thread::sleep(Duration::from_millis(50));
    }
    flight.running.signal(Signal::TERM);
    let messages = flight.folder.path().join("messages");
    let Flight { folder, running } = flight;
    assert_eq!(running.finish().code, Some(6));
    let messages = fs::read_to_string(messages).unwrap();
    assert!(messages.contains("warning: the session could not be stopped ("), "{messages}");
    assert!(messages.contains("\nSnapshot       : "), "{messages}");
    drop(folder);
}
