//! `dipc trace --format`: a recording becomes a profile at once.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::page_data::page_data;
use crate::ports::words;
use crate::program::{Running, await_next_request, dipc, run, stat};
use crate::runtime::Runtime;
use crate::workload::Workload;

/// For how many milliseconds the workload is busy.
const SPIN: u32 = 600;

/// How long a method was on the stacks of a file for speedscope, in milliseconds, once each open is seen to
/// have its close.
fn milliseconds(file: &Path, method: &str) -> f64 {
    let profile: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let frames = profile["shared"]["frames"].as_array().unwrap();
    let name =
        |event: &Value| frames[usize::try_from(event["frame"].as_u64().unwrap()).unwrap()]["name"].clone();
    let mut sum = 0.0;
    for thread in profile["profiles"].as_array().unwrap() {
        let mut open = Vec::new();
        for event in thread["events"].as_array().unwrap() {
            let at = event["at"].as_f64().unwrap();
            if event["type"] == "O" {
                open.push((event["frame"].clone(), at));
                continue;
            }
            let (frame, since) = open.pop().expect("what closes was open");
            assert_eq!(frame, event["frame"]);
            let is_outermost = open.iter().all(|(outer, _)| *outer != frame);
            if is_outermost && name(event).as_str().unwrap().starts_with(method) {
                sum += at - since;
            }
        }
        assert!(open.is_empty(), "{open:?} in {}", thread["name"]);
    }
    sum
}

/// The weights of a flame graph's frames by name, in microseconds, each without what it called.
fn weights(file: &Path) -> BTreeMap<String, u64> {
    let page = fs::read_to_string(file).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    let data = page_data(&page);
    let numbers = |list: &Value| -> Vec<usize> {
        let numbers = list.as_array().unwrap().iter();
        numbers.map(|number| usize::try_from(number.as_u64().unwrap()).unwrap()).collect()
    };
    let stacks = numbers(&data["stacks"]);
    let names = data["frames"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned());
    let mut weights: BTreeMap<_, _> = names.map(|name| (name, 0)).collect();
    for thread in data["threads"].as_array().unwrap() {
        let own = numbers(&thread["stacks"]);
        // A single bin.
        for pair in numbers(&thread["samples"]).get(2..).unwrap_or_default().chunks_exact(2) {
            let frame = stacks[2 * own[2 * pair[0]] - 1];
            let name = data["frames"][frame].as_str().unwrap();
            *weights.entry(name.to_owned()).or_default() += pair[1] as u64;
        }
    }
    weights
}

#[test]
fn a_running_program_becomes_a_profile() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let recording = workload.record(&["--format", "speedscope"]);
    workload.run(&format!("spin {SPIN}"));
    let recorded = recording.interrupt();
    recorded.stat(0).assert_whole();
    let busy = milliseconds(&recorded.file().with_extension("speedscope.json"), "workload!Spin.Hot(");
    assert!((0.5..2.0).contains(&(busy / f64::from(SPIN))), "{busy} ms of {SPIN}");

    let recording = workload.record(&["--format", "flamegraph"]);
    workload.run(&format!("spin {SPIN}"));
    let recorded = recording.interrupt();
    recorded.stat(0).assert_whole();
    let page = recorded.file().with_extension("html");
    let weights = weights(&page);
    // Blocked time has the stack that it was blocked in, the rest the kind of its samples at the leaf.
    let all: u64 = weights.values().sum();
    assert!(all > u64::from(SPIN) * 500, "{weights:?}");
    // The recording says the same of itself.
    let path = recorded.file();
    let top =
        run(["report", path.to_str().unwrap(), "topN", "-n", "100000", "--format", "json"]).with_code(0);
    let rows = top.json()["rows"].as_array().unwrap().clone();
    let sum = rows.iter().map(|row| row["exclusive"].as_u64().unwrap()).sum::<u64>();
    assert!(sum / 1000 - all <= weights.len() as u64 * 10, "{sum} ns are {all} microseconds");
}

