//! Recordings of several processes, as `dipc merge` writes them: facts about one process do not apply to
//! another.

#[allow(dead_code, reason = "another test uses the rest")]
mod recording;

use std::time::Duration;

use clr_counters::{Aspect, Counters, Selection};
use nettrace_synth::Value;
use recording::{METRICS, Recording, instrument, text};

/// A sample: process, name, interval in milliseconds, and rate.
type Row = (Option<u64>, String, Option<u128>, Option<f64>);

/// The samples of a recording.
fn samples(recording: &Recording) -> Vec<Row> {
    let bytes = recording.bytes();
    let mut counters = Counters::new(Selection::everything());
    let mut seen = Vec::new();
    let mut emit = |sample: clr_counters::Sample<'_>| {
        let interval = sample.interval.as_ref().map(Duration::as_millis);
        let rate = sample.number(Aspect::Rate);
        seen.push((sample.series.process_id, sample.series.name.clone(), interval, rate));
    };
    let mut events = nettrace::Reader::new(&*bytes).unwrap().in_time_order();
    while let Some(event) = events.next().unwrap() {
        counters.add(&event, &mut emit);
    }
    counters.finish(&mut emit);
    seen
}

/// The processes and names of the samples.
fn names(recording: &Recording) -> Vec<(u64, String)> {
    samples(recording).into_iter().map(|(process, name, ..)| (process.unwrap(), name)).collect()
}

/// Begins an interval of this length in a session of Meters. Its times are numbers: V6 has no type for them.
fn interval(recording: Recording, millis: i64, session: &str, length: i64) -> Recording {
    let time = |millis: i64| Value::Int64(133_000_000_000_000_000 + millis * 10_000);
    recording.event(
        millis,
        METRICS,
        2,
        "CollectionStart",
        &[
            ("sessionId", text(session)),
            ("intervalStartTime", time(millis)),
            ("intervalEndTime", time(millis + length)),
        ],
    )
}

/// A counter's value in a session of Meters.
fn value(recording: Recording, millis: i64, session: &str, name: &str) -> Recording {
    let mut fields = instrument("M", name, "");
    fields[0] = ("sessionId", text(session));
    fields.extend([("rate", text("10")), ("value", text("10"))]);
    recording.event(millis, METRICS, 4, "CounterRateValuePublished", &fields)
}

#[test]
fn a_meter_of_one_process_leaves_the_event_counters_of_another() {
    let recording = Recording::of_processes(&[1, 2])
        .process(1)
        .total(10, "System.Runtime", "dotnet.gc.collections", "", "1")
        .counter(15, "System.Runtime", "gc-count", 9.0)
        .process(2)
        .counter(20, "System.Runtime", "gc-count", 1.0)
        .counter(1520, "System.Runtime", "gc-count", 2.0);
    assert_eq!(
        names(&recording),
        [(1, "dotnet.gc.collections".into()), (2, "gc-count".into()), (2, "gc-count".into())]
    );
}

/// The value waits for a Meter of its own process.
#[test]
fn a_value_that_waits_is_dropped_for_a_meter_of_its_process_only() {
    let recording = Recording::of_processes(&[1, 2])
        .process(2)
        .counter(10, "System.Runtime", "gc-count", 1.0)
        .process(1)
        .counter(15, "System.Runtime", "gc-count", 9.0)
        .total(20, "System.Runtime", "dotnet.gc.collections", "", "1");
    assert_eq!(names(&recording), [(1, "dotnet.gc.collections".into()), (2, "gc-count".into())]);
}

#[test]
fn rates_are_over_the_interval_of_their_own_process_and_session() {
    let mut recording = Recording::of_processes(&[1, 2]).process(1);
    recording = interval(recording, 0, "a", 1000);
    recording = interval(recording, 0, "b", 2000);
    recording = interval(recording.process(2), 1, "a", 5000);
    recording = value(recording.process(1), 2, "a", "of-a");
    recording = value(recording, 3, "b", "of-b");
    recording = value(recording.process(2), 4, "a", "of-a");
    recording = value(recording, 5, "b", "of-b");
    let sample = |process, name: &str, interval, rate| (Some(process), name.to_owned(), interval, rate);
    assert_eq!(
        samples(&recording),
        [
            sample(1, "of-a", Some(1000), Some(10.0)),
            sample(1, "of-b", Some(2000), Some(5.0)),
            sample(2, "of-a", Some(5000), Some(2.0)),
            // No interval of its session is known.
            sample(2, "of-b", None, None),
        ]
    );
}
