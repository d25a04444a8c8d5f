//! `dipc counters` of a process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::executable;
use crate::program::{Running, dipc};
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::{McpServer, Workload};

on_each_runtime!(
    receives_the_programs_counters,
    a_condition_ends_the_wait,
    lists_the_counters_of_a_process,
    values_arrive_at_the_requested_interval
);

const PATIENCE: Duration = Duration::from_secs(120);

/// The whole lines of a file that is being written.
fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The sum of a member over the lines of a counter.
fn sum(lines: &[Value], name: &str, member: &str) -> f64 {
    lines.iter().filter(|line| line["name"] == name).filter_map(|line| line[member].as_f64()).sum()
}

/// Waits until the file is as said.
fn until(file: &Path, is_so: impl Fn(&[Value]) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so(&lines(file)) {
        assert!(Instant::now() < deadline, "{:?}", lines(file));
        thread::sleep(Duration::from_millis(20));
    }
}

fn receives_the_programs_counters(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    // The program's EventSource is there, so that each runtime knows it when it is asked for.
    workload.run("counters 1");
    let folder = tempfile::tempdir().unwrap();
    let (file, pid) = (folder.path().join("counted.jsonl"), workload.pid().to_string());
    let arguments =
        ["counters", "collect", "-p", &pid, "--format", "jsonl", "--refresh-interval", "0.5", "-o"];
    let wanted = ["--counters", "Workload-Counters,Workload.Meter"];
    let counting = Running::start(dipc(arguments.into_iter().chain([file.to_str().unwrap()]).chain(wanted)));
    until(&file, |lines| lines.iter().any(|line| line["name"] == "requests"));
    let before = lines(&file);
    workload.run("counters 700");
    workload.run("counters 300");
    until(&file, |lines| {
        sum(lines, "requests", "increment") - sum(&before, "requests", "increment") >= 1000.0
    });
    let has_meters = runtime != Runtime::Net3_1;
    if has_meters {
        until(&file, |lines| sum(lines, "orders", "increment") >= 1000.0);
    }
    counting.signal(Signal::INT);
    let finished = counting.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let lines = lines(&file);
    let counted = |name: &str, member: &str| sum(&lines, name, member) - sum(&before, name, member);
    assert!((counted("requests", "increment") - 1000.0).abs() < 0.5, "{lines:?}");
    assert!((counted("latency", "count") - 1000.0).abs() < 0.5, "{lines:?}");
    if has_meters {
        assert!((sum(&lines, "orders", "increment") - 1000.0).abs() < 0.5, "{lines:?}");
        assert!((sum(&lines, "order.size", "count") - 1000.0).abs() < 0.5, "{lines:?}");
        let order = lines.iter().find(|line| line["name"] == "orders").unwrap();
        assert_eq!((&order["kind"], &order["unit"]), (&"counter".into(), &"{order}".into()));
        assert!(order["tags"]["city"].is_string() && order["tags"]["tier"].is_string(), "{order}");
    }
}

fn a_condition_ends_the_wait(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    workload.run("counters 1");
    let pid = workload.pid().to_string();
    let counters = |condition: &'static str, duration: &'static str| {
        let arguments = ["--counters", "Workload-Counters", "--until", condition, "--duration", duration];
        dipc(["counters", "monitor", "-p", &pid, "--refresh-interval", "0.2"].into_iter().chain(arguments))
    };
    let unmet = Running::start(counters("requests > 1e9", "1500ms")).finish();
    assert_eq!(unmet.code, Some(5), "{unmet:?}");
    assert!(unmet.stderr.contains("--until"), "{unmet:?}");
    let mut waiting = Running::start(counters("Workload-Counters/requests > 10", "100s"));
    let deadline = Instant::now() + PATIENCE;
    while !waiting.is_over() {
        assert!(Instant::now() < deadline, "it waits on");
        workload.run("counters 50");
        thread::sleep(Duration::from_millis(20));
    }
    let met = waiting.finish();
    assert_eq!(met.code, Some(0), "{met:?}");
    assert!(met.stderr.contains("Met            : counter Workload-Counters/requests = "), "{met:?}");
    // Any condition ends it, of events that are not counters, too.
    let condition = "exception System.NotSupportedException or exception System.InvalidOperationException";
    let mut waiting = Running::start(counters(condition, "100s"));
    while !waiting.is_over() {
        assert!(Instant::now() < deadline, "it waits on");
        workload.run("throw 1");
        thread::sleep(Duration::from_millis(20));
    }
    let met = waiting.finish();
    assert_eq!(met.code, Some(0), "{met:?}");
    assert!(met.stderr.contains("Met            : exception System.InvalidOperationException: "), "{met:?}");
    // So does the end of the process; the file is incomplete.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("counters.jsonl");
    let waiting = collect(&file, &["-p", &pid, "--until", "crash"]);
    until(&file, is_counted(workload.pid()));
    workload.kill();
    let met = waiting.finish();
    assert_eq!(met.code, Some(6), "{met:?}");
    assert!(met.stderr.contains("Met            : the process crashed or was killed"), "{met:?}");
}

