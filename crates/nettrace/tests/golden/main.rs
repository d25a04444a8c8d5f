//! Every recording under `testdata/traces` against its expected text, whole, cut and split.
//!
//! `NAME.txt` next to `NAME.nettrace.xz` has the expected reading: the recording's properties, its kinds of
//! events with counts, its losses, and the first and last events in full. `DIPC_UPDATE_GOLDEN=1` rewrites it;
//! look at the difference before you commit it. The test `reference` compares the events themselves with
//! another reader's.

mod raw;
mod text;

use std::io::Read;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use nettrace::{Decoder, Error, Event, EventBuffer, Metadata, Reader, Record, SliceReader};

struct Recording {
    name: String,
    path: PathBuf,
    bytes: Vec<u8>,
}

/// Every recording of the directory, unpacked.
fn recordings() -> Vec<Recording> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/traces");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&directory).expect("testdata/traces") {
        let path = entry.expect("an entry").path();
        let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let packed = file_name.strip_suffix(".xz").unwrap_or(&file_name);
        let Some(name) = packed.strip_suffix(".nettrace").or_else(|| packed.strip_suffix(".netperf")) else {
            continue;
        };
        let bytes = testdata::bytes_at(&path);
        found.push(Recording { name: name.to_owned(), path: directory.join(format!("{name}.txt")), bytes });
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(found.len() >= 8, "recordings are missing from testdata/traces");
    found
}

/// The properties that distinguish events, including stack and fields.
type Mark = (Range<u64>, u64, u32, u32, u64, Vec<u8>, Vec<u64>, String);

fn mark(event: &Event<'_>) -> Mark {
    (
        event.range(),
        event.time().0,
        event.metadata().id(),
        event.sequence().unwrap_or(0),
        event.thread_id().0,
        event.payload().to_vec(),
        event.stack().collect(),
        format!("{:?} {:?} {:?}", event.activity(), event.related_activity(), event.processor()),
    )
}

/// A cheap digest of a reading: for the many readings of the same bytes.
fn digest_event(digest: u64, event: &Event<'_>) -> u64 {
    let mut digest = digest;
    let mut add = |value: u64| digest = (digest ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(5);
    add(event.offset());
    add(event.time().0);
    add(u64::from(event.metadata().id()));
    add(event.thread_id().0);
    add(event
        .payload()
        .iter()
        .fold(event.payload().len() as u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte))));
    add(event.stack().fold(0, |sum, address| sum.wrapping_mul(31).wrapping_add(address)));
    digest
}

fn read_slice(bytes: &[u8]) -> Result<Vec<Mark>, Error> {
    let mut events = SliceReader::new(bytes)?;
    let mut marks = Vec::new();
    while let Some(event) = events.next()? {
        marks.push(mark(&event));
    }
    Ok(marks)
}

#[test]
fn recordings_read_as_their_texts_say() {
    let update = std::env::var_os("DIPC_UPDATE_GOLDEN").is_some();
    for recording in recordings() {
        let read = text::of(&recording.bytes);
        if update {
            std::fs::write(&recording.path, &read).expect("a writable testdata");
            continue;
        }
        let expected = std::fs::read_to_string(&recording.path).unwrap_or_else(|error| {
            panic!("{}: {error}; DIPC_UPDATE_GOLDEN=1 writes it", recording.path.display())
        });
        if let Some((number, (ours, theirs))) =
            read.lines().zip(expected.lines()).enumerate().find(|(_, (ours, theirs))| ours != theirs)
        {
            panic!("{} line {}:\nread     {ours}\nexpected {theirs}", recording.path.display(), number + 1);
        }
        assert_eq!(read.lines().count(), expected.lines().count(), "{}", recording.path.display());
    }
}

/// A recording cut anywhere gives a prefix of its events, says where it was cut, and nothing is made up.
///
/// Cut at every offset where that is few enough, at every offset of the first blocks and at a spread of
/// others where not.
#[test]
fn cut_anywhere_events_are_a_prefix() {
    for recording in recordings() {
        let whole = read_slice(&recording.bytes).expect("a recording");
        let length = recording.bytes.len();
        let dense = if length < 30_000 { length } else { 2_000 };
        let spread = (dense..length).step_by((length / 60).max(1));
        for cut in (0..dense).chain(spread) {
            let name = format!("{} cut at {cut}", recording.name);
            let mut events = match SliceReader::new(&recording.bytes[..cut]) {
                Ok(events) => events,
                Err(_) if cut < 256 => continue,
                Err(error) => panic!("{name}: {error}"),
            };
            let mut count = 0;
            while let Some(event) = events.next().expect("a cut is no error") {
                let expected = &whole[count];
                assert_eq!(event.range(), expected.0, "{name}: event {count}");
                assert_eq!(event.payload(), expected.5, "{name}: event {count}");
                assert!(event.range().end <= cut as u64, "{name}: event {count}");
                count += 1;
            }
            if let Some(next) = whole.get(count) {
                assert!(next.0.end > cut as u64, "{name}: event {count} is whole and missing");
            }
            let truncated = events.truncated_at();
            assert!(truncated.is_some_and(|offset| offset <= cut as u64), "{name}: {truncated:?}");
            assert_eq!(events.damage(), [], "{name}");
        }
    }
}

