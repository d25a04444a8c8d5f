//! Benchmarks of profile building and of profile writing.
//!
//! The recordings are in `testdata`.

#[path = "../../nettrace/tests/reference/files.rs"]
#[expect(dead_code, reason = "tests use more of it")]
mod files;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use nettrace::SliceReader;
use nettrace_export::report::Collections;
use nettrace_export::{
    CausalGrouping, Format, Metric, Options, Order, Profile, ProfileBuilder, WriteOptions, write,
};

fn recording(name: &str) -> Vec<u8> {
    files::bytes_of(&files::testdata().join("traces").join(name))
}

/// The profile of a recording, in the order that its options name.
fn build(recording: &[u8], options: &Options) -> Profile {
    let mut builder = ProfileBuilder::new(options.clone());
    let mut events = SliceReader::new(recording).expect("a recording");
    let finished = if options.order == Order::File {
        events.for_each(|event| builder.add(&event)).expect("bytes in memory");
        builder.finish(events.info())
    } else {
        let mut events = events.in_time_order();
        events.for_each(|event| builder.add(&event)).expect("bytes in memory");
        builder.finish(events.events().info())
    };
    finished.expect("an order that does").0
}

fn building(criterion: &mut Criterion) {
    let in_time_order = |metric| Options::new(metric);
    let cases = [
        ("net10-sample", "wall", in_time_order(Metric::Wall)),
        ("net10-sample", "wall in file order", in_time_order(Metric::Wall).with_order(Order::File)),
        ("net10-gcverbose", "alloc", in_time_order(Metric::Alloc)),
        ("net10-gcverbose", "gc", in_time_order(Metric::Gc)),
        (
            "net9-joined",
            "wall by task and request",
            in_time_order(Metric::Wall)
                .with_grouping(CausalGrouping::NONE.with_tasks(true).with_requests(true)),
        ),
    ];
    for (name, what, options) in cases {
        let bytes = recording(&format!("{name}.nettrace.xz"));
        let mut group = criterion.benchmark_group(format!("build/{name}"));
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(what, |bencher| bencher.iter(|| black_box(build(&bytes, &options))));
    }
    let bytes = recording("net10-gcverbose.nettrace.xz");
    criterion.bench_function("report/gc", |bencher| {
        bencher.iter(|| {
            let mut collections = Collections::default();
            let mut events = SliceReader::new(&bytes).expect("a recording").in_time_order();
            events.for_each(|event| collections.add(&event)).expect("bytes in memory");
            black_box(collections.finish())
        });
    });
}

fn writing(criterion: &mut Criterion) {
    let bytes = recording("net10-sample.nettrace.xz");
    let profile = build(&bytes, &Options::new(Metric::Wall));
    let mut group = criterion.benchmark_group("write/net10-sample");
    for (name, format) in [("speedscope", Format::Speedscope), ("pprof", Format::Pprof)] {
        group.bench_function(name, |bencher| {
            let mut out = Vec::new();
            bencher.iter(|| {
                out.clear();
                write(&profile, format, WriteOptions::default(), &mut out).expect("memory");
                black_box(out.len())
            });
        });
    }
}

criterion_group!(benches, building, writing);
criterion_main!(benches);
