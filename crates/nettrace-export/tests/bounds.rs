//! The size of a recording bounds memory and results: stacks are written once and referred to many times.
#![cfg(target_os = "linux")]

use std::io;

use nettrace::SliceReader;
use nettrace_export::report::top;
use nettrace_export::{
    Format, MAX_NAME_LENGTH, Metric, Omissions, Options, Profile, ProfileBuilder, TooLarge, WriteOptions,
    most_output,
};
use nettrace_synth::clr::{self, Kind, MANAGED, Method, kind};

const LOAD: Kind = kind::METHOD_LOAD_VERBOSE;
const UNLOAD: Kind = kind::METHOD_UNLOAD_VERBOSE;
const BASE: u64 = 0x7f00_0000_0000;
const DEPTH: u64 = 1024;

/// Writes events a microsecond apart.
struct Recording {
    events: clr::Recording,
    time: u64,
}

impl Recording {
    fn new(stack: &[u64]) -> Self {
        let mut events = clr::Recording::new();
        events.stacks(&[stack]).written_by(1);
        Self { events, time: 0 }
    }

    fn next(&mut self, thread: u64) -> &mut clr::Recording {
        self.time += 1000;
        self.events.at(self.time).thread(thread)
    }

    fn method(&mut self, kind: Kind, start: u64, name: &str) {
        let method = Method { size: 16, signature: "", ..Method::new(start, name, "M") };
        self.next(1).event(kind, &method.verbose());
    }

    fn sample(&mut self, thread: u64) {
        self.next(thread).sample(1, MANAGED);
    }

    fn bytes(self) -> Vec<u8> {
        self.events.bytes()
    }
}

/// A stack with another method as its root at each sample.
fn root_changes(samples: u32) -> Vec<u8> {
    let frames: Vec<u64> = (0..DEPTH).map(|frame| BASE + 16 * frame).collect();
    let mut recording = Recording::new(&frames);
    for address in &frames {
        recording.method(LOAD, *address, "N");
    }
    let root = BASE + 16 * (DEPTH - 1);
    for number in 0..samples {
        recording.method(
            UNLOAD,
            root,
            &if number == 0 { "N".to_owned() } else { format!("N{}", number - 1) },
        );
        recording.method(LOAD, root, &format!("N{number}"));
        recording.sample(1);
    }
    recording.bytes()
}

/// A method with a long name that calls itself, on a thousand threads.
fn long_name(samples: u64) -> Vec<u8> {
    let mut frames = vec![BASE + 1; usize::try_from(DEPTH).unwrap()];
    frames[0] = BASE + 2;
    let mut recording = Recording::new(&frames);
    recording.method(LOAD, BASE, &"N".repeat(16_000));
    (0..samples).for_each(|number| recording.sample(2 + number % 1000));
    recording.bytes()
}

fn read(recording: &[u8], tracks: bool) -> (Profile, Omissions) {
    let mut builder = ProfileBuilder::new(Options::new(Metric::Wall).with_tracks(tracks));
    let mut events = SliceReader::new(recording).expect("a recording").in_time_order();
    events.for_each(|event| builder.add(&event)).expect("bytes in memory");
    builder.finish(events.events().info()).expect("time order")
}

/// Peak memory of the process, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Counts written bytes.
#[derive(Default)]
struct Counted(u64);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The size of a profile in a format, and whether that was too large.
fn written(profile: &Profile, format: Format, by_thread: bool) -> (u64, bool) {
    let options = WriteOptions::new("bounds", "tests").with_by_thread(by_thread);
    let mut out = Counted::default();
    let result = nettrace_export::write(profile, format, options, &mut out);
    let refused = result.is_err_and(|error| {
        let source = error.get_ref().and_then(|source| source.downcast_ref::<TooLarge>());
        let limit = source.map(|source: &TooLarge| source.limit);
        assert_eq!(limit, Some(most_output(profile.recorded_bytes)), "{error}");
        true
    });
    (out.0, refused)
}

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

/// One test, since it measures the memory of the whole process.
#[test]
fn memory_and_results_are_bounded_by_the_recording() {
    // 64 MB, and 32 bytes for each that was recorded. 20,000 samples, each frame of which starts another
    // stack, would take 600 MB.
    let recording = root_changes(20_000);
    let before = peak();
    let (profile, missing) = read(&recording, false);
    let rows = top(&profile).len();
    let taken = peak() - before;
    let most = (64 << 20) + 32 * recording.len() as u64;
    println!("{} MB for {} MB of root changes", taken >> 20, recording.len() >> 20);
    assert!(taken < most, "{taken} of {most} bytes for {} bytes", recording.len());
    assert!(missing.frames > 1_000_000 && rows > 10_000, "{} frames left out, {rows} rows", missing.frames);
    assert_eq!(profile.samples(), 19_999);
    drop(profile);

    let recording = long_name(2_000);
    let (profile, missing) = read(&recording, true);
    assert_eq!(missing.long_names, 1);
    let longest = profile.frames.iter().map(|(_, name)| name).max_by_key(|name| name.len()).unwrap();
    assert!(longest.ends_with('…') && longest.len() <= MAX_NAME_LENGTH + '…'.len_utf8(), "{}", longest.len());
    let most = most_output(recording.len() as u64);
    for format in FORMATS {
        // Each line of CSV has the whole stack.
        let expected = format == Format::Csv;
        let (bytes, refused) = written(&profile, format, false);
        println!("{format:?}: {bytes} bytes, refused: {refused}");
        assert!(bytes <= most, "{format:?}: {bytes} of {most}");
        assert!(refused || !expected, "{format:?}: {bytes}");
    }
    // And so has a line of folded stacks where each thread has its own.
    for (format, by_thread, expected) in
        [(Format::Folded, true, true), (Format::Folded, false, false), (Format::Flamegraph, false, false)]
    {
        let (bytes, refused) = written(&profile, format, by_thread);
        assert!(bytes <= most && refused == expected, "{format:?}: {bytes} of {most}");
    }
    let taken = peak() - before;
    let most = (256 << 20) + 128 * recording.len() as u64;
    println!("{} MB for {} KB of long names", taken >> 20, recording.len() >> 10);
    assert!(taken < most, "{taken} of {most} bytes for {} bytes", recording.len());
}
