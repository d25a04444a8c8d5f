//! Time order of more events than are held back at once.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::time::Duration;

use nettrace::{Decoder, Interest, PushSource, Reader, RelativeTime, SliceReader, TimeOrder};
use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader, nettrace as v4};

use crate::values::Numbers;

const THREADS: usize = 5;
const ROUNDS: u64 = 300;
const EVENTS: u64 = 60;

/// Rounds in which each thread writes a block of events; the blocks of a round overlap in time, rounds do
/// not. The first block of a round begins with its oldest event, which is marked as sorted. A sequence point
/// follows every `rounds_between_points` rounds. Each payload is the event's place in the file. One in
/// `every` events is of kind 2, all others of kind 1.
fn recording(rounds_between_points: u64, every: u32) -> (Vec<u8>, Vec<(u64, u32)>) {
    let mut trace = v4::Trace::new(&TraceHeader::default());
    trace.metadata_block(&kinds(&[1, 2]));
    let mut numbers = Numbers(1);
    let mut expected = Vec::new();
    let mut sequences = [0; THREADS];
    for round in 0..ROUNDS {
        let start = 1000 * round;
        for (thread, sequence) in sequences.iter_mut().enumerate() {
            let mut time = start;
            let mut block = EventBlock::v4();
            for number in 0..EVENTS {
                if number > 0 || thread > 0 {
                    time = (time + numbers.next() % 30).min(start + 999);
                }
                *sequence += 1;
                let place = u32::try_from(expected.len()).expect("few events");
                block.event(&Event {
                    metadata_id: if place % every == 0 { 2 } else { 1 },
                    sorted: number == 0 && thread == 0,
                    sequence: *sequence,
                    thread: thread as u64,
                    capture_thread: thread as u64,
                    timestamp: time,
                    payload: place.to_le_bytes().to_vec(),
                    ..Event::default()
                });
                expected.push((time, place));
            }
            trace.event_block(&block);
        }
        if (round + 1) % rounds_between_points == 0 {
            let threads: Vec<_> =
                sequences.iter().enumerate().map(|(thread, last)| (thread as u64, *last)).collect();
            trace.sequence_point(start + 999, &threads);
        }
    }
    expected.sort_by_key(|(time, _)| *time);
    (trace.finish(), expected)
}

macro_rules! places {
    ($events:expr) => {{
        let mut events = $events.in_time_order();
        let mut places = Vec::new();
        while let Some(event) = events.next().expect("readable") {
            let place = event.payload().first_chunk::<4>().expect("a place");
            places.push((event.time().0, u32::from_le_bytes(*place)));
        }
        assert_eq!(events.loss().total(), 0);
        places
    }};
}

#[test]
fn many_events_with_few_sequence_points() {
    for rounds_between_points in [1, 7, 100, u64::MAX] {
        let (bytes, expected) = recording(rounds_between_points, u32::MAX);
        assert!(expected.len() > 80_000);
        assert!(
            places!(SliceReader::new(&bytes).expect("a recording")) == expected,
            "slice, {rounds_between_points}"
        );
        assert!(
            places!(Reader::new(&bytes[..]).expect("a recording")) == expected,
            "read, {rounds_between_points}"
        );
    }
}

/// Nothing in this recording promises that nothing older will follow.
#[test]
fn a_delay_lets_events_go_before_their_order_is_sure() {
    let mut trace = v4::Trace::new(&TraceHeader { frequency: 1000, ..TraceHeader::default() });
    trace.metadata_block(&kinds(&[1]));
    for (thread, times) in [(1, [100, 110, 120]), (2, [105, 115, 200]), (3, [90, 150, 201])] {
        let mut block = EventBlock::v4();
        for (number, timestamp) in (1..).zip(times) {
            block.event(&Event {
                metadata_id: 1,
                sequence: number,
                thread,
                capture_thread: thread,
                timestamp,
                ..Event::default()
            });
        }
        trace.event_block(&block);
    }
    let given_of_unfinished = |delay: Option<u64>| {
        let mut events = Decoder::new().in_time_order();
        if let Some(delay) = delay {
            events = events.with_max_delay(Duration::from_millis(delay));
        }
        events.feed(&trace.clone().unfinished());
        let mut times = Vec::new();
        events.for_each(|event| times.push(event.time().0)).expect("readable");
        times
    };
    assert_eq!(given_of_unfinished(None), []);
    assert_eq!(given_of_unfinished(Some(1000)), []);
    // When 200 has arrived, 110 has waited for 90 ms. 90 arrives too late to be in its place, and 201 is not
    // old enough.
    assert_eq!(given_of_unfinished(Some(90)), [100, 105, 110, 90]);

    // A silent stream yields no further events for now.
    let mut events = Decoder::new().in_time_order();
    events.feed(&trace.clone().unfinished());
    assert!(events.next().expect("readable").is_none());
    events.release();
    let mut times = Vec::new();
    events.for_each(|event| times.push(event.time().0)).expect("readable");
    assert_eq!(times, [90, 100, 105, 110, 115, 120, 150, 200, 201]);
    events.release();
    assert!(events.next().expect("readable").is_none());
}

