//! Names and fields of the runtime's own events, and methods of stacks.

use std::fs;

use serde_json::Value;

use crate::bad_files::recording;
use crate::program::{run, run_with_input};
use crate::runtime::testdata;

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
fn events_that_the_collector_defines_have_names_and_fields() {
    let usage = lines("net10-all.nettrace", &["--event", "GC/CommittedUsage"]);
    assert_eq!(usage.len(), 6);
    assert_eq!((&usage[0]["name"], &usage[0]["id"]), (&"GC/CommittedUsage".into(), &39.into()));
    let expected = serde_json::json!({
        "Version": 1, "TotalCommittedInUse": 1_331_200, "TotalCommittedInGlobalDecommit": 0,
        "TotalCommittedInFree": 4096, "TotalCommittedInGlobalFree": 0, "TotalBookkeepingCommitted": 229_376,
        "ClrInstanceID": 0,
    });
    assert_eq!(usage[0]["fields"], expected);
}

#[test]
fn events_that_other_tools_have_no_name_for_are_found_by_name_and_number() {
    for name in ["GC/IncreaseMemoryPressure", "EventID(200)", "200"] {
        let found = lines("net10-all.nettrace", &["--event", name]);
        assert_eq!((found.len(), &found[0]["name"]), (12, &"GC/IncreaseMemoryPressure".into()), "{name}");
    }
}

#[test]
fn opcodes_missing_in_a_recording_are_derived_from_names() {
    let starts = lines("net10-netperf.netperf", &["--event", "Request/Start"]);
    assert_eq!(starts.len(), 10);
    assert!(starts.iter().all(|event| event["name"] == "Request/Start" && event["opcode"] == 1));
}

/// Provider, id, version, name and number of events, by that order.
fn kinds(rows: &Value, count: &str) -> Vec<[String; 5]> {
    let kind = |row: &Value| ["provider", "id", "version", "name", count].map(|cell| row[cell].to_string());
    let mut kinds: Vec<_> = rows.as_array().unwrap().iter().map(kind).collect();
    kinds.sort();
    kinds
}

#[test]
fn all_commands_count_the_same_events_under_the_same_names() {
    let folder = tempfile::tempdir().unwrap();
    let mut count = 0;
    for entry in fs::read_dir(testdata().join("traces")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(stem) = name.strip_suffix(".xz") else { continue };
        let file = folder.path().join(stem);
        fs::write(&file, recording(&name)).unwrap();
        let json = |arguments: &[&str]| {
            let fixed = [arguments, &["--format", "json"]].concat();
            run(fixed).with_code(0).json()
        };
        let path = file.to_str().unwrap();
        let (stat, report) = (json(&["stat", path]), json(&["report", path, "events"]));
        assert_eq!(kinds(&stat["types"], "events"), kinds(&report["events"], "count"), "{name}");
        count += 1;
    }
    assert!(count >= 10, "{count} recordings");
}

#[test]
fn reads_wrongly_described_strings_in_full() {
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
    // Frames without a name are shown as addresses.
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
