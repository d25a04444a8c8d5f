//! `dipc trace --cpu`: the kernel's samples of real runtimes, with managed, native and kernel frames.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::executable;
use crate::nobody::Nobody;
use crate::program::{Finished, Running, dipc, run};
use crate::runtime::{Runtime, on_each_runtime, say_not_run};
use crate::workload::Workload;

on_each_runtime!(
    samples_of_a_hot_method_reach_the_main_method,
    stacks_of_collections_reach_the_root,
    the_split_of_two_methods_is_the_programs_own
);

/// Returns true if this kernel permits all that the tests ask for.
fn is_permitted(recorded: &str) -> bool {
    let is_permitted = !recorded.contains("kernel's samples:") && !recorded.contains("user mode only");
    if !is_permitted {
        say_not_run("the kernel does not permit samples");
    }
    is_permitted
}

fn row<'a>(report: &'a Value, name: &str) -> &'a Value {
    let rows = report["rows"].as_array().unwrap();
    rows.iter()
        .find(|row| row["frame"].as_str().unwrap().contains(name))
        .unwrap_or_else(|| panic!("{name}: {report}"))
}

fn samples_of_a_hot_method_reach_the_main_method(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let file = workload.folder().join("cpu.nettrace");
    let file = file.to_str().unwrap();
    let pid = workload.pid().to_string();
    // Most of the JIT compiler's work is done then.
    workload.run("spin 500");
    workload.send("spin 60000");
    let began = Instant::now();
    let recorded =
        run(["trace", "-p", &pid, "--cpu", "--off-cpu", "--duration", "2s", "-o", file]).with_code(0);
    if !is_permitted(&recorded.stderr) {
        return;
    }
    // The kernel's samples are part of the file.
    let size = std::fs::metadata(file).unwrap().len();
    assert!(recorded.stderr.contains(&format!("\nRecorded {size} bytes, ")), "{size}: {}", recorded.stderr);
    // Nothing of either recording's header is lost.
    assert!(!recorded.stderr.contains("no place in the new version"), "{}", recorded.stderr);
    let header = run(["stat", file, "--format", "json"]).with_code(0).json();
    assert!(header["processors"].as_u64().unwrap() > 0, "{header}");
    let report = run(["report", file, "topN", "--by", "cpu", "--format", "json"]).with_code(0).json();
    let samples = report["samples"].as_u64().unwrap();
    assert!(samples > 50, "{report}");
    // A sample stands for the time since the one before it.
    let each = report["total"].as_u64().unwrap() / samples;
    assert!(report["unit"] == "ns" && (990_000..1_020_000).contains(&each), "{each}: {report}");
    if runtime == Runtime::NativeAot9 {
        // Its methods have no names in the stripped program; the chain ends in the C library's start of the
        // program all the same.
        let rows = report["rows"].as_array().unwrap().iter();
        let c_library = rows.filter(|row| row["frame"].as_str().unwrap().starts_with("libc.so.6!"));
        let start = c_library.map(|row| row["inclusive_percent"].as_f64().unwrap()).fold(0.0, f64::max);
        assert!(start > 95.0, "{report}");
        return;
    }
    let hot = row(&report, "Spin.Hot(");
    let main = row(&report, "Program.Main(");
    let (hot, main) =
        (hot["inclusive_percent"].as_f64().unwrap(), main["inclusive_percent"].as_f64().unwrap());
    assert!(main >= hot * 0.99 && hot > 25.0, "{hot} {main}: {report}");
    // The host that called the runtime keeps no frame pointers on .NET Core 3.1.
    let rows = report["rows"].as_array().unwrap().iter();
    let program = rows
        .filter(|row| row["frame"].as_str().unwrap().starts_with(&format!("{}!", runtime.process_name())));
    let program = program.map(|row| row["inclusive_percent"].as_f64().unwrap()).fold(0.0, f64::max);
    assert!(program >= main * 0.99, "{program} {main}: {report}");
    // What the runtime sent is there as well, with times on the same clock.
    let stat = run(["stat", file, "--format", "json"]).with_code(0).json();
    let events = |provider: &str| {
        let providers = stat["providers"].as_array().unwrap();
        providers
            .iter()
            .find(|row| row["provider"] == provider)
            .map_or(0, |row| row["events"].as_u64().unwrap())
    };
    assert!(events("Microsoft-Windows-DotNETRuntimeRundown") > 100, "{stat}");
    assert_eq!((&stat["version"], &stat["process_id"]), (&6.into(), &workload.pid().into()));
    assert!(u128::from(stat["duration_ns"].as_u64().unwrap()) < began.elapsed().as_nanos(), "{stat}");
    let overview = run(["report", file]).with_code(0).text();
    assert!(overview.contains("Samples       by the kernel, 997 samples a second"), "{overview}");
    let stacks = run(["report", file, "stacks", "--by", "cpu"]).with_code(0).text();
    // A single file contains the runtime, without its names.
    let code = match runtime {
        Runtime::Net8_0 => "[workload]",
        Runtime::Net3_1 => "libcoreclr.so!",
        _ => "[libcoreclr.so]",
    };
    assert!(stacks.contains(code) && stacks.contains("Spin.Hot("), "{stacks}");
}

