//! Rewriting of recordings in memory, by the bytes that are read.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use nettrace::SliceReader;
use nettrace_writer::{Error, Version, transcode};

/// Recordings that are common: samples with stacks, allocations, many small events.
const RECORDINGS: [&str; 4] =
    ["net10-sample.nettrace", "net9-everything.nettrace", "net10-tick.nettrace", "v6-record-trace.nettrace"];

fn rewrite(criterion: &mut Criterion) {
    for name in RECORDINGS {
        let bytes = testdata::bytes(&format!("traces/{name}.xz"));
        let version = if name.starts_with("v6") { Version::V6 } else { Version::V4 };
        let mut group = criterion.benchmark_group("rewrite");
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut count = 0;
                let events = SliceReader::new(&bytes).expect("a recording");
                transcode(events, version, |part| {
                    count += part.len();
                    Ok::<_, Error>(())
                })
                .expect("a recording that can be written");
                count
            });
        });
        group.finish();
    }
}

criterion_group!(benches, rewrite);
criterion_main!(benches);
