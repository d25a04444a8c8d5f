//! `dipc edit` and `dipc repair`, as people call them: what the reports say of the new recordings.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A folder with a recording of testdata, unpacked: `in.nettrace`.
fn folder_with(name: &str) -> TempDir {
    let packed =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/traces").join(format!("{name}.xz"));
    let folder = tempfile::tempdir().expect("a folder");
    let packed = File::open(&packed).unwrap_or_else(|error| panic!("{}: {error}", packed.display()));
    let mut unpacked = lzma_rust2::XzReader::new(packed, true);
    let mut file = File::create(folder.path().join("in.nettrace")).expect("a file");
    std::io::copy(&mut unpacked, &mut file).expect("a whole xz file");
    folder
}

fn dipc(folder: &TempDir, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dipc"))
        .current_dir(folder.path())
        .args(arguments.split_whitespace())
        .output()
        .expect("the program runs")
}

/// What the program prints, once it has ended with this code.
fn printed(folder: &TempDir, arguments: &str, code: i32) -> String {
    let output = dipc(folder, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

fn stat(folder: &TempDir, file: &str) -> Value {
    let text = printed(folder, &format!("stat {file} --format json"), 0);
    serde_json::from_str(&text).expect("an object")
}

/// Compares a report of both recordings, row by row. Returns whether there was one.
fn compare(folder: &TempDir, report: &str) -> bool {
    let of = |file: &str| {
        let output = dipc(folder, &format!("report {file} {report} --format json"));
        (output.status.code(), String::from_utf8(output.stdout).expect("text"))
    };
    let (one, other) = (of("in.nettrace"), of("out.nettrace"));
    assert!(one == other, "{report}: {one:?} and {other:?}");
    one.0 == Some(0)
}

#[test]
fn reports_of_a_part_are_those_of_the_whole() {
    for (name, range, at_least) in [
        ("net9-everything.nettrace", "--from 100ms --to 600ms", 4),
        ("net10-sample.nettrace", "--from 300ms --to 900ms", 4),
        ("net10-gcverbose.nettrace", "--from 10ms --to 60ms", 3),
        ("v6-record-trace.nettrace", "--from 1s --to 2s", 2),
        ("net10-netperf.netperf", "--from 10ms --to 60ms", 5),
    ] {
        let folder = folder_with(name);
        printed(&folder, &format!("edit in.nettrace -o out.nettrace {range}"), 0);
        let reports = "topN gc alloc exceptions contention threadpool startup jit events requests";
        let found =
            reports.split(' ').filter(|report| compare(&folder, &format!("{report} {range}"))).count();
        assert!(found >= at_least, "{name}: {found} reports");
        let size = |file: &str| folder.path().join(file).metadata().expect("a file").len();
        assert!(size("out.nettrace") < size("in.nettrace"), "{name}");
    }
}

#[test]
fn losses_stay_and_events_that_are_left_out_are_none() {
    let folder = folder_with("net10-tinybuf.nettrace");
    let whole = stat(&folder, "in.nettrace");
    assert!(whole["lost"].as_u64() > Some(1000));
    printed(&folder, "edit in.nettrace -o out.nettrace --provider Microsoft-Windows-DotNETRuntime", 0);
    let part = stat(&folder, "out.nettrace");
    assert!(part["events"].as_u64() < whole["events"].as_u64());
    assert_eq!(part["lost"], whole["lost"]);
    let folder = folder_with("net9-everything.nettrace");
    printed(&folder, "edit in.nettrace -o out.nettrace --event GC/*", 0);
    assert_eq!(stat(&folder, "out.nettrace")["lost"], 0);
}

#[test]
fn filters_choose_what_dipc_events_shows() {
    let folder = folder_with("net9-everything.nettrace");
    for filter in [
        "--event GC/AllocationTick",
        "--provider Microsoft-DotNETCore-SampleProfiler",
        "--head 100",
        "--tail 100",
    ] {
        printed(&folder, &format!("edit in.nettrace -o out.nettrace {filter}"), 0);
        if !filter.starts_with("--tail") {
            let shown = |file: &str| printed(&folder, &format!("events {file} --format jsonl {filter}"), 0);
            assert!(shown("in.nettrace") == shown("out.nettrace"), "{filter}");
        }
        // The names of the methods are there whatever is left out.
        let rundown = |file: &str| {
            printed(&folder, &format!("events {file} --format jsonl --provider *Rundown"), 0).lines().count()
        };
        assert_eq!(rundown("in.nettrace"), rundown("out.nettrace"), "{filter}");
    }
}

#[test]
fn stacks_can_be_left_out_and_versions_raised() {
    let folder = folder_with("net10-sample.nettrace");
    printed(&folder, "edit in.nettrace -o out.nettrace --drop-stacks", 0);
    assert!(!printed(&folder, "events out.nettrace --stacks --format jsonl", 0).contains("\"stack\":[\""));
    printed(&folder, "edit in.nettrace -o out.nettrace --upgrade 6", 0);
    assert_eq!(stat(&folder, "out.nettrace")["version"], 6);
    assert!(compare(&folder, "topN"));
    let folder = folder_with("net10-netperf.netperf");
    printed(&folder, "edit in.nettrace -o out.nettrace", 0);
    assert_eq!(stat(&folder, "out.nettrace")["version"], 4);
    assert!(compare(&folder, "topN"));
}

#[test]
fn a_cut_recording_becomes_whole() {
    let folder = folder_with("net9-everything.nettrace");
    let path = folder.path().join("in.nettrace");
    let mut bytes = std::fs::read(&path).expect("a recording");
    bytes.truncate(1_000_000);
    bytes[500_000..500_100].fill(0xff);
    std::fs::write(&path, bytes).expect("a file");
    let text = printed(&folder, "repair in.nettrace -o out.nettrace --format json", 6);
    let repair: Value = serde_json::from_str(&text).expect("an object");
    assert!(repair["truncated_at"].is_u64() && repair["damage_count"].as_u64() > Some(0), "{text}");
    let whole = stat(&folder, "out.nettrace");
    assert_eq!((&whole["damage"], &whole["truncated"]), (&Value::Array(Vec::new()), &Value::Bool(false)));
    assert_eq!(whole["events"], repair["events"]);
    let again = printed(&folder, "repair out.nettrace -o again.nettrace", 0);
    assert!(again.contains("Damage   none"), "{again}");
}

#[test]
fn names_come_from_another_recording() {
    let folder = folder_with("net10-sample.nettrace");
    let whole = folder.path().join("whole.nettrace");
    std::fs::rename(folder.path().join("in.nettrace"), &whole).expect("a file");
    let mut bytes = std::fs::read(&whole).expect("a recording");
    // The rundown stands at the end.
    bytes.truncate(bytes.len() / 2);
    std::fs::write(folder.path().join("in.nettrace"), bytes).expect("a file");
    printed(&folder, "repair in.nettrace -o bare.nettrace", 6);
    printed(&folder, "repair in.nettrace -o out.nettrace --names-from whole.nettrace", 6);
    let resolved = |file: &str| {
        let text = printed(&folder, &format!("events {file} --symbols --format jsonl"), 0);
        text.matches('!').count()
    };
    assert!(resolved("out.nettrace") > resolved("bare.nettrace") + 1000);
}

#[test]
fn mistakes_are_refused() {
    let folder = folder_with("net10-sample.nettrace");
    for (arguments, message) in [
        ("edit in.nettrace -o in.nettrace", "would be overwritten"),
        ("edit in.nettrace -o ./in.nettrace", "would be overwritten"),
        ("edit in.nettrace -o out.nettrace --from 2s --to 1s", "not after --from"),
        ("repair in.nettrace -o -", "standard output"),
    ] {
        let output = dipc(&folder, arguments);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {errors}");
        assert!(errors.contains(message), "{arguments}: {errors}");
    }
    assert!(folder.path().join("in.nettrace").metadata().expect("a file").len() > 400_000);
}
