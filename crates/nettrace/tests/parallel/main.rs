//! Recordings read on several threads: the same as on one, whole, cut, with other bytes, and from inputs that
//! fail.

use std::io::{Error as IoError, ErrorKind, Result as IoResult};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use nettrace::{Error, Event, Events, ReadAt, Reader, SliceReader, Source};
use nettrace_synth::v6::{self, Label, ThreadEntry, ThreadRow};
use nettrace_synth::{Event as Row, EventBlock, Field, Metadata, TraceHeader, Type, nettrace as v4};

/// The full result of a reading, each event with its offset and a digest.
#[derive(Debug, PartialEq)]
struct Reading {
    events: Vec<(u64, u64)>,
    lost: u64,
    is_lower_bound: bool,
    gaps: Vec<nettrace::Gap>,
    damage: Vec<nettrace::Damage>,
    damage_count: u64,
    truncated_at: Option<u64>,
    kinds: usize,
    /// Index, number, events lost and the time of the last one.
    threads: Vec<String>,
}

fn digest(event: &Event<'_>) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325;
    let add = |digest: u64, value: u64| (digest ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(5);
    let digest = [
        event.time().0,
        u64::from(event.metadata().id()),
        u64::from(event.version()),
        event.thread_id().0,
        event.capture_thread_id().0,
        event.process_id().unwrap_or(0),
        u64::from(event.sequence().unwrap_or(0)),
        event.labels().count() as u64,
    ]
    .into_iter()
    .fold(start, add);
    let digest = event.stack().fold(digest, add);
    event.payload().iter().fold(digest, |digest, byte| add(digest, u64::from(*byte)))
}

fn finish<S: Source>(events: &Events<S>, list: Vec<(u64, u64)>) -> Reading {
    Reading {
        events: list,
        lost: events.loss().total(),
        is_lower_bound: events.loss().is_lower_bound(),
        gaps: events.loss().gaps().to_vec(),
        damage: events.damage().to_vec(),
        damage_count: events.damage_count(),
        truncated_at: events.truncated_at(),
        kinds: events.metadata().len(),
        threads: events.threads().iter().map(|thread| format!("{thread:?}")).collect(),
    }
}

fn text(error: &Error) -> String {
    error.to_string()
}

/// Reads a slice, event by event.
fn in_order(bytes: &[u8]) -> Result<Reading, String> {
    let mut events = SliceReader::new(bytes).map_err(|error| text(&error))?;
    let mut list = Vec::new();
    while let Some(event) = events.next().map_err(|error| text(&error))? {
        list.push((event.offset(), digest(&event)));
    }
    Ok(finish(&events, list))
}

/// Reads on a number of threads. Also returns whether the recording was read a second time, on one of them.
fn on_threads<I: ReadAt + ?Sized>(input: &I, threads: usize) -> (Result<Reading, String>, bool) {
    let values = AtomicUsize::new(0);
    let init = || {
        values.fetch_add(1, Ordering::Relaxed);
        Vec::new()
    };
    let fold = |list: &mut Vec<_>, event: Event<'_>| list.push((event.offset(), digest(&event)));
    let outcome = Reader::par_fold(input, threads, init, fold, |mut one, mut other| {
        one.append(&mut other);
        one
    });
    let reading = outcome.map_err(|error| text(&error)).map(|(events, mut list)| {
        list.sort_unstable();
        finish(&events, list)
    });
    (reading, values.into_inner() > threads)
}

/// Asserts that a recording is read on several threads as on one. Returns whether it was read a second time.
fn assert_same(name: &str, bytes: &[u8]) -> bool {
    let expected = in_order(bytes);
    let mut again = false;
    for threads in [1, 2, 4] {
        let (reading, is_again) = on_threads(bytes, threads);
        // Not `assert_eq`: a million events are too long a message.
        if reading != expected {
            let differs = match (&reading, &expected) {
                (Ok(one), Ok(other)) => format!(
                    "{} and {} events, lost {} and {}, damage {:?} and {:?}, cut at {:?} and {:?}",
                    one.events.len(),
                    other.events.len(),
                    one.lost,
                    other.lost,
                    one.damage,
                    other.damage,
                    one.truncated_at,
                    other.truncated_at
                ),
                other => format!("{:?}", (other.0.as_ref().err(), other.1.as_ref().err())),
            };
            panic!("{name} on {threads} threads: {differs}");
        }
        again |= is_again && threads > 1;
    }
    again
}

/// Numbers that depend on the seed of random tests alone (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn new(test: u64) -> Self {
        Self(test.wrapping_add(testdata::seed()))
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((number ^ (number >> 31)) % limit as u64).expect("less than the limit")
    }
}

