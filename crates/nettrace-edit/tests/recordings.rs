//! Parts, redacted copies, rings and rotations of real recordings.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use nettrace::{Decoder, RelativeTime, SliceReader, Ticks, TraceInfo, Value};
use nettrace_edit::{
    Criteria, KeepAll, RecordedRange, RecordingSummary, Redaction, RedactionLetters, Redactor, Ring,
    RingCapacity, Rotation, Segment, SegmentStorage, Slice, copy,
};
use nettrace_writer::{EventWriter, REQUESTED_EVENTS};

fn recording(name: &str) -> Vec<u8> {
    testdata::bytes(&format!("traces/{name}.xz"))
}

/// An event in words: everything of it but the numbers that a recording gives.
fn describe(event: &nettrace::Event<'_>) -> String {
    let (provider, id, thread) = (event.provider(), event.id(), event.thread_id().0);
    let stack: Vec<_> = event.stack().collect();
    format!("{provider} {id} {thread} {} {stack:?} {:?}", event.relative_time().as_nanos(), event.payload())
}

/// The events of a whole recording without losses, except the event that states its range.
fn events(bytes: &[u8]) -> Vec<(RelativeTime, String)> {
    let mut reader = SliceReader::new(bytes).unwrap();
    let mut events = Vec::new();
    reader
        .for_each(|event| {
            if RecordedRange::of(&event).is_none() {
                events.push((event.relative_time(), describe(&event)));
            }
        })
        .unwrap();
    assert!(reader.truncated_at().is_none() && reader.damage().is_empty());
    assert_eq!(reader.loss().total(), 0);
    events
}

fn count<'a>(events: impl IntoIterator<Item = &'a String>) -> BTreeMap<&'a String, usize> {
    let mut counts = BTreeMap::new();
    for event in events {
        *counts.entry(event).or_default() += 1;
    }
    counts
}

fn range(bytes: &[u8]) -> Option<RecordedRange> {
    RecordedRange::find(&bytes[bytes.len().saturating_sub(RecordedRange::TAIL)..])
}

const fn milliseconds(count: i64) -> RelativeTime {
    RelativeTime::from_nanos(count * 1_000_000)
}

#[test]
fn a_slice_has_all_events_of_its_time_and_states_it() {
    for name in ["net9-everything.nettrace", "net10-all.nettrace", "v6-record-trace.nettrace"] {
        let whole = recording(name);
        let (from, to) = (milliseconds(200), milliseconds(700));
        let criteria = Criteria::default().with_from(Some(from)).with_to(Some(to));
        let mut part = Vec::new();
        let copied = copy(&*whole, &mut part, &mut Slice::new(criteria)).unwrap();
        let in_time = |bytes: &[u8]| {
            let events = events(bytes).into_iter().filter(|(time, _)| (from..to).contains(time));
            events.map(|(_, event)| event).collect::<Vec<_>>()
        };
        assert!(in_time(&whole).len() > 100 && in_time(&whole) == in_time(&part), "{name}");
        assert_eq!(events(&part).len() as u64, copied.kept);
        let mut all = 0;
        SliceReader::new(&part).unwrap().for_each(|_| all += 1).unwrap();
        assert_eq!(all, copied.written);
        assert_eq!(events(&whole).len() as u64, copied.read);
        assert_eq!(range(&part), Some(RecordedRange { from, to }), "{name}");
        assert_eq!(part.len() as u64, copied.bytes);
        // A copy of it states the same.
        let mut again = Vec::new();
        copy(&*part, &mut again, &mut KeepAll).unwrap();
        assert!(again == part, "{name}");
        assert_eq!(range(&whole), None);
    }
}

