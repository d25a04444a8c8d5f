//! Commands that work on all processors: they print the same on one and on four.

use std::fs;
use std::process::Command;

use nettrace_synth::clr::{Kind, Recording};
use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader, Value, nettrace as v4};
use tempfile::TempDir;

const THREADS: u64 = 40;
const ROUNDS: u64 = 30;
const EVENTS: u64 = 60;

/// A recording of many threads with blocks that overlap in time, and stacks that change between sequence
/// points.
fn of_many_threads() -> Vec<u8> {
    let mut trace = v4::Trace::new(&TraceHeader::default());
    let kind = |id: u32| Metadata { id, provider: "P".into(), event_id: id, ..Metadata::default() };
    trace.metadata_block(&[kind(1), kind(2), kind(3)]);
    for round in 0..ROUNDS {
        let stacks: Vec<Vec<u8>> =
            (1..=5_u64).map(|frame| (round << 8 | frame).to_le_bytes().to_vec()).collect();
        trace.stack_block(1, &stacks);
        for thread in 1..=THREADS {
            let mut block = EventBlock::v4();
            for number in 0..EVENTS {
                let sequence = u32::try_from(round * EVENTS + number + 1).expect("few events");
                block.event(&Event {
                    metadata_id: 1 + sequence * 7 % 3,
                    sequence,
                    thread,
                    capture_thread: thread,
                    stack_id: sequence % 6,
                    timestamp: 100_000 * round + 1000 * number + thread * thread % 1009,
                    payload: format!("{round} {thread} {number}").into_bytes(),
                    ..Event::default()
                });
            }
            trace.event_block(&block);
        }
        let last = u32::try_from((round + 1) * EVENTS).expect("few events");
        let threads: Vec<_> = (1..=THREADS).map(|thread| (thread, last)).collect();
        trace.sequence_point(100_000 * (round + 1) - 1, &threads);
    }
    trace.finish()
}

/// A recording that has to be held as a whole: each event is older than the one before.
fn backwards() -> Vec<u8> {
    let mut trace = v4::Trace::new(&TraceHeader::default());
    trace.metadata_block(&[Metadata { id: 1, provider: "P".into(), event_id: 1, ..Metadata::default() }]);
    for round in 0..250 {
        let mut block = EventBlock::v4();
        for number in 0..1000 {
            let sequence = 1000 * round + number + 1;
            block.event(&Event {
                metadata_id: 1,
                sequence,
                thread: 1,
                capture_thread: 1,
                timestamp: u64::from(1_000_000 - sequence),
                ..Event::default()
            });
        }
        trace.event_block(&block);
    }
    trace.finish()
}

/// A folder with recordings: real ones, one of many threads, and that one cut and damaged.
fn recordings() -> (TempDir, Vec<&'static str>) {
    let folder = tempfile::tempdir().expect("a folder");
    let real = [
        "net9-everything.nettrace",
        "net10-tick.nettrace",
        "v6-record-trace.nettrace",
        "net10-netperf.netperf",
    ];
    for name in real {
        testdata::write(&format!("traces/{name}.xz"), &folder.path().join(name));
    }
    let whole = of_many_threads();
    let mut damaged = whole.clone();
    let middle = whole.len() / 2;
    damaged[middle..middle + 100].fill(0xff);
    for (name, bytes) in [("many", &whole[..]), ("cut", &whole[..middle]), ("damaged", &damaged[..])] {
        fs::write(folder.path().join(name), bytes).expect("a file");
    }
    (folder, real.into_iter().chain(["many", "cut", "damaged"]).collect())
}