/// Writes blocks, each of a thread: metadata id, time, whether it is marked as sorted.
fn blocks(trace: &mut v4::Trace, blocks: &[&[(u32, u64, bool)]]) {
    for (thread, events) in (1..).zip(blocks) {
        let mut block = EventBlock::v4();
        for (sequence, (metadata_id, timestamp, sorted)) in (1..).zip(*events) {
            block.event(&Event {
                metadata_id: *metadata_id,
                sorted: *sorted,
                sequence,
                thread,
                capture_thread: thread,
                timestamp: *timestamp,
                ..Event::default()
            });
        }
        trace.event_block(&block);
    }
}

fn kinds(ids: &[u32]) -> Vec<Metadata> {
    let kind = |id: &u32| Metadata { id: *id, provider: "P".into(), event_id: *id, ..Metadata::default() };
    ids.iter().map(kind).collect()
}

/// A decoder of the events of kind 1 alone, which was fed a recording that goes on.
fn fed_with_kind_1(trace: &v4::Trace) -> TimeOrder<PushSource> {
    let mut events = Decoder::new().in_time_order_of(|kind| kind.event_id() == 1);
    events.feed(&trace.clone().unfinished());
    events
}

fn times(events: &mut TimeOrder<PushSource>) -> Vec<u64> {
    let mut times = Vec::new();
    events.for_each(|event| times.push(event.time().0)).expect("readable");
    times
}

#[test]
fn marks_and_times_of_other_kinds_let_events_go() {
    let mut trace = v4::Trace::new(&TraceHeader { frequency: 1000, ..TraceHeader::default() });
    trace.metadata_block(&kinds(&[1, 2]));
    blocks(&mut trace, &[&[(1, 100, false), (2, 105, false), (1, 110, false)], &[(1, 103, false)]]);
    assert_eq!(times(&mut fed_with_kind_1(&trace)), []);
    let mut marked = trace.clone();
    blocks(&mut marked, &[&[(2, 105, true), (2, 300, false)]]);
    assert_eq!(times(&mut fed_with_kind_1(&marked)), [100, 103]);
    blocks(&mut trace, &[&[(2, 203, false)]]);
    let mut delayed = fed_with_kind_1(&trace).with_max_delay(Duration::from_millis(100));
    assert_eq!(times(&mut delayed), [100, 103]);
    delayed.release();
    assert_eq!(times(&mut delayed), [110]);
    assert_eq!(delayed.last_time().map(RelativeTime::as_nanos), Some(203_000_000));
}

#[test]
fn blocks_of_other_kinds_are_not_held() {
    let mut trace = v4::Trace::new(&TraceHeader::default());
    trace.metadata_block(&kinds(&[1, 2]));
    let others: Vec<_> = (0..1000).map(|time| (2, time, false)).collect();
    blocks(&mut trace, &[&others, &others]);
    let mut events = fed_with_kind_1(&trace);
    assert_eq!((times(&mut events), events.held_bytes()), (vec![], 0));
    // Events with many of other kinds between them are found one by one.
    let wide: Vec<_> = (0..1000).map(|time| (if time % 200 == 0 { 1 } else { 2 }, time, false)).collect();
    blocks(&mut trace, &[&wide]);
    let mut events = fed_with_kind_1(&trace);
    assert_eq!(times(&mut events), []);
    assert!(events.held_bytes() > 0);
    events.release();
    assert_eq!(times(&mut events), [0, 200, 400, 600, 800]);
}

#[test]
fn kinds_that_come_late_are_chosen_too() {
    let mut trace = v4::Trace::new(&TraceHeader::default());
    trace.metadata_block(&kinds(&[2]));
    blocks(&mut trace, &[&[(2, 10, false), (2, 20, false)], &[(2, 15, false)]]);
    trace.metadata_block(&kinds(&[1, 3]));
    blocks(
        &mut trace,
        &[&[(1, 12, false), (3, 13, false), (1, 11, false)], &[(1, 14, false), (2, 14, false)]],
    );
    // The number means another kind from here on.
    trace.metadata_block(&[Metadata { id: 2, provider: "P".into(), event_id: 1, ..Metadata::default() }]);
    blocks(&mut trace, &[&[(2, 5, false), (1, 30, false)]]);
    let mut events = fed_with_kind_1(&trace);
    events.end_of_input();
    assert_eq!(times(&mut events), [5, 11, 12, 14, 30]);
}

