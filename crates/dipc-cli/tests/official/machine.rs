//! The recording of several processes by `dipc trace`, read by Microsoft's library.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::clients::Clients;
use crate::recording_of;
use crate::written::dipc;

/// The events of each kind by process and thread.
type Counts = BTreeMap<(String, u64, u64), u64>;

fn count(lines: &str, name_of: impl Fn(&Value) -> Option<String>) -> Counts {
    let mut counts = Counts::new();
    for line in lines.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let Some(name) = name_of(&event) else { continue };
        let key = (name, event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        *counts.entry(key).or_default() += 1;
    }
    counts
}

/// Samples, collections and processes, under one name in both.
fn kind(event: &Value) -> Option<String> {
    let name = event["name"].as_str()?;
    match event["provider"].as_str()? {
        "Universal.Events" | "Universal.System" | "Dipc-Machine" => Some(name.to_owned()),
        "Microsoft-Windows-DotNETRuntime" if name == "GC/Start" => Some(name.to_owned()),
        _ => None,
    }
}

#[test]
fn another_reader_finds_the_same_samples_of_each_process_of_a_machine() {
    let Some(clients) = Clients::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let whole = recording_of("events", "three-processes.nettrace", folder.path());
    let name = whole.file_name().unwrap().to_str().unwrap();
    let ours = count(&dipc(folder.path(), &["events", name, "--format", "jsonl"], 0), kind);
    let theirs = count(&clients.dump(&whole), kind);
    assert_eq!(ours, theirs);
    let samples = |counts: &Counts| {
        let mut by_process = BTreeMap::<u64, u64>::new();
        for ((_, pid, _), count) in counts.iter().filter(|((name, ..), _)| name == "cpu") {
            *by_process.entry(*pid).or_default() += count;
        }
        by_process
    };
    let report =
        dipc(folder.path(), &["report", name, "topN", "--by", "cpu", "--by-process", "--format", "json"], 0);
    let report: Value = serde_json::from_str(&report).unwrap();
    let rows = report["processes"].as_array().unwrap().iter();
    let reported: BTreeMap<_, _> =
        rows.map(|row| (row["pid"].as_u64().unwrap(), row["samples"].as_u64().unwrap())).collect();
    assert_eq!(samples(&theirs), reported);
    assert!(reported.len() > 2 && theirs.keys().any(|(name, ..)| name == "GC/Start"), "{theirs:?}");
    // The stacks of all are found, with the names of the methods of one of them.
    let mut with_stacks = BTreeMap::<u64, u64>::new();
    let mut has_names = false;
    for line in clients.stacks(&whole).lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        if event["name"] == "Universal.Events/cpu" {
            *with_stacks.entry(event["tid"].as_u64().unwrap()).or_default() += 1;
            let mut frames = event["frames"].as_array().unwrap().iter();
            has_names |= frames.any(|frame| frame.as_str().unwrap().contains("Spin.Hot("));
        }
    }
    let mut by_thread = BTreeMap::<u64, u64>::new();
    for ((_, _, tid), count) in ours.iter().filter(|((name, ..), _)| name == "cpu") {
        *by_thread.entry(*tid).or_default() += count;
    }
    assert_eq!(with_stacks, by_thread);
    assert!(has_names, "no method has a name");
    let stat: Value =
        serde_json::from_str(&dipc(folder.path(), &["stat", name, "--format", "json"], 0)).unwrap();
    let counted = (stat["events"].as_u64().unwrap(), stat["lost"].as_u64().unwrap());
    assert_eq!(counted, clients.count(&whole));
}
