//! The flight recorder against simulated runtimes: connections that are lost, and rings in files.

use std::fs;
use std::process::Output;

use super::{Sim, dipc, files};

const PROVIDERS: &str = "Dipc-Simulated:FFFFFFFFFFFFFFFF:5";

/// Records a simulated runtime into a ring; the names of the files are below `folder`. What it says, and its exit code.
fn keep(sim: &Sim, folder: &std::path::Path, arguments: &[&str]) -> (Option<i32>, String) {
    let (pid, output) = (sim.child.id().to_string(), folder.join("ring.nettrace"));
    let fixed = ["trace", "-p", &pid, "--no-names", "--providers", PROVIDERS, "-o"];
    let mut command = dipc(&fixed);
    command.arg(&output).args(arguments).env("TMPDIR", sim.folder.path());
    let Output { status, stderr, .. } = command.output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn a_lost_connection_is_told_from_a_crash() {
    for (fault, condition, reason) in [
        ("close-in-stream:300000", "disconnect", ": the connection was lost"),
        ("close-in-stream:300000", "crash", ": the connection was lost"),
        ("die-in-the-middle:300000", "crash", ": the stream ended in the middle"),
        ("die-in-the-middle:300000", "disconnect", ": the stream ended in the middle"),
    ] {
        let sim = Sim::start(1, &["--rate", "100000", "--fault", fault]);
        let folder = tempfile::tempdir().unwrap();
        let (code, messages) =
            keep(&sim, folder.path(), &["--keep", "8MB", "--snapshot-on", condition, "--duration", "60s"]);
        assert_eq!(code, Some(6), "{fault}: {messages}");
        let lines: Vec<_> = messages.lines().filter(|line| line.starts_with("Snapshot ")).collect();
        assert!(matches!(&lines[..], [line] if line.ends_with(reason)), "{fault}, {condition}: {messages}");
        assert_eq!(files(folder.path()).len(), 1, "{fault}");
    }
}

#[test]
fn a_ring_in_files_leaves_nothing_but_snapshots() {
    let sim = Sim::start(1, &["--rate", "200000"]);
    let (folder, ring) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let keep_in = ring.path().to_str().unwrap();
    let (code, messages) =
        keep(&sim, folder.path(), &["--keep", "2MB", "--keep-in", keep_in, "--duration", "3s"]);
    assert_eq!(code, Some(0), "{messages}");
    assert_eq!(files(ring.path()), <[std::path::PathBuf; 0]>::default());
    let [snapshot] = &files(folder.path())[..] else { panic!("{messages}") };
    let mut reader = nettrace::Reader::new(fs::File::open(snapshot).unwrap()).unwrap();
    let mut events = 0_u64;
    reader.for_each(|_| events += 1).unwrap();
    assert!(reader.damage().is_empty() && reader.truncated_at().is_none() && reader.loss().total() == 0);
    // More has come than the ring holds.
    let bytes = fs::metadata(snapshot).unwrap().len();
    assert!(events > 20_000 && (1_000_000..2_500_000).contains(&bytes), "{events} events, {bytes} bytes");
    let test = |condition: &str, more: &[&str]| {
        let fixed = ["rules", "test", snapshot.to_str().unwrap(), "--snapshot-on", condition];
        let output = dipc(&fixed).args(more).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(test("exit", &[]).0, Some(1), "why a whole recording ended, it does not say");
    for (condition, end) in [("exit", "exit"), ("exit and crash", "crash"), ("disconnect", "disconnect")] {
        let (code, json) = test(condition, &["--end", end, "--format", "json"]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((code, &json["met"], &json["snapshots"]), (Some(0), &1.into(), &1.into()), "{json}");
        let firing = &json["firings"][0];
        assert!(firing["snapshot"] == true && firing["time_ns"].as_i64() > Some(1_000_000), "{json}");
        assert!(firing["met_by"].is_string(), "{json}");
    }
    assert_eq!(test("disconnect", &["--end", "crash"]).0, Some(1));
}

#[test]
fn a_ring_in_files_needs_a_folder_and_room() {
    let sim = Sim::start(1, &["--rate", "1000"]);
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    let (code, messages) =
        keep(&sim, folder.path(), &["--keep", "2MB", "--keep-in", nowhere.to_str().unwrap()]);
    assert!(code == Some(2) && messages.contains("it is no folder"), "{messages}");
    let (code, messages) =
        keep(&sim, folder.path(), &["--keep", "900000GB", "--keep-in", folder.path().to_str().unwrap()]);
    assert!(code == Some(1) && messages.contains("bytes are needed"), "{messages}");
    assert!(files(folder.path()).is_empty());
}

#[test]
fn files_need_a_folder_before_anything_is_recorded() {
    let sim = Sim::start(1, &["--rate", "1000"]);
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    for mode in ["--keep", "--rotate"] {
        let (code, messages) = keep(&sim, &nowhere, &[mode, "2MB", "--duration", "2s"]);
        assert!(code == Some(1) && messages.contains("nowhere does not exist"), "{mode}: {messages}");
        assert!(!messages.contains("Process"), "{mode}: {messages}");
        let (code, messages) = keep(&sim, folder.path(), &[mode, "2MB", "--duration", "1s"]);
        assert_eq!(code, Some(0), "{mode}: {messages}");
        let files = files(folder.path());
        let [file] = &files[..] else { panic!("{mode}: {files:?}") };
        assert!(file.extension().is_some_and(|it| it == "nettrace"), "{mode}: {files:?}");
        fs::remove_file(file).unwrap();
    }
}

#[test]
fn a_provider_that_cannot_be_asked_for_is_warned_about() {
    let sim = Sim::start(1, &["--rate", "1000"]);
    let folder = tempfile::tempdir().unwrap();
    for (condition, is_warned) in [("event Nobody-*/X", true), ("event Dipc-*/X", false)] {
        let arguments = ["--keep", "2MB", "--snapshot-on", condition, "--duration", "100ms"];
        let (code, messages) = keep(&sim, folder.path(), &arguments);
        assert_eq!(code, Some(0), "{messages}");
        let warning = "provider Nobody-*: runtimes take whole names";
        assert_eq!(messages.contains(warning), is_warned, "{condition}: {messages}");
        assert_eq!(messages.contains("no patterns"), is_warned, "{condition}: {messages}");
    }
}