/// All recordings below `testdata`, unpacked.
fn recordings() -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of testdata") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let unpacked = name.strip_suffix(".xz").unwrap_or(&name);
            if path.is_dir() {
                // Files that builds and downloads leave there are not our recordings.
                if !matches!(&*name, "bin" | "obj" | "packages") {
                    folders.push(path);
                }
            } else if unpacked.ends_with(".nettrace") || unpacked.ends_with(".netperf") {
                found.push((name, testdata::bytes_at(&path)));
            }
        }
    }
    found.sort();
    assert!(found.len() >= 20, "recordings are missing from testdata");
    found
}

#[test]
fn recordings_of_runtimes_are_read_once() {
    for (name, bytes) in recordings() {
        let expected = in_order(&bytes).expect("a recording");
        let again = assert_same(&name, &bytes);
        // Its block of kind 195 does not show that the block before it ends there.
        let is_unusual = name == "synth-v6.nettrace";
        // Otherwise the other tests would show nothing.
        assert_eq!(again, is_unusual || !expected.damage.is_empty(), "{name}: read a second time");
    }
}

mod random {
    use super::*;

    #[test]
    fn cut_recordings_are_the_same() {
        let mut numbers = Numbers::new(18);
        for (name, bytes) in recordings() {
            for _ in 0..12 {
                let length = numbers.below(bytes.len());
                assert_same(&format!("{name} cut at {length}"), &bytes[..length]);
            }
        }
    }

    #[test]
    fn damaged_recordings_are_the_same() {
        let mut numbers = Numbers::new(1802);
        for (name, bytes) in recordings() {
            for _ in 0..12 {
                let (at, bit) = (numbers.below(bytes.len()), numbers.below(8));
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << bit;
                assert_same(&format!("{name} with another bit {bit} at {at}"), &bytes);
            }
        }
    }

    #[test]
    fn long_recordings_are_the_same_where_they_are_cut_and_damaged() {
        let mut numbers = Numbers::new(180_218);
        for (name, bytes) in long_recordings() {
            let mut cuts = 0;
            for _ in 0..10 {
                let length = numbers.below(bytes.len());
                cuts += usize::from(!assert_same(&format!("{name} cut at {length}"), &bytes[..length]));
                let (at, byte) = (numbers.below(bytes.len()), numbers.below(256));
                let mut bytes = bytes.clone();
                bytes[at] = u8::try_from(byte).expect("a byte");
                assert_same(&format!("{name} with {byte} at {at}"), &bytes);
            }
            // Before V6 the end of a block shows that it is whole.
            assert!(name == "V6" || cuts == 10, "{name}: {cuts} of 10 cut recordings were read once");
        }
    }
}

const THREADS: u64 = 24;
const ROUNDS: u64 = 60;
const EVENTS: u64 = 150;

fn kind(id: u32) -> Metadata {
    let fields = vec![Field::new("text", Type::String16)];
    Metadata { id, provider: "P".into(), event_id: id, fields, ..Metadata::default() }
}

fn fill(mut block: EventBlock, round: u64, thread: u64, missing: u32) -> EventBlock {
    for number in 0..EVENTS {
        let sequence = u32::try_from(round * EVENTS + number + 1).expect("few events") + missing;
        block.event(&Row {
            metadata_id: 1 + u32::try_from(number % (1 + round / 20)).expect("few kinds"),
            sequence,
            // Samplers write of other threads.
            thread: if number % 5 == 0 { 1 + (thread + number) % THREADS } else { thread },
            capture_thread: thread,
            stack_id: sequence % 6,
            timestamp: 100_000 * round + 1000 * number + thread,
            payload: vec![b'x', 0, b'0' + u8::try_from(number % 10).expect("a digit"), 0, 0, 0],
            ..Row::default()
        });
    }
    block
}

