//! What a message costs: encoding and decoding requests as tools send them, and the longest reply there is.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use dipc_wire::{
    CollectTracing4, Command as _, Environment, Feed, Format, Message, MessageReader, ProcessInfo3,
    ProcessInfo3Reply, ProviderConfig, Request, decode_reply, encode_ok,
};
use std::hint::black_box;

/// A session with as many providers as tools usually ask for.
fn collect(providers: usize) -> CollectTracing4 {
    let provider = |n| ProviderConfig {
        keywords: 0x14_c14f_ccbd,
        level: 4,
        name: format!("Microsoft-Windows-DotNETRuntime-{n}"),
        arguments: "EventCounterIntervalSec=1".into(),
    };
    CollectTracing4 {
        buffer_mb: 256,
        format: Format::NETTRACE,
        rundown_keyword: CollectTracing4::DEFAULT_RUNDOWN_KEYWORD,
        request_stackwalk: true,
        providers: (0..providers).map(provider).collect(),
    }
}

fn read(bytes: &[u8]) -> Message {
    match MessageReader::new().feed(bytes) {
        Ok(Feed::Message { message, .. }) => message,
        other => panic!("{other:?}"),
    }
}

fn requests(c: &mut Criterion) {
    let mut group = c.benchmark_group("CollectTracing4");
    for providers in [1, 4, 300] {
        let command = collect(providers);
        let bytes = command.to_bytes().unwrap();
        let message = read(&bytes);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(format!("encode/{providers} providers"), |b| {
            b.iter(|| black_box(&command).to_bytes());
        });
        group.bench_function(format!("decode/{providers} providers"), |b| {
            b.iter(|| Request::decode(black_box(&message)));
        });
    }
    group.finish();
}

fn replies(c: &mut Criterion) {
    let mut group = c.benchmark_group("replies");
    let info = ProcessInfo3Reply {
        version: 1,
        process_id: 4711,
        command_line: "/usr/share/dotnet/dotnet /srv/app/Shop.Web.dll --urls http://0.0.0.0:8080".into(),
        os: "Linux".into(),
        arch: "x64".into(),
        managed_entrypoint_assembly: "Shop.Web".into(),
        clr_version: "9.0.1".into(),
        runtime_identifier: "linux-x64".into(),
        ..ProcessInfo3Reply::default()
    };
    let message = read(&encode_ok(&info).unwrap());
    group.bench_function("encode/ProcessInfo3", |b| b.iter(|| encode_ok(black_box(&info))));
    group.bench_function("decode/ProcessInfo3", |b| {
        b.iter(|| decode_reply::<ProcessInfo3>(black_box(&message)));
    });
    let variables = (0..1000).map(|n| format!("VARIABLE_{n}={}", "value ".repeat(n % 20)));
    let (_, block) = Environment(variables.collect()).encode().unwrap();
    group.throughput(Throughput::Bytes(block.len() as u64));
    group.bench_function("decode/environment of 1000", |b| b.iter(|| Environment::decode(black_box(&block))));
    group.finish();
}

fn framing(c: &mut Criterion) {
    let mut group = c.benchmark_group("MessageReader");
    let bytes = collect(300).to_bytes().unwrap();
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    for piece in [64, 4096, bytes.len()] {
        group.bench_function(format!("fed {piece} bytes at a time"), |b| {
            b.iter_batched_ref(
                MessageReader::new,
                |reader| bytes.chunks(piece).map(|piece| reader.feed(piece).unwrap()).last(),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, requests, replies, framing);
criterion_main!(benches);
