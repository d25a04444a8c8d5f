//! The content of the runtime's events, compared with another reader's.
//!
//! `testdata/reference/NAME.events.jsonl.xz` has TraceEvent's reading of `testdata/traces/NAME`, with the
//! value of every field as text; `NAME.stacks.jsonl.xz` has the stacks with names. Where the two readings
//! differ, the difference has a name in [`differences`], with its reason. Where `DIPC_SHARED` names the
//! directory of the larger collection, its recordings are read too.

mod differences;
mod fields;
#[path = "../../../nettrace/tests/reference/files.rs"]
mod files;
mod names;
mod stacks;

use std::path::Path;

use files::{bytes_of, shared, testdata};

/// Every recording of a collection that has a reference of that kind: name, recording, reference.
fn pairs(traces: &Path, references: &Path, kind: &str) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let mut pairs = Vec::new();
    for entry in std::fs::read_dir(references).expect("a directory") {
        let reference = entry.expect("an entry").path();
        let file_name = reference.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(name) = file_name.strip_suffix(kind) else { continue };
        let recording = ["nettrace.xz", "netperf.xz", "nettrace", "netperf"]
            .map(|extension| traces.join(format!("{name}.{extension}")))
            .into_iter()
            .find(|path| path.exists())
            .unwrap_or_else(|| panic!("{name}: a reference without a recording"));
        pairs.push((name.to_owned(), bytes_of(&recording), bytes_of(&reference)));
    }
    pairs
}

/// The numbers of equal fields and of events with equal names.
fn fields_of_all(traces: &Path, references: &Path) -> (u64, u64) {
    let mut failures = Vec::new();
    let mut all = (0, 0);
    for (name, recording, reference) in pairs(traces, references, ".events.jsonl.xz") {
        match fields::compare(&recording, &reference) {
            Ok(tally) => {
                println!("{name}: {tally}");
                all.0 += tally.equal;
                all.1 += tally.named;
            }
            Err(difference) => failures.push(format!("{name}: {difference}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    all
}

#[test]
fn fields_match_the_other_reader() {
    let testdata = testdata();
    let (fields, names) = fields_of_all(&testdata.join("traces"), &testdata.join("reference"));
    assert!(fields > 10_000 && names > 30_000, "references are missing: {fields} fields, {names} names");
}

#[test]
fn fields_of_the_larger_collection() {
    let Some(shared) = shared() else { return };
    let traces = shared.join("traces");
    let (fields, names) = fields_of_all(&traces.join("real"), &traces.join("reference"));
    assert!(fields > 100_000 && names > 100_000, "references are missing: {fields} fields, {names} names");
}

fn stacks_of_all(traces: &Path, references: &Path) -> u64 {
    let mut all = 0;
    for (name, recording, reference) in pairs(traces, references, ".stacks.jsonl.xz") {
        let tally = stacks::compare(&recording, &reference).unwrap_or_else(|why| panic!("{name}: {why}"));
        println!("{name}: {tally}");
        all += tally.stacks;
    }
    all
}

#[test]
fn stacks_match_the_other_reader() {
    let testdata = testdata();
    let stacks = stacks_of_all(&testdata.join("traces"), &testdata.join("reference"));
    assert!(stacks > 10_000, "references are missing: {stacks} stacks compared");
}

#[test]
fn stacks_of_the_larger_collection() {
    let Some(shared) = shared() else { return };
    let traces = shared.join("traces");
    let stacks = stacks_of_all(&traces.join("real"), &traces.join("reference"));
    assert!(stacks > 40_000, "references are missing: {stacks} stacks compared");
}
