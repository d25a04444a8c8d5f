//! `dipc report` and `dipc convert`, as programs and people call them.

mod agreement;
mod callers;
mod filters;
mod overview;
mod parts;
mod pauses;
mod stacks;
mod verdicts;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nettrace_synth::clr::{MANAGED, Method, Recording};
use serde_json::Value;
use tempfile::TempDir;

/// A recording of testdata, unpacked into a folder of its own.
fn recording(name: &str) -> (TempDir, PathBuf) {
    recording_in("traces", name)
}

/// The same of another folder of testdata.
fn recording_in(of: &str, name: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    testdata::write(&format!("{of}/{name}.xz"), &path);
    (folder, path)
}

fn dipc(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dipc"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("the program runs")
}

/// The program's output; it must succeed.
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = dipc(folder, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(folder, arguments)).unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
}

#[test]
#[allow(clippy::cast_precision_loss, reason = "shares")]
fn topn_as_scripts_read_it() {
    let (folder, file) = recording("net10-sample.nettrace");
    let file = file.to_str().unwrap();
    let topn = ["report", file, "topN", "--format", "json"];
    let answer = json(folder.path(), &[&topn[..], &["--inclusive"]].concat());
    let rows = answer["rows"].as_array().unwrap();
    assert!(rows.len() > 90 && answer["samples"].as_u64().unwrap() > 10_000);
    assert!(rows.windows(2).all(|pair| pair[0]["inclusive"].as_u64() >= pair[1]["inclusive"].as_u64()));
    assert_eq!((&answer["metric"], &answer["unit"]), (&"wall".into(), &"ns".into()));
    let total = answer["total"].as_u64().unwrap();
    // As nettrace-export's test of waiting has them.
    assert_eq!(
        (&answer["idle"], &answer["blocked"]),
        (&3_612_894_969_u64.into(), &11_112_449_475_u64.into())
    );
    let all = json(folder.path(), &[&topn[..], &["--idle"]].concat());
    assert_eq!((&all["idle"], all["total"].as_u64()), (&0.into(), Some(total + 3_612_894_969)));
    assert!(all.get("blocked").is_none() && all["rows"][0].get("blocked").is_none(), "{all}");
    let mine = json(folder.path(), &[&topn[..], &["--wait", "workload!"]].concat());
    // With samples outside managed code whose leaf is the program's: waits that were compiled into it.
    assert_eq!(
        (&mine["blocked"], mine["total"].as_u64()),
        (&0.into(), Some(total - 11_112_449_475 - 5_747_532))
    );
    assert!(total > 1_000_000 * answer["samples"].as_u64().unwrap(), "{total} ns");
    for row in rows {
        for (weight, share) in [("exclusive", "exclusive_percent"), ("inclusive", "inclusive_percent")] {
            let share_of_total = row[weight].as_u64().unwrap() as f64 * 100.0 / total as f64;
            assert!((row[share].as_f64().unwrap() - share_of_total).abs() < 1e-9, "{row}");
        }
    }
    // Pseudo frames are not rows, however few rows are requested.
    let pseudo = |row: &Value| {
        let frame = row["frame"].as_str().unwrap();
        ["ROOT", "(Non-Activities)", "Threads"].contains(&frame) || frame.starts_with("Process")
    };
    assert!(!rows.iter().any(pseudo), "{answer}");
    let three = json(folder.path(), &[&topn[..], &["--inclusive", "-n", "3"]].concat());
    assert_eq!(three["rows"].as_array().unwrap(), &rows[..3]);
    assert!(rows[0]["frame"].as_str().unwrap().contains('!'), "{three}");
    let shown = printed(folder.path(), &["report", file, "topN", "--inclusive", "-n", "3"]);
    for (row, line) in three["rows"]
        .as_array()
        .unwrap()
        .iter()
        .zip(shown.lines().skip(1).filter(|line| !line.starts_with(' ')))
    {
        let share = format!("{:.2}", row["inclusive_percent"].as_f64().unwrap());
        assert!(line.contains(share.trim_end_matches('0').trim_end_matches('.')), "{line}: {share}");
    }
    let (folder, file) = recording("net10-gcverbose.nettrace");
    let answer =
        json(folder.path(), &["report", file.to_str().unwrap(), "topN", "--format", "json", "--by", "alloc"]);
    assert_eq!((&answer["metric"], &answer["unit"]), (&"alloc".into(), &"bytes".into()));

    let (folder, file) = recording("net10-sample.nettrace");
    let file = file.to_str().unwrap();
    for row in rows {
        let name = row["csharp"].as_str().unwrap();
        assert!(name.contains('!') && !name.contains('`') && !name.contains("class "), "{row}");
    }
    let table = printed(folder.path(), &["report", file, "topN", "-n", "3"]);
    assert!(table.contains("\n1. Monitor.Wait(object, int) "), "{table}");
    let table = printed(folder.path(), &["report", file, "topN", "-n", "3", "--idle", "--names", "full"]);
    let lines: Vec<_> = table.lines().collect();
    assert!(lines[0].starts_with("Top 3 Functions (Exclusive)"), "{table}");
    assert!(lines[1].starts_with("1. Monitor.Wait(class System.Object,int32)"), "{table}");
    assert_eq!(lines.len(), 4, "dotnet-trace's table has no more lines");
}

