//! Names of methods for recordings that end with their process.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::program::{Finished, Recorded, Recording, run};
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::{McpServer, Workload};

on_each_runtime!(
    a_recording_of_a_killed_process_has_names,
    a_process_that_runs_names_the_methods_of_its_recording,
    a_recording_that_ends_well_has_no_other_file
);

const PATIENCE: Duration = Duration::from_secs(120);
const NOTE: &str = "Names          : ";
const MISSING: &str = " addresses have no name: the recording ";
/// The bytes of samples that the runtime has sent after all earlier ones.
const LATER_SAMPLES: u64 = 32 << 10;

fn names_of(recording: &Path) -> PathBuf {
    recording.with_extension("names.nettrace")
}

/// Waits until the list next to a recording is complete.
fn await_names(recording: &Recording) {
    let names = names_of(&recording.file());
    let deadline = Instant::now() + PATIENCE;
    while !names.exists() || run(["stat", names.to_str().unwrap()]).code != Some(0) {
        assert!(Instant::now() < deadline, "there are no names");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until a recording has the event of a method's compilation.
fn await_method(recording: &Recording, name: &str) {
    let file = recording.file();
    let deadline = Instant::now() + PATIENCE;
    while !run(["events", file.to_str().unwrap(), "--event", "Method/LoadVerbose"]).text().contains(name) {
        assert!(Instant::now() < deadline, "the compilation of {name} is not recorded");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The methods of a recording by their share of the time, and the messages about it.
fn top(file: &Path, code: i32) -> (Vec<(String, f64)>, Finished) {
    let report =
        run(["report", file.to_str().unwrap(), "topN", "-n", "100000", "--format", "json"]).with_code(code);
    let rows = report.json()["rows"].as_array().unwrap().clone();
    let row = |row: &serde_json::Value| {
        (row["frame"].as_str().unwrap().to_owned(), row["exclusive_percent"].as_f64().unwrap())
    };
    (rows.iter().map(row).collect(), report)
}

/// The share of addresses without a name, in percent of the time.
fn nameless(rows: &[(String, f64)]) -> f64 {
    let is_nameless = |frame: &str| frame.contains("?!") || frame.starts_with("0x") || frame.ends_with("!?");
    rows.iter().filter(|(frame, _)| is_nameless(frame)).map(|(_, share)| share).sum()
}

/// The recording of a process that was killed, and its code checked.
fn killed(recording: Recording, kill: impl FnOnce()) -> Recorded {
    kill();
    let recorded = recording.finish();
    assert_eq!(recorded.program.code, Some(6), "{}", recorded.program.stderr);
    recorded
}

fn a_recording_of_a_killed_process_has_names(runtime: Runtime) {
    if runtime == Runtime::NativeAot9 {
        // It has neither samples nor a list of methods.
        return;
    }
    let Some(mut workload) = Workload::start(runtime) else { return };
    let clean = workload.record(&[]);
    workload.run("spin 1500");
    let clean = clean.interrupt();
    let recording = workload.record(&[]);
    await_names(&recording);
    workload.run("spin 1500");
    // What is compiled after the list, and has to arrive before the end.
    workload.run("jit 3");
    await_method(&recording, "Gen");
    let recorded = killed(recording, || workload.kill());
    assert!(recorded.program.stderr.contains(NOTE), "{}", recorded.program.stderr);
    let (expected, _) = top(&clean.file(), 0);
    let (rows, said) = top(&recorded.file(), 6);
    assert!(said.stderr.contains(NOTE) && !said.stderr.contains(MISSING), "{}", said.stderr);
    // On the stack all the time; what these call may be in no sample.
    for method in ["workload!Spin.Hot(int32)", "workload!Program.Main(class System.String[])"] {
        assert!(expected.iter().any(|(frame, _)| frame == method), "{expected:?}");
        assert!(rows.iter().any(|(frame, _)| frame == method), "{rows:?}");
    }
    assert!(nameless(&rows) < 5.0 + nameless(&expected), "{rows:?}");

    // Names of another run are not used, and that they are missing is said.
    let names = names_of(&recorded.file());
    let stacks = run(["events", recorded.file().to_str().unwrap(), "--event", "Thread/Sample", "--symbols"]);
    assert!(stacks.text().contains("workload!Spin.Hot(int32)"), "{}", stacks.stderr);
    let Some(other) = Workload::start(runtime) else { return };
    let other = other.record(&[]).interrupt();
    fs::copy(other.file(), &names).unwrap();
    let (rows, said) = top(&recorded.file(), 6);
    assert!(said.stderr.contains("is not used: it is of another process"), "{}", said.stderr);
    assert!(said.stderr.contains(MISSING), "{}", said.stderr);
    assert!(!rows.iter().any(|(frame, _)| frame == "workload!Spin.Hot(int32)"), "{rows:?}");
}

fn a_process_that_runs_names_the_methods_of_its_recording(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let recording = workload.record(&["--rundown", "false", "--no-names"]);
    workload.run("spin 500");
    let recorded = recording.interrupt();
    let (file, repaired) = (recorded.file(), recorded.file().with_file_name("repaired.nettrace"));
    let repair = |pid: u32, code: i32| {
        let (file, repaired) = (file.to_str().unwrap(), repaired.to_str().unwrap());
        run(["repair", file, "-o", repaired, "--format", "json", "--names-from", &pid.to_string()])
            .with_code(code)
    };
    if runtime == Runtime::NativeAot9 {
        let refused = repair(workload.pid(), 1);
        assert!(refused.stderr.contains("it lists no methods"), "{}", refused.stderr);
        return;
    }
    let (rows, _) = top(&file, 0);
    assert!(!rows.iter().any(|(frame, _)| frame == "workload!Spin.Hot(int32)"), "{rows:?}");
    let result = repair(workload.pid(), 0).json();
    assert!(result["names_added"].as_u64() > Some(100), "{result}");
    let (rows, _) = top(&repaired, 0);
    assert!(rows.iter().any(|(frame, _)| frame == "workload!Spin.Hot(int32)"), "{rows:?}");
    assert!(nameless(&rows) < 5.0, "{rows:?}");
    // Addresses have other names in another process.
    let Some(other) = Workload::start(runtime) else { return };
    let refused = repair(other.pid(), 1);
    assert!(refused.stderr.contains(&format!("of process {}, not of", other.pid())), "{}", refused.stderr);
}

fn a_recording_that_ends_well_has_no_other_file(runtime: Runtime) {
    let Some(workload) = Workload::start(runtime) else { return };
    let recording = workload.record(&[]);
    if runtime != Runtime::NativeAot9 {
        await_names(&recording);
    }
    let recorded = recording.interrupt();
    recorded.stat(0).assert_whole();
    let mut files: Vec<_> = fs::read_dir(recorded.file().parent().unwrap()).unwrap().flatten().collect();
    files.retain(|file| !file.file_name().to_string_lossy().ends_with(".threads.nettrace"));
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(!recorded.program.stderr.contains(NOTE), "{}", recorded.program.stderr);
}

#[test]
fn a_recording_of_a_killed_program_of_net10_has_names() {
    let Some(mut server) = McpServer::start() else { return };
    let mut recording = Recording::start(server.pid(), &[]);
    await_names(&recording);
    for id in 0..40 {
        server.request(100 + id, "tools/list", "{}");
    }
    // Samples go on coming: those before are in the file when later ones are.
    recording.until(fs::metadata(recording.file()).unwrap().len() + LATER_SAMPLES);
    let recorded = killed(recording, || server.kill());
    let (rows, said) = top(&recorded.file(), 6);
    assert!(said.stderr.contains(NOTE) && !said.stderr.contains(MISSING), "{}", said.stderr);
    assert!(nameless(&rows) < 5.0, "{rows:?}");
    assert!(rows.iter().any(|(frame, _)| frame.contains("System.Text.Json")), "{rows:?}");
    fs::remove_file(names_of(&recorded.file())).unwrap();
    let (rows, said) = top(&recorded.file(), 6);
    assert!(said.stderr.contains(MISSING), "{}", said.stderr);
    assert!(nameless(&rows) > 50.0, "{rows:?}");
}

#[test]
fn takes_no_names_if_not_wanted() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let mut recording = workload.record(&["--no-names"]);
    workload.run("spin 500");
    recording.until(20_000);
    let recorded = killed(recording, || workload.kill());
    assert!(!names_of(&recorded.file()).exists());
    assert!(!recorded.program.stderr.contains(NOTE), "{}", recorded.program.stderr);
}
