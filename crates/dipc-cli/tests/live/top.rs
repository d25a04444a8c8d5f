//! `dipc top`: the activity of a process, live.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{dipc, run};
use crate::runtime::{Runtime, on_each_runtime, on_runtimes, say_not_run};
use crate::workload::{McpServer, Workload};

on_each_runtime!(
    methods_threads_and_counters_are_shown,
    collections_exceptions_and_types_are_shown,
    people_get_tables_and_a_flame_graph,
    the_kernel_samples_unless_it_may_not,
    threads_that_wait_are_shown_with_the_kernels_samples,
);

/// `dipc top` while it runs, with a line of JSON for each interval.
struct Top {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Top {
    fn start(pid: u32, arguments: &[&str]) -> Self {
        Self::of_processes(&pid.to_string(), arguments)
    }

    fn of_processes(pids: &str, arguments: &[&str]) -> Self {
        let all = ["top", "-p", pids, "--format", "jsonl", "--refresh-interval", "0.5"];
        let mut child = dipc(all.iter().chain(arguments).copied()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn interval(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().expect("an interval").unwrap()).unwrap()
    }

    /// Reads intervals until one is as wanted.
    fn until(&mut self, mut is_wanted: impl FnMut(&Value) -> bool) -> Value {
        loop {
            let interval = self.interval();
            if is_wanted(&interval) {
                return interval;
            }
        }
    }

    /// Ends it as Ctrl-C does.
    fn end(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.lines.for_each(drop);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

fn rows<'v>(interval: &'v Value, table: &str) -> &'v [Value] {
    interval[table].as_array().unwrap()
}

/// The row of the method that a spinning workload is in.
fn hot(interval: &Value) -> Option<&Value> {
    rows(interval, "methods").iter().find(|row| row["csharp"] == "workload!Spin.Hot(int)")
}

fn methods_threads_and_counters_are_shown(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    if runtime == Runtime::NativeAot9 {
        let pid = workload.pid().to_string();
        let runtime = ["--sampler", "runtime", "--count", "1", "--format", "jsonl"];
        let shown = run(["top", "-p", &pid].into_iter().chain(runtime)).with_code(0);
        assert!(shown.stderr.contains("without a sampler"), "{}", shown.stderr);
        assert_eq!(rows(&shown.json_lines().next().unwrap(), "methods").len(), 0);
        return;
    }
    let mut top = Top::start(workload.pid(), &["--sampler", "runtime"]);
    top.interval();
    workload.send("spin 600000");
    // All of an interval, except for the runtime's own work.
    let spinning = top
        .until(|interval| hot(interval).is_some_and(|row| row["inclusive_percent"].as_f64().unwrap() > 50.0));
    let row = hot(&spinning).unwrap();
    assert_eq!(row["frame"], "workload!Spin.Hot(int32)");
    assert!(row["inclusive_ns"].as_u64() >= row["exclusive_ns"].as_u64(), "{row}");
    let main = rows(&spinning, "threads").iter().find(|row| row["tid"] == workload.pid()).unwrap();
    assert!(main["working_ns"].as_u64().unwrap() > 0, "{main}");
    assert!(main["frame"].is_string(), "{main}");
    assert_eq!((&spinning["pid"], &spinning["allocations"]), (&workload.pid().into(), &Value::Null));
    top.until(|interval| interval["counters"]["resident_bytes"].as_f64() > Some(1e6));
    top.end();
}

fn collections_exceptions_and_types_are_shown(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let mut top = Top::start(workload.pid(), &["--alloc"]);
    top.interval();
    for command in ["alloc 50", "gc 2 3", "throw 20"] {
        workload.run(command);
    }
    let (mut thrown, mut collected, mut bytes) = (0, 0, 0);
    // Everything that happened is reported exactly once.
    while thrown < 20 || collected < 3 || bytes < 40_000_000 {
        let interval = top.interval();
        let exceptions = rows(&interval, "exceptions").iter();
        thrown += exceptions.map(|row| row["count"].as_u64().unwrap()).sum::<u64>();
        collected += interval["collections"]["generations"][2].as_u64().unwrap();
        bytes += rows(&interval, "allocations").iter().map(|row| row["bytes"].as_u64().unwrap()).sum::<u64>();
    }
    assert_eq!((thrown, collected), (20, 3));
    assert!(bytes < 100_000_000, "{bytes}");
    top.end();
}

/// The program keeps one array of 16.
fn types_in_use_are_shown(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let mut top = Top::start(workload.pid(), &["--live-alloc"]);
    top.interval();
    let (mut allocated, mut last) = (0, Value::Null);
    let in_use = |interval: &Value| -> u64 {
        let rows = rows(interval, "in_use").iter().filter(|row| row["csharp"] == "byte[]");
        rows.map(|row| row["bytes"].as_u64().unwrap()).sum()
    };
    workload.run("alloc 200");
    workload.run("gc 2 1");
    // Names of methods, which the first interval waits for, may come later than the collection.
    while allocated < 180_000_000 || in_use(&last) == 0 {
        last = top.interval();
        let types = rows(&last, "allocations").iter();
        allocated += types.map(|row| row["bytes"].as_u64().unwrap()).sum::<u64>();
    }
    let kept = in_use(&last);
    assert!((4_000_000..30_000_000).contains(&kept), "{kept}: {last}");
    top.end();
}
on_runtimes!(types_in_use_are_shown: net_3_1, net_8_0, net_9_0);

fn people_get_tables_and_a_flame_graph(runtime: Runtime) {
    if runtime == Runtime::NativeAot9 {
        return;
    }
    let Some(mut workload) = Workload::start(runtime) else { return };
    workload.send("spin 600000");
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("seen.html");
    let pid = workload.pid().to_string();
    let page_name = page.to_str().unwrap();
    // On a loaded machine the names of methods come later than two intervals.
    let is_named = ["2", "4", "8", "16", "32"].iter().any(|count| {
        let arguments =
            ["top", "-p", &pid, "--count", count, "--sort", "total", "--rows", "60", "-o", page_name];
        let shown = run(arguments).with_code(0).text();
        assert_eq!(shown.matches(&format!("({pid})\n")).count().to_string(), *count, "{shown}");
        shown.contains("  Spin.Hot(int)\n") && shown.contains(" METHOD")
    });
    assert!(is_named);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("</html>"), "{}", &page[..100]);
}

/// The kernel samples by itself, NativeAOT as well; where it may not, the runtime does, and that is said.
fn the_kernel_samples_unless_it_may_not(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    workload.send("spin 600000");
    let pid = workload.pid().to_string();
    let arguments = ["top", "-p", &pid, "--format", "jsonl", "--refresh-interval", "0.5", "--count", "1"];
    let shown = run(arguments).with_code(0);
    if !shown.stderr.contains(": by the kernel, 99 samples a second") {
        assert!(shown.stderr.contains("kernel's samples:"), "{}", shown.stderr);
        return say_not_run("the kernel does not permit samples");
    }
    let working = |interval: &Value| {
        rows(interval, "threads")
            .iter()
            .find(|row| row["tid"] == workload.pid())
            .map_or(0, |row| row["working_ns"].as_u64().unwrap())
    };
    // All of the thread's time, except for the runtime's own work.
    let in_hot = |interval: &Value| hot(interval).map_or(0, |row| row["inclusive_ns"].as_u64().unwrap());
    let has_names = runtime != Runtime::NativeAot9;
    let mut top = Top::start(workload.pid(), &[]);
    let interval = top.until(|interval| {
        let time = working(interval);
        time > 10_000_000 && (!has_names || in_hot(interval) > time / 2)
    });
    let kind = hot(&interval).map_or("managed", |row| row["kind"].as_str().unwrap());
    assert!(kind == "managed" && rows(&interval, "methods").iter().all(|row| row["kind"].is_string()));
    top.end();
    let with_few_files = ["-c", "ulimit -n 64; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_dipc")];
    let mut command = std::process::Command::new("sh");
    command.args(with_few_files).args(arguments);
    let shown = command.output().unwrap();
    let errors = String::from_utf8_lossy(&shown.stderr);
    assert!(errors.contains("descriptors are needed"), "{errors}");
    let words =
        if runtime == Runtime::NativeAot9 { "without a sampler" } else { "the runtime samples itself" };
    assert!(errors.contains(words), "{errors}");
}