#[test]
#[cfg(target_os = "linux")]
fn an_error_of_writing_names_the_file() {
    let (folder, file) = recording("net10-sample.nettrace");
    for format in ["jsonl", "folded", "speedscope", "csv"] {
        let full = dipc(folder.path(), &["convert", file.to_str().unwrap(), "-f", format, "-o", "/dev/full"]);
        let errors = String::from_utf8(full.stderr).unwrap();
        assert_eq!(full.status.code(), Some(1), "{format}: {errors}");
        assert!(errors.contains("error: write: /dev/full: No space left on device"), "{format}: {errors}");
        assert!(!errors.contains("standard output"), "{format}: {errors}");
    }
}

#[test]
fn every_report_as_table_and_as_json() {
    let (folder, file) = recording("net10-all.nettrace");
    let file = file.to_str().unwrap();
    for (report, list) in [
        ("topN", "rows"),
        ("stacks", "tree"),
        ("gc", "collections"),
        ("alloc", "types"),
        ("exceptions", "types"),
        ("contention", "locks"),
        ("threadpool", "adjustments"),
        ("startup", "steps"),
        ("jit", "slowest"),
        ("events", "events"),
    ] {
        let answer = json(folder.path(), &["report", file, report, "--format", "json"]);
        assert!(!answer[list].as_array().unwrap().is_empty(), "{report}: {answer}");
        let fewer = json(folder.path(), &["report", file, report, "--format", "json", "-n", "1"]);
        assert_eq!(fewer[list].as_array().unwrap().len(), 1, "{report}");
        let table = printed(folder.path(), &["report", file, report]);
        assert!(table.lines().count() > 3, "{report}: {table}");
        assert!(!table.contains('\u{1b}'), "{report}: colours in a pipe");
    }
    // `throw 5` and `gc 2 1` were among the commands of the recording.
    assert_eq!(json(folder.path(), &["report", file, "exceptions", "--format", "json"])["count"], 5);
}

