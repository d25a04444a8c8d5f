//! Reports of made-up recordings: numbers that no real runtime gives on request.

use nettrace::SliceReader;
use nettrace_export::report::{Contention, ContentionReport, EventCounts, Jit, Startup, ThreadPool};
use nettrace_export::{Metric, Options, ProfileBuilder};
use nettrace_synth::Value;
use nettrace_synth::clr::{Kind, Method, Recording, contention_start, contention_stop};

const CONTENTION_START: u32 = 81;
const CONTENTION_STOP: u32 = 91;
const ADJUSTMENT: u32 = 55;

/// A recording of the runtime's events of thread 7: id, version, time in nanoseconds, fields.
fn recording(events: &[(u32, u32, u64, &[Value])]) -> Vec<u8> {
    let mut recording = Recording::new();
    recording.thread(7);
    for (event_id, version, time, fields) in events {
        recording.at(*time).event(Kind::runtime(*event_id, *version), fields);
    }
    recording.bytes()
}

fn contention(recording: &[u8]) -> ContentionReport {
    let mut contention = Contention::default();
    SliceReader::new(recording).unwrap().for_each(|event| contention.add(&event)).unwrap();
    contention.finish()
}

/// A wait for lock 5.
fn start() -> Vec<Value> {
    contention_start(5, 8)
}

#[test]
fn a_wait_for_a_lock_lasts_as_long_as_the_runtime_says() {
    let recording = recording(&[
        (CONTENTION_START, 2, 10_000, &start()),
        (CONTENTION_STOP, 1, 15_000, &contention_stop(2500.75)),
        // The contention began before the recording.
        (CONTENTION_STOP, 1, 20_000, &contention_stop(700.0)),
    ]);
    let report = contention(&recording);
    assert_eq!((report.waits.count, report.waits.total.as_nanos(), report.unfinished), (2, 3200, 0));
    let locks: Vec<_> =
        report.locks.iter().map(|row| (row.lock, row.waits, row.total.as_nanos(), row.threads)).collect();
    assert_eq!(locks, [(5, 1, 2500, 1), (0, 1, 700, 1)]);

    let mut builder = ProfileBuilder::new(Options::new(Metric::Contention));
    let mut events = SliceReader::new(&recording).unwrap().in_time_order();
    events.for_each(|event| builder.add(&event)).unwrap();
    let (profile, _) = builder.finish(events.events().info()).unwrap();
    assert_eq!(profile.total(), 3200);
}

/// The weights of two intervals of a live session, of which the second begins with the third event.
fn two_intervals(recording: &[u8]) -> [u64; 2] {
    let mut builder = ProfileBuilder::new(Options::new(Metric::Contention));
    let mut events = SliceReader::new(recording).unwrap().in_time_order();
    let (mut count, mut first) = (0, None);
    events
        .for_each(|event| {
            count += 1;
            if count == 3 {
                first = Some(builder.take(None).unwrap().0.total());
            }
            builder.add(&event);
        })
        .unwrap();
    let (second, _) = builder.take(None).unwrap();
    assert!(second.threads.iter().all(|thread| thread.id == 7), "{:?}", second.threads);
    [first.unwrap(), second.total()]
}

#[test]
fn a_wait_across_intervals_is_a_part_of_each() {
    const SECOND: u64 = 1_000_000_000;
    let adjustment = [Value::Double(1.0), Value::UInt32(12), Value::UInt32(8), Value::UInt16(9)];
    let measured = recording(&[
        (CONTENTION_START, 2, SECOND, &start()),
        (ADJUSTMENT, 0, 2 * SECOND, &adjustment),
        (CONTENTION_STOP, 1, 3 * SECOND, &contention_stop(2e9)),
    ]);
    assert_eq!(two_intervals(&measured), [SECOND, SECOND]);
    let not_measured = recording(&[
        (CONTENTION_START, 2, SECOND, &start()),
        (ADJUSTMENT, 0, 2 * SECOND, &adjustment),
        (CONTENTION_STOP, 0, 3 * SECOND, &contention_stop(0.0)[..2]),
    ]);
    assert_eq!(two_intervals(&not_measured), [SECOND, SECOND]);
    let endless = recording(&[
        (CONTENTION_START, 2, SECOND, &start()),
        (ADJUSTMENT, 0, 2 * SECOND, &adjustment),
        (ADJUSTMENT, 0, 4 * SECOND, &adjustment),
    ]);
    assert_eq!(two_intervals(&endless), [SECOND, 2 * SECOND]);
}

#[test]
fn a_wait_that_does_not_end_lasts_to_the_end_of_the_recording() {
    let adjustment = [Value::Double(1.0), Value::UInt32(12), Value::UInt32(8), Value::UInt16(9)];
    let recording =
        recording(&[(CONTENTION_START, 2, 10_000, &start()), (ADJUSTMENT, 0, 60_000, &adjustment)]);
    let mut builder = ProfileBuilder::new(Options::new(Metric::Contention));
    let mut events = SliceReader::new(&recording).unwrap();
    events.for_each(|event| builder.add(&event)).unwrap();
    let (profile, _) = builder.finish(events.info()).unwrap();
    assert_eq!(profile.total(), 50_000);
}

