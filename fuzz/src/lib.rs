//! What every nettrace target does with its bytes: read them in all three forms, which must agree, and look at everything.

pub mod header;

use nettrace::{Decoder, Error, Event, Reader, SliceReader, Source, TimeOrder, Value};

/// What a reading came to: digests of its events in order, what was lost, damaged and cut.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    events: Vec<u64>,
    lost: u64,
    damages: u64,
    truncated: Option<u64>,
    failed: bool,
}

/// Reads `header` followed by the fuzzer's bytes. The first of those say how they are split when they are pushed.
pub fn read(header: &[u8], input: &[u8]) {
    let (splits, body) = input.split_at(input.len().min(4));
    let bytes = [header, body].concat();
    let slice = from_slice(&bytes);
    assert_eq!(slice, from_read(&bytes), "slice and Read");
    assert_eq!(slice, pushed(&bytes, splits), "slice and push");
    in_time_order(&bytes, slice.events);
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
    let mut seen = Vec::new();
    let mut rest = bytes;
    let mut sizes = splits.iter().cycle();
    while !rest.is_empty() {
        let size = sizes.next().map_or(rest.len(), |size| usize::from(*size) + 1).min(rest.len());
        let (now, later) = rest.split_at(size);
        decoder.feed(now);
        rest = later;
        if collect(&mut seen, || decoder.next().map(|event| event.as_ref().map(digest))).is_err() {
            return failed();
        }
    }
    decoder.end_of_input();
    let mut outcome = drain(&mut decoder);
    seen.append(&mut outcome.events);
    Outcome { events: seen, ..outcome }
}

fn drain<S: Source>(events: &mut nettrace::Events<S>) -> Outcome {
    let mut seen = Vec::new();
    if collect(&mut seen, || events.next().map(|event| event.as_ref().map(digest))).is_err() {
        return failed();
    }
    Outcome {
        events: seen,
        lost: events.loss().total(),
        damages: events.damages(),
        truncated: events.truncated(),
        failed: false,
    }
}

fn collect(seen: &mut Vec<u64>, mut next: impl FnMut() -> Result<Option<u64>, Error>) -> Result<(), Error> {
    while let Some(event) = next()? {
        seen.push(event);
    }
    Ok(())
}

fn failed() -> Outcome {
    Outcome { events: Vec::new(), lost: 0, damages: 0, truncated: None, failed: true }
}

/// Every event once, whatever the order.
fn in_time_order(bytes: &[u8], mut expected: Vec<u64>) {
    let Ok(events) = SliceReader::new(bytes) else { return };
    let mut events: TimeOrder<_> = events.in_time_order();
    let mut seen = Vec::new();
    let _ = collect(&mut seen, || events.next().map(|event| event.as_ref().map(digest)));
    expected.sort_unstable();
    seen.sort_unstable();
    assert_eq!(seen, expected, "file order and time order");
}

/// Looks at everything that an event says.
fn digest(event: &Event<'_>) -> u64 {
    let mut digest = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |value: u64| digest = (digest ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(7);
    add(event.offset());
    add(event.range().end);
    add(event.time().0);
    add(event.time_ns().cast_unsigned());
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
            Ok((name, value)) => add(name.len() as u64 + look(&value)),
            Err(error) => add(error.to_string().len() as u64),
        }
    }
    digest
}

fn look(value: &Value<'_>) -> u64 {
    match value {
        Value::Array(array) => array.map(|element| look(&element)).fold(1, u64::wrapping_add),
        Value::Object(fields) => fields.flatten().map(|(_, value)| look(&value)).fold(2, u64::wrapping_add),
        Value::String(text) => text.chars().count() as u64,
        _ => 3,
    }
}
