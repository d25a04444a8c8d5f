//! The cost of messages: every request encoded, and decoded with and without copying; the longest reply;
//! framing.

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use dipc_wire::{
    Advertise, ApplyStartupHook, AttachProfiler, BufferMode, CollectTracing1, CollectTracing2,
    CollectTracing3, CollectTracing4, CollectTracing5, CollectTracing6, Command, Decode, DecodeOwned,
    DisablePerfMap, DumpFlags, DumpType, EnablePerfMap, Environment, EventFilter, Feed,
    FilteredProviderConfig, Format, GenerateCoreDump1, GenerateCoreDump2, GenerateCoreDump3, HResult, Items,
    Keywords, Level, Message, MessageReader, PerfMapType, ProcessEnvironment, ProcessInfo1,
    ProcessInfo1Reply, ProcessInfo2, ProcessInfo2Reply, ProcessInfo3, ProcessInfo3Reply, ProviderConfig,
    Request, ResumeRuntime, SessionId, SetEnvironmentVariable, StartupProfiler, StopTracing,
    StreamingSession, StreamingSession6, TracepointConfig, TracepointSet, UserEventsProviderConfig,
    UserEventsSession, Utf16, decode_reply, decode_reply_as, encode_error, encode_ok,
};
use std::hint::black_box;
use uuid::Uuid;

type Ids<'a> = Items<'a, u32>;
type Variable<'a> = SetEnvironmentVariable<Utf16<'a>, Utf16<'a>>;
type Providers<'a> = Items<'a, ProviderConfig<Utf16<'a>>>;
type Filtered<'a> = Items<'a, FilteredProviderConfig<Utf16<'a>, Ids<'a>>>;
type Sets<'a> = Items<'a, TracepointSet<Utf16<'a>, Ids<'a>>>;
type Traced<'a> = Items<'a, UserEventsProviderConfig<Utf16<'a>, Ids<'a>, Sets<'a>>>;
type Streaming<'a> = CollectTracing5<StreamingSession<Filtered<'a>>, UserEventsSession<Traced<'a>>>;
type Streaming6<'a> = CollectTracing6<StreamingSession6<Filtered<'a>>, UserEventsSession<Traced<'a>>>;

fn provider(n: usize) -> ProviderConfig {
    ProviderConfig {
        keywords: Keywords(0x14_c14f_ccbd),
        level: Level::INFORMATIONAL,
        name: format!("Microsoft-Windows-DotNETRuntime-{n}"),
        arguments: "EventCounterIntervalSec=1".into(),
    }
}

/// Returns a session with this many providers.
fn collect(providers: usize) -> CollectTracing4 {
    CollectTracing4 {
        buffer_mb: 256,
        format: Format::NETTRACE,
        rundown_keyword: CollectTracing4::DEFAULT_RUNDOWN_KEYWORD,
        request_stackwalk: true,
        providers: (0..providers).map(provider).collect(),
    }
}

fn streaming() -> StreamingSession {
    let CollectTracing4 { buffer_mb, format, rundown_keyword, request_stackwalk, providers } = collect(2);
    let filtered = |provider| FilteredProviderConfig { provider, filter: EventFilter::default() };
    let providers = providers.into_iter().map(filtered).collect();
    StreamingSession { buffer_mb, format, rundown_keyword, request_stackwalk, providers }
}

fn user_events() -> UserEventsSession {
    let sets = vec![TracepointSet { tracepoint: "LowEvents".into(), ids: (1..10).collect() }];
    let tracepoints = TracepointConfig { default_tracepoint: "Tracepoint".into(), sets };
    let filter = EventFilter { enable: false, ids: vec![4, 5] };
    UserEventsSession {
        rundown_keyword: Keywords::NONE,
        providers: vec![UserEventsProviderConfig { provider: provider(0), filter, tracepoints }],
    }
}

fn read(bytes: &[u8]) -> Message {
    match MessageReader::new().feed(bytes) {
        Ok(Feed::Message { message, .. }) => message,
        other => panic!("{other:?}"),
    }
}

