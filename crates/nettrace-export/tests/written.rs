//! Recordings that no runtime writes at will: stacks without end, code in the place of other code, time that
//! goes back.

use std::io::Cursor;

use nettrace::{Reader, RelativeTime, SliceReader};
use nettrace_export::report::{Allocations, call_tree, top};
use nettrace_export::{
    Format, Metric, Omissions, Options, Order, Profile, ProfileBuilder, ProfileReader, WriteOptions,
};
use nettrace_synth::nettrace::Trace;
use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader, Value, payload, stack_bytes};

const SAMPLE: u32 = 1;
const LOAD: u32 = 2;
const UNLOAD: u32 = 3;
const ALLOCATION: u32 = 4;

const FORMATS: [Format; 9] = [
    Format::Speedscope,
    Format::Chromium,
    Format::Firefox,
    Format::Pprof,
    Format::Folded,
    Format::Flamegraph,
    Format::Svg,
    Format::Perfetto,
    Format::Csv,
];

fn trace() -> Trace {
    let header = TraceHeader { frequency: 1_000_000_000, ..TraceHeader::default() };
    let kind = |id, provider: &str, event_id, version| Metadata {
        id,
        provider: provider.into(),
        event_id,
        version,
        ..Metadata::default()
    };
    let mut trace = Trace::new(&header);
    trace.metadata_block(&[
        kind(SAMPLE, "Microsoft-DotNETCore-SampleProfiler", 0, 0),
        kind(LOAD, "Microsoft-Windows-DotNETRuntime", 143, 1),
        kind(UNLOAD, "Microsoft-Windows-DotNETRuntime", 144, 1),
        kind(ALLOCATION, "Microsoft-Windows-DotNETRuntime", 10, 4),
    ]);
    trace
}

fn sample(sequence: u32, timestamp: u64, thread: u64, stack_id: u32) -> Event {
    Event {
        metadata_id: SAMPLE,
        sequence,
        thread,
        capture_thread: 1,
        stack_id,
        timestamp,
        payload: payload(&[Value::UInt32(2)]),
        ..Event::default()
    }
}

/// A method of 256 bytes at 0x1000.
fn method(kind: u32, sequence: u32, timestamp: u64, name: &str) -> Event {
    let fields = [
        Value::UInt64(1),
        Value::UInt64(1),
        Value::UInt64(0x1000),
        Value::UInt32(256),
        Value::UInt32(0x0600_0001),
        Value::UInt32(8),
        Value::string16("Type"),
        Value::string16(name),
        Value::string16("void ()"),
        Value::UInt16(0),
    ];
    Event {
        metadata_id: kind,
        sequence,
        thread: 1,
        capture_thread: 1,
        timestamp,
        payload: payload(&fields),
        ..Event::default()
    }
}

fn read(recording: &[u8], options: Options) -> (Profile, Omissions) {
    let mut builder = ProfileBuilder::new(options);
    let mut events = SliceReader::new(recording).expect("a recording").in_time_order();
    events.for_each(|event| builder.add(&event)).expect("bytes in memory");
    builder.finish(events.events().info()).expect("time order")
}

/// Returns true if the order in which events were written is enough.
fn file_order_is_enough(recording: &[u8]) -> bool {
    let mut builder = ProfileBuilder::new(Options::new(Metric::Wall).with_order(Order::File));
    let mut events = SliceReader::new(recording).expect("a recording");
    events.for_each(|event| builder.add(&event)).expect("bytes in memory");
    builder.finish(events.info()).is_ok()
}

fn block(events: impl IntoIterator<Item = Event>) -> EventBlock {
    let mut block = EventBlock::v4();
    for event in events {
        block.event(&event);
    }
    block
}

#[test]
fn code_in_the_place_of_other_code_keeps_its_name() {
    let mut trace = trace();
    trace.stack_block(1, &[stack_bytes(&[0x1010], 8)]);
    trace.event_block(&block([
        method(LOAD, 1, 5, "Before"),
        sample(2, 10, 7, 1),
        sample(3, 110, 7, 1),
        method(UNLOAD, 4, 200, "Before"),
        method(LOAD, 5, 210, "After"),
        sample(6, 310, 7, 1),
        sample(7, 1310, 7, 1),
    ]));
    let recording = trace.finish();
    assert!(!file_order_is_enough(&recording));
    let (profile, missing) = read(&recording, Options::new(Metric::Wall).with_kinds(false));
    let expected = [("Before()".to_owned(), 300), ("After()".to_owned(), 1000)];
    assert_eq!(exclusive_weights(&profile), expected);
    assert!(missing.unresolved.is_empty());

    // Readers in one call need not know.
    assert_eq!(read_as_file(&recording), (expected.to_vec(), 2));
    let options = Options::new(Metric::Wall).with_kinds(false);
    // Bytes before the recording are not part of it.
    let mut file = Cursor::new([b"before ", &recording[..]].concat());
    file.set_position(7);
    let (profile, _) = nettrace_export::profile(file, options.clone()).expect("bytes in memory");
    assert_eq!(exclusive_weights(&profile), expected);
    let pipe = Reader::new(&recording[..]).expect("a recording");
    let read = ProfileReader::new(options).read(pipe, |_| {}).expect("bytes in memory");
    assert_eq!(exclusive_weights(&read.profile), expected);
}