/// The events of a kind that is one in two, or one in many.
#[test]
fn kinds_of_many_events_with_few_sequence_points() {
    for rounds_between_points in [1, 7, u64::MAX] {
        for every in [2, 40, 977] {
            let (bytes, expected) = recording(rounds_between_points, every);
            let expected = expected.iter().filter(|(_, place)| place % every == 0);
            let mut events =
                SliceReader::new(&bytes).expect("a recording").in_time_order_of(|kind| kind.event_id() == 2);
            let mut places = Vec::new();
            events
                .for_each(|event| {
                    let place = event.payload().first_chunk::<4>().expect("a place");
                    places.push((event.time().0, u32::from_le_bytes(*place)));
                })
                .expect("readable");
            assert!(places.iter().eq(expected), "{rounds_between_points}, {every}");
        }
    }
}

/// An input with reads that each give a part, or time out.
struct Pauses(VecDeque<Option<Vec<u8>>>);

impl Read for Pauses {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        match self.0.pop_front() {
            Some(Some(part)) => {
                room[..part.len()].copy_from_slice(&part);
                Ok(part.len())
            }
            Some(None) => Err(ErrorKind::TimedOut.into()),
            None => Ok(0),
        }
    }
}

#[test]
fn a_time_out_of_the_input_releases_the_events_that_are_held() {
    let mut trace = v4::Trace::new(&TraceHeader { frequency: 1000, ..TraceHeader::default() });
    trace.metadata_block(&kinds(&[1]));
    blocks(&mut trace, &[&[(1, 100, true), (1, 110, false)], &[(1, 105, false), (1, 120, false)]]);
    let begun = trace.clone().unfinished();
    blocks(&mut trace, &[&[(1, 130, true), (1, 140, false)]]);
    let all = trace.finish();
    let parts = [Some(begun.clone()), None, None, Some(all[begun.len()..].to_vec())];
    let mut events = Reader::new(Pauses(parts.into())).expect("a recording").in_time_order();
    let (mut given, mut time_outs) = (Vec::new(), Vec::new());
    loop {
        match events.next() {
            Ok(Some(event)) => given.push(event.time().0),
            Ok(None) => break,
            Err(error) => {
                assert!(error.is_timeout(), "{error}");
                time_outs.push(given.len());
            }
        }
    }
    assert_eq!(given, [100, 105, 110, 120, 130, 140]);
    // The first one released what was held; only the second one had nothing to release.
    assert_eq!(time_outs, [4]);
}

#[test]
fn time_outs_between_any_two_bytes_lose_nothing() {
    let (bytes, expected) = recording(ROUNDS, 3);
    let bytes = &bytes[..bytes.len() / 50];
    let mut whole = SliceReader::new(bytes).expect("a recording");
    let mut places = Vec::new();
    whole.for_each(|event| places.push(event.payload().to_vec())).expect("readable");
    assert!(!places.is_empty() && places.len() < expected.len());

    // The header is read at once.
    let (header, rest) = bytes.split_at(200);
    let mut parts = VecDeque::from([Some(header.to_vec())]);
    parts.extend(rest.iter().flat_map(|byte| [None, Some(vec![*byte])]));
    let mut events = Reader::new(Pauses(parts)).expect("a recording");
    let mut paused = Vec::new();
    loop {
        match events.next() {
            Ok(Some(event)) => paused.push(event.payload().to_vec()),
            Ok(None) => break,
            Err(error) => assert!(error.is_timeout(), "{error}"),
        }
    }
    assert_eq!((paused, events.truncated_at()), (places, whole.truncated_at()));
}

#[test]
fn events_that_repeat_the_absence_of_an_activity_are_left_out() {
    let mut trace = v4::Trace::new(&TraceHeader::default());
    trace.metadata_block(&kinds(&[1, 2, 3]));
    let rows = [(2, 0), (2, 0), (3, 0), (2, 0), (2, 7), (2, 7), (2, 0), (1, 0), (2, 0), (2, 0), (1, 0)];
    for thread in [1, 2] {
        let mut block = EventBlock::v4();
        for (number, (metadata_id, activity)) in (1_u32..).zip(rows) {
            block.event(&Event {
                metadata_id,
                sequence: number,
                thread,
                capture_thread: thread,
                timestamp: u64::from(number) * 10 + thread,
                activity: [activity; 16],
                ..Event::default()
            });
        }
        trace.event_block(&block);
    }
    let trace = trace.finish();
    let interest = |kind: &nettrace::Metadata| match kind.event_id() {
        1 => Interest::All,
        2 => Interest::Activity,
        _ => Interest::None,
    };
    let mut events = SliceReader::new(&trace).expect("a recording").in_time_order_by(interest);
    let mut times = Vec::new();
    events.for_each(|event| times.push(event.time().0)).expect("readable");
    let given = [10, 50, 60, 70, 80, 90, 110];
    assert_eq!(times, given.iter().flat_map(|time| [time + 1, time + 2]).collect::<Vec<_>>());
    assert!(events.counts().eq([(0, 4), (1, 16), (2, 2)]), "the events left out are counted, too");
}
