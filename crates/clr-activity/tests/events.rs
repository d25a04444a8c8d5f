//! Pauses in synthetic recordings.

use std::time::Duration;

use clr_activity::Pauses;
use nettrace::RelativeTime;
use nettrace_synth::v6::{ThreadEntry, ThreadRow, Trace};
use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader, Value, payload};

const REQUEST: u32 = 9;
const STOPPED: u32 = 8;
const RESUMED: u32 = 3;

/// Reasons of a request: a collection, and something else.
const COLLECTION: u32 = 1;
const OTHER: u32 = 5;

/// Threads of a whole-machine recording: process and thread.
const THREADS: [(u64, u64); 3] = [(100, 9), (100, 10), (200, 9)];

/// An event at a time in microseconds, of a thread with an index in [`THREADS`]: its kind, and the reason of
/// a request.
type Row = (u64, u8, u32, u32);

/// Returns the pauses in events: process, start in microseconds, duration.
fn pauses(rows: &[Row]) -> Vec<(Option<u64>, i64, Duration)> {
    let header = TraceHeader { frequency: 1_000_000, sync_ticks: 0, ..TraceHeader::default() };
    let mut trace = Trace::new(&header);
    let threads = (1..).zip(THREADS).map(|(index, (process, thread))| ThreadRow {
        index,
        entries: vec![ThreadEntry::ProcessId(process), ThreadEntry::ThreadId(thread)],
    });
    trace.thread_block(&threads.collect::<Vec<_>>());
    // Kinds have the numbers of their events.
    trace.metadata_block(&[REQUEST, STOPPED, RESUMED].map(|id| Metadata {
        id,
        provider: "Microsoft-Windows-DotNETRuntime".into(),
        event_id: id,
        version: 1,
        ..Metadata::default()
    }));
    let mut block = EventBlock::v6();
    let mut sequences = [0; THREADS.len()];
    for (time, thread, kind, reason) in rows {
        let sequence = &mut sequences[usize::from(*thread)];
        *sequence += 1;
        let instance = Value::UInt16(0);
        let index = u64::from(*thread) + 1;
        block.event(&Event {
            metadata_id: *kind,
            sequence: *sequence,
            thread: index,
            capture_thread: index,
            timestamp: *time,
            payload: match *kind {
                REQUEST => payload(&[Value::UInt32(*reason), Value::UInt32(1), instance]),
                _ => payload(&[instance]),
            },
            ..Event::default()
        });
    }
    trace.event_block(&block);
    let bytes = trace.finish();
    let (mut found, mut pauses) = (Vec::new(), Pauses::default());
    let mut events = nettrace::Reader::new(&*bytes).unwrap().in_time_order();
    events
        .for_each(|event| {
            let pause = pauses.add(&event);
            found.extend(pause.map(|it| (it.process, it.start.as_nanos() / 1000, it.duration)));
        })
        .unwrap();
    assert!(events.last_time() > Some(RelativeTime::START));
    found
}

const fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

#[test]
fn threads_of_different_processes_may_have_the_same_number() {
    let found = pauses(&[
        (100, 0, REQUEST, COLLECTION),
        (110, 2, REQUEST, COLLECTION),
        (120, 0, STOPPED, 0),
        (130, 2, STOPPED, 0),
        (200, 0, RESUMED, 0),
        (500, 2, RESUMED, 0),
    ]);
    assert_eq!(found, [(Some(100), 100, micros(100)), (Some(200), 110, micros(390))]);
}

#[test]
fn a_pause_excludes_the_wait_for_another_suspension() {
    let found = pauses(&[
        // The sampler's, which lasts until 300.
        (100, 1, REQUEST, OTHER),
        (110, 1, STOPPED, 0),
        (150, 0, REQUEST, COLLECTION),
        (300, 1, RESUMED, 0),
        (310, 0, STOPPED, 0),
        (400, 0, RESUMED, 0),
    ]);
    assert_eq!(found, [(Some(100), 300, micros(100))]);
}