fn stacks(round: u64) -> Vec<Vec<u8>> {
    (1..=5_u64).map(|frame| (round << 8 | frame).to_le_bytes().to_vec()).collect()
}

fn last_numbers(round: u64, missing: u32) -> Vec<(u64, u32)> {
    let last = u32::try_from((round + 1) * EVENTS).expect("few events") + missing;
    (1..=THREADS).map(|thread| (thread, last)).collect()
}

/// A V4 recording of several megabytes: new kinds of events and stacks on the way, losses between blocks and
/// before sequence points.
fn long_v4(newest: bool) -> Vec<u8> {
    let header = TraceHeader::default();
    let mut trace = v4::Trace::new(&header);
    let mut missing = 0;
    for round in 0..ROUNDS {
        if round % 20 == 0 {
            let kinds = [kind(1 + u32::try_from(round / 20).expect("few kinds"))];
            if newest {
                trace.metadata_block(&kinds)
            } else {
                trace.metadata_block_v4(&kinds)
            };
        }
        trace.stack_block(1, &stacks(round));
        for thread in 1..=THREADS {
            trace.event_block(&fill(EventBlock::v4(), round, thread, missing));
        }
        if round % 7 == 3 {
            missing += 2;
        }
        trace.sequence_point(100_000 * (round + 1) - 1, &last_numbers(round, missing));
    }
    trace.finish()
}

/// The same of V6, with threads that end and labels that say the version.
fn long_v6() -> Vec<u8> {
    let mut trace = v6::Trace::new(&TraceHeader::default());
    let mut missing = 0;
    for round in 0..ROUNDS {
        if round % 20 == 0 {
            trace.metadata_block(&[kind(1 + u32::try_from(round / 20).expect("few kinds"))]);
        }
        if round == 0 {
            let row = |index| ThreadRow { index, entries: vec![ThreadEntry::ThreadId(1000 + index)] };
            trace.thread_block(&(1..=THREADS).map(row).collect::<Vec<_>>());
        }
        if round % 15 == 14 {
            let last = u32::try_from(round * EVENTS).expect("few events") + missing;
            trace.remove_thread_block(&[(5, last)]);
            trace.thread_block(&[ThreadRow { index: 5, entries: vec![ThreadEntry::ThreadId(5000 + round)] }]);
        }
        trace.stack_block(1, &stacks(round));
        trace.label_list_block(1, &[vec![Label::Version(u8::try_from(round).expect("few rounds"))]]);
        for thread in 1..=THREADS {
            trace.event_block(&fill(EventBlock::v6(), round, thread, missing));
        }
        if round % 7 == 3 {
            missing += 2;
        }
        trace.sequence_point(100_000 * (round + 1) - 1, 0, &last_numbers(round, missing));
    }
    trace.finish()
}

fn long_recordings() -> [(&'static str, Vec<u8>); 3] {
    [("V4", long_v4(false)), ("V5", long_v4(true)), ("V6", long_v6())]
}

#[test]
fn long_recordings_are_the_same() {
    for (name, bytes) in long_recordings() {
        let reading = in_order(&bytes).expect("a recording");
        assert_eq!(reading.events.len() as u64, THREADS * ROUNDS * EVENTS, "{name}");
        assert!(reading.lost > 100 && reading.damage.is_empty(), "{name}: {} lost", reading.lost);
        assert!(!assert_same(name, &bytes), "{name}: read a second time");
    }
}

/// The offsets of the bytes that show where blocks end: before V6 end tags, in V6 the kinds of the next
/// blocks.
fn ends_of_blocks(name: &str, bytes: &[u8]) -> Vec<usize> {
    if name != "V6" {
        let end_and_begin = [6, 5, 5, 1];
        return (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&end_and_begin)).collect();
    }
    let (mut at, mut found) = (20, Vec::new());
    while let Some(&[s0, s1, s2, _]) = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        found.push(at + 3);
        at += 4 + u32::from_le_bytes([s0, s1, s2, 0]) as usize;
    }
    found
}

