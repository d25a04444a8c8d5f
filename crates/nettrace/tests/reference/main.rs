//! Our reading of recordings held against that of another reader, event by event.
//!
//! `testdata/reference/NAME.events.jsonl.xz` has TraceEvent's reading of `testdata/traces/NAME`: every event
//! in time order. Where the two differ, the difference has a name in [`differences`], with its reason. Where
//! `DIPC_SHARED` names the directory of the larger collection, its recordings and conformance streams are
//! read too.

mod conformance;
mod differences;
mod files;
mod line;
mod text;

use std::path::Path;

use nettrace::SliceReader;

use files::{bytes_of, shared, testdata};
use line::Line;

/// Compares a recording with the other reader's lines; says how many events were compared.
fn compare(recording: &[u8], reference: &[u8]) -> Result<usize, String> {
    let mut ours = SliceReader::new(recording).map_err(|error| error.to_string())?.in_time_order();
    let lines: Vec<Line> = reference
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).map_err(|error| error.to_string()))
        .collect::<Result<_, _>>()?;
    let mut count = 0;
    // Events of the same tick may have any order: each must equal one of those lines, and no line twice.
    for tick in lines.chunk_by(|one, other| one.time_ns() == other.time_ns()) {
        let mut expected: Vec<&Line> = tick.iter().collect();
        while let Some(first) = expected.first() {
            let Some(event) = ours.next().map_err(|error| error.to_string())? else {
                return Err(format!("event {count} is missing: {first:?}"));
            };
            let Some(found) = expected.iter().position(|line| line.equals(&event).is_ok()) else {
                let difference = first.equals(&event).unwrap_err();
                return Err(format!(
                    "event {count} at offset {}: {difference}\n  of {first:?}",
                    event.offset()
                ));
            };
            expected.remove(found);
            count += 1;
        }
    }
    match ours.next() {
        Ok(None) => {}
        Ok(Some(event)) => return Err(format!("the event at offset {} is one too many", event.offset())),
        Err(error) => return Err(error.to_string()),
    }
    match ours.damage().iter().find(|damage| damage.what != differences::AFTER_THE_END) {
        None => Ok(count),
        Some(damage) => Err(format!("damage: {damage}")),
    }
}

/// Compares every recording of a collection that has a reference.
fn compare_all(traces: &Path, references: &Path) -> usize {
    let mut compared = 0;
    let mut failures = Vec::new();
    for entry in std::fs::read_dir(references).expect("a directory") {
        let reference = entry.expect("an entry").path();
        let file_name = reference.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(name) = file_name.strip_suffix(".events.jsonl.xz") else { continue };
        let recording = ["nettrace.xz", "netperf.xz", "nettrace", "netperf"]
            .map(|extension| traces.join(format!("{name}.{extension}")))
            .into_iter()
            .find(|path| path.exists())
            .unwrap_or_else(|| panic!("{name}: a reference without a recording"));
        match compare(&bytes_of(&recording), &bytes_of(&reference)) {
            Ok(events) => println!("{name}: {events} events equal"),
            Err(difference) => failures.push(format!("{name}: {difference}")),
        }
        compared += 1;
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    compared
}

#[test]
fn recordings_read_as_the_other_reader_reads_them() {
    let testdata = testdata();
    assert!(
        compare_all(&testdata.join("traces"), &testdata.join("reference")) >= 4,
        "references are missing"
    );
}

#[test]
fn recordings_of_the_larger_collection() {
    let Some(shared) = shared() else { return };
    let traces = shared.join("traces");
    assert!(compare_all(&traces.join("real"), &traces.join("reference")) >= 17, "references are missing");
}

#[test]
fn conformance_streams_of_the_larger_collection() {
    let Some(shared) = shared() else { return };
    conformance::run(&shared.join("traces/third-party/traceevent-conformance.tar.xz"));
}