#[test]
fn records_end_where_the_consumer_breaks() {
    for recording in recordings() {
        let whole = read_slice(&recording.bytes).expect("a recording");
        for most in
            [1, 2, whole.len() / 2, whole.len()].into_iter().filter(|most| (1..=whole.len()).contains(most))
        {
            let mut events = SliceReader::new(&recording.bytes).expect("a recording");
            let mut offsets = Vec::new();
            let outcome = events.try_for_each_record(&mut |record| {
                let Record::Event(event) = record else { return ControlFlow::Continue(()) };
                offsets.push(event.range());
                if offsets.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!(outcome.ok(), Some(ControlFlow::Break(())), "{}: {most}", recording.name);
            let expected: Vec<_> = whole[..most].iter().map(|mark| mark.0.clone()).collect();
            assert_eq!(offsets, expected, "{}", recording.name);
        }
    }
}

/// The same events in every form, however the bytes are split.
#[test]
fn split_anywhere_events_are_equal() {
    for recording in recordings() {
        let mut whole = SliceReader::new(&recording.bytes).expect("a recording");
        let mut expected = (0u64, 0u64);
        while let Some(event) = whole.next().expect("a recording") {
            expected = (expected.0 + 1, digest_event(expected.1, &event));
        }
        let length = recording.bytes.len();
        let splits: Vec<usize> = if length < 10_000 {
            (0..=length).collect()
        } else {
            (0..600).chain((600..length).step_by((length / 24).max(1))).collect()
        };
        for split in splits {
            let (first, second) = recording.bytes.split_at(split);
            assert_eq!(pushed(&[first, second]), expected, "{} split at {split}", recording.name);
        }
        for portion in [1, 7, 4096, 1 << 20] {
            let portions: Vec<_> = recording.bytes.chunks(portion).collect();
            assert_eq!(pushed(&portions), expected, "{} in portions of {portion}", recording.name);
            let mut events = Reader::new(Portions { bytes: &recording.bytes, portion }).expect("a recording");
            let mut read = (0, 0);
            while let Some(event) = events.next().expect("a recording") {
                read = (read.0 + 1, digest_event(read.1, &event));
            }
            assert_eq!(read, expected, "{} read in portions of {portion}", recording.name);
        }
    }
}

fn pushed(portions: &[&[u8]]) -> (u64, u64) {
    let mut decoder = Decoder::new();
    let mut read = (0, 0);
    for portion in portions {
        decoder.feed(portion);
        while let Some(event) = decoder.next().expect("a recording") {
            read = (read.0 + 1, digest_event(read.1, &event));
        }
    }
    decoder.end_of_input();
    while let Some(event) = decoder.next().expect("a recording") {
        read = (read.0 + 1, digest_event(read.1, &event));
    }
    assert_eq!((decoder.damage_count(), decoder.truncated_at()), (0, None));
    read
}

/// The header of a stream can be had before its first event, and costs none.
#[test]
fn a_header_is_read_before_the_events() {
    for recording in recordings() {
        let mut decoder = Decoder::new();
        let mut fed = 0;
        while decoder.read_header().expect("a recording").is_none() {
            decoder.feed(&recording.bytes[fed..=fed]);
            fed += 1;
        }
        let whole = SliceReader::new(&recording.bytes).expect("a recording");
        let header = decoder.read_header().expect("a recording").cloned();
        assert_eq!(header.as_ref(), whole.info(), "{}", recording.name);
        decoder.feed(&recording.bytes[fed..]);
        decoder.end_of_input();
        let mut read = (0, 0);
        while let Some(event) = decoder.next().expect("a recording") {
            read = (read.0 + 1, digest_event(read.1, &event));
        }
        assert_eq!(read, pushed(&[&recording.bytes]), "{}", recording.name);
    }
    let mut decoder = Decoder::new();
    decoder.feed(b"no recording, whatever follows");
    let wrong = decoder.read_header().expect_err("no recording").to_string();
    assert_eq!(decoder.next().expect_err("no recording").to_string(), wrong);
}

/// Gives a few bytes at a time.
struct Portions<'a> {
    bytes: &'a [u8],
    portion: usize,
}

impl Read for Portions<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.portion.min(buffer.len()).min(self.bytes.len());
        let (now, later) = self.bytes.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.bytes = later;
        Ok(count)
    }
}