/// Samples of the kernel are of threads that run; the kernel's account has all of them.
fn threads_that_wait_are_shown_with_the_kernels_samples(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    workload.send("spin 600000");
    let pid = workload.pid().to_string();
    let before = Clock::of_each_thread(&pid);
    let shown = run(["top", "-p", &pid, "--format", "jsonl", "--refresh-interval", "0.5", "--count", "6"]);
    let after = Clock::of_each_thread(&pid);
    let shown = shown.with_code(0);
    let mut sums = BTreeMap::<u64, Clock>::new();
    for interval in shown.json_lines() {
        let length = interval["duration_ns"].as_u64().unwrap();
        for row in rows(&interval, "threads") {
            let [ran, queued, waited] =
                ["working_ns", "runnable_ns", "waited_ns"].map(|field| row[field].as_u64().unwrap());
            assert!(ran + queued + waited <= length + 1_000_000, "{row} of {length} ns");
            let sum = sums.entry(row["tid"].as_u64().unwrap()).or_default();
            (sum.ran, sum.queued, sum.waited) = (sum.ran + ran, sum.queued + queued, sum.waited + waited);
        }
    }
    if shown.stderr.contains("kernel's samples:") && runtime != Runtime::NativeAot9 {
        return say_not_run("the kernel does not permit samples");
    }
    // Those that were there all the time, by the kernel's own files: the intervals are a part of that time.
    for (thread, before) in &before {
        let Some(after) = after.get(thread) else { continue };
        let sum = sums.get(thread).unwrap_or_else(|| panic!("{thread}: {}", shown.text()));
        let (ran, queued) = (after.ran - before.ran, after.queued - before.queued);
        // The account of a running thread is updated at ticks of the scheduler.
        assert!(
            sum.ran <= ran + 20_000_000 && sum.queued <= queued + 20_000_000,
            "{thread}: {sum:?} {ran} {queued}"
        );
    }
    let spinning = &sums[&u64::from(workload.pid())];
    assert!(spinning.ran + spinning.queued > 1_000_000_000, "{spinning:?}");
    let waits_most = |sum: &&Clock| sum.waited > 9 * (sum.ran + sum.queued);
    assert!(sums.values().filter(waits_most).count() >= 2, "{sums:?}");
}