/// The collector calls the C library, which keeps no frame pointers, with large buffers on the stack.
fn stacks_of_collections_reach_the_root(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let file = workload.folder().join("cpu.nettrace");
    let file = file.to_str().unwrap();
    let pid = workload.pid().to_string();
    // They end soon after the recording: a runtime that collects without a pause takes long to end a session.
    let start = Instant::now();
    workload.run("gc 2 100");
    let count = (100.0 * 3.0 / start.elapsed().as_secs_f64().max(0.01)).max(1000.0);
    workload.send(&format!("gc 2 {count:.0}"));
    let provider = "Microsoft-Windows-DotNETRuntime:1:1";
    let trace = ["trace", "-p", &pid, "--cpu", "--providers", provider, "--duration", "2s", "-o", file];
    let recorded = run(trace).with_code(0);
    if !is_permitted(&recorded.stderr) {
        return;
    }
    let report =
        run(["report", file, "stacks", "--by", "cpu", "--idle", "-n", "1000000", "--format", "json"]);
    let report = report.with_code(0).json();
    // The program's start, which has no name in a stripped program and calls the C library, that of a thread
    // in the C library, and threads that begin or end in the kernel.
    let is_stripped = matches!(runtime, Runtime::NativeAot9 | Runtime::Net8_0);
    let is_root = |frame: &str, called: Option<&str>| {
        frame.ends_with("!_start")
            || is_stripped && frame == "workload!?" && called.is_some_and(|it| it.starts_with("libc.so.6!"))
            || frame.starts_with("vmlinux!")
            || frame.starts_with("libc.so.6!") && (frame.ends_with("!?") || frame.contains("clone"))
    };
    let (mut all, mut others) = (0, Vec::new());
    let tree = report["tree"].as_array().unwrap();
    for (at, node) in tree.iter().enumerate().filter(|(_, node)| node["depth"] == 0) {
        let (frame, time) = (node["frame"].as_str().unwrap(), node["inclusive"].as_u64().unwrap());
        all += time;
        // The first child has most of the time.
        let called = tree.get(at + 1).filter(|node| node["depth"] == 1);
        if !is_root(frame, called.and_then(|node| node["frame"].as_str())) {
            others.push((time, frame.to_owned()));
        }
    }
    let broken: u64 = others.iter().map(|(time, _)| time).sum();
    eprintln!("{runtime:?}: {broken} of {all} ns do not reach the root: {others:?}");
    // Of few samples, some more.
    assert!(broken < all / 20 + 50_000_000, "{broken} of {all} ns: {others:?}");
}

/// Samples the program `sampled` for some seconds while it carries out a command, after its methods were
/// optimised. Returns the report by CPU time, and the program's answer.
fn sampled(runtime: Runtime, command: &str, seconds: u32) -> Option<(Value, String)> {
    let mut program = Workload::from_command(runtime, runtime.program("sampled/sampled.dll")?);
    let verb = command.split(' ').next().unwrap();
    program.run(&format!("{verb} 1500"));
    let file = program.folder().join("cpu.nettrace");
    let file = file.to_str().unwrap();
    program.send(command);
    let duration = format!("{seconds}s");
    let pid = program.pid().to_string();
    let recorded = run(["trace", "-p", &pid, "--cpu", "--duration", &duration, "-o", file]).with_code(0);
    if !is_permitted(&recorded.stderr) {
        return None;
    }
    let report = run(["report", file, "topN", "-n", "100000", "--by", "cpu", "--format", "json"]);
    Some((report.with_code(0).json(), program.done(command)))
}

fn percent(report: &Value, name: &str, which: &str) -> f64 {
    row(report, name)[which].as_f64().unwrap()
}

/// Small methods of Tier 1 have no frame pointer, and hide their callers from those who follow these.
#[test]
fn callers_of_methods_without_a_frame_are_seen() {
    let Some((report, _)) = sampled(Runtime::Net9_0, "small 6000", 4) else { return };
    let own = |name| percent(&report, name, "exclusive_percent");
    let with_callees = |name| percent(&report, name, "inclusive_percent");
    assert!(own("Program.Leaf(") > 40.0, "{report}");
    for (caller, callee) in [("Program.Middle(", "Program.Leaf("), ("Program.Outer(", "Program.Middle(")] {
        let expected = own(caller) + with_callees(callee);
        eprintln!("{caller}: {} of {expected}", with_callees(caller));
        assert!(with_callees(caller) > expected * 0.99, "{caller}: {report}");
    }
    assert!(with_callees("Program.Loop(") > with_callees("Program.Outer(") * 0.99, "{report}");
}

