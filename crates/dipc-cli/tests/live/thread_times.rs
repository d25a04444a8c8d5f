//! Work of threads is never longer than the kernel ran them: in stacks, in `dipc top` and in every report of
//! a recording.
//!
//! The tests read `/proc` themselves, before and after.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{Finished, Recorded, Recording, Running, dipc, run};
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::{McpServer, Target, Workload, await_providers};

on_each_runtime!(
    stacks_call_no_sleeping_thread_working,
    reports_call_no_thread_working_for_longer_than_the_kernel_ran_it,
    top_calls_no_thread_working_for_longer_than_the_kernel_ran_it
);

/// The kernel's account of a running thread lags by a tick of its scheduler.
const LAG: u64 = 10_000_000;

/// Nanoseconds for which each thread of a process has had a processor.
fn processor_times(pid: u32) -> BTreeMap<u64, u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|thread| thread.unwrap());
    let time = |thread: fs::DirEntry| {
        let schedstat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let ran = schedstat.split_whitespace().next()?.parse().ok()?;
        Some((thread.file_name().to_str()?.parse().ok()?, ran))
    };
    threads.filter_map(time).collect()
}

/// Nanoseconds for which each thread had a processor since `before`.
fn ran_since(pid: u32, before: &BTreeMap<u64, u64>) -> BTreeMap<u64, u64> {
    let now = processor_times(pid).into_iter();
    now.map(|(thread, ran)| (thread, ran - before.get(&thread).copied().unwrap_or(0))).collect()
}

/// Waits until no thread of a process gets a processor: a wait begins with some spinning.
fn await_rest(pid: u32) {
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut before = BTreeMap::new();
    loop {
        let now = processor_times(pid);
        if now == before {
            return;
        }
        assert!(Instant::now() < deadline, "its threads do not come to rest");
        before = now;
        thread::sleep(Duration::from_millis(50));
    }
}

/// Returns true if a thread is in a method that it does not leave.
fn is_parked(thread: &Value) -> bool {
    thread.to_string().contains("workload!Parked")
}

fn stacks_call_no_sleeping_thread_working(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    if runtime == Runtime::NativeAot9 {
        return;
    }
    workload.run("park");
    await_rest(workload.pid());
    workload.send("spin 600000");
    for count in ["1", "50"] {
        let pid = workload.pid().to_string();
        let shown = run(["stack", "-p", &pid, "--format", "json", "--count", count]).with_code(0).json();
        let threads = shown["threads"].as_array().unwrap();
        let states = |thread: &Value| -> Vec<String> {
            let stacks = thread["stacks"].as_array().unwrap().iter();
            stacks.map(|stack| stack["state"].as_str().unwrap().to_owned()).collect()
        };
        for thread in threads {
            let works = states(thread).iter().any(|state| state.starts_with("working"));
            assert!(!works || thread["kernel_state"] == "running", "{thread}");
            assert!(!works || !is_parked(thread), "{thread}");
        }
        assert!(threads.iter().filter(|thread| is_parked(thread)).count() >= 5, "{shown}");
        let main = threads.iter().find(|thread| thread["tid"] == workload.pid()).unwrap();
        assert!(states(main).iter().any(|state| state == "working"), "{main}");
    }
}

/// Nanoseconds in which a thread worked, by a report of a recording.
fn work(file: &Path, thread: u64, arguments: &[&str]) -> Option<u64> {
    let thread = thread.to_string();
    let fixed = ["report", file.to_str().unwrap(), "topN", "--format", "json", "--tid", &thread];
    let finished = run(fixed.into_iter().chain(arguments.iter().copied()));
    if finished.code != Some(0) {
        // It has no samples.
        return None;
    }
    let report = finished.json();
    assert_eq!(report["unverified"], Value::Null, "{report}");
    Some(report["total"].as_u64()? - report["blocked"].as_u64().unwrap_or(0))
}

/// Checks all reports of a recording against the processor time of threads in a time around it.
fn check(recorded: &Recorded, ran: &BTreeMap<u64, u64>) {
    let file = recorded.file();
    recorded.stat(0).assert_whole();
    let mut seen = 0;
    for (thread, ran) in ran {
        for arguments in [&["--by", "wall"][..], &["--by", "cpu"]] {
            if let Some(work) = work(&file, *thread, arguments) {
                assert!(work <= ran + LAG, "{thread} {arguments:?}: {work} of {ran}");
                seen += 1;
            }
        }
    }
    assert!(seen > 1, "{ran:?}");
    // All of them together are in the overview and in the page, and these have the words of work alone.
    let overview = run(["report", file.to_str().unwrap()]).with_code(0).text();
    assert!(!overview.contains("do not tell apart"), "{overview}");
    let all: u64 = ran.values().sum();
    let top = run(["report", file.to_str().unwrap(), "topN", "--format", "json"]).with_code(0).json();
    let work = top["total"].as_u64().unwrap() - top["blocked"].as_u64().unwrap();
    assert!(work <= all + LAG * ran.len() as u64, "{work} of {all}: {overview}");
}

