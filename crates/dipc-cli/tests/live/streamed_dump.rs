//! `dump --stream`, and the core dumps of crashes: core dumps that dipc writes or collects, read again.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Finished, Running, dipc, run};
use crate::runtime::{Runtime, on_runtimes, program_of_10};
use crate::workload::{Target, Workload};

const VIEWS: [&str; 6] = ["threads", "stacks", "exceptions", "heap", "locks", "modules"];

fn views(core: &str) -> Vec<Value> {
    let view = |view| {
        let mut view = run(["dump", "analyze", core, view, "--format", "json"]).with_code(0).json();
        // The size of the dump depends on its kind.
        view.as_object_mut().and_then(|view| view.remove("memory"));
        view
    };
    VIEWS.into_iter().map(view).collect()
}

/// The state of a process, as `/proc` has it.
fn state(pid: u32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
}

#[test]
fn a_streamed_core_has_the_answers_of_createdumps() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    workload.run("keep 1000");
    workload.run("park");
    let pid = workload.pid().to_string();
    let at = |name: &str| workload.folder().join(name).into_os_string().into_string().unwrap();
    for kind in ["full", "heap"] {
        let (own, theirs) = (at("own.gz"), at("theirs"));
        // The pool may end or start a thread between the two.
        let mut same = false;
        for _ in 0..4 {
            let json = ["--format", "json"];
            let written = ["dump", "-p", &pid, "--stream", "--type", kind, "-o", &own];
            let written = run(written.into_iter().chain(json)).with_code(0).json();
            assert_eq!((&written["omitted_bytes"], &written["path"]), (&0.into(), &own.clone().into()));
            assert!(written["copied_bytes"].as_u64() > Some(1 << 20), "{written}");
            run(["dump", "-p", &pid, "--type", "heap", "-o", &theirs]).with_code(0);
            same = views(&own) == views(&theirs);
            if same {
                break;
            }
        }
        assert!(same, "{kind}");
    }
    // A small one has the stacks, and no heap.
    let mini = at("mini");
    run(["dump", "-p", &pid, "--stream", "--type", "mini", "-o", &mini]).with_code(0);
    assert!(fs::metadata(&mini).unwrap().len() < 20 << 20);
    let stacks = run(["dump", "analyze", &mini, "stacks"]).with_code(0).text();
    assert!(stacks.contains("\n  Thread.Sleep(int)\n"), "{stacks}");
    run(["dump", "analyze", &mini, "heap"]).with_code(6);
    // createdump has written to its standard output.
    run(["info", "-p", &pid]).with_code(0);
}

/// Threads that wait in methods: their stacks do not change between two dumps.
fn stacks(core: &str) -> BTreeSet<String> {
    let report = run(["dump", "analyze", core, "stacks", "--format", "json"]).with_code(0).json();
    let threads = report["threads"].as_array().unwrap().iter().map(|thread| {
        let frames = thread["frames"].as_array().unwrap().iter().map(|frame| &frame["method"]);
        serde_json::to_string(&frames.collect::<Vec<_>>()).unwrap()
    });
    threads.filter(|frames| frames.contains("Parked")).collect()
}

#[test]
fn limits_of_a_streamed_core_cost_the_heap_first() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    workload.run("park");
    let pid = workload.pid().to_string();
    let at = |name: &str| workload.folder().join(name).into_os_string().into_string().unwrap();
    let (core, mini) = (at("core"), at("mini"));
    run(["dump", "-p", &pid, "--stream", "--type", "mini", "-o", &mini]).with_code(0);
    let expected = stacks(&mini);
    assert!(expected.len() > 3, "{expected:?}");
    for (kind, size) in [("full", "8MB"), ("heap", "8MB"), ("full", "24MB")] {
        let limited = ["dump", "-p", &pid, "--stream", "--type", kind, "--max-size", size, "-o", &core];
        let limited = run(limited).with_code(6);
        assert!(limited.stderr.contains(" of memory were left out for --max-size"), "{}", limited.stderr);
        assert_eq!(stacks(&core), expected, "{kind} {size}");
        let overview = run(["dump", "analyze", &core]).with_code(0).text();
        assert!(overview.contains("\nLeft out: "), "{overview}");
        // The heap is missing, and the reason is reported.
        run(["dump", "analyze", &core, "heap"]).with_code(6).assert_error_names(&["--max-size"]);
    }
    let limited = ["dump", "-p", &pid, "--stream", "--pause", "1us", "-o", &core];
    // Its threads stop in time or not.
    let limited = run(limited);
    assert!(matches!(limited.code, Some(5 | 6)) && limited.stderr.contains("--pause"), "{limited:?}");
    run(["dump", "-p", &pid, "--stream", "--type", "triage", "-o", &core]).with_code(2);
    assert!(workload.run("version").starts_with("9.0"), "it runs on");
}

