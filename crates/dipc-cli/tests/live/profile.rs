//! `dipc profile`: everything about a real runtime in one recording, with its page and overview.

use std::collections::BTreeSet;
use std::fs;
#[cfg(target_os = "linux")]
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::page_data::page_data;
use crate::program::{Running, dipc, run, stat};
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::{Workload, await_providers};

on_each_runtime!(one_recording_has_everything);

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

fn page(path: &Path) -> Value {
    page_data(&fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn one_recording_has_everything(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let folder = tempfile::tempdir().unwrap();
    let html = folder.path().join("all.html");
    let file = folder.path().join("all.nettrace");
    let pid = workload.pid().to_string();
    let mut profile = Running::start(dipc(["profile", "-p", &pid, "-o", html.to_str().unwrap()]));
    profile.until_recorded(&file, 1);
    await_providers(runtime);
    for command in ["throw 7", "gc 2 3", "alloc 20", "contend 1", "spin 1500"] {
        workload.run(command);
    }
    profile.signal(Signal::INT);
    let profiled = profile.finish().with_code(0);

    let counted = stat(&file, 0);
    counted.assert_whole();
    for (name, at_least) in [("Exception/Start", 7), ("GC/Start", 3), ("GC/AllocationTick", 50)] {
        let count = counted.count(RUNTIME, name);
        assert!(count >= at_least, "{name}: {count}: {}", profiled.stderr);
    }
    assert!(counted.provider("System.Runtime") > 0, "counters: {}", profiled.stderr);
    // The page and the overview have the same.
    let data = page(&html);
    assert_eq!(data["exceptionTypes"][0][0], "System.InvalidOperationException");
    // Of the first type only, whose distance from the type before is 0: the counters of 3.1 throw one of
    // their own when a thread ends while they read its CPU time.
    let cells = data["exceptions"].as_array().unwrap();
    let of_the_type = cells.chunks(4).take_while(|cell| cell[0] == 0);
    let count: u64 = of_the_type.map(|cell| cell[2].as_u64().unwrap()).sum();
    assert_eq!(count, 7, "{cells:?} of {}", data["exceptionTypes"]);
    assert!(data["collectionCount"].as_u64().unwrap() >= 3, "{}", data["collectionCount"]);
    assert!(!data["allocations"].as_array().unwrap().is_empty());
    let text = profiled.text();
    for part in ["Program ", "Recorded ", "exceptions ", "gc "] {
        assert!(text.lines().any(|line| line.starts_with(part)), "{part}: {text}");
    }
    assert!(profiled.stderr.contains(&format!("Written        : {}", html.display())), "{}", profiled.stderr);
    // In words, which sampler it was.
    let samples = profiled.stderr.lines().find(|line| line.starts_with("Samples        : "));
    let samples = samples.unwrap_or_else(|| panic!("{}", profiled.stderr));
    let is_by_kernel = samples.contains("by the kernel");
    assert!(is_by_kernel || samples.contains("by the runtime") || samples.contains("none"), "{samples}");
    let has_sampler = is_by_kernel || runtime != Runtime::NativeAot9;
    assert!(data["samples"].as_u64().unwrap() > 0 && (!has_sampler || data["unit"] == "ns"), "{samples}");
    if is_by_kernel && !samples.contains("user mode only") {
        assert!(samples.contains("and waits"), "{samples}");
        let waits = run(["report", file.to_str().unwrap(), "topN", "--by", "off-cpu", "--format", "json"]);
        assert!(waits.with_code(0).json()["samples"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_program_is_profiled_to_its_end_and_its_code_is_kept() {
    let Some(command) = Runtime::NativeAot9.workload() else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("run.pb.gz");
    let program = command.get_program().to_str().unwrap().to_owned();
    // It ends by itself at the end of its standard input.
    let arguments = ["profile", "-f", "pprof", "-o", output.to_str().unwrap(), "--", &program];
    let profiled = run(arguments).with_code(0);
    assert!(folder.path().join("run.nettrace").is_file(), "{}", profiled.stderr);
    assert!(profiled.text().contains("Recorded "), "{}", profiled.text());
    assert!(!folder.path().join("run.html").exists(), "no page was asked for");
}

#[test]
fn reports_a_crash_under_profile() {
    let Some(command) = Runtime::Net9_0.program("incidents/crash.dll") else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("run.html");
    let mut profile = dipc(["profile", "-o", output.to_str().unwrap(), "--"]);
    profile.arg(command.get_program()).args(command.get_args()).args(["failfast", "300"]);
    profile.env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1").env_remove("DOTNET_DbgEnableMiniDump");
    let profiled = Running::start(profile).finish().with_code(134);
    let cause = "the process crashed with SIGABRT, because of Environment.FailFast";
    assert!(profiled.stderr.contains(&format!("\nCrash          : {cause}\n")), "{}", profiled.stderr);
    let first = profiled.text().lines().skip_while(|line| !line.is_empty()).nth(1).unwrap().to_owned();
    let cause = cause.replacen("the", "The", 1);
    let message = "ledger inconsistent: 42 != 43, in P.Main.AnonymousMethod__2";
    assert_eq!(first, format!("crash         ! {cause}: {message}"));
    assert!(output.is_file());
}

#[test]
fn a_loop_keeps_the_newest_recordings_with_their_pages() {
    let Some(workload) = Workload::start(Runtime::NativeAot9) else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("l.nettrace");
    let pid = workload.pid().to_string();
    let arguments = ["profile", "-p", &pid, "--loop", "1s", "--keep-files", "2", "-o"];
    let profile = Running::start(dipc(arguments.into_iter().chain([output.to_str().unwrap()])));
    let with = |ending: &str| {
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.map(|name| name.into_string().unwrap()).filter(|name| name.ends_with(ending));
        names.map(|name| name.split('.').next().unwrap().to_owned()).collect::<BTreeSet<_>>()
    };
    // With the fourth page, the first recordings are gone.
    let (mut seen, deadline) = (BTreeSet::new(), Instant::now() + Duration::from_secs(110));
    while seen.len() < 4 {
        assert!(Instant::now() < deadline, "{seen:?}");
        seen.extend(with(".html"));
        std::thread::sleep(Duration::from_millis(10));
    }
    profile.signal(Signal::INT);
    let profiled = profile.finish().with_code(0);
    assert_eq!(with(".nettrace").len(), 2, "{}", profiled.stderr);
    assert!(with(".html").is_subset(&with(".nettrace")), "{:?} {:?}", with(".html"), with(".nettrace"));
}

#[test]
fn a_loop_ends_with_its_process() {
    let Some(mut workload) = Workload::start(Runtime::NativeAot9) else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("l.nettrace");
    let pid = workload.pid().to_string();
    let arguments = ["profile", "-p", &pid, "--loop", "1s", "-f", "nettrace", "-o", output.to_str().unwrap()];
    let profile = Running::start(dipc(arguments));
    let deadline = Instant::now() + Duration::from_secs(60);
    while fs::read_dir(folder.path()).unwrap().count() < 2 {
        assert!(Instant::now() < deadline, "no second file");
        std::thread::sleep(Duration::from_millis(20));
    }
    workload.kill();
    let profiled = profile.finish();
    // The last recording ends with the process, perhaps in the midst of its end.
    assert!(matches!(profiled.code, Some(0 | 6)), "{:?}: {}", profiled.code, profiled.stderr);
}

#[cfg(target_os = "linux")]
#[test]
fn the_page_is_opened_only_on_request() {
    let Some(workload) = Workload::start(Runtime::NativeAot9) else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("xdg-open");
    fs::write(&script, "#!/bin/sh\necho \"$1\" > \"$0.opened\"\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let seen = folder.path().join("xdg-open.opened");
    let pid = workload.pid().to_string();
    let html = folder.path().join("a.html");
    let profile = |more: &[&str]| {
        let fixed = ["profile", "-p", &pid, "--duration", "1s", "-o", html.to_str().unwrap()];
        let mut command = dipc(fixed.into_iter().chain(more.iter().copied()));
        command.env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()));
        Running::start(command).finish().with_code(0)
    };
    profile(&[]);
    assert!(!seen.exists());
    profile(&["--open"]);
    let deadline = Instant::now() + Duration::from_secs(60);
    while fs::read_to_string(&seen).unwrap_or_default().trim() != html.to_str().unwrap() {
        assert!(Instant::now() < deadline, "{:?}", fs::read_to_string(&seen));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn rejects_impossible_combinations() {
    run(["profile", "-p", "1", "-o", "-"]).with_code(2).assert_error_names(&["-o"]);
    run(["profile", "-p", "1", "-f", "folded", "--open"]).with_code(2).assert_error_names(&["--open"]);
    run(["profile", "--loop", "1s", "--", "true"]).with_code(2).assert_error_names(&["--loop"]);
    run(["profile", "-p", "1", "--keep-files", "2"]).with_code(2).assert_error_names(&["--loop"]);
}