fn the_split_of_two_methods_is_the_programs_own(runtime: Runtime) {
    // NativeAOT has no such program.
    if runtime == Runtime::NativeAot9 {
        return;
    }
    let Some((report, answer)) = sampled(runtime, "split 13000", 10) else { return };
    let [seven, three] =
        ["Program.Seven(", "Program.Three("].map(|name| percent(&report, name, "exclusive_percent"));
    let (share, expected): (f64, f64) = (100.0 * seven / (seven + three), answer.parse().unwrap());
    let samples = report["samples"].as_f64().unwrap() * (seven + three) / 100.0;
    eprintln!("{runtime:?}: {share:.2} % of {samples} samples, {expected} % by the thread's processor time");
    // Two percentage points, or four standard errors of few samples.
    let error = 100.0 * (0.7_f64 * 0.3 / samples).sqrt();
    assert!((share - expected).abs() < 2.0_f64.max(4.0 * error), "{share} {expected}: {report}");
}

#[test]
fn a_copy_in_the_c_library_is_under_the_method_that_called_it() {
    let Some((report, answer)) = sampled(Runtime::Net9_0, "copy 8000", 6) else { return };
    let expected: f64 = answer.parse().unwrap();
    let copied = percent(&report, "libc.so.6!", "exclusive_percent");
    let seven = percent(&report, "Program.Seven(", "exclusive_percent");
    let run = percent(&report, "Program.Run(", "inclusive_percent");
    let samples = report["samples"].as_f64().unwrap() * (copied + seven) / 100.0;
    let share = 100.0 * copied / (copied + seven);
    eprintln!(
        "{share} % of {samples} samples in the C library, {expected} % by the thread's processor time, {run} % below Run"
    );
    // Two points for the call into the C library, and the two or four standard errors of the split above.
    let error = 100.0 * (expected / 100.0 * (1.0 - expected / 100.0) / samples).sqrt();
    assert!((share - expected).abs() < 2.0 + 2.0_f64.max(4.0 * error), "{share} {expected}: {report}");
    // The runtime's own threads call the C library, too: a tenth of the time, or two of few samples.
    let others = (copied * 0.1).max(200.0 / report["samples"].as_f64().unwrap());
    let below = percent(&report, "Program.Seven(", "inclusive_percent") + copied - others;
    assert!(run >= below, "{run} {below}: {report}");
}

#[test]
fn page_faults_have_frames_of_the_kernel() {
    let Some((report, _)) = sampled(Runtime::Net9_0, "pages 3000", 3) else { return };
    let rows = report["rows"].as_array().unwrap();
    let has = |name: &str| rows.iter().any(|row| row["frame"].as_str().unwrap().contains(name));
    if !has("vmlinux!") {
        say_not_run("the kernel hides its symbols");
        return;
    }
    assert!(has("page_fault"), "{report}");
}

#[test]
fn a_program_without_dotnet_is_sampled_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("native.nettrace");
    let file = file.to_str().unwrap();
    let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let recorded = run(["trace", "-p", &busy.id().to_string(), "--cpu", "--duration", "1s", "-o", file]);
    busy.kill().unwrap();
    busy.wait().unwrap();
    if !is_permitted(&recorded.stderr) {
        return;
    }
    let recorded = recorded.with_code(0);
    assert!(recorded.stderr.contains("sampling it without the events of a runtime"), "{}", recorded.stderr);
    let report = run(["report", file, "topN", "--by", "cpu", "--format", "json"]).with_code(0).json();
    // As few as a machine with much else to do has for it: a thousand a second that it runs.
    assert!(report["samples"].as_u64().unwrap() > 5, "{report}");
    assert!(
        report["rows"]
            .as_array()
            .unwrap()
            .iter()
            .any(|row| row["inclusive_percent"].as_f64().unwrap() > 90.0)
    );
}

#[test]
fn waits_of_a_started_program_have_their_kind_and_the_program_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("waits.nettrace");
    let file = file.to_str().unwrap();
    let script = "for i in 1 2 3 4 5 6 7 8; do sleep 0.05; done";
    let recorded = run(["trace", "--off-cpu", "-o", file, "--", "sh", "-c", script]);
    if !is_permitted(&recorded.stderr) {
        return;
    }
    let recorded = recorded.with_code(0);
    assert!(
        !recorded.stderr.contains("0 samples") && recorded.stderr.contains("times off CPU"),
        "{}",
        recorded.stderr
    );
    assert!(recorded.stderr.contains("topN --by off-cpu"), "{}", recorded.stderr);
    let report = run(["report", file, "topN", "--by", "off-cpu", "--format", "json"]).with_code(0).json();
    let rows = report["rows"].as_array().unwrap();
    let leaf = rows[0]["frame"].as_str().unwrap();
    if leaf == "vmlinux!?" {
        return say_not_run("the kernel hides its symbols");
    }
    assert!(rows[0]["exclusive_percent"].as_f64().unwrap() > 50.0, "{report}");
    for row in rows {
        let (frame, own) = (row["frame"].as_str().unwrap(), row["exclusive"].as_u64().unwrap());
        assert!(!(frame.starts_with("vmlinux!schedule") || frame == "Threads") || own == 0, "{report}");
    }
    let overview = run(["report", file]).with_code(0).text();
    // The shell waits for its children.
    assert!(overview.contains("; waits: ") && overview.contains("child processes"), "{overview}");
    assert!(overview.lines().next().unwrap().contains("sh"), "{overview}");
    assert!(!overview.contains("does not name"), "{overview}");
}