fn reports_call_no_thread_working_for_longer_than_the_kernel_ran_it(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    if runtime == Runtime::NativeAot9 {
        return;
    }
    workload.run("park");
    let before = processor_times(workload.pid());
    let mut recording = Recording::start(workload.pid(), &[]);
    recording.until(50_000);
    workload.run("spin 300");
    workload.run("contend 50");
    let recorded = recording.interrupt();
    let ran = ran_since(workload.pid(), &before);
    check(&recorded, &ran);
    let file = recorded.file();
    let shown = run(["stack", file.to_str().unwrap(), "--format", "json", "--count", "1000"]);
    let shown = shown.with_code(0).json();
    let parked: Vec<_> =
        shown["threads"].as_array().unwrap().iter().filter(|thread| is_parked(thread)).collect();
    assert!(
        parked.len() >= 5 && parked.iter().all(|thread| !thread.to_string().contains("working")),
        "{shown}"
    );
    let account = file.with_extension("threads.nettrace");
    let events = run(["events", account.to_str().unwrap(), "--format", "jsonl"]).with_code(0).text();
    // 3.1 does not set the names of threads in the kernel.
    assert!(events.contains("parked-lock") || runtime == Runtime::Net3_1, "{events}");
    assert!(events.contains(r#""WaitChannel":"futex"#), "{events}");
    // These names are those of threads in everything that is made of the recording.
    if runtime != Runtime::Net3_1 {
        let names: Vec<_> =
            shown["threads"].as_array().unwrap().iter().map(|thread| &thread["name"]).collect();
        assert!(names.iter().any(|name| *name == "parked-lock"), "{names:?}");
        let name = "(parked-lock)";
        let stacks =
            run(["report", file.to_str().unwrap(), "stacks", "--by-thread", "--least", "0", "-n", "100000"]);
        let stacks = stacks.with_code(0).text();
        assert!(stacks.contains(name), "{stacks}");
        let profile = file.with_file_name("named.speedscope.json");
        run(["convert", file.to_str().unwrap(), "-f", "speedscope", "-o", profile.to_str().unwrap()])
            .with_code(0);
        assert!(fs::read_to_string(profile).unwrap().contains(name));
    }
    // A recording that is made of it has it, too.
    let edited = file.with_file_name("edited.nettrace");
    run(["edit", file.to_str().unwrap(), "-o", edited.to_str().unwrap(), "--from", "100ms"]).with_code(0);
    assert!(edited.with_extension("threads.nettrace").is_file());
    // Without it the reports state what is unknown: the samples of 9.0 tell nothing.
    fs::remove_file(&account).unwrap();
    let report = run(["report", file.to_str().unwrap(), "topN", "--format", "json"]).with_code(0).json();
    let overview = run(["report", file.to_str().unwrap()]).with_code(0).text();
    let stacks = run(["stack", file.to_str().unwrap()]).with_code(0).text();
    if runtime == Runtime::Net9_0 {
        assert!(report["unverified"].as_u64().unwrap() > 0, "{report}");
        assert!(overview.contains("these samples do not tell apart"), "{overview}");
        assert!(stacks.contains("working or waiting"), "{stacks}");
    }
    // A first sample says what was true when the runtime stopped the thread before.
    let sleeping = stacks.split("\n\n").find(|stack| stack.contains("Parked.Sleeper")).unwrap();
    assert!(sleeping.contains(": blocked"), "{stacks}");
}

/// Intervals of half a second by `dipc top` and the runtime's sampler, as lines of JSON.
fn top(pid: &str, intervals: usize) -> Finished {
    let count = intervals.to_string();
    let sampler = ["top", "-p", pid, "--sampler", "runtime"];
    let output = ["--format", "jsonl", "--refresh-interval", "0.5", "--count", &count];
    run(sampler.into_iter().chain(output)).with_code(0)
}

fn top_calls_no_thread_working_for_longer_than_the_kernel_ran_it(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    if runtime == Runtime::NativeAot9 {
        return;
    }
    workload.run("park");
    workload.send("spin 600000");
    let before = processor_times(workload.pid());
    let pid = workload.pid().to_string();
    let shown = top(&pid, 4);
    let ran = ran_since(workload.pid(), &before);
    let names = shown.text();
    assert!(names.contains(r#""name":"parked-lock""#) || runtime == Runtime::Net3_1, "{names}");
    let mut worked: BTreeMap<u64, u64> = BTreeMap::new();
    for interval in shown.json_lines() {
        for thread in interval["threads"].as_array().unwrap() {
            let sum = worked.entry(thread["tid"].as_u64().unwrap()).or_default();
            *sum += thread["working_ns"].as_u64().unwrap();
        }
        let length = interval["duration_ns"].as_u64().unwrap();
        assert!(interval["unverified_ns"].as_u64().unwrap() < length, "{interval}");
    }
    for (thread, worked) in &worked {
        let ran = ran.get(thread).copied().unwrap_or(0);
        assert!(*worked <= ran + LAG, "{thread}: {worked} of {ran}");
    }
    assert!(worked[&u64::from(workload.pid())] > 0, "{worked:?}");
}

/// `Monitor.Enter` has no frame on 8.0 and 9.0: only the kernel and events tell that these threads wait.
#[test]
fn threads_in_a_deadlock_do_not_work() {
    for runtime in [Runtime::Net3_1, Runtime::Net8_0, Runtime::Net9_0] {
        let Some(program) = runtime.program("deadlock/deadlock.dll") else { return };
        let mut program = Target::start(program);
        assert!(program.line().starts_with("ready "));
        let before = processor_times(program.pid());
        let arguments =
            ["--profile", "dotnet-sampled-thread-time", "--clrevents", "contention", "--clreventlevel", "4"];
        let mut recording = Recording::start(program.pid(), &arguments);
        recording.until(50_000);
        await_providers(runtime);
        program.send("go");
        assert_eq!(program.line(), "locked");
        let size = fs::metadata(recording.file()).unwrap().len();
        recording.until(size + 50_000);
        let recorded = recording.interrupt();
        let ran = ran_since(program.pid(), &before);
        check(&recorded, &ran);
        let file = recorded.file();
        let transfers = |text: &str| text.contains("Bank.Transfer");
        if runtime != Runtime::Net3_1 {
            let overview = run(["report", file.to_str().unwrap()]).with_code(0).text().to_lowercase();
            assert!(overview.contains("deadlock: thread transfer-"), "{overview}");
        }
        let pid = program.pid().to_string();
        let live = run(["stack", "-p", &pid, "--format", "json"]).with_code(0).json();
        let threads = live["threads"].as_array().unwrap();
        let locked: Vec<_> = threads.iter().filter(|thread| transfers(&thread.to_string())).collect();
        assert_eq!(locked.len(), 2, "{live}");
        assert!(locked.iter().all(|thread| !thread.to_string().contains("working")), "{locked:?}");
        let ids: Vec<_> = locked.iter().map(|thread| thread["tid"].as_u64().unwrap()).collect();
        for interval in top(&pid, 2).json_lines() {
            let threads = interval["threads"].as_array().unwrap().iter();
            for thread in threads.filter(|thread| ids.contains(&thread["tid"].as_u64().unwrap())) {
                assert!(thread["working_ns"].as_u64().unwrap() <= LAG, "{interval}");
            }
        }
    }
}

#[test]
fn a_server_of_net10_that_waits_does_not_work() {
    let Some(mut server) = McpServer::start() else { return };
    let before = processor_times(server.pid());
    let mut recording = Recording::start(server.pid(), &[]);
    for id in 0..5 {
        server.request(100 + id, "tools/list", "{}");
    }
    recording.until(500_000);
    let recorded = recording.interrupt();
    let ran = ran_since(server.pid(), &before);
    check(&recorded, &ran);
}

#[test]
fn reports_missing_thread_times_on_standard_output() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let pid = workload.pid().to_string();
    let running = Running::start(dipc(["trace", "-p", &pid, "-o", "-", "--duration", "200ms"]));
    let finished = running.finish().with_code(0);
    assert!(finished.stderr.contains("Thread times   : none"), "{}", finished.stderr);
    assert!(!finished.stdout.is_empty());
}

#[test]
fn an_account_is_read_of_a_process_that_is_killed() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let mut recording = Recording::start(workload.pid(), &[]);
    recording.until(50_000);
    kill_process(Pid::from_raw(workload.pid().cast_signed()).unwrap(), Signal::KILL).unwrap();
    workload.kill();
    let recorded = recording.finish();
    let account = recorded.file().with_extension("threads.nettrace");
    run(["stat", account.to_str().unwrap()]).with_code(0);
    run(["report", recorded.file().to_str().unwrap(), "topN"]);
}
