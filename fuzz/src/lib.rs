//! The check of every nettrace target: all ways of reading the same bytes must give the same events.

pub mod counters;
pub mod header;
pub mod heap;
mod memory;
mod written;

use std::io::{Cursor, Seek as _};
use std::ops::RangeInclusive;

pub use memory::{bounded, bounded_beyond};
pub use written::Written;

use nettrace::raw::{BlockContent, Blocks};
use nettrace::{
    Decoder, Error, Event, Events, Metadata, Reader, SliceReader, Source, Ticks, TimeOrder, Value,
};

/// Bytes that a second reader may hold whatever its input: the room for a block that is said to be long.
const READER: usize = 4 << 20;

/// The result of reading a recording: digests of its events in order, and the numbers of lost events and
/// damages.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    events: Vec<u64>,
    lost: u64,
    damages: u64,
    truncated: Option<u64>,
    failed: bool,
}

impl Outcome {
    /// Returns true if all bytes are as the format has them.
    const fn is_whole(&self) -> bool {
        self.damages == 0 && self.truncated.is_none() && !self.failed
    }
}

/// Reads `header` followed by the fuzzer's bytes, the first four of which are the lengths of the pieces that
/// are pushed.
pub fn read(header: &[u8], input: &[u8]) {
    let (splits, body) = input.split_at(input.len().min(4));
    let bytes = [header, body].concat();
    let slice = bounded(bytes.len(), || from_slice(&bytes));
    assert_eq!(slice, bounded(bytes.len(), || from_read(&bytes)), "slice and Read");
    assert_eq!(slice, bounded(bytes.len(), || pushed(&bytes, splits)), "slice and push");
    bounded(bytes.len(), || check_blocks(&bytes, &slice));
    bounded(bytes.len(), || check_skipping(&bytes, &slice));
    bounded(bytes.len(), || check_parts(&bytes, &slice));
    let most = usize::from(splits.first().copied().unwrap_or_default());
    bounded_beyond(READER, 2 * bytes.len(), || check_time_order(&bytes, slice.events, most));
}

fn from_slice(bytes: &[u8]) -> Outcome {
    match SliceReader::new(bytes) {
        Ok(mut events) => drain(&mut events),
        Err(_) => failed(),
    }
}

fn from_read(bytes: &[u8]) -> Outcome {
    match Reader::new(bytes) {
        Ok(events) => drain(&mut events.with_lookahead()),
        Err(_) => failed(),
    }
}

fn pushed(bytes: &[u8], splits: &[u8]) -> Outcome {
    let mut decoder = Decoder::new().with_lookahead();
    let mut digests = Vec::new();
    let mut rest = bytes;
    let mut sizes = splits.iter().cycle();
    while !rest.is_empty() {
        let size = sizes.next().map_or(rest.len(), |size| usize::from(*size) + 1).min(rest.len());
        let (now, later) = rest.split_at(size);
        decoder.feed(now);
        rest = later;
        if collect(&mut digests, || decoder.next().map(|event| event.as_ref().map(digest))).is_err() {
            return failed();
        }
    }
    decoder.end_of_input();
    let mut outcome = drain(&mut decoder);
    digests.append(&mut outcome.events);
    Outcome { events: digests, ..outcome }
}

fn drain<S: Source>(events: &mut Events<S>) -> Outcome {
    let mut digests = Vec::new();
    if collect(&mut digests, || events.next().map(|event| event.as_ref().map(digest))).is_err() {
        return failed();
    }
    Outcome {
        events: digests,
        lost: events.loss().total(),
        damages: events.damage_count(),
        truncated: events.truncated_at(),
        failed: false,
    }
}

/// Appends the digests of all events that `next` returns.
fn collect(
    digests: &mut Vec<u64>,
    mut next: impl FnMut() -> Result<Option<u64>, Error>,
) -> Result<(), Error> {
    while let Some(event) = next()? {
        digests.push(event);
    }
    Ok(())
}

/// Returns the result of a reading that ends with an error.
fn failed() -> Outcome {
    Outcome { events: Vec::new(), lost: 0, damages: 0, truncated: None, failed: true }
}