#[test]
fn finds_a_program_without_dotnet_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join(format!("busy{}", std::process::id()));
    executable::copy("/bin/sh", &program);
    let mut busy = Command::new(&program).args(["-c", LOOP]).spawn().unwrap();
    let (name, file) = (program.file_name().unwrap().to_str().unwrap(), folder.path().join("named.nettrace"));
    let file = file.to_str().unwrap();
    let recorded = run(["trace", "-n", name, "--cpu", "--duration", "500ms", "-o", file]);
    busy.kill().unwrap();
    busy.wait().unwrap();
    if !is_permitted(&recorded.stderr) {
        return;
    }
    let recorded = recorded.with_code(0);
    assert!(recorded.stderr.contains("sampling it without the events of a runtime"), "{}", recorded.stderr);
    assert!(events_of(file, "Universal.Events") > 5, "{:?}", providers(file));
}

#[test]
fn the_runtime_at_a_socket_is_sampled_by_the_kernel() {
    for runtime in [Runtime::Net3_1, Runtime::Net9_0] {
        let Some(mut workload) = Workload::start(runtime) else { continue };
        workload.send("spin 60000");
        let (file, socket) = (workload.folder().join("cpu.nettrace"), workload.socket());
        let file = file.to_str().unwrap();
        let endpoint = socket.to_str().unwrap();
        let recorded = run(["trace", "--endpoint", endpoint, "--cpu", "--duration", "1s", "-o", file]);
        if !is_permitted(&recorded.stderr) {
            return;
        }
        recorded.with_code(0);
        assert!(events_of(file, "Universal.Events") > 50, "{:?}", providers(file));
        assert_eq!(events_of(file, SAMPLER), 0);
    }
}

#[test]
fn the_table_of_several_processes_has_the_requested_columns() {
    let both = [Workload::start(Runtime::Net9_0), Workload::start(Runtime::Net9_0)];
    let [Some(one), Some(other)] = &both else { return };
    let (file, pids) = (one.folder().join("cpu.nettrace"), [one, other].map(|it| it.pid().to_string()));
    let file = file.to_str().unwrap();
    let recorded = run(["trace", "-p", &pids[0], "-p", &pids[1], "--cpu", "--duration", "500ms", "-o", file]);
    if !is_permitted(&recorded.stderr) {
        return;
    }
    let recorded = recorded.with_code(0);
    assert!(recorded.stderr.contains("Microsoft-Windows-DotNETRuntime"), "{}", recorded.stderr);
    assert!(!recorded.stderr.contains(SAMPLER), "{}", recorded.stderr);
}

#[test]
fn processes_that_cannot_be_sampled_are_not_reachable() {
    if let Some(user) = Nobody::new() {
        let native = Native::start(LOOP);
        let mut command = Command::new(user.program());
        command.args(["trace", "--cpu", "-p", &native.0.id().to_string(), "-o"]);
        command.arg(user.folder().join("cpu.nettrace"));
        let refused = Running::start(user.run_with_output(command)).finish().with_code(3);
        // Kernels with levels above 2 look at the level first.
        let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
        let (reason, help) = if level.trim().parse::<i32>().unwrap() > 2 {
            ("CAP_SYS_ADMIN", "help: sysctl kernel.perf_event_paranoid=2")
        } else {
            ("another user", "help: run dipc as the user of the process")
        };
        refused.assert_error_names(&[reason]);
        assert!(refused.stderr.contains(help), "{}", refused.stderr);
    }
    if std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n") {
        run(["trace", "-p", "2", "--cpu"]).with_code(3).assert_error_names(&["a thread of the kernel"]);
    }
}

#[test]
fn samples_need_a_file() {
    let refused = run(["trace", "-p", "1", "--cpu", "-o", "-"]).with_code(2);
    refused.assert_error_names(&["--cpu", "-o"]);
}

#[test]
fn a_session_that_does_not_begin_leaves_no_file() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cpu.nettrace");
    workload.halt();
    let pid = workload.pid().to_string();
    run(["trace", "-p", &pid, "--cpu", "--timeout", "1s", "-o", file.to_str().unwrap()]).with_code(5);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Runs `dipc` where it may open few files: fewer than the kernel's samples need.
fn run_with_few_files(arguments: &[&str]) -> Finished {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 64; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_dipc")]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::start(command).finish()
}

fn providers(file: &str) -> Vec<(String, u64)> {
    let stat = run(["stat", file, "--format", "json"]).with_code(0).json();
    let row = |row: &Value| (row["provider"].as_str().unwrap().to_owned(), row["events"].as_u64().unwrap());
    stat["providers"].as_array().unwrap().iter().map(row).collect()
}

fn events_of(file: &str, provider: &str) -> u64 {
    providers(file).iter().find(|(name, _)| name == provider).map_or(0, |(_, events)| *events)
}

const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";