/// Without Meters: the class constructors of a NativeAOT program wait for one another at times when it is
/// asked for both for the first time, on a machine that is busy.
const EVENT_COUNTERS_OF_DOTNET: &str = r"EventCounters\System.Runtime";
const EVENT_COUNTERS_OF_WORKLOAD: &str = r"EventCounters\Workload-Counters";

/// A name of processes that no other run of the tests has, which may be at the same time.
fn own_name(name: &str) -> String {
    format!("{name}{}", std::process::id())
}

/// A copy of the workload, with its own process name.
fn named(folder: &Path, name: &str) -> Option<PathBuf> {
    let program = Runtime::NativeAot9.workload()?.get_program().to_owned();
    let copy = folder.join(name);
    executable::copy(program, &copy);
    Some(copy)
}

/// Starts a program that is a workload.
fn start(program: &Path) -> Workload {
    Workload::from_command(Runtime::NativeAot9, Command::new(program))
}

/// The lines of a process.
fn of_process(lines: &[Value], pid: u32) -> Vec<Value> {
    lines.iter().filter(|line| line["pid"] == pid).cloned().collect()
}

/// Starts collecting a counter of the workload into a file of lines.
fn collect(file: &Path, arguments: &[&str]) -> Running {
    let rest =
        ["--counters", EVENT_COUNTERS_OF_WORKLOAD, "--refresh-interval", "0.2", "--format", "jsonl", "-o"];
    let all = ["counters", "collect"].iter().chain(arguments).chain(&rest).copied();
    Running::start(dipc(all.chain([file.to_str().unwrap()])))
}

fn is_counted(pid: u32) -> impl Fn(&[Value]) -> bool {
    move |lines| lines.iter().any(|line| line["pid"] == pid && line["name"] == "requests")
}

