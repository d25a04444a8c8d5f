//! Recordings that no runtime writes at will: stacks without end, code in the place of other code, time that
//! goes back.

use std::io::Cursor;

use nettrace::{Reader, RelativeTime, SliceReader};
use nettrace_export::report::{Allocations, call_tree, top};
use nettrace_export::{
    Format, Metric, Omissions, Options, Order, Profile, ProfileBuilder, ProfileReader, WriteOptions,
};
use nettrace_synth::clr::{Kind, MANAGED, Method, Recording, kind};

const LOAD: Kind = kind::METHOD_LOAD_VERBOSE;
const UNLOAD: Kind = kind::METHOD_UNLOAD_VERBOSE;

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

/// A recording that thread 1 wrote.
fn recording(stacks: &[&[u64]]) -> Recording {
    let mut recording = Recording::new();
    recording.stacks(stacks).written_by(1);
    recording
}

/// Adds samples of the first stack: time and thread.
fn sample(recording: &mut Recording, samples: &[(u64, u64)]) {
    for (time, thread) in samples {
        recording.at(*time).thread(*thread).sample(1, MANAGED);
    }
}

/// Adds an event of the method of 256 bytes at 0x1000.
fn method(recording: &mut Recording, kind: Kind, time: u64, name: &str) {
    recording.at(time).thread(1).event(kind, &Method::new(0x1000, "Type", name).verbose());
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

#[test]
fn code_in_the_place_of_other_code_keeps_its_name() {
    let mut recording = recording(&[&[0x1010]]);
    method(&mut recording, LOAD, 5, "Before");
    sample(&mut recording, &[(10, 7), (110, 7)]);
    method(&mut recording, UNLOAD, 200, "Before");
    method(&mut recording, LOAD, 210, "After");
    sample(&mut recording, &[(310, 7), (1310, 7)]);
    let recording = recording.bytes();
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
    let mut recording = recording(&[&[0x1010]]);
    method(&mut recording, LOAD, 5, "Only");
    sample(&mut recording, &[(10, 7), (110, 7)]);
    let recording = recording.bytes();
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
    let mut recording = recording(&[&[0x1010]]);
    method(&mut recording, LOAD, 5, "Only");
    // Thread 8 is gone in the rounds at 30 and 40, and back in that at 50.
    let rounds = [(10, 7), (11, 8), (20, 7), (21, 8), (30, 7), (40, 7), (50, 7), (51, 8), (60, 7)];
    sample(&mut recording, &rounds);
    let recording = recording.bytes();
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
    const SAMPLES: u64 = 20_000;
    let stack: Vec<u64> = (0..FRAMES).map(|frame| 0x10_0000 + 16 * frame).collect();
    let mut recording = recording(&[&stack]);
    (1..=SAMPLES).for_each(|number| sample(&mut recording, &[(number * 1000, 7)]));
    let recording = recording.bytes();
    assert!(file_order_is_enough(&recording));
    let (profile, missing) = read(&recording, Options::new(Metric::Wall));
    assert_eq!(profile.total(), (SAMPLES - 1) * 1000);
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
    let mut recording = recording(&[&[0x5000], &[0x6000]]);
    recording.thread(7).at(5_000).sample(1, MANAGED).at(9_000).sample(2, MANAGED).block().written_by(2);
    recording.at(1_000).sample(2, MANAGED).thread(8).at(6_000).sample(1, MANAGED);
    let recording = recording.bytes();
    assert!(!file_order_is_enough(&recording));
    let (profile, _) = read(&recording, Options::new(Metric::Wall));
    assert_eq!(profile.total(), 8_000);
    let seen = profile.threads[0].track.as_ref().expect("a track");
    let spans: Vec<_> = seen.iter().map(|span| (span.start, span.weight)).collect();
    assert_eq!(spans, [(RelativeTime::from_nanos(1_000), 4_000), (RelativeTime::from_nanos(5_000), 4_000)]);
    assert!(profile.threads[1].track.is_none(), "one sample makes no time");
}

#[test]
fn sums_that_no_number_can_hold_saturate() {
    let mut recording = Recording::new();
    for number in 1..=300 {
        recording.thread(7 + number % 20).at(number * 1_000_000).allocation(u64::MAX / 3, "App.Type");
    }
    recording.thread(7).at(301_000_000).allocation(1, "App.Small");
    let recording = recording.bytes();
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
    let mut recording = recording(&[&[0x1010, 0x2020, 0x3030]]);
    for number in 0..2000 {
        let stack = u32::from(number % 2 == 0);
        recording.at(number * 3_000_000).thread(number % 5).sample(stack, MANAGED);
    }
    let (profile, _) = read(&recording.bytes(), Options::new(Metric::Wall).with_kinds(false));
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
