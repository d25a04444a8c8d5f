//! Random recordings, split and merged: the result equals the input.

use nettrace::{Event, Events, PassedPoint, Record, SliceReader, Source, Ticks};
use nettrace_writer::{ClockRelation, Error, MergerOptions, Transcoder, Version, merge};

/// Writes the events of a part, by a number that `part_of` gives to each.
fn part(bytes: &[u8], version: Version, wanted: usize, part_of: impl Fn(Ticks) -> usize) -> Vec<u8> {
    let mut events = SliceReader::new(bytes).unwrap();
    let mut transcoder = Transcoder::new(version, events.info().unwrap()).unwrap();
    while let Some(record) = events.next_record().unwrap() {
        let is_wanted = match &record {
            Record::Event(event) => part_of(event.time()) == wanted,
            Record::SequencePoint(point) => point_part(point, &part_of) == Some(wanted),
            _ => true,
        };
        if is_wanted { transcoder.write(&record) } else { transcoder.skip(&record) }.unwrap();
    }
    transcoder.finish(events.threads()).unwrap();
    transcoder.bytes().to_vec()
}

fn point_part(point: &PassedPoint<'_>, part_of: impl Fn(Ticks) -> usize) -> Option<usize> {
    point.time().map(part_of)
}

/// Merges recordings.
fn merged(recordings: &[&[u8]]) -> Vec<u8> {
    let readers = recordings.iter().map(|bytes| SliceReader::new(bytes).unwrap()).collect();
    let mut out = Vec::new();
    let (_, merger) = merge(readers, MergerOptions::default(), |part| {
        out.extend_from_slice(part);
        Ok::<_, Error>(())
    })
    .unwrap();
    assert!((0..recordings.len()).all(|index| merger.clock(index) == Some(ClockRelation::Same)));
    out
}

/// Everything of an event but its numbers in the recording.
fn description(event: &Event<'_>) -> String {
    format!(
        "{:020} {:?} {} {} {}/{}/{} {:?} {:?} {:?} {:?} {:?}",
        event.time().0,
        event.process_id().unwrap_or(0),
        event.thread_id(),
        event.capture_thread_id(),
        event.provider(),
        event.id(),
        event.name(),
        event.capture_processor(),
        event.stack().as_bytes(),
        (event.activity(), event.related_activity()),
        (event.keywords(), event.opcode(), event.level() & 0xff, event.version() & 0xff),
        event.payload(),
    )
}

/// The events of a recording, ordered by description if their times are equal.
fn events<S: Source>(events: Events<S>) -> Vec<String> {
    let mut in_order = events.in_time_order();
    let mut found = Vec::new();
    while let Some(event) = in_order.next().unwrap() {
        found.push(description(&event));
    }
    found.sort();
    found
}

/// The times in the order of the file.
fn times(bytes: &[u8]) -> Vec<u64> {
    let mut events = SliceReader::new(bytes).unwrap();
    let mut times = Vec::new();
    while let Some(event) = events.next().unwrap() {
        times.push(event.time().0);
    }
    times
}

/// Splits a recording at three of its times, merges the parts, and compares the result with the recording.
pub(crate) fn check(bytes: &[u8], version: Version, cuts: [u32; 3]) {
    let mut all = times(bytes);
    all.sort_unstable();
    let mut cuts = cuts.map(|at| all.get(super::place(at, all.len())).copied().unwrap_or(0));
    cuts.sort_unstable();
    let part_of = |time: Ticks| cuts.iter().filter(|cut| **cut <= time.0).count();
    let parts: Vec<_> = (0..4).map(|wanted| part(bytes, version, wanted, part_of)).collect();
    let parts: Vec<_> = parts.iter().map(Vec::as_slice).collect();
    // The order of the parts does not matter.
    let out = merged(&[parts[2], parts[0], parts[3], parts[1]]);
    let reader = |bytes| SliceReader::new(bytes).unwrap();
    assert_eq!(events(reader(bytes)), events(reader(&out)));
    assert!(times(&out).is_sorted(), "not in the order of time");
    let read = |bytes| {
        let mut events = reader(bytes);
        events.for_each(|_| {}).unwrap();
        assert_eq!((events.damage(), events.truncated_at()), (&[][..], None));
        events.loss().total()
    };
    let lost = parts.iter().map(|part| read(part)).sum::<u64>();
    assert_eq!(lost, read(&out));
    assert_eq!(merged(&[&out]), out, "merged again it differs");
}