/// The kernel ends the stop with its tracer.
#[test]
fn a_process_runs_on_if_dipc_is_killed_while_it_copies() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let pid = workload.pid();
    let core = workload.folder().join("core");
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut was_stopped = false;
    while !was_stopped {
        assert!(Instant::now() < deadline, "no stop was seen");
        let arguments = ["dump", "-p", &pid.to_string(), "--stream", "-o", core.to_str().unwrap()];
        let mut copying = Running::start(dipc(arguments));
        while !copying.is_over() {
            if state(pid) == 't' {
                copying.signal(Signal::KILL);
                was_stopped = true;
                break;
            }
        }
        drop(copying.finish());
    }
    assert!(workload.run("version").starts_with("9.0"), "it runs on");
    assert_ne!(state(pid), 't');
}

/// Reads the bundle of a crash: the overview and the core dump next to the one snapshot.
fn check_bundle(folder: &Path, has_report: bool) {
    let names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let snapshot =
        names.iter().find(|name| name.ends_with(".nettrace")).unwrap_or_else(|| panic!("{names:?}"));
    let at = |ending: &str| folder.join(format!("{snapshot}{ending}"));
    let overview = fs::read_to_string(at(".overview.txt")).unwrap();
    for part in ["Signal  : SIGABRT", "System.InvalidOperationException: the last straw", "Crash.Unhandled()"]
    {
        assert!(overview.contains(part), "{part}: {overview}");
    }
    let core = at(".core");
    let report = run(["dump", "analyze", core.to_str().unwrap(), "exceptions", "--format", "json"]);
    let report = report.with_code(0).json();
    assert_eq!(report["exceptions"][0]["chain"][0]["message"], "the last straw");
    assert_eq!(at(".crashreport.json").is_file(), has_report, "{names:?}");
    let facts = fs::read_to_string(at(".crash.txt")).unwrap();
    assert!(facts.contains(&format!("\nCore dump      : {}\n", core.display())), "{facts}");
}

#[test]
fn a_crashed_program_leaves_its_core_next_to_the_snapshot() {
    let Some(program) = Runtime::Net9_0.program("crash/crash.dll") else { return };
    check_bundle(crash_of_a_started_program(&program).path(), true);
}

/// The runtime of a single file writes no dump with heaps, so dipc traces the program.
#[test]
fn a_crashed_single_file_leaves_its_core_next_to_the_snapshot() {
    let Some(program) = program_of_10("crash/crash10.dll") else { return };
    check_bundle(crash_of_a_started_program(&program).path(), false);
}

/// Starts a crashing program by dipc, and returns the folder with the resulting files.
fn crash_of_a_started_program(program: &Command) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let input = tempfile::NamedTempFile::new().unwrap();
    fs::write(input.path(), "go\n").unwrap();
    let output = folder.path().join("out.nettrace");
    let script = "exec \"$@\" < \"$INPUT\"";
    let arguments = ["trace", "--keep", "30s,64MB", "--dump-on", "crash", "-o", output.to_str().unwrap()];
    let mut command = dipc(arguments.into_iter().chain(["--", "sh", "-c", script, "sh"]));
    command.arg(program.get_program()).args(program.get_args()).arg("unhandled");
    command.env("INPUT", input.path()).env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
    command.env_remove("DOTNET_DbgEnableMiniDump");
    let finished = Running::start(command).finish().with_code(134);
    assert_crash_comes_first(&finished);
    folder
}

