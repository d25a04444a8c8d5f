//! `dipc trace --cpu`: the kernel's samples of real runtimes, with managed, native and kernel frames.

use serde_json::Value;

use crate::program::run;
use crate::runtime::{Runtime, on_each_runtime, say_not_run};
use crate::workload::Workload;

on_each_runtime!(samples_of_a_hot_method_reach_the_main_method);

/// Whether this kernel permits all that the tests ask for.
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
    workload.send("spin 60000");
    let recorded =
        run(["trace", "-p", &pid, "--cpu", "--off-cpu", "--duration", "2s", "-o", file]).with_code(0);
    if !is_permitted(&recorded.stderr) {
        return;
    }
    let report = run(["report", file, "topN", "--by", "cpu", "--format", "json"]).with_code(0).json();
    let samples = report["samples"].as_u64().unwrap();
    assert!(samples > 50, "{report}");
    if runtime == Runtime::NativeAot9 {
        // Its methods have no names in the stripped program; the chain ends in the C library's start of the program all the same.
        assert!(row(&report, "libc.so.6!")["inclusive_percent"].as_f64().unwrap() > 95.0, "{report}");
        return;
    }
    let hot = row(&report, "Spin.Hot(");
    let main = row(&report, "Program.Main(");
    let (hot, main) =
        (hot["inclusive_percent"].as_f64().unwrap(), main["inclusive_percent"].as_f64().unwrap());
    assert!(main >= hot * 0.99 && hot > 50.0, "{hot} {main}: {report}");
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
    assert!(stat["duration_ns"].as_u64().unwrap() < 20_000_000_000, "{stat}");
    let stacks = run(["report", file, "stacks", "--by", "cpu"]).with_code(0).text();
    assert!(stacks.contains("libcoreclr.so!") && stacks.contains("Spin.Hot("), "{stacks}");
}

#[test]
fn a_program_without_dotnet_is_sampled_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("native.nettrace");
    let file = file.to_str().unwrap();
    let mut busy = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let recorded = run(["trace", "-p", &busy.id().to_string(), "--cpu", "--duration", "1s", "-o", file]);
    busy.kill().unwrap();
    busy.wait().unwrap();
    if !is_permitted(&recorded.stderr) {
        return;
    }
    let recorded = recorded.with_code(0);
    assert!(recorded.stderr.contains("sampling it without the events of a runtime"), "{}", recorded.stderr);
    let report = run(["report", file, "topN", "--by", "cpu", "--format", "json"]).with_code(0).json();
    assert!(report["samples"].as_u64().unwrap() > 50, "{report}");
    assert!(
        report["rows"]
            .as_array()
            .unwrap()
            .iter()
            .any(|row| row["inclusive_percent"].as_f64().unwrap() > 90.0)
    );
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