#[test]
fn a_recording_that_file_order_does_for_is_read_once() {
    let mut trace = trace();
    trace.stack_block(1, &[stack_bytes(&[0x1010], 8)]);
    trace.event_block(&block([method(LOAD, 1, 5, "Only"), sample(2, 10, 7, 1), sample(3, 110, 7, 1)]));
    let recording = trace.finish();
    assert_eq!(read_as_file(&recording), (vec![("Only()".to_owned(), 100)], 1));
}

/// The exclusive weights of the methods of a recording that is read as a file, and how often it was opened.
fn read_as_file(recording: &[u8]) -> (Vec<(String, u64)>, u32) {
    let (mut opened, mut events) = (0, 0);
    let open = || {
        opened += 1;
        Reader::new(recording)
    };
    let options = Options::new(Metric::Wall).with_kinds(false);
    let read = ProfileReader::new(options).read_file(open, |_| events += 1).expect("bytes in memory");
    assert!(events > 0 && read.events.truncated_at().is_none());
    (exclusive_weights(&read.profile), opened)
}

fn exclusive_weights(profile: &Profile) -> Vec<(String, u64)> {
    let rows = top(profile).into_iter().filter(|row| !row.is_root);
    rows.map(|row| (row.frame.rsplit('.').next().unwrap_or_default().to_owned(), row.exclusive)).collect()
}

/// A thread without managed frames is not sampled: its previous stack does not show its work.
#[test]
fn a_thread_that_the_sampler_no_longer_finds_is_idle() {
    let mut trace = trace();
    trace.stack_block(1, &[stack_bytes(&[0x1010], 8)]);
    trace.event_block(&block([
        method(LOAD, 1, 5, "Only"),
        sample(2, 10, 7, 1),
        sample(3, 11, 8, 1),
        sample(4, 20, 7, 1),
        sample(5, 21, 8, 1),
        // Thread 8 is gone in the rounds at 30 and 40, and back in that at 50.
        sample(6, 30, 7, 1),
        sample(7, 40, 7, 1),
        sample(8, 50, 7, 1),
        sample(9, 51, 8, 1),
        sample(10, 60, 7, 1),
    ]));
    let recording = trace.finish();
    let all = Options::new(Metric::Wall).with_kinds(false);
    let dotnet_trace = read(&recording, all.clone()).0;
    assert_eq!((dotnet_trace.total(), dotnet_trace.idle()), (50 + 40, 0));

    let without_idle = all.with_idle(false);
    let shown = read(&recording, without_idle.clone()).0;
    assert_eq!((shown.total(), shown.idle(), shown.samples()), (50 + 10 + 9, 51 - 30, 7));
    let cpu = read(&recording, Options::new(Metric::Cpu).with_idle(false)).0;
    assert_eq!((cpu.total(), cpu.idle()), (50 + 10 + 9, 51 - 30));
    let with_stacks = read(&recording, without_idle.clone().with_idle_stacks(true)).0;
    assert_eq!((with_stacks.total(), with_stacks.idle(), with_stacks.samples()), (90, 21, 7));

    // Unwanted threads still separate the rounds.
    let mut of_one_thread = without_idle;
    of_one_thread.selection.threads = vec![8];
    let shown = read(&recording, of_one_thread).0;
    assert_eq!((shown.total(), shown.idle()), (10 + 9, 21));
}

#[test]
fn stacks_without_end_are_cut_and_that_is_said() {
    const FRAMES: u64 = 300_000;
    const SAMPLES: u32 = 20_000;
    let mut trace = trace();
    let stack: Vec<u64> = (0..FRAMES).map(|frame| 0x10_0000 + 16 * frame).collect();
    trace.stack_block(1, &[stack_bytes(&stack, 8)]);
    trace.event_block(&block((1..=SAMPLES).map(|number| sample(number, u64::from(number) * 1000, 7, 1))));
    let recording = trace.finish();
    assert!(file_order_is_enough(&recording));
    let (profile, missing) = read(&recording, Options::new(Metric::Wall));
    assert_eq!(profile.total(), u64::from(SAMPLES - 1) * 1000);
    assert_eq!(missing.frames, FRAMES - 1024);
    assert_eq!(profile.stacks.len(), 1025, "and the kind of time");
    let options = WriteOptions::new("deep", "tests").with_by_thread(true);
    for format in [Format::Speedscope, Format::Flamegraph, Format::Pprof, Format::Firefox, Format::Folded] {
        let mut out = Vec::new();
        nettrace_export::write(&profile, format, options, &mut out).expect("memory");
        assert!(!out.is_empty());
    }
}