type Group<'g> = BenchmarkGroup<'g, WallTime>;

fn encode<C: Command>(group: &mut Group<'_>, name: &str, command: &C) -> Message {
    group.bench_function(format!("{name}/encode"), |b| b.iter(|| black_box(command).to_bytes()));
    read(&command.to_bytes().unwrap())
}

fn decode<'m, T: Decode<'m>>(group: &mut Group<'_>, name: &str, how: &str, message: &'m Message) {
    message.decode::<T>().unwrap();
    group.bench_function(format!("{name}/{how}"), |b| b.iter(|| black_box(message).decode::<T>()));
}

/// Measures a command without strings or arrays.
fn plain<C: Command + DecodeOwned>(group: &mut Group<'_>, command: &C) {
    let message = encode(group, C::NAME, command);
    decode::<C>(group, C::NAME, "decode", &message);
}

/// Measures a command with them: `$borrowed` is its form that copies nothing.
macro_rules! both_forms {
    ($group:ident, $name:expr, $command:expr, $owned:ty, $borrowed:ty) => {
        let message = encode($group, $name, &$command);
        decode::<$owned>($group, $name, "decode", &message);
        decode::<$borrowed>($group, $name, "decode in place", &message);
    };
}

fn requests(c: &mut Criterion) {
    let group = &mut c.benchmark_group("requests");
    let path = || String::from("/var/lib/shop/dumps/core.4711");
    let (dump_type, flags) = (DumpType::FULL, DumpFlags::LOGGING);
    let dump = GenerateCoreDump1 { path: path(), dump_type, flags };
    both_forms!(group, "GenerateCoreDump", dump, GenerateCoreDump1, GenerateCoreDump1<Utf16<'_>>);
    let dump = GenerateCoreDump2 { path: path(), dump_type, flags };
    both_forms!(group, "GenerateCoreDump2", dump, GenerateCoreDump2, GenerateCoreDump2<Utf16<'_>>);
    let dump = GenerateCoreDump3 { path: path(), dump_type, flags };
    both_forms!(group, "GenerateCoreDump3", dump, GenerateCoreDump3, GenerateCoreDump3<Utf16<'_>>);

    plain(group, &StopTracing { session: SessionId(0x7f29_3c00_13b0) });
    let CollectTracing4 { buffer_mb, format, rundown_keyword, request_stackwalk, providers } = collect(2);
    let session = CollectTracing1 { buffer_mb, format, providers: providers.clone() };
    both_forms!(group, "CollectTracing", session, CollectTracing1, CollectTracing1<Providers<'_>>);
    let session = CollectTracing2 { buffer_mb, format, request_rundown: true, providers: providers.clone() };
    both_forms!(group, "CollectTracing2", session, CollectTracing2, CollectTracing2<Providers<'_>>);
    let request_rundown = true;
    let session = CollectTracing3 {
        buffer_mb,
        format,
        request_rundown,
        request_stackwalk,
        providers: providers.clone(),
    };
    both_forms!(group, "CollectTracing3", session, CollectTracing3, CollectTracing3<Providers<'_>>);
    let session = CollectTracing4 { buffer_mb, format, rundown_keyword, request_stackwalk, providers };
    both_forms!(group, "CollectTracing4", session, CollectTracing4, CollectTracing4<Providers<'_>>);
    let session: CollectTracing5 = CollectTracing5::Streaming(streaming());
    both_forms!(group, "CollectTracing5", session, CollectTracing5, Streaming<'_>);
    let session: CollectTracing5 = CollectTracing5::UserEvents(user_events());
    both_forms!(group, "CollectTracing5, user_events", session, CollectTracing5, Streaming<'_>);
    let session = StreamingSession6 { session: streaming(), buffer_mode: BufferMode::BLOCK };
    let session: CollectTracing6 = CollectTracing6::Streaming(session);
    both_forms!(group, "CollectTracing6", session, CollectTracing6, Streaming6<'_>);

    let (profiler, timeout_ms) = (Uuid::from_u128(0x1234), 10_000);
    let attach = AttachProfiler { timeout_ms, profiler, path: path(), client_data: vec![7; 64] };
    both_forms!(group, "AttachProfiler", attach, AttachProfiler, AttachProfiler<Utf16<'_>, &[u8]>);
    let startup = StartupProfiler { profiler, path: path() };
    both_forms!(group, "StartupProfiler", startup, StartupProfiler, StartupProfiler<Utf16<'_>>);

    plain(group, &ProcessInfo1);
    plain(group, &ProcessInfo2);
    plain(group, &ProcessInfo3);
    plain(group, &ProcessEnvironment);
    plain(group, &ResumeRuntime);
    plain(group, &EnablePerfMap { kind: PerfMapType::ALL });
    plain(group, &DisablePerfMap);
    let set =
        SetEnvironmentVariable { name: String::from("DOTNET_gcServer"), value: Some(String::from("1")) };
    both_forms!(group, "SetEnvironmentVariable", set, SetEnvironmentVariable, Variable<'_>);
    let hook = ApplyStartupHook { path: path() };
    both_forms!(group, "ApplyStartupHook", hook, ApplyStartupHook, ApplyStartupHook<Utf16<'_>>);

    let message = read(&collect(2).to_bytes().unwrap());
    group.bench_function("any/decode", |b| b.iter(|| Request::decode(black_box(&message))));
}

/// Measures a session with as many providers as fit into a message.
fn large(c: &mut Criterion) {
    let group = &mut c.benchmark_group("CollectTracing4 with 300 providers");
    let command = collect(300);
    group.throughput(Throughput::Bytes(command.to_bytes().unwrap().len() as u64));
    both_forms!(group, "CollectTracing4", command, CollectTracing4, CollectTracing4<Providers<'_>>);
}

fn replies(c: &mut Criterion) {
    let mut group = c.benchmark_group("replies");
    let mut first = ProcessInfo1Reply::new(4711, Uuid::from_u128(7));
    first.command_line = "/usr/share/dotnet/dotnet /srv/app/Shop.Web.dll --urls http://0.0.0.0:8080";
    (first.os, first.arch) = ("Linux", "x64");
    let info = ProcessInfo3Reply::new(ProcessInfo2Reply::new(first, "Shop.Web", "9.0.1"), "linux-x64");
    let message = read(&encode_ok(&info).unwrap());
    group.bench_function("ProcessInfo3/encode", |b| b.iter(|| encode_ok(black_box(&info))));
    group.bench_function("ProcessInfo3/decode", |b| {
        b.iter(|| decode_reply::<ProcessInfo3>(black_box(&message)));
    });
    group.bench_function("ProcessInfo3/decode in place", |b| {
        b.iter(|| decode_reply_as::<ProcessInfo3Reply<Utf16<'_>>>(black_box(&message)));
    });
    group.bench_function("HResult/encode", |b| b.iter(|| encode_ok(black_box(&HResult::OK))));
    group.bench_function("error/encode", |b| b.iter(|| encode_error(black_box(HResult::FAIL))));
    let advertise = Advertise::new(Uuid::from_u128(7), 4711);
    let bytes = advertise.to_bytes().unwrap();
    group.bench_function("Advertise/encode", |b| b.iter(|| black_box(&advertise).to_bytes()));
    group.bench_function("Advertise/decode", |b| b.iter(|| Advertise::from_bytes(black_box(&bytes))));

    let variables = (0..1000).map(|n| format!("VARIABLE_{n}={}", "value ".repeat(n % 20)));
    let (_, block) = Environment(variables.collect::<Vec<_>>()).to_bytes().unwrap();
    group.throughput(Throughput::Bytes(block.len() as u64));
    group.bench_function("environment of 1000/decode", |b| {
        b.iter(|| <Environment>::from_bytes(black_box(&block)));
    });
    group.bench_function("environment of 1000/decode in place", |b| {
        b.iter(|| Environment::<Items<'_, Utf16<'_>>>::from_bytes(black_box(&block)));
    });
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

criterion_group!(benches, requests, large, replies, framing);
criterion_main!(benches);