/// Checks that blocks follow one another, and that those of a recording without damage have its events.
fn check_blocks(bytes: &[u8], outcome: &Outcome) {
    let Ok(mut blocks) = Blocks::new(bytes) else { return };
    let mut next = blocks.header().size() as u64;
    let (mut events, mut errors) = (0, 0);
    for block in blocks.by_ref() {
        let Ok(block) = block else {
            errors += 1;
            continue;
        };
        let range = block.range();
        assert_eq!(range.start, next);
        assert!(range.end > range.start && range.end <= bytes.len() as u64);
        assert!(block.content_offset() + block.content().len() as u64 <= range.end);
        next = range.end;
        match block.parse() {
            Ok(content) => events += rows(content, &mut errors),
            Err(_) => errors += 1,
        }
    }
    assert!(blocks.next().is_none() && blocks.offset() <= bytes.len());
    if outcome.is_whole() {
        assert_eq!((events, errors), (outcome.events.len(), 0));
    }
}

/// Reads all rows of a block, and returns the number of its events.
fn rows(content: BlockContent<'_>, errors: &mut usize) -> usize {
    let mut events = 0;
    let mut count = |is_whole: bool| *errors += usize::from(!is_whole);
    match content {
        BlockContent::Event(block) => block.rows().for_each(|row| match row.map(|row| row.metadata_row()) {
            Ok(None) => events += 1,
            Ok(Some(row)) => count(row.parse().is_some()),
            Err(_) => count(false),
        }),
        BlockContent::Metadata(rows) => {
            rows.for_each(|row| count(row.is_ok_and(|row| row.parse().is_some())))
        }
        BlockContent::Stack(block) => block.rows().for_each(|row| count(row.is_ok())),
        BlockContent::LabelList(block) => block.rows().for_each(|row| count(row.is_ok())),
        BlockContent::SequencePoint(point) => point.threads().for_each(|row| count(row.is_ok())),
        BlockContent::Thread(rows) => {
            rows.for_each(|row| count(row.is_ok_and(|row| row.entries().all(|entry| entry.is_ok()))));
        }
        BlockContent::RemoveThread(rows) => rows.for_each(|row| count(row.is_ok())),
        _ => {}
    }
    events
}

/// Checks that blocks are left out alike in all forms, and that nothing but whole blocks is.
fn check_skipping(bytes: &[u8], whole: &Outcome) {
    let Some(times) = middle(bytes) else { return };
    let skip = |input: &mut Cursor<&[u8]>, count: u64| input.seek_relative(count.cast_signed());
    let Ok(seeking) = Reader::with_skip(Cursor::new(bytes), skip) else { return };
    let seeking = skipped(&mut seeking.with_lookahead(), &times);
    // What is not read may be damaged.
    if !whole.is_whole() {
        return;
    }
    let slice = skipped(&mut SliceReader::new(bytes).expect("it was read"), &times);
    assert_eq!(slice, seeking, "slice and Read that moves on");
    let read = skipped(&mut Reader::new(bytes).expect("it was read").with_lookahead(), &times);
    assert_eq!(slice, read, "slice and Read");
    let (outcome, blocks) = slice;
    if blocks == 0 {
        assert_eq!(outcome, *whole);
    }
    let mut all = whole.events.iter();
    assert!(outcome.events.iter().all(|event| all.any(|known| known == event)), "a part of the events");
}

/// Returns the second third of the time of a recording.
fn middle(bytes: &[u8]) -> Option<RangeInclusive<Ticks>> {
    let (mut first, mut last) = (u64::MAX, 0);
    let add = |event: Event<'_>| (first, last) = (first.min(event.time().0), last.max(event.time().0));
    SliceReader::new(bytes).ok()?.for_each(add).ok()?;
    let third = last.checked_sub(first)? / 3;
    Some(Ticks(first + third)..=Ticks(last - third))
}

/// Reads without the blocks out of these times. Returns the number of those, too.
fn skipped<S: Source>(events: &mut Events<S>, times: &RangeInclusive<Ticks>) -> (Outcome, u64) {
    events.skip_blocks_outside(times.clone(), |_| false);
    let outcome = drain(events);
    assert!(events.skipped_blocks() > 0 || events.skipped_bytes() == 0);
    (outcome, events.skipped_blocks())
}