#[test]
fn blocks_may_come_in_any_order() {
    let mut trace = trace();
    trace.stack_block(1, &[stack_bytes(&[0x5000], 8), stack_bytes(&[0x6000], 8)]);
    let other = |event: Event| Event { capture_thread: 2, ..event };
    trace.event_block(&block([sample(1, 5_000, 7, 1), sample(2, 9_000, 7, 2)]));
    trace.event_block(&block([other(sample(1, 1_000, 7, 2)), other(sample(2, 6_000, 8, 1))]));
    let recording = trace.finish();
    assert!(!file_order_is_enough(&recording));
    let (profile, _) = read(&recording, Options::new(Metric::Wall));
    assert_eq!(profile.total(), 8_000);
    let seen = profile.threads[0].track.as_ref().expect("a track");
    let spans: Vec<_> = seen.iter().map(|span| (span.start, span.weight)).collect();
    assert_eq!(spans, [(RelativeTime::from_nanos(1_000), 4_000), (RelativeTime::from_nanos(5_000), 4_000)]);
    assert!(profile.threads[1].track.is_none(), "one sample makes no time");
}

/// An allocation that represents a number of bytes.
fn allocation(sequence: u32, thread: u64, bytes: u64, type_name: &str) -> Event {
    let fields = [
        Value::UInt32(0),
        Value::UInt32(0),
        Value::UInt16(0),
        Value::UInt64(bytes),
        Value::UInt64(0),
        Value::string16(type_name),
        Value::UInt32(0),
        Value::UInt64(0),
        Value::UInt64(24),
    ];
    Event {
        metadata_id: ALLOCATION,
        sequence,
        thread,
        capture_thread: thread,
        timestamp: u64::from(sequence) * 1_000_000,
        payload: payload(&fields),
        ..Event::default()
    }
}

#[test]
fn sums_that_no_number_can_hold_saturate() {
    let mut trace = trace();
    let events =
        (1..=300).map(|number| allocation(number, 7 + u64::from(number % 20), u64::MAX / 3, "App.Type"));
    let events = events.chain([allocation(301, 7, 1, "App.Small")]);
    trace.event_block(&block(events));
    let recording = trace.finish();
    let (profile, _) = read(&recording, Options::new(Metric::Alloc));
    assert_eq!((profile.total(), profile.samples()), (u64::MAX, 301));
    for row in top(&profile) {
        let (exclusive, inclusive) =
            if row.frame == "App.Small" { (1, 1) } else { (row.exclusive, u64::MAX) };
        assert_eq!((row.exclusive, row.inclusive), (exclusive, inclusive), "{}", row.frame);
    }
    let tree = call_tree(&profile, true);
    tree.walk(100, 0, |_, node| assert!(node.inclusive >= node.exclusive));
    let mut allocations = Allocations::default();
    let mut events = SliceReader::new(&recording).expect("a recording");
    events.for_each(|event| allocations.add(&event)).expect("bytes in memory");
    let report = allocations.finish();
    assert_eq!(report.timeline.sums.iter().max(), Some(&u64::MAX));
    let options = WriteOptions::new("sums", "tests").with_by_thread(true);
    for format in FORMATS {
        let mut out = Vec::new();
        nettrace_export::write(&profile, format, options, &mut out).expect("memory");
    }
}

/// Counts how often it is written to.
#[derive(Default)]
struct Calls {
    calls: usize,
    bytes: usize,
}

impl std::io::Write for Calls {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.calls += 1;
        self.bytes += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_file_is_written_in_large_pieces() {
    let mut trace = trace();
    trace.stack_block(1, &[stack_bytes(&[0x1010, 0x2020, 0x3030], 8)]);
    let samples = (0..2000).map(|n| sample(n + 1, u64::from(n) * 3_000_000, u64::from(n % 5), 1 - n % 2));
    trace.event_block(&block(samples));
    let (profile, _) = read(&trace.finish(), Options::new(Metric::Wall).with_kinds(false));
    for format in FORMATS {
        let mut out = Calls::default();
        nettrace_export::write(&profile, format, WriteOptions::default(), &mut out).expect("counting");
        assert!(
            out.bytes > 0 && out.calls <= out.bytes / 30_000 + 2,
            "{format:?}: {} writes of {}",
            out.calls,
            out.bytes
        );
    }
}