/// Time order gives every event once, oldest first, events of the same tick in file order: in every form.
#[test]
fn time_order_is_a_stable_sort() {
    for recording in recordings() {
        let mut expected = read_slice(&recording.bytes).expect("a recording");
        expected.sort_by_key(|mark| mark.1);
        let mut slice = SliceReader::new(&recording.bytes).expect("a recording").in_time_order();
        let mut stream = Reader::new(&recording.bytes[..]).expect("a recording").in_time_order();
        let mut decoder = Decoder::new().in_time_order();
        let mut from_decoder = Vec::new();
        for portion in recording.bytes.chunks(4099) {
            decoder.feed(portion);
            while let Some(event) = decoder.next().expect("a recording") {
                from_decoder.push(mark(&event));
            }
        }
        decoder.end_of_input();
        while let Some(event) = decoder.next().expect("a recording") {
            from_decoder.push(mark(&event));
        }
        assert_eq!(from_decoder.len(), expected.len(), "{}", recording.name);
        for (index, (expected, pushed)) in expected.iter().zip(&from_decoder).enumerate() {
            let name = format!("{} event {index}", recording.name);
            assert_eq!(pushed, expected, "{name}");
            assert_eq!(
                slice.next().expect("a recording").as_ref().map(mark).as_ref(),
                Some(expected),
                "{name}"
            );
            assert_eq!(
                stream.next().expect("a recording").as_ref().map(mark).as_ref(),
                Some(expected),
                "{name}"
            );
        }
        assert!(
            slice.next().expect("a recording").is_none() && stream.next().expect("a recording").is_none()
        );
    }
}

/// Time order of some kinds equals the time order of all without the others, for each kind alone and for all
/// but the most frequent.
#[test]
fn time_order_of_kinds_is_a_part_of_time_order() {
    for recording in recordings() {
        let mut expected = Vec::new();
        let mut all = SliceReader::new(&recording.bytes).expect("a recording").in_time_order();
        all.for_each(|event| expected.push((event.metadata_index(), mark(&event)))).expect("a recording");
        let kinds = all.events().metadata().to_vec();
        let count = |kind: usize| expected.iter().filter(|(index, _)| *index == kind).count();
        let frequent = (0..kinds.len()).max_by_key(|kind| count(*kind)).expect("a kind");
        let mut choices: Vec<Vec<_>> = (0..kinds.len()).map(|kind| vec![kind]).collect();
        // Recordings of whole machines have hundreds.
        choices.truncate(100);
        choices.push((0..kinds.len()).filter(|kind| *kind != frequent).collect());
        choices.push(vec![frequent]);
        for choice in choices {
            let wanted: Vec<_> = choice.iter().map(|kind| kinds[*kind].clone()).collect();
            let is_wanted = move |kind: &Metadata| wanted.contains(kind);
            let expected = expected.iter().filter(|(kind, _)| is_wanted(&kinds[*kind])).map(|it| &it.1);
            let reader = SliceReader::new(&recording.bytes).expect("a recording");
            let mut events = reader.in_time_order_of(is_wanted.clone());
            let name = format!("{}, kinds {choice:?}", recording.name);
            for expected in expected {
                let event = events.next().expect("a recording");
                assert_eq!(event.as_ref().map(mark).as_ref(), Some(expected), "{name}");
            }
            assert!(events.next().expect("a recording").is_none(), "{name}");
            assert_eq!(events.last_time(), all.last_time(), "{name}");
            assert_eq!(events.loss().total(), all.loss().total(), "{name}");
            assert_eq!(events.events().threads().len(), all.events().threads().len(), "{name}");
        }
    }
}

#[test]
fn an_event_with_another_payload_is_the_same_but_for_that() {
    let mut count = 0;
    for recording in recordings() {
        let mut buffer = EventBuffer::default();
        let read = SliceReader::new(&recording.bytes).and_then(|mut events| {
            events.for_each(|event| {
                let same = event.with_payload(event.payload(), &mut buffer);
                assert_eq!(same.range(), event.range(), "{}", recording.name);
                assert_eq!(same.payload(), event.payload());
                assert_eq!(format!("{:?}", same.fields()), format!("{:?}", event.fields()));
                let mut empty = EventBuffer::default();
                let other = event.with_payload(b"another", &mut buffer);
                assert_eq!(other.payload(), b"another");
                for event_again in [other, event.with_payload(&[], &mut empty)] {
                    assert_eq!(event_again.activity(), event.activity());
                    assert_eq!(event_again.related_activity(), event.related_activity());
                    assert_eq!(event_again.stack().as_bytes(), event.stack().as_bytes());
                    assert_eq!(event_again.thread_id(), event.thread_id());
                    assert_eq!(event_again.relative_time(), event.relative_time());
                }
                count += 1;
            })
        });
        read.unwrap_or_else(|error| panic!("{}: {error}", recording.name));
    }
    assert!(count > 10_000, "{count}");
}