/// The exit code and the output on both streams with this many threads.
fn run(folder: &TempDir, threads: &str, arguments: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dipc"));
    command.current_dir(folder.path()).env("DIPC_THREADS", threads);
    let output = command.args(arguments.split_whitespace()).output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Compares the output of a command for each recording. `FILE` is the recording. Returns the lines of all.
fn compare(arguments: &str) -> usize {
    let (folder, names) = recordings();
    let mut lines = 0;
    for name in names {
        let arguments = arguments.replace("FILE", name);
        let (one, four) = (run(&folder, "1", &arguments), run(&folder, "4", &arguments));
        assert!(matches!(one.0, Some(0 | 6)), "{arguments}: {one:?}");
        assert_eq!((one.0, &one.2), (four.0, &four.2), "{arguments}");
        let differs = one.1.lines().zip(four.1.lines()).position(|(one, four)| one != four);
        assert!(one.1 == four.1, "{arguments}: from line {differs:?} on");
        lines += one.1.lines().count();
    }
    lines
}

#[test]
fn events_are_the_same_lines() {
    for arguments in [
        "events FILE",
        "events FILE --format jsonl --stacks --order file",
        "events FILE --format json --payload",
        "events FILE --symbols",
        "events FILE --format jsonl --from 10ms --to 300ms",
        "events FILE --head 700",
    ] {
        let lines = compare(arguments);
        assert!(lines > 1000, "{arguments}: {lines} lines");
    }
}

/// The first write fails: the readers that wait for their turns end, too.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_ends_all_readers() {
    let (folder, _) = recordings();
    for threads in ["1", "2", "8"] {
        let (code, _, errors) = run(&folder, threads, "convert many -f jsonl -o /dev/full");
        assert_eq!(code, Some(1), "{threads} threads: {errors}");
        assert!(errors.contains("write: /dev/full: No space left on device"), "{threads} threads: {errors}");
    }
}

#[test]
fn overviews_are_the_same() {
    for arguments in ["report FILE", "report FILE --format json"] {
        let lines = compare(arguments);
        assert!(lines > 50, "{arguments}: {lines} lines");
    }
}

#[test]
fn statistics_are_the_same() {
    for arguments in ["stat FILE", "stat FILE --format json"] {
        let lines = compare(arguments);
        assert!(lines > 100, "{arguments}: {lines} lines");
    }
}

/// Events of the garbage collector that have their names in their payloads: more names than are counted
/// apart, in an order in which each part of the recording has others.
fn of_many_names() -> Vec<u8> {
    let mut recording = Recording::new();
    for block in 0..40 {
        for number in 0..256 {
            // The second half has the names of the first, from the last to the first.
            let name = (256 * block + number).min(10_239 - 256 * block - number);
            let values = [Value::string16(&format!("Name{name}")), Value::Raw(vec![0; 100])];
            recording.event(Kind::runtime(39, 0), &values);
        }
        recording.block();
    }
    recording.bytes()
}

#[test]
fn statistics_of_very_many_names_are_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("names"), of_many_names()).expect("a file");
    let one = run(&folder, "1", "stat names --format json");
    assert_eq!(one.0, Some(0), "{}", one.2);
    // Of 5120 names; the others are one row, and the format has a version, too.
    let rows = one.1.matches("\"version\"").count();
    assert!((4096..4100).contains(&rows), "{rows} rows");
    for threads in ["2", "4"] {
        let several = run(&folder, threads, "stat names --format json");
        assert!(one == several, "{threads} threads: {}", several.2);
    }
}

#[test]
fn recordings_held_as_a_whole_give_the_same_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("backwards"), backwards()).expect("a file");
    let one = run(&folder, "1", "events backwards --format jsonl");
    assert_eq!((one.0, one.1.lines().count()), (Some(0), 250_000), "{}", one.2);
    let four = run(&folder, "4", "events backwards --format jsonl");
    assert!(one == four, "other lines: {}", four.2);
}

#[test]
fn new_recordings_are_the_same_bytes() {
    let (folder, names) = recordings();
    for arguments in ["edit FILE -o OUT", "edit FILE -o OUT --from 20ms --upgrade 6", "repair FILE -o OUT"] {
        for name in &names {
            let written = |threads: &str| {
                let arguments = arguments.replace("FILE", name).replace("OUT", threads);
                let (exit, ..) = run(&folder, threads, &arguments);
                (exit, fs::read(folder.path().join(threads)).expect("a recording"))
            };
            let (one, four) = (written("1"), written("4"));
            assert!(matches!(one.0, Some(0 | 6)), "{arguments}: {name}: {:?}", one.0);
            assert!(one == four, "{arguments}: {name}: {:?} and {:?}", one.0, four.0);
        }
    }
}