#[test]
fn several_processes_are_watched_at_once() {
    let (Some(mut one), Some(mut other)) =
        (Workload::start(Runtime::NativeAot9), Workload::start(Runtime::NativeAot9))
    else {
        return;
    };
    for workload in [&mut one, &mut other] {
        workload.run("counters 1");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("both.jsonl");
    let pids = format!("{},{}", one.pid(), other.pid());
    let counting = collect(&file, &["-p", &pids]);
    until(&file, |lines| is_counted(one.pid())(lines) && is_counted(other.pid())(lines));
    let before = lines(&file);
    one.run("counters 300");
    other.run("counters 500");
    let counted = |lines: &[Value], pid: u32| {
        let of = |lines: &[Value]| sum(&of_process(lines, pid), "requests", "increment");
        of(lines) - of(&before)
    };
    until(&file, |lines| counted(lines, one.pid()) >= 300.0 && counted(lines, other.pid()) >= 500.0);
    // The end of one is not the end of the other.
    one.kill();
    let count = lines(&file).len();
    until(&file, |lines| of_process(lines.get(count..).unwrap_or_default(), other.pid()).len() > 4);
    counting.signal(Signal::INT);
    let finished = counting.finish();
    assert_eq!(finished.code, Some(6), "{finished:?}");
    assert!(finished.stderr.contains(&format!("Process ended  : workload ({})", one.pid())), "{finished:?}");
    let lines = lines(&file);
    assert!((counted(&lines, one.pid()) - 300.0).abs() < 0.5, "{lines:?}");
    assert!((counted(&lines, other.pid()) - 500.0).abs() < 0.5, "{lines:?}");
    assert!(lines.iter().all(|line| line["process"] == "workload"), "{lines:?}");
}

/// A stopped process answers nothing, and holds up no other; where it is stopped at the end that is said.
#[test]
fn a_stopped_process_holds_up_no_other() {
    let (Some(mut one), Some(mut other)) =
        (Workload::start(Runtime::NativeAot9), Workload::start(Runtime::NativeAot9))
    else {
        return;
    };
    for workload in [&mut one, &mut other] {
        workload.run("counters 1");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("both.jsonl");
    let pids = format!("{},{}", one.pid(), other.pid());
    let counting = collect(&file, &["-p", &pids, "--timeout", "2s"]);
    until(&file, |lines| is_counted(one.pid())(lines) && is_counted(other.pid())(lines));
    one.halt();
    let count = lines(&file).len();
    until(&file, |lines| of_process(lines.get(count..).unwrap_or_default(), other.pid()).len() > 20);
    counting.signal(Signal::INT);
    let finished = counting.finish();
    assert_eq!(finished.code, Some(5), "{finished:?}");
    assert!(
        finished.stderr.contains(&format!("process {} is stopped by a signal", one.pid())),
        "{finished:?}"
    );
    // One that is stopped before is not waited for.
    let refused = Running::start(dipc(["counters", "list", "-p", &one.pid().to_string()])).finish();
    assert_eq!(refused.code, Some(5), "{refused:?}");
}

/// .NET 10, whose Meters have numbers and a schema: EventCounters of the same name are not asked twice.
#[test]
fn a_server_of_net10_is_counted_and_listed() {
    let Some(server) = McpServer::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (file, pid) = (folder.path().join("net10.jsonl"), server.pid().to_string());
    let counting = Running::start(dipc([
        "counters",
        "collect",
        "-p",
        &pid,
        "--refresh-interval",
        "0.5",
        "--format",
        "jsonl",
        "-o",
        file.to_str().unwrap(),
    ]));
    until(&file, |lines| lines.iter().filter(|line| line["name"] == "dotnet.process.cpu.time").count() >= 4);
    counting.signal(Signal::INT);
    let finished = counting.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let lines = lines(&file);
    assert!(
        lines.iter().all(|line| line["instrument_id"].is_u64() && line["provider"] == "System.Runtime"),
        "{lines:?}"
    );
    let modes = |line: &Value| line["tags"]["cpu.mode"].as_str().map(str::to_owned);
    let modes: std::collections::BTreeSet<_> = lines.iter().filter_map(modes).collect();
    assert_eq!(modes, ["system".to_owned(), "user".to_owned()].into());
    let listed = Running::start(dipc(["counters", "list", "-p", &pid, "--format", "json"])).finish();
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let list: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let of_runtime = |is_meter: bool| {
        let mut providers = list.as_array().unwrap().iter();
        let found = providers.find(|it| it["provider"] == "System.Runtime" && it["is_meter"] == is_meter);
        found.unwrap()["counters"].as_array().unwrap().len()
    };
    assert_eq!((of_runtime(false), of_runtime(true)), (27, 19), "{list}");
}

/// dotnet-counters' files do not record the process.
#[test]
fn files_of_several_processes_are_one_each() {
    let (Some(mut one), Some(mut other)) =
        (Workload::start(Runtime::NativeAot9), Workload::start(Runtime::NativeAot9))
    else {
        return;
    };
    for workload in [&mut one, &mut other] {
        workload.run("counters 1");
    }
    let folder = tempfile::tempdir().unwrap();
    let (file, pids) = (folder.path().join("c.csv"), format!("{},{}", one.pid(), other.pid()));
    let arguments = ["counters", "collect", "-p", &pids, "--refresh-interval", "0.2", "--duration", "1s"];
    let rest = ["--counters", EVENT_COUNTERS_OF_DOTNET, "-o", file.to_str().unwrap()];
    let finished = Running::start(dipc(arguments.into_iter().chain(rest))).finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for workload in [&one, &other] {
        let file = folder.path().join(format!("c_{}.csv", workload.pid()));
        assert!(std::fs::read_to_string(file).unwrap().contains(",System.Runtime,"));
    }
    let refused = Running::start(dipc(["counters", "collect", "-p", &pids, "-o", "-"])).finish();
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

#[test]
fn a_process_that_starts_again_is_watched_again() {
    let folder = tempfile::tempdir().unwrap();
    let name = own_name("again");
    let Some(program) = named(folder.path(), &name) else { return };
    let mut first = start(&program);
    first.run("counters 1");
    let file = folder.path().join("again.jsonl");
    let counting = collect(&file, &["-n", &name, "--reconnect", "100s"]);
    until(&file, is_counted(first.pid()));
    first.kill();
    let mut second = start(&program);
    second.run("counters 1");
    until(&file, is_counted(second.pid()));
    counting.signal(Signal::INT);
    let finished = counting.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for said in [
        format!("Process ended  : {name} ({})", first.pid()),
        "No process is left; waiting for 1 min 40 s for one to start".to_owned(),
        format!("Process        : {name} ({})", second.pid()),
    ] {
        assert!(finished.stderr.contains(&said), "{said}: {finished:?}");
    }
    // The wait has an end.
    let waiting = collect(&folder.path().join("over.jsonl"), &["-n", &name, "--reconnect", "300ms"]);
    until(&folder.path().join("over.jsonl"), is_counted(second.pid()));
    second.kill();
    assert_eq!(waiting.finish().code, Some(0));
}

#[test]
fn watches_all_processes_of_a_name_including_later_ones() {
    let folder = tempfile::tempdir().unwrap();
    let name = own_name("each");
    let Some(program) = named(folder.path(), &name) else { return };
    let mut first = start(&program);
    first.run("counters 1");
    let file = folder.path().join("each.jsonl");
    let counting = collect(&file, &["--all", "-n", &name]);
    until(&file, is_counted(first.pid()));
    let mut second = start(&program);
    second.run("counters 1");
    until(&file, is_counted(second.pid()));
    let finished_by_end = {
        first.kill();
        second.kill();
        counting.finish()
    };
    assert_eq!(finished_by_end.code, Some(6), "{finished_by_end:?}");
    let none = Running::start(dipc(["counters", "collect", "--all", "-n", &name])).finish();
    assert_eq!(none.code, Some(3), "{none:?}");
}

#[test]
fn every_runtime_that_connects_to_a_port_is_watched() {
    let folder = tempfile::tempdir().unwrap();
    let (port, file) = (folder.path().join("port"), folder.path().join("port.jsonl"));
    let port = port.to_str().unwrap();
    if Runtime::NativeAot9.workload().is_none() {
        return;
    }
    let counting = collect(&file, &["--diagnostic-port", port]);
    let start = || Workload::start_with(Runtime::NativeAot9, &[("DOTNET_DiagnosticPorts", port)]).unwrap();
    let (mut one, mut other) = (start(), start());
    for workload in [&mut one, &mut other] {
        workload.run("counters 1");
    }
    until(&file, |lines| is_counted(one.pid())(lines) && is_counted(other.pid())(lines));
    counting.signal(Signal::INT);
    let finished = counting.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
}

fn lists_the_counters_of_a_process(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    workload.run("counters 1");
    let pid = workload.pid().to_string();
    let arguments = ["counters", "list", "-p", &pid, "--counters", "Workload-Counters", "--format", "json"];
    let finished = Running::start(dipc(arguments)).finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let list: Value = serde_json::from_slice(&finished.stdout).unwrap();
    let counters = |provider: &str, is_meter: bool| -> Vec<Value> {
        let mut providers = list.as_array().unwrap().iter();
        let found = providers.find(|it| it["provider"] == provider && it["is_meter"] == is_meter);
        found.map_or_else(Vec::new, |it| it["counters"].as_array().unwrap().clone())
    };
    let names = |provider: &str, is_meter: bool| -> Vec<String> {
        let counters = counters(provider, is_meter);
        counters.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    // As many as each version has, by its sources: of 27, 3.1 lacks eight.
    let event_counters = if runtime == Runtime::Net3_1 { 19 } else { 27 };
    let instruments = if runtime.has_runtime_meter() { 19 } else { 0 };
    assert_eq!(names("System.Runtime", false).len(), event_counters, "{list}");
    assert_eq!(names("System.Runtime", true).len(), instruments, "{list}");
    assert_eq!(names("Workload-Counters", false), ["depth", "latency", "requests", "total"], "{list}");
    if runtime != Runtime::Net3_1 {
        assert_eq!(names("Workload.Meter", true), ["active", "order.size", "orders", "temperature"]);
        let orders = &counters("Workload.Meter", true)[2];
        assert_eq!((&orders["kind"], &orders["unit"]), (&"Counter".into(), &"{order}".into()));
        assert_eq!(orders["description"], "orders taken");
    }
}

/// A process has one interval for its EventCounters, the shortest that a session asks for; one that asked for
/// a longer has sums.
fn values_arrive_at_the_requested_interval(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    workload.run("counters 1");
    let folder = tempfile::tempdir().unwrap();
    let pid = workload.pid().to_string();
    let (fast, slow) = (folder.path().join("fast.jsonl"), folder.path().join("slow.jsonl"));
    let start = |file: &Path, interval: &'static str| {
        let arguments = ["counters", "collect", "-p", &pid, "--refresh-interval", interval];
        let rest = ["--counters", EVENT_COUNTERS_OF_WORKLOAD, "--format", "jsonl", "-o"];
        let all = arguments.into_iter().chain(rest).chain([file.to_str().unwrap()]);
        Running::start(dipc(all))
    };
    let has_begun = |lines: &[Value]| lines.iter().any(|line| line["name"] == "requests");
    let fast_one = start(&fast, "0.1");
    until(&fast, has_begun);
    let slow_one = start(&slow, "1");
    until(&slow, has_begun);
    workload.run("counters 500");
    until(&slow, |lines| sum(lines, "requests", "increment") >= 500.0);
    for running in [slow_one, fast_one] {
        running.signal(Signal::INT);
        let finished = running.finish();
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }
    let intervals = |file: &Path| -> Vec<u64> {
        let lines = lines(file);
        let of = lines.iter().filter(|line| line["name"] == "requests");
        of.map(|line| line["interval_ns"].as_u64().unwrap()).collect()
    };
    // The last value is of what remained. The others end where the next shorter one would miss the second by
    // more: with one of two thirds of a second at the earliest, where the process was late.
    let slow_intervals = intervals(&slow);
    let (_, whole) = slow_intervals.split_last().unwrap();
    assert!(!whole.is_empty() && whole.iter().all(|ns| *ns >= 666_666_666), "{slow_intervals:?}");
    let mut fast_intervals = intervals(&fast);
    fast_intervals.sort_unstable();
    assert!(fast_intervals[fast_intervals.len() / 2] < 500_000_000, "{fast_intervals:?}");
}

/// Clients of the Meters' shared session have to agree on its settings: the second takes over the first one's
/// series.
#[test]
fn a_second_client_joins_the_session_of_meters() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    workload.run("counters 1");
    let folder = tempfile::tempdir().unwrap();
    let pid = workload.pid().to_string();
    let start = |name: &str, interval: &'static str| {
        let file = folder.path().join(name);
        let path = file.to_str().unwrap().to_owned();
        let arguments =
            ["counters", "collect", "-p", &pid, "--format", "jsonl", "--counters", "Workload.Meter"];
        let rest = ["--refresh-interval", interval, "-o", &*path];
        (Running::start(dipc(arguments.into_iter().chain(rest))), file)
    };
    let is_counted = |lines: &[Value]| lines.iter().any(|line| line["name"] == "temperature");
    let (first, first_file) = start("first.jsonl", "0.5");
    until(&first_file, is_counted);
    let (second, second_file) = start("second.jsonl", "2");
    until(&second_file, is_counted);
    for running in [first, second] {
        running.signal(Signal::INT);
        let finished = running.finish();
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }
}