/// Checks that the parts of a recording, one after the other, are its events.
fn check_parts(bytes: &[u8], whole: &Outcome) {
    let Ok(events) = Reader::new(bytes) else { return };
    let mut events = events.with_lookahead();
    let (mut digests, mut count) = (Vec::new(), 0);
    while let Ok(Some(more)) = events.read_part(|event| digests.push(digest(&event))) {
        count += more;
        assert!(more > 0 && count == digests.len() as u64, "a part has as many events as it says");
    }
    assert_eq!(digests, whole.events, "event by event and part by part");
}

/// Checks that time order returns each event once, to one reader and to two that take turns, each with parts
/// of `most` events, and that of some kinds alone it is the same without the others.
fn check_time_order(bytes: &[u8], mut expected: Vec<u64>, most: usize) {
    let Ok(events) = SliceReader::new(bytes) else { return };
    let mut events: TimeOrder<_> = events.in_time_order();
    let (mut digests, mut of_kinds) = (Vec::new(), Vec::new());
    let result = collect(&mut digests, || {
        let event = events.next()?;
        of_kinds.extend(event.as_ref().filter(|event| is_wanted(event.metadata())).map(digest));
        Ok(event.as_ref().map(digest))
    });
    if result.is_ok() {
        assert_eq!(time_order_of_kinds(bytes).expect("it was read"), of_kinds, "some kinds");
        assert_eq!(shared(bytes, most).expect("it was read"), digests, "one reader and two");
    }
    expected.sort_unstable();
    digests.sort_unstable();
    assert_eq!(digests, expected, "file order and time order");
}

/// Returns true if a kind is one of those that are chosen.
fn is_wanted(kind: &Metadata) -> bool {
    kind.event_id().is_multiple_of(2)
}

fn time_order_of_kinds(bytes: &[u8]) -> Result<Vec<u64>, Error> {
    let mut digests = Vec::new();
    SliceReader::new(bytes)?.in_time_order_of(is_wanted).for_each(|event| digests.push(digest(&event)))?;
    Ok(digests)
}

/// Reads in time order with two readers, of which one passes the parts of the other.
fn shared(bytes: &[u8], most: usize) -> Result<Vec<u64>, Error> {
    let open = || Ok::<_, Error>(Reader::new(bytes)?.with_lookahead().in_time_order());
    let (mut own, mut other) = (open()?, open()?);
    let mut digests = Vec::new();
    loop {
        let before = digests.len();
        let count = own.read_part(most, |event| digests.push(digest(&event)))?;
        assert_eq!(count.unwrap_or(0), (digests.len() - before) as u64, "the events of a part");
        assert_eq!(other.pass_part(most)?, count, "events that are passed");
        if count.is_none() {
            return Ok(digests);
        }
        std::mem::swap(&mut own, &mut other);
    }
}

/// Returns a digest of all properties and fields of an event.
fn digest(event: &Event<'_>) -> u64 {
    let mut digest = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |value: u64| digest = (digest ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(7);
    add(event.offset());
    add(event.range().end);
    add(event.time().0);
    add(event.relative_time().as_nanos().cast_unsigned());
    add(u64::from(event.id()) ^ u64::from(event.version()) << 32);
    add(event.keywords() ^ u64::from(event.level()));
    add(event.thread_id().0 ^ event.capture_thread_id().0.rotate_left(17));
    add(event.process_id().unwrap_or(0));
    add(event.activity().map_or(0, |id| id.as_u64_pair().0));
    add(event.related_activity().map_or(0, |id| id.as_u64_pair().1));
    add(event.stack().fold(0, u64::wrapping_add));
    add(event.labels().count() as u64);
    event.payload().iter().for_each(|byte| add(u64::from(*byte)));
    for field in event.fields() {
        match field {
            Ok((name, value)) => add(name.len() as u64 + digest_value(&value)),
            Err(error) => add(error.to_string().len() as u64),
        }
    }
    digest
}

fn digest_value(value: &Value<'_>) -> u64 {
    match value {
        Value::Array(array) => array.map(|element| digest_value(&element)).fold(1, u64::wrapping_add),
        Value::Object(fields) => {
            fields.flatten().map(|(_, value)| digest_value(&value)).fold(2, u64::wrapping_add)
        }
        Value::String(text) => text.chars().count() as u64,
        _ => 3,
    }
}