/// The times of a thread in nanoseconds.
#[derive(Debug, Default)]
struct Clock {
    ran: u64,
    queued: u64,
    waited: u64,
}

impl Clock {
    fn of_each_thread(pid: &str) -> BTreeMap<u64, Self> {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let read = |thread: std::fs::DirEntry| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            let numbers: Vec<u64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
            let id = thread.file_name().to_str()?.parse().ok()?;
            Some((id, Self { ran: numbers[0], queued: numbers[1], waited: 0 }))
        };
        threads.filter_map(|thread| read(thread.unwrap())).collect()
    }
}

/// A program that ends before the command does, from its first moment on.
#[test]
fn a_program_that_is_started_is_watched_from_its_start() {
    // .NET 3.1 connects to no port.
    let Some(command) = Runtime::Net9_0.workload() else { return };
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_str().unwrap()).collect();
    let top = ["top", "--format", "jsonl", "--refresh-interval", "0.5", "--"];
    let shown = run(top.into_iter().chain(words).chain(["spin 2000", "quit 5"])).with_code(5);
    assert!(shown.json_lines().any(|interval| hot(&interval).is_some()), "{shown:?}");
}

#[test]
fn rows_of_several_processes_stay_separate() {
    let started = [Runtime::Net3_1, Runtime::Net9_0].map(Workload::start);
    let [Some(mut one), Some(other)] = started else { return };
    one.send("spin 600000");
    let pids = format!("{},{}", one.pid(), other.pid());
    let shown = run(["top", "-p", &pids, "--count", "2", "--format", "jsonl"]).with_code(0);
    for pid in [one.pid(), other.pid()] {
        assert_eq!(shown.json_lines().filter(|interval| interval["pid"] == pid).count(), 2, "{shown:?}");
    }

    // On a loaded machine the names of methods come later than two intervals.
    let mut top = Top::of_processes(&pids, &[]);
    let mut intervals_of_other = 0;
    let _ = top.until(|interval| {
        if interval["pid"] == other.pid() {
            assert!(hot(interval).is_none(), "{interval}");
            intervals_of_other += 1;
        }
        interval["pid"] == one.pid() && hot(interval).is_some() && intervals_of_other > 0
    });
    top.end();
}

#[test]
fn methods_of_net10_have_names() {
    let Some(mut server) = McpServer::start() else { return };
    let mut top = Top::start(server.pid(), &[]);
    top.interval();
    let mut id = 10;
    let named = loop {
        server.request(id, "tools/list", "{}");
        id += 1;
        let interval = top.interval();
        let is_named = |row: &&Value| row["frame"].as_str().unwrap().starts_with("System.Private.CoreLib!");
        if let Some(row) = rows(&interval, "methods").iter().find(is_named) {
            break row.clone();
        }
    };
    assert!(named["inclusive_ns"].as_u64().unwrap() > 0, "{named}");
    top.end();
}
