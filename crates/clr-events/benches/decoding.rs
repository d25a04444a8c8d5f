//! The cost of interpreting events: fields, views, names for addresses, stacks.
//!
//! Events are taken from the recordings in `testdata`; `events` only iterates over them, which all others
//! include.

use std::hint::black_box;

use clr_events::{ClrEvent, CodeFrames, CodeMap, Schema, StackTree};
use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use nettrace::{Event, SliceReader, Ticks, Value};

fn recording(name: &str) -> Vec<u8> {
    testdata::bytes(&format!("traces/{name}"))
}

fn each(bytes: &[u8], mut each: impl FnMut(&Event<'_>)) {
    SliceReader::new(bytes).expect("a recording").for_each(|event| each(&event)).expect("bytes in memory");
}

/// Makes the compiler believe that somebody looks.
fn consume<T>(value: T) {
    let _ = black_box(value);
}

fn code_of(bytes: &[u8]) -> CodeMap {
    let mut code = CodeMap::default();
    each(bytes, |event| code.add(event));
    code
}

fn fields(group: &mut BenchmarkGroup<'_, WallTime>, bytes: &[u8]) {
    let mut events = 0u64;
    each(bytes, |_| events += 1);
    group.throughput(Throughput::Elements(events));
    group.bench_function("events", |b| {
        b.iter(|| each(bytes, |event| consume(event.payload())));
    });
    group.bench_function("schema", |b| {
        b.iter(|| each(bytes, |event| consume(Schema::of(event))));
    });
    group.bench_function("fields", |b| {
        b.iter(|| {
            let mut sum = 0u64;
            each(bytes, |event| {
                let Some(schema) = Schema::of(event) else { return };
                for (_, value) in schema.fields(event.payload(), event.pointer_size()).flatten() {
                    sum = sum.wrapping_add(match value {
                        Value::U16(value) => value.into(),
                        Value::U32(value) => value.into(),
                        Value::U64(value) | Value::Address(value) => value,
                        Value::Named(value) => value.number.into(),
                        Value::String(text) => text.as_bytes().len() as u64,
                        _ => 1,
                    });
                }
            });
            sum
        });
    });
    group.bench_function("view", |b| {
        b.iter(|| each(bytes, |event| consume(ClrEvent::of(event))));
    });
}

fn meaning(criterion: &mut Criterion) {
    for name in ["net10-gcverbose", "net10-all"] {
        let bytes = recording(&format!("{name}.nettrace.xz"));
        fields(&mut criterion.benchmark_group(name), &bytes);
    }
}

fn names(criterion: &mut Criterion) {
    let bytes = recording("net10-sample.nettrace.xz");
    let mut group = criterion.benchmark_group("names");
    group.bench_function("code map of a recording", |b| b.iter(|| code_of(&bytes)));

    let mut code = code_of(&bytes);
    let symbolizer = code.symbolizer();
    let mut addresses = Vec::new();
    each(&bytes, |event| {
        addresses.extend(event.stack().map(|address| (event.process_id(), address, event.time())));
    });
    group.throughput(Throughput::Elements(addresses.len() as u64));
    group.bench_function("address", |b| {
        b.iter(|| {
            for (process, address, time) in &addresses {
                black_box(symbolizer.resolve(*process, *address, *time));
            }
        });
    });
    group.bench_function("frame", |b| {
        let mut frames = CodeFrames::new(symbolizer);
        b.iter(|| {
            for (process, address, time) in &addresses {
                black_box(frames.resolve(*process, *address, *time));
            }
        });
    });
    let mut stacks = 0u64;
    each(&bytes, |event| stacks += u64::from(!event.stack().is_empty()));
    group.throughput(Throughput::Elements(stacks));
    group.bench_function("stack", |b| {
        let mut frames = CodeFrames::new(symbolizer);
        let mut tree = StackTree::default();
        b.iter(|| each(&bytes, |event| consume(frames.add_stack(event, &mut tree))));
    });
    let far = (Some(0), 0x1234, Ticks(0));
    group.throughput(Throughput::Elements(1));
    group.bench_function("address that has no name", |b| {
        b.iter(|| black_box(symbolizer.resolve(far.0, far.1, far.2)).is_named());
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = meaning, names
}
criterion_main!(benches);
