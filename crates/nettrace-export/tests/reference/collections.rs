//! Collections, worked out from another reader's lines of text.

use std::path::Path;

use nettrace::SliceReader;
use nettrace_export::report::{Collections, GcReport};
use serde_json::Value;

use crate::{bytes_of, shared, testdata};

fn report_of(recording: &[u8]) -> GcReport {
    let mut collections = Collections::default();
    let mut events = SliceReader::new(recording).expect("a recording").in_time_order();
    events.for_each(|event| collections.add(&event)).expect("bytes in memory");
    collections.finish()
}

/// The other reader's events about the collector, in time order: name, time in ms, fields.
fn lines_of(reference: &[u8]) -> Vec<(String, f64, Value)> {
    let lines = reference.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice::<Value>(line).expect("JSON"))
        .filter(|line| line["provider"] == "Microsoft-Windows-DotNETRuntime")
        .map(|line| {
            let time = line["time_ms"].as_f64().unwrap();
            (line["name"].as_str().unwrap().to_owned(), time, line["fields"].clone())
        })
        .collect()
}

fn number(fields: &Value, name: &str) -> u64 {
    fields[name].as_str().unwrap_or_else(|| panic!("no {name} in {fields}")).replace(',', "").parse().unwrap()
}

#[test]
fn collections_are_those_of_another_readers_events() {
    compare(&testdata().join("traces"), &testdata().join("reference"), &["net10-gcverbose", "net10-all"]);
}

#[test]
fn collections_of_the_larger_collection() {
    let Some(shared) = shared() else { return };
    let traces = shared.join("traces");
    compare(&traces.join("real"), &traces.join("reference"), &["net8-gcverbose", "net8-all"]);
}

fn compare(traces: &Path, references: &Path, names: &[&str]) {
    for name in names {
        let report = report_of(&bytes_of(&traces.join(format!("{name}.nettrace.xz"))));
        let lines = lines_of(&bytes_of(&references.join(format!("{name}.events.jsonl.xz"))));
        let mut pauses = 0.0;
        let mut count = 0;
        for (index, (_, start, fields)) in lines.iter().enumerate().filter(|(_, line)| line.0 == "GC/Start") {
            let ours = &report.collections[count];
            count += 1;
            // None of these recordings has a collection in the background: each has one pause around it.
            let before = lines[..index].iter().rev();
            let suspended =
                before.clone().find(|line| line.0 == "GC/SuspendEEStart").expect("a suspension").1;
            let after = &lines[index..];
            let next = |wanted: &str| {
                after.iter().find(|line| line.0 == wanted).unwrap_or_else(|| panic!("no {wanted}"))
            };
            let pause = next("GC/RestartEEStop").1 - suspended;
            pauses += pause;
            let stats = &next("GC/HeapStats").2;
            assert_eq!(u64::from(ours.number), number(fields, "Count"), "{name}");
            assert_eq!(u64::from(ours.generation), number(fields, "Depth"), "{name}");
            assert_eq!(ours.reason, fields["Reason"].as_str().unwrap(), "{name}");
            assert_eq!(format!("{}GC", ours.kind), fields["Type"].as_str().unwrap(), "{name}");
            assert_eq!(ours.after_bytes, Some(number(stats, "TotalHeapSize")), "{name}");
            assert_eq!(ours.promoted_bytes, Some(number(stats, "TotalPromoted")), "{name}");
            assert_eq!(ours.generations_bytes.unwrap()[1], number(stats, "GenerationSize1"), "{name}");
            // Theirs are milliseconds with six digits.
            #[allow(clippy::cast_precision_loss, reason = "nanoseconds of a short recording")]
            let same = |ours: u64, theirs: f64| (ours as f64 / 1e6 - theirs).abs() < 2e-6;
            assert!(same(ours.pause_ns, pause), "{name}: {} for {pause}", ours.pause_ns);
            assert!(same(ours.start_ns.unsigned_abs(), *start), "{name}");
            assert!(same(ours.duration_ns.unwrap(), next("GC/Stop").1 - start), "{name}");
            assert!(ours.before_bytes.unwrap() >= ours.promoted_bytes.unwrap(), "{name}");
        }
        assert_eq!(report.collections.len(), count, "{name}");
        assert!(count >= 3, "{name}");
        println!("{name}: {count} collections equal, {pauses:.6} ms paused");
    }
}

#[test]
fn collections_that_were_asked_for() {
    // `gc 0 2` and `gc 2 1` were among the commands of the recording; the collector may collect more than it is asked for.
    let report = report_of(&bytes_of(&testdata().join("traces/net10-all.nettrace.xz")));
    let mut induced: Vec<_> = report.collections.iter().filter(|done| done.reason == "Induced").collect();
    induced.sort_by_key(|done| done.generation);
    assert_eq!((induced.len(), induced[2].generation), (3, 2));
    let all = report.generations.last().expect("a row for all");
    assert_eq!(all.collections, report.collections.len() as u64);
    assert_eq!(all.pauses.total_ns, report.collections.iter().map(|done| done.pause_ns).sum::<u64>());
}
