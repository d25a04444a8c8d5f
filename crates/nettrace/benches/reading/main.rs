//! The cost of reading: the same recordings in every form, compared with a copy of their bytes.
//!
//! The recordings are made here, as runtimes write them. `copy` moves a recording's bytes and is the
//! yardstick: only a reading that passes over large payloads without a look at them can be faster.

mod recordings;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use nettrace::{Decoder, Error, Event, Reader, SliceReader};

use recordings::Recording;

/// How many bytes arrive at once where they are pushed.
const FED: usize = 64 << 10;

/// A way to read all of a recording; gives a number that depends on every event, so that nothing can be left
/// out.
type Form = fn(&[u8]) -> Result<u64, Error>;

/// Every way.
const FORMS: &[(&str, Form)] = &[
    ("for_each", for_each),
    ("next", next),
    ("Reader", reader),
    ("Decoder", decoder),
    ("time order", time_order),
    ("time order from Reader", time_order_from_reader),
    ("fields", fields),
    ("stacks", stacks),
    #[cfg(feature = "rayon")]
    ("par_fold", par_fold),
];

/// The properties that nearly every program reads.
fn look(event: &Event<'_>) -> u64 {
    event.time().0 ^ event.payload().len() as u64 ^ u64::from(event.id())
}

fn for_each(bytes: &[u8]) -> Result<u64, Error> {
    let mut sum = 0u64;
    SliceReader::new(bytes)?.for_each(|event| sum = sum.wrapping_add(look(&event)))?;
    Ok(sum)
}

fn next(bytes: &[u8]) -> Result<u64, Error> {
    let mut events = SliceReader::new(bytes)?;
    let mut sum = 0u64;
    while let Some(event) = events.next()? {
        sum = sum.wrapping_add(look(&event));
    }
    Ok(sum)
}

fn reader(bytes: &[u8]) -> Result<u64, Error> {
    let mut sum = 0u64;
    Reader::new(bytes)?.for_each(|event| sum = sum.wrapping_add(look(&event)))?;
    Ok(sum)
}

fn decoder(bytes: &[u8]) -> Result<u64, Error> {
    let mut events = Decoder::new();
    let mut sum = 0u64;
    for arrived in bytes.chunks(FED) {
        events.feed(arrived);
        events.for_each(|event| sum = sum.wrapping_add(look(&event)))?;
    }
    events.end_of_input();
    events.for_each(|event| sum = sum.wrapping_add(look(&event)))?;
    Ok(sum)
}

fn time_order(bytes: &[u8]) -> Result<u64, Error> {
    let mut sum = 0u64;
    SliceReader::new(bytes)?.in_time_order().for_each(|event| sum = sum.wrapping_add(look(&event)))?;
    Ok(sum)
}

fn time_order_from_reader(bytes: &[u8]) -> Result<u64, Error> {
    let mut sum = 0u64;
    Reader::new(bytes)?.in_time_order().for_each(|event| sum = sum.wrapping_add(look(&event)))?;
    Ok(sum)
}

/// The kind of events of [`time_order_of_a_kind`]: an eighth of the mixed events, none elsewhere.
const KIND: u32 = 8;

fn time_order_of_a_kind(bytes: &[u8]) -> Result<u64, Error> {
    let mut sum = 0u64;
    SliceReader::new(bytes)?
        .in_time_order_of(|kind| kind.event_id() == KIND)
        .for_each(|event| sum = sum.wrapping_add(look(&event)))?;
    Ok(sum)
}

fn fields(bytes: &[u8]) -> Result<u64, Error> {
    let mut sum = 0u64;
    SliceReader::new(bytes)?.for_each(|event| {
        sum = sum.wrapping_add(look(&event));
        for field in event.fields() {
            _ = black_box(field);
        }
    })?;
    Ok(sum)
}

fn stacks(bytes: &[u8]) -> Result<u64, Error> {
    let mut sum = 0u64;
    SliceReader::new(bytes)?.for_each(|event| {
        sum = sum.wrapping_add(look(&event));
        black_box(event.stack().fold(0, u64::wrapping_add));
    })?;
    Ok(sum)
}

#[cfg(feature = "rayon")]
fn par_fold(bytes: &[u8]) -> Result<u64, Error> {
    SliceReader::new(bytes)?.par_fold(
        || 0u64,
        |sum, event| *sum = sum.wrapping_add(look(&event)),
        u64::wrapping_add,
    )
}

fn read(c: &mut Criterion, recording: &Recording) {
    let bytes = &recording.bytes[..];
    let expected = checked(recording);
    let mut group = c.benchmark_group(recording.name);
    group
        .throughput(Throughput::ElementsAndBytes { elements: recording.events, bytes: bytes.len() as u64 })
        .sample_size(10)
        .sampling_mode(SamplingMode::Flat)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    let mut copied = vec![0; bytes.len()];
    group.bench_function("copy", |b| b.iter(|| copied.copy_from_slice(black_box(bytes))));
    for &(name, form) in FORMS {
        assert_eq!(form(bytes).expect("a recording"), expected, "{name} reads other events than for_each");
        group.bench_function(name, |b| b.iter(|| form(black_box(bytes))));
    }
    let mut of_kind = 0u64;
    let add = |event: Event<'_>| {
        if event.id() == KIND {
            of_kind = of_kind.wrapping_add(look(&event));
        }
    };
    SliceReader::new(bytes).and_then(|mut events| events.for_each(add)).expect("a recording");
    assert_eq!(time_order_of_a_kind(bytes).expect("a recording"), of_kind, "other events than for_each");
    group.bench_function("time order of a kind", |b| b.iter(|| time_order_of_a_kind(black_box(bytes))));
    group.finish();
}

/// The result that all forms must have. A recording that is read wrongly measures nothing.
fn checked(recording: &Recording) -> u64 {
    let mut events = SliceReader::new(&recording.bytes).expect("a recording");
    let (mut count, mut undecodable) = (0, 0);
    events
        .for_each(|event| {
            count += 1;
            undecodable += event.fields().filter(Result::is_err).count();
        })
        .expect("a recording");
    assert_eq!((count, undecodable), (recording.events, 0), "{}", recording.name);
    assert_eq!((events.damage(), events.truncated_at(), events.loss().total()), (&[][..], None, 0));
    for_each(&recording.bytes).expect("a recording")
}

fn all(c: &mut Criterion) {
    // One at a time: together they would fill more memory than all else here.
    for make in recordings::ALL {
        read(c, &make());
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
