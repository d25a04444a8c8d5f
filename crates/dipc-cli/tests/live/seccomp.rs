//! Commands under a seccomp filter that refuses `perf_event_open`, as the default filter of containers does:
//! each says why the kernel takes no samples, and what it does instead.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{Finished, Running, stat};
use crate::runtime::{Runtime, say_not_run};
use crate::workload::Workload;

const REASON: &str = "a seccomp filter refuses the call";

/// Runs `dipc` under the filter; `None` if it cannot be installed here.
fn run_filtered(arguments: &[&str]) -> Option<Finished> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/live/seccomp.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(env!("CARGO_BIN_EXE_dipc")).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let is_installed = Command::new("python3").arg("--version").output().is_ok();
    let finished = is_installed.then(|| Running::start(command).finish());
    let finished = finished.filter(|finished| !finished.stderr.starts_with("seccomp.py: "));
    if finished.is_none() {
        say_not_run("python3 and seccomp filters are needed");
    }
    finished
}

#[track_caller]
fn assert_says(finished: &Finished, words: &[&str]) {
    for words in words {
        assert!(finished.stderr.contains(words), "{words}: {}", finished.stderr);
    }
}

#[test]
fn a_recording_has_the_samples_of_the_runtime() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    workload.send("spin 600000");
    let (file, pid) = (workload.folder().join("cpu.nettrace"), workload.pid().to_string());
    for flag in [&["--cpu"][..], &["--profile", "cpu"], &["--off-cpu"]] {
        let arguments = ["trace", "-p", &pid, "--duration", "500ms", "-o", file.to_str().unwrap()];
        let Some(recorded) = run_filtered(&[&arguments[..], flag].concat()) else { return };
        let recorded = recorded.with_code(0);
        assert_says(
            &recorded,
            &[REASON, "recording with the runtime's own sampler", "Samples        : by the runtime"],
        );
        let stat = stat(&file, 0);
        assert_eq!(stat.provider("Universal.Events"), 0);
        assert!(stat.provider("Microsoft-DotNETCore-SampleProfiler") > 0, "{flag:?}: {}", stat.0);
    }
}

#[test]
fn a_program_without_a_sampler_has_the_times_of_its_threads() {
    let Some(workload) = Workload::start(Runtime::NativeAot9) else { return };
    let (file, pid) = (workload.folder().join("cpu.nettrace"), workload.pid().to_string());
    let arguments = ["trace", "-p", &pid, "--profile", "cpu", "--duration", "500ms", "-o"];
    let Some(recorded) = run_filtered(&[&arguments[..], &[file.to_str().unwrap()]].concat()) else { return };
    let recorded = recorded.with_code(0);
    assert_says(
        &recorded,
        &[REASON, "has no sampler of its own", "from /proc", "Samples        : none; times of threads"],
    );
    assert!(workload.folder().join("cpu.threads.nettrace").is_file());
}

#[test]
fn a_program_without_dotnet_cannot_be_recorded() {
    let mut busy = Command::new("sleep").arg("600").spawn().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (file, pid) = (folder.path().join("cpu.nettrace"), busy.id().to_string());
    let recorded = run_filtered(&["trace", "-p", &pid, "--cpu", "-o", file.to_str().unwrap()]);
    busy.kill().unwrap();
    busy.wait().unwrap();
    let Some(recorded) = recorded else { return };
    assert_ne!(recorded.code, Some(0));
    recorded.assert_error_names(&[REASON]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_started_program_without_dotnet_ends_with_its_code_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cpu.nettrace");
    let start =
        |script| run_filtered(&["trace", "--cpu", "-o", file.to_str().unwrap(), "--", "sh", "-c", script]);
    let Some(failed) = start("exit 3") else { return };
    let failed = failed.with_code(3);
    failed.assert_error_names(&["no .NET runtime had connected", REASON]);
    assert_says(&failed, &["help: ", "--cap-add PERFMON"]);
    // Nothing was recorded.
    start("exit 0").unwrap().with_code(1).assert_error_names(&[REASON]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn watching_commands_fall_back_to_the_runtime_sampler() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    workload.send("spin 600000");
    let pid = workload.pid().to_string();
    let top = ["top", "-p", &pid, "--count", "2", "--refresh-interval", "0.5", "--format", "jsonl"];
    let Some(shown) = run_filtered(&top) else { return };
    let shown = shown.with_code(0);
    assert_says(&shown, &[REASON, "the runtime samples itself"]);
    assert!(shown.json_lines().any(|interval| interval["samples"].as_u64().unwrap() > 0), "{}", shown.text());
    // The user asked for the kernel's samples.
    let Some(refused) = run_filtered(&[&top[..], &["--sampler", "kernel"]].concat()) else { return };
    assert_ne!(refused.code, Some(0));
    refused.assert_error_names(&[REASON]);
    let Some(stacks) = run_filtered(&["stack", "-p", &pid, "--native"]) else { return };
    assert_says(&stacks.with_code(0), &["running threads have no stacks", REASON]);
}

#[test]
fn doctor_names_the_filter_and_the_least_that_permits_samples() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let Some(examined) = run_filtered(&["doctor", "-p", &workload.pid().to_string()]) else { return };
    let text = examined.text();
    for words in ["perf_event_open", REASON, "have the runtime sample itself", "--cap-add PERFMON"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}
