//! What the runtime's own events are called and say, and which methods stacks are of.

use std::fs;

use serde_json::Value;

use crate::bad_files::recording;
use crate::program::{run, run_with_input};

/// The lines that `dipc events` prints of a recording in testdata.
fn lines(name: &str, arguments: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    fs::write(&file, recording(&format!("{name}.xz"))).unwrap();
    let path = file.to_str().unwrap();
    let arguments = ["events", path, "--format", "jsonl"].into_iter().chain(arguments.iter().copied());
    let finished = run(arguments).with_code(0);
    let text = String::from_utf8(finished.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_runtimes_events_have_names_and_fields() {
    let ticks = lines("net10-all.nettrace", &["--event", "GC/AllocationTick"]);
    assert_eq!(ticks.len(), 92);
    let first = &ticks[0];
    assert_eq!(
        (&first["name"], &first["id"], &first["opcode"]),
        (&"GC/AllocationTick".into(), &10.into(), &11.into())
    );
    let expected = serde_json::json!({
        "AllocationAmount": 106_488, "AllocationKind": "Small", "ClrInstanceID": 0, "AllocationAmount64": 106_488,
        "TypeID": 0x7f43_e98e_1498_u64, "TypeName": "System.Reflection.RuntimeMethodInfo", "HeapIndex": 0,
        "Address": 0x7f38_0d81_80b0_u64, "ObjectSize": 104,
    });
    assert_eq!(first["fields"], expected);
    let flags = &lines("net10-all.nettrace", &["--event", "Exception/Start", "--head", "1"])[0]["fields"];
    assert_eq!(
        (&flags["ExceptionFlags"], &flags["ExceptionMessage"]),
        (&"CLSCompliant".into(), &"boom".into())
    );
    let heap =
        &lines("net10-gcverbose.nettrace", &["--event", "GC/PerHeapHistory", "--head", "1"])[0]["fields"];
    let generations = heap["Values"].as_array().unwrap();
    assert_eq!((generations.len() as u64, &heap["Count"]), (5, &5.into()));
    assert!(generations[0]["SizeBefore"].is_u64(), "{heap}");
}

#[test]
fn texts_that_a_recording_describes_wrong_are_read_whole() {
    let mapping = &lines("v6-record-trace.nettrace", &["--event", "ProcessMapping", "--head", "1"])[0];
    assert_eq!(mapping["fields"]["FileName"], "vmlinux");
}

#[test]
fn stacks_have_names() {
    let samples = lines("net10-all.nettrace", &["--event", "Thread/Sample", "--head", "1", "--symbols"]);
    let stack = samples[0]["stack"].as_array().unwrap();
    assert_eq!(stack.last().unwrap(), "workload!Program.Main(class System.String[])");
    assert_eq!(samples[0]["fields"]["Type"], "External");
    let addresses = lines("net10-all.nettrace", &["--event", "Thread/Sample", "--head", "1", "--stacks"]);
    assert_eq!(addresses[0]["stack"].as_array().unwrap().len(), stack.len());
    // What has no name is its address.
    let native = lines("v6-record-trace.nettrace", &["--event", "cpu", "--head", "1", "--symbols"]);
    let stack = native[0]["stack"].as_array().unwrap();
    assert_eq!((&stack[0], &stack[3]), (&"libc.so.6!_int_malloc".into(), &"0x7f025f7d062f".into()));
}

#[test]
fn names_cannot_be_had_of_a_stream() {
    let recording = recording("net10-typed.nettrace.xz");
    let finished = run_with_input(["events", "-", "--symbols"], &recording).with_code(2);
    finished.assert_error_names(&["twice"]);
    assert!(finished.stdout.is_empty());
}
