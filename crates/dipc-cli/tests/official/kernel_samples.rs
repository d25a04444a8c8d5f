//! The kernel's samples of `dipc trace --cpu`, read by Microsoft's library.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::clients::Clients;
use crate::recording;
use crate::written::dipc;

/// A sample: its thread, its time in nanoseconds, and its frames, leaf first.
type Sample = (u64, u64, Vec<String>);

/// Periods of a thread do not overlap: one that was sampled early begins when the one before ends.
const EARLY_NS: u64 = 100_000;

/// Modules are files: the library has their names as they are loaded, or in small letters.
fn frame(name: &str) -> String {
    let (module, name) = name.split_once('!').unwrap();
    format!("{}!{}", module.to_lowercase(), if name.is_empty() { "?" } else { name })
}

#[test]
fn another_reader_finds_the_same_stacks_in_the_kernels_samples() {
    let Some(clients) = Clients::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let whole = recording("net9-kernel.nettrace", folder.path());
    let mut theirs: Vec<Sample> = Vec::new();
    for line in clients.stacks(&whole).lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        if event["name"] != "Universal.Events/cpu" {
            continue;
        }
        let frames = event["frames"].as_array().unwrap().iter();
        // The address follows.
        let frames = frames.map(|it| frame(it.as_str().unwrap().rsplit_once('@').unwrap().0));
        let time = Duration::from_secs_f64(event["time_ms"].as_f64().unwrap() / 1e3);
        let time = u64::try_from(time.as_nanos()).unwrap();
        let mut frames: Vec<String> = frames.collect();
        // Functions without a name that follow each other are one frame here.
        frames.dedup_by(|caller, called| caller == called && called.ends_with("!?"));
        theirs.push((event["tid"].as_u64().unwrap(), time, frames));
    }
    let name = whole.file_name().unwrap().to_str().unwrap();
    let arguments = ["convert", name, "-f", "csv", "--by", "cpu", "--names", "full", "-o", "-"];
    let rows = dipc(folder.path(), &arguments, 0);
    let mut ours: Vec<Sample> = Vec::new();
    for row in rows.lines().skip(1) {
        // time_ns,duration_ns,samples,pid,tid,"stack"
        let (numbers, stack) = row.split_once(",\"").unwrap();
        let numbers: Vec<u64> = numbers.split(',').map(|number| number.parse().unwrap()).collect();
        let stack = stack.strip_suffix('"').unwrap();
        ours.push((numbers[4], numbers[0] + numbers[1], stack.split(';').rev().map(frame).collect()));
    }
    theirs.sort();
    ours.sort();
    assert_eq!(ours.len(), theirs.len());
    for (our, their) in ours.iter().zip(&theirs) {
        assert_eq!((our.0, &our.2), (their.0, &their.2));
        assert!(our.1.abs_diff(their.1) < EARLY_NS, "{our:?} {their:?}");
    }
    // So are the methods with the most samples.
    let report =
        dipc(folder.path(), &["report", name, "topN", "-n", "1000", "--by", "cpu", "--format", "json"], 0);
    let report: Value = serde_json::from_str(&report).unwrap();
    let mut leaves = BTreeMap::<String, u64>::new();
    for (_, _, frames) in &theirs {
        *leaves.entry(frames[0].clone()).or_default() += 1_000_000;
    }
    let rows = report["rows"].as_array().unwrap().iter();
    let rows = rows.map(|row| (frame(row["frame"].as_str().unwrap()), row["exclusive"].as_u64().unwrap()));
    let exclusive: BTreeMap<_, _> = rows.filter(|(_, exclusive)| *exclusive > 0).collect();
    assert_eq!(exclusive, leaves);
    let stat: Value =
        serde_json::from_str(&dipc(folder.path(), &["stat", name, "--format", "json"], 0)).unwrap();
    let counted = (stat["events"].as_u64().unwrap(), stat["lost"].as_u64().unwrap());
    assert_eq!(counted, clients.count(&whole));
}