#[test]
fn recordings_with_damage_at_the_end_of_a_block_are_the_same() {
    for (name, bytes) in long_recordings() {
        let ends = ends_of_blocks(name, &bytes);
        assert!(ends.len() as u64 > ROUNDS * THREADS, "{name}: {} ends", ends.len());
        let mut again = 0;
        // Of all kinds: a number that is coprime to the blocks of a round.
        for &at in ends.iter().skip(2).step_by(97) {
            let mut bytes = bytes.clone();
            bytes[at] = 0x77;
            again += usize::from(assert_same(&format!("{name} with damage at {at}"), &bytes));
        }
        assert!(again >= 10, "{name}: {again} read a second time");
    }
}

/// A block of a size that is not left unread.
#[test]
fn blocks_that_are_too_large_are_read_in_order() {
    let mut trace = v4::Trace::new(&TraceHeader::default());
    trace.metadata_block(&[Metadata { id: 1, provider: "P".into(), event_id: 1, ..Metadata::default() }]);
    let mut sequence = 0;
    for events in [3, 100, 3, 3] {
        let mut block = EventBlock::v4();
        for _ in 0..events {
            sequence += 1;
            block.event(&Row {
                metadata_id: 1,
                sequence,
                thread: 1,
                capture_thread: 1,
                payload: vec![7; 60_000],
                ..Row::default()
            });
        }
        trace.event_block(&block);
    }
    let bytes = trace.finish();
    assert_eq!(in_order(&bytes).expect("a recording").events.len(), 109);
    assert!(!assert_same("large", &bytes), "read a second time");
}

/// An input that gives few bytes at a time, is interrupted, ends early or fails.
struct Difficult<'a> {
    bytes: &'a [u8],
    size: u64,
    /// Offset of the bytes that cannot be read.
    fails_at: Option<u64>,
    reads: AtomicUsize,
}

impl ReadAt for Difficult<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> IoResult<usize> {
        if self.reads.fetch_add(1, Ordering::Relaxed) % 3 == 1 {
            return Err(ErrorKind::Interrupted.into());
        }
        let count = buffer.len().min(7000);
        let end = offset + count as u64;
        if self.fails_at.is_some_and(|at| offset <= at && at < end) {
            return Err(IoError::other("a bad sector"));
        }
        self.bytes.read_at(&mut buffer[..count], offset)
    }

    fn size(&self) -> IoResult<u64> {
        Ok(self.size)
    }
}

#[test]
fn inputs_may_be_slow_short_and_faulty() {
    for (name, bytes) in long_recordings() {
        let length = bytes.len() as u64;
        let difficult =
            |size, fails_at| Difficult { bytes: &bytes, size, fails_at, reads: AtomicUsize::new(0) };
        let whole = in_order(&bytes);
        assert!(on_threads(&difficult(length, None), 4) == (whole, false), "{name} in pieces");
        let part = in_order(&bytes[..bytes.len() / 2]);
        assert!(on_threads(&difficult(length / 2, None), 4).0 == part, "{name} that grows");
        let (longer, again) = on_threads(&difficult(length + 100_000, None), 4);
        assert!(longer == on_threads(&difficult(length + 100_000, None), 1).0, "{name} that becomes shorter");
        assert!(longer.is_ok() && !again, "{name} that becomes shorter after its end");
        for fails_at in [length / 3, length - 1] {
            let failed = on_threads(&difficult(length, Some(fails_at)), 4).0.expect_err("a bad sector");
            assert!(failed.contains("a bad sector"), "{name}: {failed}");
            let alone = on_threads(&difficult(length, Some(fails_at)), 1).0.expect_err("a bad sector");
            assert_eq!(failed, alone, "{name}");
        }
    }
}

#[test]
fn files_are_read_on_several_threads() {
    let path = testdata::path("traces/synth-v5.nettrace");
    let file = std::fs::File::open(&path).unwrap();
    let mut expected = 0_u64;
    SliceReader::new(&std::fs::read(&path).unwrap()).unwrap().for_each(|_| expected += 1).unwrap();
    let (_, events) =
        Reader::par_fold(&file, 2, || 0, |count, _| *count += 1, |one, other| one + other).unwrap();
    assert!(expected > 0 && events == expected, "{events} of {expected}");
}