/// A fault of .NET 9: running and waiting cannot be distinguished.
#[test]
fn samples_that_are_marked_wrong_are_not_passed_over_in_silence() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let recording = workload.record(&["--format", "folded"]);
    workload.run(&format!("spin {SPIN}"));
    let recorded = recording.interrupt();
    assert!(recorded.program.stderr.contains("marked as managed code"), "{}", recorded.program.stderr);
    let top = |path: &Path| run(["report", path.to_str().unwrap(), "topN", "--by", "cpu"]);
    let by_kernel = top(&recorded.file());
    assert!(by_kernel.text().contains("CPU time by the kernel's account"), "{}", by_kernel.text());
    // Without the kernel's account only the marks of the samples are left.
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("alone.nettrace");
    fs::copy(recorded.file(), &alone).unwrap();
    let by_mark = top(&alone);
    assert!(by_mark.stderr.contains("dotnet/runtime#123996"), "{}", by_mark.stderr);
}

#[test]
fn a_program_that_is_started_becomes_one_and_its_code_is_ours() {
    let Some(workload) = Runtime::Net9_0.workload() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.nettrace");
    let spin = format!("spin {SPIN}");
    let mut command = dipc(["trace", "-o", file.to_str().unwrap(), "--format", "speedscope", "--"]);
    command.args(words(&workload)).args([&spin, "quit 7"]).env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
    Running::start(command).finish().with_code(7);
    stat(&file, 0).assert_whole();
    let busy = milliseconds(&file.with_extension("speedscope.json"), "workload!Spin.Hot(");
    assert!((0.5..2.0).contains(&(busy / f64::from(SPIN))), "{busy} ms of {SPIN}");
}

/// A terminal sends Ctrl-C to all that it has in the foreground. The program must live on until its runtime
/// has named its methods.
#[test]
fn ctrl_c_leaves_the_recording_and_a_profile_with_names() {
    let Some(workload) = Runtime::Net9_0.workload() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.nettrace");
    let mut command = dipc(["trace", "-o", file.to_str().unwrap(), "--format", "flamegraph", "--"]);
    command.args(words(&workload)).args(["hang 600000"]).env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
    command.process_group(0);
    let mut running = Running::start(command);
    // The sampler has filled its first block by then.
    running.until_recorded(&file, 1 << 16);
    running.interrupt_group();
    let page = file.with_extension("html");
    while !fs::read_to_string(&page).is_ok_and(|page| page.ends_with("</html>\n")) {
        running.until_recorded(&file, 1 << 16);
        std::thread::sleep(Duration::from_millis(20));
    }
    await_next_request();
    running.signal(Signal::INT);
    // 128 and SIGKILL, as shells have it.
    running.finish().with_code(137);
    stat(&file, 0).assert_whole();
    let weights = weights(&page);
    let named = |method: &str| weights.keys().any(|name| name.starts_with(method));
    assert!(named("workload!Program.Main(") && named("System.Private.CoreLib!"), "{weights:?}");
}

#[test]
fn rejects_impossible_conversions_before_recording() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("out.html");
    let refused =
        run(["trace", "-p", "1", "-o", page.to_str().unwrap(), "--format", "flamegraph"]).with_code(2);
    refused.assert_error_names(&["out.html", "replaced"]);
    assert!(!page.exists());

    let Some(workload) = Workload::start(Runtime::NativeAot9) else { return };
    let arguments = ["--format", "speedscope", "--profile", "gc-collect", "--duration", "1s"];
    let recorded = workload.record(&arguments).finish();
    assert!(recorded.program.stderr.contains("warning: --format shows the time of threads"));
    assert_eq!(recorded.program.code, Some(1), "{}", recorded.program.stderr);
    // The recording stays.
    stat(&recorded.file(), 0).assert_whole();
}