#[test]
fn a_copy_does_not_claim_the_requested_events() {
    let pairs = [("ProcessId", "7"), (REQUESTED_EVENTS, "exceptions")];
    let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let mut whole = EventWriter::new(&TraceInfo::new_v6(1_795_251_731_123, Ticks(0), pairs.into())).unwrap();
    whole.finish().unwrap();
    let keys = |bytes: &[u8]| {
        let info = SliceReader::new(bytes).unwrap().info().unwrap().clone();
        info.key_values.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    assert_eq!(keys(whole.bytes()), ["ProcessId", REQUESTED_EVENTS]);
    let mut part = Vec::new();
    copy(whole.bytes(), &mut part, &mut KeepAll).unwrap();
    assert_eq!(keys(&part), ["ProcessId"]);
}

/// The intervals off the processors: thread, beginning and end in nanoseconds.
fn off_cpu(bytes: &[u8]) -> Vec<(u64, i64, i64)> {
    let mut intervals = Vec::new();
    let mut reader = SliceReader::new(bytes).unwrap();
    reader
        .for_each(|event| {
            if (event.provider(), event.name()) != ("Universal.Events", "cswitch") {
                return;
            }
            let Some(Ok((_, Value::U64(length)))) = event.fields().next() else { panic!("a length") };
            let end = event.relative_time().as_nanos();
            intervals.push((event.thread_id().0, end - i64::try_from(length).unwrap(), end));
        })
        .unwrap();
    intervals
}

#[test]
fn intervals_off_the_processors_are_in_every_part_that_they_reach_into() {
    let whole = recording("net9-kernel.nettrace");
    let all = off_cpu(&whole);
    let mut crossing = [0; 2];
    for lists_only in [false, true] {
        for (from, to) in [(0, 60), (60, 200), (200, 201), (150, 450), (450, 100_000)] {
            let range = (milliseconds(from), milliseconds(to));
            let criteria = Criteria::default().with_from(Some(range.0)).with_to(Some(range.1));
            let mut part = Vec::new();
            copy(&*whole, &mut part, &mut Slice::new(criteria).with_listed_names_only(lists_only)).unwrap();
            let (from, to) = (range.0.as_nanos(), range.1.as_nanos());
            // An interval of no time is an event of its moment.
            let reaches_into = |&(_, begin, end): &(u64, i64, i64)| begin < to && end >= from;
            let expected: Vec<_> = all.iter().copied().filter(reaches_into).collect();
            assert_eq!(off_cpu(&part), expected, "{from} {to}");
            crossing[0] += expected.iter().filter(|(_, begin, end)| *begin < from && *end >= from).count();
            crossing[1] += expected.iter().filter(|(_, begin, end)| *begin < to && *end >= to).count();
        }
    }
    assert!(crossing.iter().all(|count| *count > 20), "{crossing:?}");
}

#[test]
fn no_redacted_text_is_left() {
    let whole = recording("net9-everything.nettrace");
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let has = |bytes: &[u8], text: &str| {
        let wanted = utf16(text);
        bytes.windows(wanted.len()).filter(|bytes| *bytes == wanted).count()
    };
    let text = "/tmp/net/w8/workload.dll";
    assert!(has(&whole, text) > 1);
    let redactions: Vec<Redaction> = ["command-lines", "paths"].map(|it| it.parse().unwrap()).into();
    for letters in [RedactionLetters::by_text(), RedactionLetters::Same] {
        let is_same = matches!(letters, RedactionLetters::Same);
        let mut slice =
            Slice::new(Criteria::default()).with_redactor(Redactor::new(redactions.clone(), letters));
        let mut redacted = Vec::new();
        copy(&*whole, &mut redacted, &mut slice).unwrap();
        assert_eq!(has(&redacted, text), 0);
        assert_eq!(has(&redacted, &"x".repeat(text.len())) > 0, is_same);
        let replaced = slice.redactor().unwrap().replaced();
        assert!(replaced.keys().any(|field| field.ends_with(".CommandLine")), "{replaced:?}");
        // Only strings differ: every payload keeps its size.
        let shape = |bytes: &[u8]| {
            let mut sizes = Vec::new();
            let mut reader = SliceReader::new(bytes).unwrap();
            reader.for_each(|event| sizes.push((event.id(), event.payload().len()))).unwrap();
            sizes
        };
        assert!(shape(&whole) == shape(&redacted));
    }
    assert!("passwords".parse::<Redaction>().is_err());
}

/// More bytes than the names and the current block of these recordings have.
const NAMES: u64 = 1 << 20;

/// Passes a stream to a ring in chunks.
fn keep(bytes: &[u8], capacity: RingCapacity, storage: &SegmentStorage) -> (Ring, Decoder) {
    let (now, mut decoder) = (Instant::now(), Decoder::new());
    let mut ring: Option<Ring> = None;
    for chunk in bytes.chunks(10_000) {
        decoder.feed(chunk);
        if ring.is_none()
            && let Some(info) = decoder.read_header().unwrap()
        {
            ring = Some(Ring::new(capacity, storage.clone(), info, now).unwrap());
        }
        let Some(ring) = &mut ring else { continue };
        ring.receive(now);
        while let Some(record) = decoder.next_record().unwrap() {
            ring.add(&record).unwrap();
        }
        ring.turn_if_due(decoder.threads()).unwrap();
        // A generation more than the capacity, its blocks, and the names.
        let most = capacity.bytes + capacity.bytes / 8 + NAMES;
        assert!(ring.bytes() < most, "{} of {most}", ring.bytes());
    }
    (ring.unwrap(), decoder)
}

#[test]
fn a_snapshot_is_the_end_of_the_stream_with_names() {
    for name in ["net9-everything.nettrace", "net10-all.nettrace", "net3-everything.nettrace"] {
        let whole = recording(name);
        let all = events(&whole);
        // The runtime's list at the end of the stream would raise the capacity.
        let until_list = whole.len() / 2;
        let folder = tempfile::tempdir().unwrap();
        let mut written = Vec::new();
        for storage in [SegmentStorage::Memory, SegmentStorage::Folder(folder.path().to_owned())] {
            let capacity = RingCapacity { time: None, bytes: 100 << 10 };
            let (mut ring, decoder) = keep(&whole[..until_list], capacity, &storage);
            let mut bytes = Vec::new();
            let snapshot = ring.snapshot(decoder.threads()).unwrap();
            let outcome = snapshot.write(None, &mut bytes).unwrap();
            assert_eq!(outcome.bytes, bytes.len() as u64);
            written.push((bytes, outcome));
        }
        let (bytes, outcome) = &written[0];
        assert_eq!(&written[0], &written[1], "{name}");
        let RecordingSummary { events: kept, range: Some((first, last)), .. } = *outcome else {
            panic!("{name}: {outcome:?}")
        };
        let stated = range(bytes).unwrap();
        assert_eq!((stated.from, stated.to.as_nanos()), (first, last.as_nanos() + 1), "{name}");
        let snapshot = events(bytes);
        assert!(kept > 100 && kept < all.len() as u64, "{name}: {kept}");
        // The names of older events, without their stacks, then the newest events.
        let (names, newest_events) = snapshot.split_at(snapshot.len() - usize::try_from(kept).unwrap());
        let received = count(all.iter().map(|(_, event)| event));
        assert!(newest_events.iter().all(|(_, event)| received.contains_key(event)), "{name}");
        let without_stack = |event: &String| event.replacen(event.split(['[', ']']).nth(1).unwrap(), "", 1);
        let received: BTreeSet<_> = all.iter().map(|(_, event)| without_stack(event)).collect();
        assert!(!names.is_empty() && names.iter().all(|(_, event)| received.contains(event)), "{name}");
        let newest = snapshot.iter().map(|(time, _)| *time).max();
        assert_eq!(newest, Some(last), "{name}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "files without names");
    }
}

#[test]
fn a_ring_that_has_dropped_nothing_is_the_whole_stream() {
    let whole = recording("net9-everything.nettrace");
    let capacity = RingCapacity { time: Some(Duration::from_secs(60)), bytes: 64 << 20 };
    let (mut ring, decoder) = keep(&whole, capacity, &SegmentStorage::Memory);
    let mut bytes = Vec::new();
    ring.snapshot(decoder.threads()).unwrap().write(None, &mut bytes).unwrap();
    assert!(events(&bytes) == events(&whole));
    assert_eq!(range(&bytes), None);
}

#[test]
fn a_list_that_arrived_otherwise_is_at_the_end() {
    let whole = recording("net10-sample.nettrace");
    let capacity = RingCapacity { time: None, bytes: 1 << 20 };
    let (mut ring, decoder) = keep(&whole[..whole.len() / 2], capacity, &SegmentStorage::Memory);
    let mut list = Segment::new();
    let listed = recording("net10-exceptions.nettrace");
    listed.chunks(1000).for_each(|chunk| list.push(chunk));
    let snapshot = ring.snapshot(decoder.threads()).unwrap();
    let (mut with, mut without) = (Vec::new(), Vec::new());
    snapshot.write(Some(&list), &mut with).unwrap();
    snapshot.write(None, &mut without).unwrap();
    assert_eq!(events(&with).len(), events(&without).len() + events(&listed).len());
    assert!(events(&with).starts_with(&events(&without)));
}

#[test]
fn parts_of_a_rotation_have_every_event_once_and_their_own_time() {
    let whole = recording("net9-everything.nettrace");
    let mut decoder = Decoder::new();
    let mut chunks = whole.chunks(10_000);
    decoder.feed(chunks.next().unwrap());
    let info = decoder.read_header().unwrap().unwrap().clone();
    let mut rotation = Rotation::new(200 << 10, &info);
    let mut parts = vec![Vec::new()];
    let mut written = Vec::new();
    rotation.begin(&[], parts.last_mut().unwrap()).unwrap();
    let mut is_over = false;
    loop {
        while let Some(record) = decoder.next_record().unwrap() {
            rotation.add(&record, parts.last_mut().unwrap()).unwrap();
        }
        if rotation.is_full() {
            let threads = decoder.threads();
            written.push(rotation.end(threads, None, parts.last_mut().unwrap()).unwrap().unwrap());
            assert_eq!(rotation.end(threads, None, &mut Vec::new()).unwrap(), None);
            parts.push(Vec::new());
            rotation.begin(threads, parts.last_mut().unwrap()).unwrap();
        }
        match chunks.next() {
            Some(chunk) => decoder.feed(chunk),
            None if is_over => break,
            None => {
                decoder.end_of_input();
                is_over = true;
            }
        }
    }
    written.push(rotation.end(decoder.threads(), None, parts.last_mut().unwrap()).unwrap().unwrap());
    assert!(parts.len() > 3, "{}", parts.len());
    assert_eq!(written.iter().map(|part| part.events).sum::<u64>(), events(&whole).len() as u64);
    // Names are in the later parts, too, without their stacks; everything else is there once.
    let own: Vec<_> = parts
        .iter()
        .zip(&written)
        .flat_map(|(part, written)| {
            let all = events(part);
            all[all.len() - usize::try_from(written.events).unwrap()..].to_vec()
        })
        .collect();
    let texts = |events: &[(RelativeTime, String)]| events.iter().map(|it| it.1.clone()).collect::<Vec<_>>();
    assert!(count(&texts(&own)) == count(&texts(&events(&whole))));
    let ranges: Vec<_> = parts.iter().map(|part| range(part).unwrap()).collect();
    assert_eq!(ranges[0].from, RelativeTime::MIN);
    for (before, after) in ranges.iter().zip(&ranges[1..]) {
        assert!(after.from < before.to && before.to <= after.to, "{ranges:?}");
    }
    let last = events(&whole).iter().map(|(time, _)| *time).max().unwrap();
    assert_eq!(ranges.last().unwrap().to.as_nanos(), last.as_nanos() + 1);
}
