//! The check of every nettrace target: three ways of reading the same bytes must give the same events.

pub mod header;
pub mod heap;
mod memory;

pub use memory::bounded;

use nettrace::{Decoder, Error, Event, Reader, SliceReader, Source, TimeOrder, Value};

/// The result of reading a recording: digests of its events in order, and the numbers of lost events and damages.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    events: Vec<u64>,
    lost: u64,
    damages: u64,
    truncated: Option<u64>,
    failed: bool,
}

/// Reads `header` followed by the fuzzer's bytes, the first four of which are the lengths of the pieces that are pushed.
pub fn read(header: &[u8], input: &[u8]) {
    let (splits, body) = input.split_at(input.len().min(4));
    let bytes = [header, body].concat();
    let slice = bounded(bytes.len(), || from_slice(&bytes));
    assert_eq!(slice, bounded(bytes.len(), || from_read(&bytes)), "slice and Read");
    assert_eq!(slice, bounded(bytes.len(), || pushed(&bytes, splits)), "slice and push");
    bounded(bytes.len(), || check_time_order(&bytes, slice.events));
}

fn from_slice(bytes: &[u8]) -> Outcome {
    match SliceReader::new(bytes) {
        Ok(mut events) => drain(&mut events),
        Err(_) => failed(),
    }
}

fn from_read(bytes: &[u8]) -> Outcome {
    match Reader::new(bytes) {
        Ok(mut events) => drain(&mut events),
        Err(_) => failed(),
    }
}

fn pushed(bytes: &[u8], splits: &[u8]) -> Outcome {
    let mut decoder = Decoder::new();
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

fn drain<S: Source>(events: &mut nettrace::Events<S>) -> Outcome {
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

/// Checks that time order returns each event once.
fn check_time_order(bytes: &[u8], mut expected: Vec<u64>) {
    let Ok(events) = SliceReader::new(bytes) else { return };
    let mut events: TimeOrder<_> = events.in_time_order();
    let mut digests = Vec::new();
    let _ = collect(&mut digests, || events.next().map(|event| event.as_ref().map(digest)));
    expected.sort_unstable();
    digests.sort_unstable();
    assert_eq!(digests, expected, "file order and time order");
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