#[test]
fn a_wait_without_a_length_lasts_from_start_to_stop() {
    for impossible in [-1.0, f64::NAN, f64::INFINITY] {
        let report = contention(&recording(&[
            (CONTENTION_START, 2, 10_000, &start()),
            (CONTENTION_STOP, 1, 15_000, &contention_stop(impossible)),
            (CONTENTION_STOP, 1, 20_000, &contention_stop(impossible)),
        ]));
        assert_eq!((report.waits.count, report.waits.total.as_nanos()), (1, 5000), "{impossible}");
    }
    let old = [Value::Byte(0), Value::UInt16(9)];
    let report =
        contention(&recording(&[(CONTENTION_START, 1, 10_000, &old), (CONTENTION_STOP, 0, 15_000, &old)]));
    assert_eq!((report.waits.count, report.waits.total.as_nanos()), (1, 5000));
    let endless = contention(&recording(&[(CONTENTION_STOP, 1, 15_000, &contention_stop(f64::MAX))]));
    assert_eq!((endless.waits.count, endless.waits.total.as_nanos()), (1, u64::MAX.into()));
}

#[test]
fn threads_that_are_added_for_blocked_ones_have_a_reason() {
    let fields = [Value::Double(1.0), Value::UInt32(12), Value::UInt32(8), Value::UInt16(9)];
    let recording = recording(&[(ADJUSTMENT, 0, 10, &fields)]);
    let mut pool = ThreadPool::default();
    SliceReader::new(&recording).unwrap().for_each(|event| pool.add(&event)).unwrap();
    let report = pool.finish().unwrap();
    let reasons: Vec<_> = report.adjustments.iter().map(|row| (&*row.reason, row.most_threads)).collect();
    assert_eq!(reasons, [("CooperativeBlocking", 12)]);
}

#[test]
fn versions_of_an_event_are_counted_apart() {
    let recording = recording(&[
        (CONTENTION_STOP, 0, 10, &[]),
        (CONTENTION_STOP, 1, 20, &[]),
        (CONTENTION_STOP, 1, 30, &[]),
    ]);
    let mut counts = EventCounts::default();
    SliceReader::new(&recording).unwrap().for_each(|event| counts.add(&event)).unwrap();
    let report = counts.finish();
    let rows: Vec<_> = report
        .events
        .iter()
        .map(|row| (&*row.name, row.version, row.count, row.first.as_nanos(), row.last.as_nanos()))
        .collect();
    assert_eq!(rows, [("Contention/Stop", 1, 2, 20, 30), ("Contention/Stop", 0, 1, 10, 10)]);
}

const JITTING_STARTED: u32 = 145;
const METHOD_LOADED: u32 = 143;

fn jitting(id: u64) -> Vec<Value> {
    Method { id, ..Method::new(0x1000, "", "") }.jitting(3)
}

/// A method with flags that say that it was compiled.
fn compiled(id: u64) -> Vec<Value> {
    Method { id, size: 16, ..Method::new(0x1000, "", "") }.verbose()
}

/// The duration of compiling, in nanoseconds, as the report of methods and that of the start have it.
fn compiling(recording: &[u8]) -> (u128, u128) {
    let (mut jit, mut startup) = (Jit::default(), Startup::default());
    let mut add = |event: nettrace::Event<'_>| {
        jit.add(&event);
        startup.add(&event);
    };
    SliceReader::new(recording).unwrap().for_each(&mut add).unwrap();
    let durations = (jit.finish().duration, startup.finish().expect("methods").method_time);
    (durations.0.expect("a beginning").as_nanos(), durations.1.expect("a beginning").as_nanos())
}

/// Without the events of the beginnings nothing says how long it took.
#[test]
fn the_duration_of_compiling_may_be_unknown() {
    let recording = recording(&[(METHOD_LOADED, 1, 13_000, &compiled(4))]);
    let (mut jit, mut startup) = (Jit::default(), Startup::default());
    let mut reader = SliceReader::new(&recording).unwrap();
    reader
        .for_each(|event| {
            jit.add(&event);
            startup.add(&event);
        })
        .unwrap();
    let (jit, startup) = (jit.finish(), startup.finish().unwrap());
    assert_eq!((jit.methods, jit.duration, jit.il_bytes, jit.native_bytes), (1, None, None, 16));
    assert_eq!((jit.slowest[0].duration, jit.tiers[0].duration), (None, None));
    assert_eq!((startup.methods, startup.method_time, startup.type_time), (1, None, None));
    let json = serde_json::to_value(&jit).unwrap();
    assert!(json["duration_ns"].is_null() && json["slowest"][0]["il_bytes"].is_null(), "{json}");
}

#[test]
fn a_method_that_could_not_be_compiled_hides_no_other() {
    let recording = recording(&[
        // This one never ends, nor does a nested one.
        (JITTING_STARTED, 1, 1_000, &jitting(1)),
        (JITTING_STARTED, 1, 10_000, &jitting(2)),
        (JITTING_STARTED, 1, 11_000, &jitting(3)),
        (JITTING_STARTED, 1, 12_000, &jitting(4)),
        (METHOD_LOADED, 1, 13_000, &compiled(4)),
        (METHOD_LOADED, 1, 15_000, &compiled(2)),
        (JITTING_STARTED, 1, 20_000, &jitting(5)),
        (METHOD_LOADED, 1, 22_000, &compiled(5)),
    ]);
    assert_eq!(
        compiling(&recording),
        (5_000 + 1_000 + 2_000, 5_000 + 2_000),
        "one within another counts once"
    );
}

#[test]
fn compilations_after_many_failed_ones_have_their_duration() {
    let fields: Vec<_> = (0..200).map(jitting).collect();
    let end = compiled(199);
    let mut events: Vec<(u32, u32, u64, &[Value])> = Vec::new();
    for (time, fields) in (0..).zip(&fields) {
        events.push((JITTING_STARTED, 1, 1_000 + time, fields));
    }
    events.push((METHOD_LOADED, 1, 10_000, &end));
    assert_eq!(compiling(&recording(&events)), (8_801, 8_801));
}
