//! Collections, worked out from another reader's lines of text.

use std::path::Path;
use std::time::Duration;

use nettrace::SliceReader;
use nettrace_export::report::{Collections, GcReport};
use nettrace_export::{Metric, Options};
use serde_json::Value;

use crate::{bytes_of, profile_of, shared, testdata};

fn report_of(recording: &[u8]) -> GcReport {
    let mut collections = Collections::default();
    let mut events = SliceReader::new(recording).expect("a recording").in_time_order();
    events.for_each(|event| collections.add(&event)).expect("bytes in memory");
    collections.finish()
}

fn nanoseconds(count: i64) -> Duration {
    Duration::from_nanos(count.unsigned_abs())
}

/// The other reader's content of an event about the collector.
struct Line {
    name: String,
    thread: u64,
    /// In nanoseconds; theirs are milliseconds with six digits.
    time: i64,
    fields: Value,
}

impl Line {
    fn text(&self, field: &str) -> &str {
        self.fields[field].as_str().unwrap_or_else(|| panic!("no {field} in {}", self.fields))
    }

    fn number(&self, field: &str) -> u64 {
        self.text(field).replace(',', "").parse().unwrap()
    }
}

/// The lines of the reference, in time order.
fn lines_of(reference: &[u8]) -> Vec<Line> {
    let lines = reference.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut lines: Vec<_> = lines
        .map(|line| serde_json::from_slice::<Value>(line).expect("JSON"))
        .filter(|line| line["provider"] == "Microsoft-Windows-DotNETRuntime")
        .map(|line| Line {
            name: line["name"].as_str().unwrap().to_owned(),
            thread: line["tid"].as_u64().unwrap(),
            #[allow(clippy::cast_possible_truncation, reason = "nanoseconds of a short recording")]
            time: (line["time_ms"].as_f64().unwrap() * 1e6).round() as i64,
            fields: line["fields"].clone(),
        })
        .collect();
    lines.sort_by_key(|line| line.time);
    lines
}

/// The times for which the collector stopped all threads: from, to, and when they stood still.
///
/// A requesting thread waits until another's suspension has ended, which is not its own time.
fn pauses_of(lines: &[Line]) -> Vec<(i64, i64, i64)> {
    let asked = lines.iter().enumerate().filter(|(_, line)| line.name == "GC/SuspendEEStart");
    let ends: Vec<_> = lines.iter().filter(|line| line.name == "GC/RestartEEStop").collect();
    let mut pauses = Vec::new();
    for (index, start) in asked.filter(|(_, line)| line.text("Reason") != "SuspendOther") {
        let after = |name: &str| {
            let own = |line: &&Line| line.name == name && line.thread == start.thread;
            lines[index..].iter().find(own).expect("its end").time
        };
        let (stopped, end) = (after("GC/SuspendEEStop"), after("GC/RestartEEStop"));
        let waited = ends.iter().map(|line| line.time).filter(|at| (start.time..stopped).contains(at)).max();
        pauses.push((waited.unwrap_or(start.time), end, stopped));
    }
    pauses
}

/// How long and how often each collection paused the program, and how long that took to begin, with these
/// definitions: a pause belongs to the first collection that begins in it, or else to the one that goes on
/// meanwhile; other collections that begin in it count their own part of it, from their beginning to their
/// end.
fn paused(lines: &[Line], collections: &[(i64, i64)]) -> Vec<(i64, u32, i64)> {
    let mut paused = vec![(0, 0, 0); collections.len()];
    for (start, end, stopped) in pauses_of(lines) {
        let place = |(_, it): &(usize, &(i64, i64))| (start..=end).contains(&it.0);
        let inside: Vec<_> = collections.iter().enumerate().filter(place).map(|(index, _)| index).collect();
        let mut rest = end - start;
        for index in inside.iter().skip(1) {
            let took = collections[*index].1.min(end) - collections[*index].0;
            paused[*index].0 += took;
            paused[*index].1 += 1;
            rest -= took;
        }
        let around = || collections.iter().rposition(|(began, ended)| *began < start && *ended > end);
        let owner = inside.first().copied().or_else(around).expect("a collection that it is for");
        paused[owner].0 += rest;
        paused[owner].1 += 1;
        paused[owner].2 += stopped - start;
    }
    paused
}