#[test]
fn profile_cpu_uses_the_permitted_samples_and_reports_it() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let file = workload.folder().join("cpu.nettrace");
    let file = file.to_str().unwrap();
    let pid = workload.pid().to_string();
    workload.send("spin 60000");
    let arguments = ["trace", "-p", &pid, "--profile", "cpu", "--duration", "1s", "-o", file];
    let recorded = run(arguments).with_code(0);
    if is_permitted(&recorded.stderr) {
        let words = "Samples        : by the kernel, 997 samples a second of each running thread, with time in the kernel (";
        assert!(recorded.stderr.contains(words), "{}", recorded.stderr);
        assert!(events_of(file, "Universal.Events") > 50, "{:?}", providers(file));
        assert_eq!(events_of(file, SAMPLER), 0);
        assert!(events_of(file, "Microsoft-Windows-DotNETRuntimeRundown") > 100);
    }
    let recorded = run_with_few_files(&arguments).with_code(0);
    for words in [
        "descriptors are needed",
        "recording with the runtime's own sampler",
        "Samples        : by the runtime",
    ] {
        assert!(recorded.stderr.contains(words), "{words}: {}", recorded.stderr);
    }
    assert!(events_of(file, SAMPLER) > 50, "{:?}", providers(file));
    assert_eq!(events_of(file, "Universal.Events"), 0);
    // A ring cannot have the kernel's samples.
    let folder = workload.folder().join("ring.nettrace");
    let ring = ["trace", "-p", &pid, "--profile", "cpu", "--keep", "10s", "--duration", "1s", "-o"];
    let recorded = run(ring.into_iter().chain([folder.to_str().unwrap()])).with_code(0);
    assert!(recorded.stderr.contains("so the runtime samples itself"), "{}", recorded.stderr);
    let refused = run(["trace", "-p", &pid, "--cpu", "--keep", "10s"]).with_code(2);
    refused.assert_error_names(&["--cpu", "--keep", "whole recording"]);
    assert!(refused.stderr.contains("dipc push"), "{}", refused.stderr);
    run(["trace", "-p", &pid, "--frequency", "99"])
        .with_code(2)
        .assert_error_names(&["--frequency", "--cpu"]);
}

#[test]
fn a_program_without_any_sampler_has_the_times_of_its_threads() {
    let Some(workload) = Workload::start(Runtime::NativeAot9) else { return };
    let file = workload.folder().join("cpu.nettrace");
    let pid = workload.pid().to_string();
    let arguments =
        ["trace", "-p", &pid, "--profile", "cpu", "--duration", "1s", "-o", file.to_str().unwrap()];
    let recorded = run_with_few_files(&arguments).with_code(0);
    for words in ["descriptors are needed", "has no sampler of its own", "from /proc"] {
        assert!(recorded.stderr.contains(words), "{words}: {}", recorded.stderr);
    }
    assert!(workload.folder().join("cpu.threads.nettrace").is_file());
}

#[test]
fn a_user_samples_processes_of_their_own() {
    let Some(user) = Nobody::new() else { return };
    let Some(mut workload) = user.workload(Runtime::Net9_0) else { return };
    // The samples are of its work, not of its start.
    workload.run("spin 1000");
    workload.send("spin 60000");
    let file = user.folder().join("cpu.nettrace");
    // Little memory may be locked, as in many containers.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -l 64; exec \"$0\" \"$@\""]).arg(user.program());
    command.args(["trace", "-p", &workload.pid().to_string(), "--profile", "cpu", "--duration", "2s", "-o"]);
    command.arg(&file);
    let recorded = Running::start(user.run_with_output(command)).finish().with_code(0);
    assert!(!recorded.stderr.contains("buffers of"), "{}", recorded.stderr);
    if recorded.stderr.contains("kernel's samples:") {
        return say_not_run("the kernel does not permit samples");
    }
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    if level.trim() == "2" {
        for words in ["permits samples of user mode only", "in user mode only"] {
            assert!(recorded.stderr.contains(words), "{words}: {}", recorded.stderr);
        }
    }
    let file = file.to_str().unwrap();
    let report = run(["report", file, "topN", "--by", "cpu", "--format", "json"]).with_code(0).json();
    let hot = row(&report, "Spin.Hot(")["inclusive_percent"].as_f64().unwrap();
    let fib = row(&report, "Spin.Fib(")["inclusive_percent"].as_f64().unwrap();
    // All of its calls have their caller.
    assert!(hot > 25.0 && hot >= fib * 0.99, "{report}");
}

/// A program without .NET, killed when dropped.
struct Native(Child);