/// The cause of death comes before what is left of it, and nothing says that it is missing.
fn assert_crash_comes_first(finished: &Finished) {
    let text = &finished.stderr;
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    let places =
        ["\nCrash          : thread ", ": the last straw (", "\nSnapshot       : ", "\nFacts          : "];
    assert!(places.map(at).is_sorted(), "{text}");
    assert!(!text.contains("the exception that") && !text.contains("the stream ended"), "{text}");
}

/// The same program on .NET 10.0.5.
#[test]
fn a_crashed_running_program_of_net_10_leaves_its_core_next_to_the_snapshot() {
    let Some(mut program) = program_of_10("crash/crash10.dll") else { return };
    program.arg("unhandled").env("DOTNET_DbgEnableMiniDump", "0");
    let mut target = Target::start(program);
    assert_eq!(target.line(), "ready");
    let output = tempfile::tempdir().unwrap();
    let traced = trace_a_crash(target.pid(), &output.path().join("out.nettrace"), || target.send("go"));
    assert_crash_comes_first(&traced);
    check_bundle(output.path(), false);
}

/// Records a process until `crash` has ended it. The core dump is written by dipc, which traces the process.
pub(crate) fn trace_a_crash(pid: u32, output: &Path, crash: impl FnOnce()) -> Finished {
    let pid = pid.to_string();
    let arguments = ["trace", "-p", &pid, "--keep", "30s,64MB", "--dump-on", "crash", "-o"];
    let mut recording = Running::start(dipc(arguments.into_iter().chain([output.to_str().unwrap()])));
    // It traces a thread from the list of threads on, and the whole process once it says so.
    recording.until_said("Core dump      : by dipc, which traces process");
    crash();
    let finished = recording.finish().with_code(0);
    assert!(finished.stderr.contains("\nFacts          : "), "{finished:?}");
    finished
}

on_runtimes!(a_crashed_running_program_leaves_its_core_next_to_the_snapshot: net_8_0, net_9_0);

fn a_crashed_running_program_leaves_its_core_next_to_the_snapshot(runtime: Runtime) {
    let Some(mut program) = runtime.program("crash/crash.dll") else { return };
    program.arg("unhandled").env("DOTNET_DbgEnableMiniDump", "0");
    let mut target = Target::start(program);
    assert!(target.line().starts_with("ready "));
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.nettrace");
    assert_crash_comes_first(&trace_a_crash(target.pid(), &output, || target.send("go")));
    check_bundle(folder.path(), false);
}

/// A kill is not a crash, and no exception is missing.
#[test]
fn reports_a_killed_process() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let folder = tempfile::tempdir().unwrap();
    let traced = trace_a_crash(workload.pid(), &folder.path().join("out.nettrace"), || workload.kill());
    let said = "\nCrash          : the process was killed by SIGKILL\n";
    assert!(traced.stderr.contains(said) && !traced.stderr.contains("exception"), "{}", traced.stderr);
}

/// No runtime is needed for these.
#[test]
fn a_compressed_core_has_the_answers_of_its_content() {
    let packed = crate::runtime::testdata().join("cores/parked-mini.core.xz");
    let packed = packed.to_str().unwrap();
    let answer = run(["dump", "analyze", packed, "stacks", "--format", "json"]).with_code(0);
    assert!(answer.stderr.contains("Unpacked       : "), "{}", answer.stderr);
    assert_eq!(answer.json()["runtime"], "9.0.1");
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.xz");
    let bytes = fs::read(packed).unwrap();
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let read = run(["dump", "analyze", cut.to_str().unwrap(), "stacks"]);
    assert!(matches!(read.code, Some(1 | 6)), "{read:?}");
    assert!(read.stderr.contains("only the unpacked part of the dump is read"), "{}", read.stderr);
    // Programs get an object in any case.
    let failed = run(["dump", "analyze", cut.to_str().unwrap(), "heap", "--format", "json"]);
    assert!(failed.code != Some(0), "{failed:?}");
    let error = failed.json()["error"].as_str().unwrap().to_owned();
    assert!(failed.stderr.contains(&format!("error: {error}\n")), "{failed:?}");
    let stripped = folder.path().join("stripped");
    let failed = run(["dump", "strip", cut.to_str().unwrap(), "-o", stripped.to_str().unwrap()]);
    assert!(failed.code != Some(0) && !failed.stderr.contains("dump analyze:"), "{failed:?}");
}