#[test]
fn collections_match_another_reader() {
    compare(
        &testdata().join("traces"),
        &testdata().join("reference"),
        &["net10-gcverbose", "net10-all", "net9-background"],
    );
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
        let starts: Vec<_> = lines.iter().enumerate().filter(|(_, line)| line.name == "GC/Start").collect();
        let stops: Vec<_> = starts
            .iter()
            .map(|(index, start)| {
                let is_its =
                    |line: &Line| line.name == "GC/Stop" && line.number("Count") == start.number("Count");
                index + lines[*index..].iter().position(is_its).expect("its end")
            })
            .collect();
        let times: Vec<_> =
            starts.iter().zip(&stops).map(|((_, start), stop)| (start.time, lines[*stop].time)).collect();
        let paused = paused(&lines, &times);
        assert_eq!(report.collections.len(), starts.len(), "{name}");
        assert!(starts.len() >= 3, "{name}");
        for (index, ours) in report.collections.iter().enumerate() {
            let (_, start) = starts[index];
            let which = format!("{name}: collection {}", ours.number);
            let sizes = lines[stops[index]..].iter().find(|line| line.name == "GC/HeapStats").expect("sizes");
            assert_eq!(u64::from(ours.number), start.number("Count"), "{name}");
            assert_eq!(u64::from(ours.generation), start.number("Depth"), "{which}");
            assert_eq!(ours.reason, start.text("Reason"), "{which}");
            assert_eq!(format!("{}GC", ours.kind), start.text("Type"), "{which}");
            assert_eq!(ours.after_bytes, Some(sizes.number("TotalHeapSize")), "{which}");
            assert_eq!(ours.promoted_bytes, Some(sizes.number("TotalPromoted")), "{which}");
            assert_eq!(ours.generations_bytes.unwrap()[1], sizes.number("GenerationSize1"), "{which}");
            assert!(ours.before_bytes.unwrap() >= ours.promoted_bytes.unwrap(), "{which}");
            let near = |ours: Duration, theirs: i64| ours.abs_diff(nanoseconds(theirs)) <= nanoseconds(2);
            let (pause, times_paused, stopping) = paused[index];
            assert!(near(ours.start.since_start(), start.time), "{which}");
            assert!(near(ours.duration.unwrap(), times[index].1 - times[index].0), "{which}");
            assert!(near(ours.pause.unwrap(), pause), "{which}: {:?} for {pause} ns", ours.pause);
            assert!(near(ours.suspend, stopping), "{which}: {:?} for {stopping} ns", ours.suspend);
            assert_eq!(ours.pauses, times_paused, "{which}");
        }
        let mut their_pauses = pauses_of(&lines);
        their_pauses.sort_by_key(|(_, end, _)| *end);
        assert_eq!(report.pause_list.len(), their_pauses.len(), "{name}");
        for (ours, (start, end, stopped)) in report.pause_list.iter().zip(their_pauses) {
            let near = |ours: Duration, theirs: i64| ours.abs_diff(nanoseconds(theirs)) <= nanoseconds(2);
            assert!(near(ours.start.since_start(), start), "{name}: {ours:?} for {start}");
            assert!(near(ours.duration, end - start), "{name}: {ours:?} for {} ns", end - start);
            assert!(near(ours.suspend, stopped - start), "{name}: {ours:?} for {} ns", stopped - start);
            let number = ours.collection.expect("a collection that it is for");
            let owner = report.collections.iter().find(|collection| collection.number == number);
            assert!(owner.is_some_and(|owner| owner.pauses > 0 && owner.suspend >= ours.suspend), "{name}");
        }
        let total: i64 = pauses_of(&lines).iter().map(|(start, end, _)| end - start).sum();
        assert!(report.pauses.total.abs_diff(nanoseconds(total)) < Duration::from_micros(1), "{name}");
        println!(
            "{name}: {} collections equal, {} ns paused in {}",
            starts.len(),
            total,
            report.pauses.count
        );
    }
}

/// The sampler stops all threads between the collector's request and its turn, and collections begin within
/// others.
#[test]
fn collections_in_the_background() {
    let report = report_of(&bytes_of(&testdata().join("traces/net9-background.nettrace.xz")));
    let of = |kind: &str| report.collections.iter().filter(|done| done.kind == kind).collect::<Vec<_>>();
    let background = of("Background");
    assert_eq!((background.len(), of("Foreground").len(), report.collections.len()), (3, 3, 51));
    for done in background {
        // The first was begun as one and then done at once, before the runtime had a thread for it.
        let is_first = done.number == 6;
        assert_eq!(done.pauses, if is_first { 1 } else { 2 });
        assert_eq!(done.pause.unwrap() > done.duration.unwrap(), is_first);
    }
    let sum: Duration = report.collections.iter().filter_map(|done| done.pause).sum();
    assert_eq!(sum, report.pauses.total);
    let recording = bytes_of(&testdata().join("traces/net9-background.nettrace.xz"));
    assert_eq!(u128::from(profile_of(&recording, Options::new(Metric::Gc)).total()), sum.as_nanos());
}

#[test]
fn collections_that_were_asked_for() {
    // `gc 0 2` and `gc 2 1` were among the commands of the recording; the collector may collect more than it
    // is asked for.
    let report = report_of(&bytes_of(&testdata().join("traces/net10-all.nettrace.xz")));
    let mut induced: Vec<_> = report.collections.iter().filter(|done| done.reason == "Induced").collect();
    induced.sort_by_key(|done| done.generation);
    assert_eq!((induced.len(), induced[2].generation), (3, 2));
    let all = report.generations.last().expect("a row for all");
    assert_eq!(all.collections, report.collections.len() as u64);
    assert_eq!(all.pauses.total, report.collections.iter().filter_map(|done| done.pause).sum());
}