impl Native {
    fn start(script: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    /// Starts to record it, and waits until it is sampled.
    fn record(&self, file: &Path, arguments: &[&str]) -> Option<Running> {
        let pid = self.0.id().to_string();
        let probe = run(["doctor", "-p", &pid]);
        if !probe.text().contains("ok       sampling") {
            say_not_run("the kernel does not permit samples");
            return None;
        }
        let start = ["trace", "-p", &pid, "--cpu", "-o", file.to_str().unwrap()];
        let running = Running::start(dipc(start.into_iter().chain(arguments.iter().copied())));
        // The sampler has descriptors of events.
        let deadline = Instant::now() + Duration::from_secs(60);
        let samples = |link: std::io::Result<std::path::PathBuf>| {
            link.is_ok_and(|link| link.to_string_lossy().contains("perf_event"))
        };
        let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", running.pid()));
        while !descriptors()
            .is_ok_and(|all| all.flatten().any(|entry| samples(std::fs::read_link(entry.path()))))
        {
            assert!(Instant::now() < deadline, "no events are opened");
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(running)
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const LOOP: &str = "while :; do :; done";

/// Its processor time, in ticks.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap();
    linux_proc_stat::Stat::parse(&stat).unwrap().cpu_ns().unwrap() / linux_proc_stat::TICK_NS
}

fn await_ticks(pid: u32, more: u64) {
    let (start, deadline) = (ticks(pid), Instant::now() + Duration::from_secs(60));
    while ticks(pid) < start + more {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_killed_program_leaves_a_whole_recording() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("killed.nettrace");
    let mut native = Native::start(LOOP);
    let Some(recording) = native.record(&file, &[]) else { return };
    await_ticks(native.0.id(), 30);
    native.0.kill().unwrap();
    native.0.wait().unwrap();
    recording.finish().with_code(0);
    let report = run(["report", file.to_str().unwrap(), "topN", "--by", "cpu", "--format", "json"]);
    assert!(report.with_code(0).json()["samples"].as_u64().unwrap() > 50);
    // The samples had no file of their own.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_stopped_program_is_recorded_to_the_end_of_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stopped.nettrace");
    let native = Native::start(LOOP);
    let Some(recording) = native.record(&file, &["--duration", "2s"]) else { return };
    await_ticks(native.0.id(), 20);
    kill_process(Pid::from_child(&native.0), Signal::STOP).unwrap();
    recording.finish().with_code(0);
    let report = run(["report", file.to_str().unwrap(), "topN", "--by", "cpu", "--format", "json"]);
    assert!(report.with_code(0).json()["samples"].as_u64().unwrap() > 50);
}

#[test]
fn a_program_that_becomes_another_has_the_names_of_both() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("exec.nettrace");
    // The trap runs between two commands of the shell.
    let native = Native::start(&format!(
        "trap 'exec dd if=/dev/zero of=/dev/null bs=1 count=1000000000' USR1; {LOOP}"
    ));
    let Some(recording) = native.record(&file, &[]) else { return };
    let pid = native.0.id();
    await_ticks(pid, 30);
    kill_process(Pid::from_child(&native.0), Signal::USR1).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap() != "dd\n" {
        assert!(Instant::now() < deadline, "it does not become another");
        std::thread::sleep(Duration::from_millis(5));
    }
    await_ticks(pid, 30);
    recording.signal(Signal::INT);
    recording.finish().with_code(0);
    let stacks =
        run(["report", file.to_str().unwrap(), "topN", "-n", "100", "--by", "cpu", "--format", "json"]);
    let report = stacks.with_code(0).json();
    let modules = ["dash!", "bash!", "sh!", "busybox!"];
    let frames: Vec<_> =
        report["rows"].as_array().unwrap().iter().map(|row| row["frame"].as_str().unwrap()).collect();
    assert!(frames.iter().any(|frame| modules.iter().any(|module| frame.contains(module))), "{frames:?}");
    assert!(frames.iter().any(|frame| frame.contains("dd!")), "{frames:?}");
}

#[test]
fn a_started_program_is_sampled_from_its_first_instruction() {
    // .NET 3.1 connects to no port.
    let Some(command) = Runtime::Net9_0.workload() else { return };
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_str().unwrap()).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("started.nettrace");
    let file = file.to_str().unwrap();
    let trace = ["trace", "--profile", "cpu", "--frequency", "5000", "-o", file, "--"];
    let recorded = run(trace.into_iter().chain(words).chain(["spin 3000", "quit 0"])).with_code(0);
    if !is_permitted(&recorded.stderr) {
        return;
    }
    let report = run(["report", file, "topN", "-n", "1000", "--by", "cpu", "--format", "json"]);
    let report = report.with_code(0).json();
    let percent = |name: &str| row(&report, name)["inclusive_percent"].as_f64().unwrap();
    assert!(
        percent("Program.Main(") > percent("Spin.Hot(") * 0.99 && percent("Spin.Hot(") > 10.0,
        "{report}"
    );
    // It has ended before the recording was: its frames in the kernel have names all the same.
    let has_kernel_names =
        std::fs::read_to_string("/proc/kallsyms").is_ok_and(|text| !text.starts_with("0000000000000000"));
    let is_named =
        |row: &Value| row["frame"].as_str().unwrap().strip_prefix("vmlinux!").is_some_and(|name| name != "?");
    assert!(!has_kernel_names || report["rows"].as_array().unwrap().iter().any(is_named), "{report}");
    // The program's loader and host run before the runtime, which waits at its port before its first event.
    let events = run(["events", file, "--format", "json"]).with_code(0).json();
    let times = |provider: &str, name: &str| -> Vec<u64> {
        let all = events.as_array().unwrap().iter();
        let wanted =
            all.filter(|event| event["provider"] == provider && event["name"].as_str() == Some(name));
        wanted.map(|event| event["time_ns"].as_u64().unwrap()).collect()
    };
    let runtime = "Microsoft-Windows-DotNETRuntime";
    let names = events.as_array().unwrap().iter().filter(|event| event["provider"] == runtime);
    let first = names.map(|event| event["time_ns"].as_u64().unwrap()).min().unwrap();
    let before = times("Universal.Events", "cpu").into_iter().filter(|time| *time < first).count();
    assert!(before >= 10, "{before} samples before the first event of the runtime");
}

#[test]
fn a_started_program_without_dotnet_is_sampled_until_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("started.nettrace");
    let file = file.to_str().unwrap();
    // `times` prints the processor time of the shell: 0m0.810s 0m0.010s.
    let script = "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; times; exit 3";
    let trace = ["trace", "--cpu", "--show-child-io", "-o", file, "--", "sh", "-c", script];
    let recorded = run(trace);
    if !is_permitted(&recorded.stderr) {
        return;
    }
    // The program's own.
    let recorded = recorded.with_code(3);
    assert!(recorded.stderr.contains("no .NET runtime had connected"), "{}", recorded.stderr);
    let times = recorded.text();
    let seconds = times.lines().next().unwrap().split_whitespace().map(|time| {
        let (minutes, seconds) = time.strip_suffix('s').unwrap().split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    });
    let expected: f64 = seconds.sum();
    let report = run(["report", file, "topN", "--by", "cpu", "--format", "json"]).with_code(0).json();
    let sampled = report["samples"].as_f64().unwrap() / 1000.0;
    // The clock of the shell has ticks of 10 ms, two of which are in the sum.
    assert!((sampled - expected).abs() < 0.05 * expected + 0.02, "{sampled} {expected}: {report}");
}

#[test]
fn the_time_of_a_recording_ends_for_a_started_program_without_dotnet() {
    let folder = tempfile::tempdir().unwrap();
    let (file, ended) = (folder.path().join("started.nettrace"), folder.path().join("ended"));
    // It runs until the recording is complete, and so for longer than the time.
    let script = r#"while [ ! -e "$0" ]; do :; done; touch "$1"; exit 3"#;
    let [path, mark] = [&file, &ended].map(|path| path.to_str().unwrap());
    let trace = ["trace", "--cpu", "--duration", "1s", "-o", path, "--", "sh", "-c", script, path, mark];
    let recorded = run(trace);
    if !is_permitted(&recorded.stderr) {
        return;
    }
    // The program's own code: dipc waits for its end.
    let recorded = recorded.with_code(3);
    assert!(recorded.stderr.contains("no .NET runtime connected within 1.0 s"), "{}", recorded.stderr);
    assert!(ended.exists());
    let stat = run(["stat", path, "--format", "json"]).with_code(0).json();
    let seconds = stat["duration_ns"].as_f64().unwrap() / 1e9;
    // The sampler notices the end of the time after a fifth of a second at most, on an idle machine.
    assert!((0.9..10.0).contains(&seconds), "{stat}");
    let report = run(["report", path, "topN", "--by", "cpu", "--format", "json"]).with_code(0).json();
    assert!(report["samples"].as_u64().unwrap() > 5, "{report}");
}

/// A library with the name of the .NET host's, which is mapped before a runtime is.
#[test]
fn a_runtime_that_starts_is_waited_for_longer_than_the_time_of_the_recording() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps
        .lines()
        .find_map(|line| line.find('/').map(|at| &line[at..]).filter(|it| it.contains("libgcc_s")));
    let Some(library) = library else { return say_not_run("libgcc_s.so.1 is needed") };
    let folder = tempfile::tempdir().unwrap();
    let (file, host) = (folder.path().join("started.nettrace"), folder.path().join("libhostfxr.so"));
    std::fs::copy(library, &host).unwrap();
    let preload = format!("LD_PRELOAD={}", host.to_str().unwrap());
    // The library has to be mapped before the time is over: on a loaded machine not within a second.
    let trace = ["trace", "--cpu", "--duration", "4s", "-o", file.to_str().unwrap(), "--"];
    let program = ["env", &preload, "sh", "-c", "sleep 6; exit 4"];
    let recorded = run(trace.into_iter().chain(program));
    if !is_permitted(&recorded.stderr) {
        return;
    }
    let recorded = recorded.with_code(4);
    assert!(recorded.stderr.contains("it ended with code 4"), "{}", recorded.stderr);
}

