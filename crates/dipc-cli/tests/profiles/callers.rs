//! The user's methods that led to allocations, exceptions, collections and waits for locks.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use nettrace_synth::nettrace::Trace;
use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader, Value as Field, payload, stack_bytes};
use serde_json::Value;

use crate::{dipc, json, method_and_sample, method_load, printed, recording};

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
    const START: u32 = 3;
    const SUSPEND: u32 = 4;
    const RESTART: u32 = 5;
    const STOP: u32 = 6;
    const STOPPED: u32 = 7;
    let mut trace =
        Trace::new(&TraceHeader { frequency: 1_000_000_000, sync_ticks: 0, ..TraceHeader::default() });
    let kind = |id, event_id, version| Metadata {
        id,
        provider: "Microsoft-Windows-DotNETRuntime".into(),
        event_id,
        version,
        ..Metadata::default()
    };
    let [method, _] = method_and_sample();
    trace.metadata_block(&[
        method,
        kind(START, 1, 1),
        kind(SUSPEND, 9, 1),
        kind(RESTART, 3, 1),
        kind(STOP, 2, 1),
        kind(STOPPED, 8, 1),
    ]);
    trace.stack_block(1, &[stack_bytes(&[0x1008], 8)]);
    // Number 1 of generation 0, induced.
    let start =
        payload(&[1, 0, 1, 0].map(Field::UInt32).into_iter().chain([Field::UInt16(9)]).collect::<Vec<_>>());
    let stop = payload(&[Field::UInt32(1), Field::UInt32(0), Field::UInt16(9)]);
    let suspend = payload(&[Field::UInt32(1), Field::UInt32(1), Field::UInt16(9)]);
    let restart = payload(&[Field::UInt16(9)]);
    let mut block = EventBlock::v4();
    for (number, (metadata_id, ms, payload)) in (1..).zip([
        (1, 0, method_load(0x1000, "P", "Collect", "void  ()")),
        (SUSPEND, 2, suspend),
        (STOPPED, 2, restart.clone()),
        (START, 3, start),
        (STOP, 4, stop),
        (RESTART, 5, restart),
    ]) {
        block.event(&Event {
            metadata_id,
            sequence: number,
            thread: 7,
            capture_thread: 7,
            stack_id: u32::from(metadata_id == SUSPEND),
            timestamp: ms * 1_000_000,
            payload,
            ..Event::default()
        });
    }
    trace.event_block(&block);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.nettrace");
    std::fs::write(&file, trace.finish()).unwrap();
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
