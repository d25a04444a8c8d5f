//! The user's methods that led to allocations, exceptions, collections and waits for locks.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use nettrace_synth::clr::{Method, Recording};
use serde_json::Value;

use crate::{dipc, json, printed, recording};

/// Returns the output of a report for a recording on standard input.
fn piped(file: &Path, report: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_dipc"))
        .args([&["report", "-"], report].concat())
        .stdin(File::open(file).unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// A standard input that is a pipe to the program, however it is given.
fn from_pipe(file: &Path, report: &[&str]) -> Value {
    serde_json::from_slice(&piped(file, &[report, &["--format", "json"]].concat())).unwrap()
}

#[test]
fn callers_are_named_from_a_pipe_as_from_a_file() {
    let (folder, file) = recording("net10-all.nettrace");
    for (report, list, caller) in [
        ("alloc", "types", "workload!Program.Run(string[])"),
        ("exceptions", "types", "workload!Program.Run.AnonymousMethod__8_6()"),
        ("contention", "locks", "workload!Program.Run.AnonymousMethod__8_7()"),
    ] {
        let of_file = json(folder.path(), &["report", file.to_str().unwrap(), report, "--format", "json"]);
        let rows = of_file[list].as_array().unwrap();
        assert!(rows.iter().any(|row| row["from"]["csharp"] == caller), "{of_file:#}");
        assert_eq!(from_pipe(&file, &[report]), of_file, "{report}");
    }
}

/// The methods are named at the end, outside of the part.
#[test]
fn callers_of_a_part_are_named() {
    let (folder, file) = recording("net10-all.nettrace");
    let command = ["report", file.to_str().unwrap(), "contention", "--from", "20ms", "--to", "50ms"];
    let text = printed(folder.path(), &command);
    assert!(text.lines().nth(1).unwrap().ends_with("Program.Run"), "{text}");
}

#[test]
fn explains_addresses_of_locks() {
    let (folder, file) = recording("net10-all.nettrace");
    let text = printed(folder.path(), &["report", file.to_str().unwrap(), "contention"]);
    assert_eq!(
        text.matches("Recordings lack the types of locks: dipc locks shows them").count(),
        1,
        "{text}"
    );
}

#[test]
fn callers_of_collections_are_in_json() {
    let mut recording = Recording::new();
    recording.stacks(&[&[0x1008]]).thread(7).method(&Method::new(0x1000, "P", "Collect"));
    recording.at(2_000_000).suspend_begin(1).on(1).suspend_end();
    // Number 1 of generation 0, induced.
    recording.at(3_000_000).gc_start(1, 0, 1).at(4_000_000).gc_end(1, 0).at(5_000_000).restart_end();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.nettrace");
    std::fs::write(&file, recording.bytes()).unwrap();
    let report = ["report", "x.nettrace", "gc", "--user-code", "P."];
    let answer = json(folder.path(), &[&report[..], &["--format", "json"]].concat());
    let cause = &answer["caused_by"][0];
    assert_eq!(cause["collections"], "GC generation 0 (Induced)", "{answer:#}");
    assert_eq!(
        (&cause["from"]["csharp"], &cause["from"]["weight"]),
        (&"?!P.Collect()".into(), &3_000_000.into())
    );
    assert_eq!(from_pipe(&file, &report[2..])["caused_by"], answer["caused_by"]);
    let text = String::from_utf8(dipc(folder.path(), &report).stdout).unwrap();
    assert!(text.contains("3.00 ms  GC generation 0 (Induced)  P.Collect\n"), "{text}");
}