#[test]
fn several_processes_get_a_file_each() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let native = Native::start(LOOP);
    workload.send("spin 60000");
    let file = workload.folder().join("all.nettrace");
    let pids = [workload.pid(), native.0.id()];
    let both = pids.map(|pid| pid.to_string()).join(",");
    let recorded =
        run(["trace", "-p", &both, "--cpu", "--duration", "2s", "-o", file.to_str().unwrap()]).with_code(0);
    if !is_permitted(&recorded.stderr) {
        return;
    }
    let frames = pids.map(|pid| {
        let file = file.with_extension(format!("{pid}.nettrace"));
        let report = run(["report", file.to_str().unwrap(), "topN", "--by", "cpu", "--format", "json"]);
        let report = report.with_code(0).json();
        assert!(report["samples"].as_u64().unwrap() > 50, "{report}");
        let rows = report["rows"].as_array().unwrap().clone();
        rows.iter().map(|row| row["frame"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    });
    let [managed, shell] = frames.map(|all| all.iter().any(|frame| frame.contains("Spin.Hot(")));
    assert!(managed && !shell);
    // Nothing begins if one of them is missing.
    let files = || std::fs::read_dir(workload.folder()).unwrap().count();
    let count = files();
    let gone = format!("{},{}", workload.pid(), i32::MAX);
    run(["trace", "-p", &gone, "--cpu", "-o", file.to_str().unwrap()]).with_code(3);
    assert_eq!(files(), count);
    run(["trace", "-p", &both, "-o", "-"]).with_code(2).assert_error_names(&["several processes", "-o"]);
}

/// By events of each thread, of threads that run for half a period 4 % was seen.
#[test]
fn threads_of_half_a_millisecond_are_sampled() {
    const SCRIPT: &str = "
import sys, threading, time
def work():
    end = time.thread_time() + 0.0005
    while time.thread_time() < end: pass
print('ready', flush=True)
while True:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
";
    let child =
        Command::new("python3").args(["-c", SCRIPT]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return say_not_run("python3 is needed") };
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let python = Native(child);
    let pid = python.0.id();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("short.nettrace");
    let file = file.to_str().unwrap();
    let before = ticks(pid);
    let Some(recording) = python.record(Path::new(file), &[]) else { return };
    let sampled = ticks(pid);
    await_ticks(pid, 100);
    let sampled = ticks(pid) - sampled;
    recording.signal(Signal::INT);
    let recorded = recording.finish();
    // It is sampled for a little longer than the first, and for less than the second.
    let spent = [sampled, ticks(pid) - before];
    let recorded = recorded.with_code(0);
    if !recorded.stderr.contains("threads of milliseconds included") {
        return say_not_run("the kernel does not permit samples of whole processors");
    }
    let report = run(["report", file, "topN", "--by", "cpu", "--format", "json"]).with_code(0).json();
    let shares = spent.map(|ticks| {
        let milliseconds = f64::from(u32::try_from(ticks).unwrap()) * 10.0;
        report["samples"].as_f64().unwrap() / milliseconds
    });
    eprintln!("{shares:?} of the processor time is sampled");
    assert!(shares[0] > 0.75 && shares[1] < 1.05, "{shares:?}: {report}");
}

#[test]
fn threads_that_wait_all_the_time_are_seen() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    workload.run("park");
    let file = workload.folder().join("parked.nettrace");
    let file = file.to_str().unwrap();
    let pid = workload.pid().to_string();
    let recorded =
        run(["trace", "-p", &pid, "--cpu", "--off-cpu", "--duration", "1s", "-o", file]).with_code(0);
    if !is_permitted(&recorded.stderr) {
        return;
    }
    let report = run(["report", file, "topN", "--by", "off-cpu", "--idle", "--format", "json"]);
    let report = report.with_code(0).json();
    for method in ["Parked.Sleeper(", "Parked.Blocked(", "Parked.GenericWait"] {
        // They wait from before the recording until after it.
        assert!(row(&report, method)["inclusive"].as_u64().unwrap() > 950_000_000, "{method} {report}");
    }
}

/// Two threads that wake each other as often as they can: a busy machine may lose some of their switches.
#[test]
fn lost_samples_are_in_the_recording_and_in_the_exit_code() {
    const SCRIPT: &str = "from threading import *
a, b = Semaphore(1), Semaphore(0)
def run(x, y):
    for _ in range(100000): x.acquire(); y.release()
other = Thread(target=run, args=(a, b)); other.start(); run(b, a); other.join()";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lossy.nettrace");
    let file = file.to_str().unwrap();
    let arguments = ["trace", "--cpu", "--off-cpu", "--frequency", "9000", "--fail-on-loss", "-o", file];
    let ran = run(arguments.into_iter().chain(["--", "python3", "-c", SCRIPT]));
    if !is_permitted(&ran.stderr) {
        return;
    }
    let summary = ran.stderr.lines().find(|line| line.starts_with("CPU samples")).unwrap();
    let lost = summary.split(" lost").next().unwrap().rsplit(", ").next().unwrap();
    let stat = run(["stat", file, "--format", "json"]).with_code(0).json();
    assert_eq!(stat["lost"].as_u64(), lost.parse().ok(), "{summary}");
    assert_eq!(ran.code, Some(if lost == "0" { 0 } else { 7 }), "{}", ran.stderr);
}