#[test]
fn missing_data_is_reported_with_the_command_that_records_it() {
    let (folder, file) = recording("net10-tick.nettrace");
    let file = file.to_str().unwrap();
    for (arguments, help) in [
        (&["report", file, "topN"][..], "--profile dotnet-sampled-thread-time"),
        (&["report", file, "stacks", "--by", "alloc"], "--profile gc-verbose"),
        (&["report", file, "topN", "--by", "live-alloc"], "--profile live-alloc"),
        (&["report", file, "gc"], "--profile gc-collect"),
        (&["report", file, "alloc"], "--profile gc-verbose"),
        (&["report", file, "exceptions"], "--clrevents exception"),
        (&["report", file, "contention"], "--clrevents contention"),
        (&["report", file, "threadpool"], "--clrevents threading"),
        (&["report", file, "jit"], "--clrevents jit"),
        (&["report", file, "startup"], "--clrevents loader+jit"),
        (&["convert", file, "-f", "folded", "--by", "wait"], "--clrevents waithandle"),
    ] {
        let output = dipc(folder.path(), arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
        assert!(errors.contains(" has no ") && errors.contains(help), "{arguments:?}: {errors}");
        assert!(output.stdout.is_empty());
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is written where nothing is to be had: {left:?}");
}

#[test]
fn conversions_are_named_after_their_recording() {
    let (folder, file) = recording("net10-sample.nettrace");
    let file = file.to_str().unwrap();
    for (format, name) in [
        ("Speedscope", "net10-sample.speedscope.json"),
        ("Chromium", "net10-sample.chromium.json"),
        ("firefox", "net10-sample.firefox.json"),
        ("pprof", "net10-sample.pb.gz"),
        ("folded", "net10-sample.folded"),
        ("flamegraph", "net10-sample.html"),
        ("svg", "net10-sample.svg"),
        ("perfetto", "net10-sample.perfetto-trace"),
        ("csv", "net10-sample.csv"),
        ("jsonl", "net10-sample.jsonl"),
    ] {
        printed(folder.path(), &["convert", file, "--format", format]);
        let written =
            std::fs::read(folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let to_output = dipc(folder.path(), &["convert", file, "-f", format, "-o", "-"]);
        assert_eq!(to_output.status.code(), Some(0));
        assert!(to_output.stdout == written && written.len() > 1000, "{format}");
    }
    let lines = std::fs::read_to_string(folder.path().join("net10-sample.jsonl")).unwrap();
    assert!(lines.lines().next().unwrap().starts_with("{\"time_ns\":"));
    printed(folder.path(), &["convert", file, "-f", "speedscope", "-o", "named"]);
    assert!(folder.path().join("named.speedscope.json").exists());
    let refused = dipc(folder.path(), &["convert", file, "-f", "nettrace"]);
    assert_eq!(refused.status.code(), Some(2));
}

/// Whatever its name is, and also as standard input.
#[test]
#[cfg(unix)]
fn a_recording_is_never_replaced_by_its_export() {
    let (folder, file) = recording("net10-sample.nettrace");
    let bytes = std::fs::read(&file).unwrap();
    let input = file.to_str().unwrap();
    for (format, name) in [("jsonl", "x.jsonl"), ("folded", "x.folded"), ("html", "x.html")] {
        std::fs::hard_link(&file, folder.path().join(name)).unwrap();
        let link = format!("link-{name}");
        std::os::unix::fs::symlink(&file, folder.path().join(&link)).unwrap();
        for (from, to) in [(input, name), (input, &link), (name, &format!("./{name}")), ("-", name)] {
            let output = Command::new(env!("CARGO_BIN_EXE_dipc"))
                .current_dir(folder.path())
                .args(["convert", from, "-f", format, "-o", to])
                .stdin(File::open(&file).unwrap())
                .output()
                .unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{from} to {to}: {errors}");
            assert!(errors.contains(&format!("{to}: it would be overwritten")), "{from} to {to}: {errors}");
            assert!(std::fs::read(&file).unwrap() == bytes, "{from} to {to}");
        }
    }
}

#[test]
fn an_output_file_survives_a_missing_recording() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("none.nettrace"), "no recording").unwrap();
    for name in ["missing.nettrace", "none.nettrace"] {
        for format in ["jsonl", "folded", "html"] {
            let output = format!("old.{format}");
            std::fs::write(folder.path().join(&output), "before").unwrap();
            let failed = dipc(folder.path(), &["convert", name, "-f", format, "-o", &output]);
            assert!(!failed.status.success(), "{name} to {output}");
            assert_eq!(std::fs::read(folder.path().join(&output)).unwrap(), b"before", "{name} to {output}");
        }
    }
}

#[test]
fn a_cut_recording_gives_its_whole_blocks() {
    let (folder, file) = recording("net10-sample.nettrace");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    for arguments in [
        &["report", file.to_str().unwrap(), "topN", "--format", "json"][..],
        &["convert", file.to_str().unwrap(), "-f", "speedscope", "-o", "-"],
    ] {
        let output = dipc(folder.path(), arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(6), "{errors}");
        assert!(errors.contains("cut at offset"), "{errors}");
        let _: Value = serde_json::from_slice(&output.stdout).expect("whole JSON");
    }
}

/// .NET 9 marks no sample; these are of a thread that waits.
#[test]
fn mentions_samples_outside_managed_code() {
    let (folder, file) = recording("net10-sample.nettrace");
    let file = file.to_str().unwrap();
    let output = dipc(folder.path(), &["report", file, "topN", "--by", "cpu", "--tid", "11048"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("none of 1604 samples of threads is marked as managed code"), "{errors}");
    assert!(errors.contains("--by wall"), "{errors}");
    let output = dipc(folder.path(), &["convert", file, "-f", "folded", "-o", "-", "--tid", "11048"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(errors.contains("warning: none of 1604 samples is marked"), "{errors}");
    let whole = dipc(folder.path(), &["convert", file, "-f", "folded", "-o", "-"]);
    assert!(!String::from_utf8_lossy(&whole.stderr).contains("marked"));
}

/// A runtime that is told of when the session ends has not started then, and its version is that which its
/// folder has.
#[test]
fn a_running_program_has_not_started() {
    let (folder, file) = recording("net10-sample.nettrace");
    let report = json(folder.path(), &["report", file.to_str().unwrap(), "startup", "--format", "json"]);
    assert_eq!(report["runtime"], "10.0.14", "{report}");
    let steps = report["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["what"] != "runtime started"), "{steps:?}");

    let (folder, file) = recording("net9-background.nettrace");
    let report = json(folder.path(), &["report", file.to_str().unwrap(), "startup", "--format", "json"]);
    assert_eq!(report["runtime"], "9.0.1", "{report}");
    let steps = report["steps"].as_array().unwrap();
    assert_eq!(steps.iter().filter(|step| step["what"] == "runtime started").count(), 1, "{steps:?}");
}

/// Half a megabyte of events that all mean one stack of 1,024 frames, whose method has a name of 16,000
/// characters.
fn one_deep_stack() -> (TempDir, PathBuf) {
    let mut recording = Recording::new();
    let namespace = "N".repeat(16_000);
    let method = Method { signature: "", ..Method::new(0x1000, &namespace, "M") };
    recording.stacks(&[&[0x1008; 1024]]).written_by(1).at(1000).method(&method);
    for number in 2..2000 {
        recording.at(number * 1000).thread(number % 1000).sample(1, MANAGED);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("deep.nettrace");
    std::fs::write(&path, recording.bytes()).expect("a file");
    (folder, path)
}

#[test]
fn the_output_is_bounded_by_its_recording() {
    let (folder, file) = one_deep_stack();
    let size = std::fs::metadata(&file).unwrap().len();
    assert!(size < 100_000, "{size}");
    let most = nettrace_export::most_output(size);
    let file = file.to_str().unwrap();
    for (arguments, is_array) in [
        (&["events", file, "--symbols", "--format", "jsonl"][..], false),
        (&["events", file, "--symbols", "--format", "json"], true),
        (&["events", file, "--symbols"], false),
        (&["convert", file, "-f", "jsonl", "-o", "-"], false),
        (&["convert", file, "-f", "csv", "-o", "-"], false),
        (&["convert", file, "-f", "chromium", "-o", "-"], false),
    ] {
        let output = dipc(folder.path(), arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        let written = output.stdout.len() as u64;
        // A stack more than is allowed may be under way.
        assert!(written <= most + (4 << 20), "{arguments:?}: {written} of {most}");
        if arguments.contains(&"chromium") {
            continue;
        }
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
        assert!(errors.contains("would become more than") && errors.contains("help: "), "{errors}");
        assert!(String::from_utf8_lossy(&output.stdout[..8000]).contains("NNNN"), "{arguments:?}");
        if is_array {
            let _: Vec<Value> = serde_json::from_slice(&output.stdout).expect("a whole array");
        }
    }
    let refused = dipc(folder.path(), &["convert", file, "-f", "csv"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(!folder.path().join("deep.csv").exists(), "no part of a result stays");

    let shown = dipc(folder.path(), &["report", file, "topN", "--format", "json"]);
    let errors = String::from_utf8_lossy(&shown.stderr);
    assert!(errors.contains("1 names of methods are longer than 2048 bytes and are cut"), "{errors}");
    let answer: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    let name = answer["rows"][0]["frame"].as_str().unwrap();
    assert!(name.ends_with("N…") && name.len() < 2060, "{name}");
    let one = dipc(folder.path(), &["events", file, "--symbols", "--format", "jsonl", "--head", "2"]);
    assert_eq!(one.status.code(), Some(0));
    let last = String::from_utf8(one.stdout).unwrap().lines().last().map(str::to_owned).unwrap();
    let event: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(event["stack"].as_array().unwrap().len(), 1024);
    assert_eq!(event["stack"][0], name);
}

#[test]
#[cfg(unix)]
fn a_heap_is_never_replaced_by_its_conversion() {
    let folder = tempfile::tempdir().unwrap();
    let small = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/gcdump/files/small.gcdump");
    let file = folder.path().join("a.gcdump");
    std::fs::copy(small, &file).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::hard_link(&file, folder.path().join("hard.gcdump")).unwrap();
    std::os::unix::fs::symlink("a.gcdump", folder.path().join("soft.gcdump")).unwrap();
    std::os::unix::fs::symlink("a.gcdump", folder.path().join("a.html")).unwrap();
    for arguments in [
        &["a.gcdump"][..],
        &["a.gcdump", "-o", "./a"],
        &["a.gcdump", "-o", "hard.gcdump"],
        &["a.gcdump", "-o", "soft.gcdump"],
        &["a.gcdump", "-f", "html"],
    ] {
        let refused = dipc(folder.path(), &[&["gcdump", "convert"], arguments].concat());
        let errors = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains("it would be overwritten"), "{arguments:?}: {errors}");
        assert!(std::fs::read(&file).unwrap() == bytes, "{arguments:?}");
    }
    let printed = dipc(folder.path(), &["gcdump", "convert", "a.gcdump", "-o", "-"]);
    assert_eq!((printed.status.code(), printed.stdout.is_empty()), (Some(6), false));
}
