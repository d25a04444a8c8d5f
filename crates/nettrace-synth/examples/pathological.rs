//! Writes recordings that no runtime writes and that are as hard to read as the format allows, to measure
//! readers with: `cargo run --release --example pathological NAME FILE [SCALE]`; without arguments the names.
//! SCALE multiplies the hard part: a reader that takes more than SCALE times as long is worse than linear.

use std::process::ExitCode;

use nettrace_synth::v6::{self, Label, ThreadEntry, ThreadRow};
use nettrace_synth::{
    Bytes, Event, EventBlock, Field, Metadata, TraceHeader, Type, Value, netperf, nettrace, payload,
    stack_bytes,
};

/// A name, the difficulty, and the function that writes it.
type Recording = (&'static str, &'static str, fn(u32) -> Vec<u8>);

const RECORDINGS: [Recording; 26] = [
    ("metadata", "a million kinds of events, each used once", metadata),
    ("metadata-sparse", "100,000 kinds whose numbers lie far apart", metadata_sparse),
    ("metadata-names", "2,000 kinds with names of 30,000 characters", metadata_names),
    ("metadata-again", "the same row of metadata a million times", metadata_again),
    ("metadata-forgotten", "V6: 200,000 kinds under the same number, each forgotten", metadata_forgotten),
    ("fields", "a kind of ten million fields", fields),
    ("fields-empty", "100,000 events of a kind with 1,000 fields that take no bytes", fields_empty),
    ("threads", "10,000 threads in turns; 100 sequence points that name them all", threads),
    ("threads-sparse", "the same with thread ids that are multiples of 65,536", threads_sparse),
    ("threads-v6", "V6: 500,000 threads, each described, used once and removed", threads_v6),
    ("block", "one block of 100 MB", block),
    ("blocks", "a million blocks of one event without a sequence point", blocks),
    ("block-size", "a block that claims 250 MB of a file of 100 MB", block_size),
    ("stacks", "1,000 stacks of 10,000 frames, a sequence point after each ten", stacks),
    ("stacks-kept", "the same without sequence points", stacks_kept),
    (
        "stacks-anew",
        "100,000 events, in front of each a block that gives other stacks the same ids",
        stacks_anew,
    ),
    ("labels-anew", "V6: the same with label lists", labels_anew),
    ("backwards", "two million events of one thread, each older than the one before", backwards),
    ("unsorted", "two million events of four threads without a sequence point", unsorted),
    ("netperf", "netperf V3, which has no sequence points: a million events in order", netperf),
    ("sorted", "two million events, each marked as sorted", sorted),
    ("sequence-points", "a million sequence points with an event between any two", sequence_points),
    ("losses", "a million events, each behind a loss", losses),
    ("damages", "300,000 blocks that are no blocks", damages),
    ("damages-v6", "V6: 300,000 blocks, every other one of a size that is not its own", damages_v6),
    ("locations", "V6: 200 events that locate the same bytes 8,000 times", locations),
];

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let (name, file, scale) = match &arguments[..] {
        [name, file] => (name, file, 1),
        [name, file, scale] => (name, file, scale.parse().unwrap_or(1)),
        _ => {
            for (name, what, _) in RECORDINGS {
                println!("{name:16} {what}");
            }
            return ExitCode::SUCCESS;
        }
    };
    let Some((.., write)) = RECORDINGS.into_iter().find(|(known, ..)| known == name) else {
        eprintln!("{name}: no such recording");
        return ExitCode::FAILURE;
    };
    match std::fs::write(file, write(scale)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{file}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// How many events a block of the usual size holds.
const BLOCK: u32 = 5000;

fn kind(id: u32) -> Metadata {
    Metadata {
        id,
        provider: "Pathological".into(),
        event_id: id,
        name: format!("Kind{id}"),
        level: 4,
        fields: vec![Field::new("number", Type::Int32)],
        ..Metadata::default()
    }
}

fn v4() -> nettrace::Trace {
    nettrace::Trace::new(&TraceHeader::default())
}

/// Event `number` of thread 1, of the first kind.
fn event(number: u32) -> Event {
    Event {
        metadata_id: 1,
        sequence: number,
        thread: 1,
        capture_thread: 1,
        timestamp: u64::from(number) * 100,
        payload: payload(&[Value::Int32(number.cast_signed())]),
        ..Event::default()
    }
}

/// Events in blocks of the usual size.
fn write_events(trace: &mut nettrace::Trace, events: impl IntoIterator<Item = Event>) {
    let mut events = events.into_iter().peekable();
    while events.peek().is_some() {
        let mut block = EventBlock::v4();
        for event in events.by_ref().take(BLOCK as usize) {
            block.event(&event);
        }
        trace.event_block(&block);
    }
}

/// A recording of V4 or V5 of these events, with one kind and nothing else.
fn of_events(events: impl IntoIterator<Item = Event>) -> Vec<u8> {
    let mut trace = v4();
    trace.metadata_block(&[kind(1)]);
    write_events(&mut trace, events);
    trace.finish()
}

fn metadata(scale: u32) -> Vec<u8> {
    let mut trace = v4();
    for first in (0..1_000_000 * scale).step_by(BLOCK as usize) {
        let ids = first + 1..=first + BLOCK;
        trace.metadata_block(&ids.clone().map(kind).collect::<Vec<_>>());
        write_events(&mut trace, ids.map(|id| Event { metadata_id: id, ..event(id) }));
    }
    trace.finish()
}

fn metadata_sparse(scale: u32) -> Vec<u8> {
    let mut trace = v4();
    // An odd factor: no two ids of 31 bits are the same.
    let ids = (1..=100_000 * scale).map(|number| number.wrapping_mul(2_654_435_761) & 0x7fff_ffff);
    let ids: Vec<_> = ids.collect();
    for ids in ids.chunks(BLOCK as usize) {
        trace.metadata_block(&ids.iter().copied().map(kind).collect::<Vec<_>>());
    }
    write_events(&mut trace, (1..).zip(ids).map(|(number, id)| Event { metadata_id: id, ..event(number) }));
    trace.finish()
}

fn metadata_names(scale: u32) -> Vec<u8> {
    let mut trace = v4();
    let name = "long".repeat(7500);
    for id in 1..=2000 * scale {
        trace.metadata_block(&[Metadata { name: name.clone(), ..kind(id) }]);
    }
    write_events(&mut trace, (1..=2000 * scale).map(|id| Event { metadata_id: id, ..event(id) }));
    trace.finish()
}

fn metadata_again(scale: u32) -> Vec<u8> {
    let mut trace = v4();
    for _ in 0..200 * scale {
        trace.metadata_block(&vec![kind(1); BLOCK as usize]);
    }
    write_events(&mut trace, [event(1)]);
    trace.finish()
}

fn metadata_forgotten(scale: u32) -> Vec<u8> {
    let mut trace = v6::Trace::new(&TraceHeader::default());
    describe_thread(&mut trace);
    for number in 1..=200_000 * scale {
        trace.metadata_block(&[Metadata { event_id: number, ..kind(1) }]);
        let mut block = EventBlock::v6();
        block.event(&event(number));
        trace.event_block(&block);
        trace.sequence_point(u64::from(number) * 100, 2, &[(1, number)]);
    }
    trace.finish()
}

fn fields(scale: u32) -> Vec<u8> {
    let fields = vec![Field::new("", Type::Byte); 10_000_000 * scale as usize];
    let mut trace = v4();
    trace.metadata_block(&[Metadata { fields, ..kind(1) }]);
    write_events(&mut trace, [event(1)]);
    trace.finish()
}

fn fields_empty(scale: u32) -> Vec<u8> {
    let fields = vec![Field::new("", Type::Object(Vec::new())); 1000];
    let mut trace = v4();
    trace.metadata_block(&[Metadata { fields, ..kind(1) }]);
    write_events(&mut trace, (1..=100_000 * scale).map(event));
    trace.finish()
}

/// Thread 1 of V6.
fn describe_thread(trace: &mut v6::Trace) {
    trace.thread_block(&[ThreadRow { index: 1, entries: vec![ThreadEntry::ThreadId(1)] }]);
}

fn threads(scale: u32) -> Vec<u8> {
    threads_of(scale, 1)
}

fn threads_sparse(scale: u32) -> Vec<u8> {
    threads_of(scale, 65_536)
}

fn threads_of(scale: u32, factor: u64) -> Vec<u8> {
    let mut trace = v4();
    trace.metadata_block(&[kind(1)]);
    for round in 1..=100 * scale {
        let threads = (1..=10_000u64).map(|thread| thread * factor);
        write_events(
            &mut trace,
            threads.clone().map(|thread| {
                let timestamp = u64::from(round) * 1_000_000 + thread / factor;
                Event { thread, capture_thread: thread, timestamp, ..event(round) }
            }),
        );
        let last: Vec<_> = threads.map(|thread| (thread, round)).collect();
        trace.sequence_point(u64::from(round) * 1_000_000 + 100_000, &last);
    }
    trace.finish()
}

fn threads_v6(scale: u32) -> Vec<u8> {
    let mut trace = v6::Trace::new(&TraceHeader::default());
    trace.metadata_block(&[kind(1)]);
    for first in (0..500_000 * scale).step_by(BLOCK as usize) {
        let indexes = u64::from(first) + 1..=u64::from(first + BLOCK);
        let rows = indexes.clone().map(|index| ThreadRow {
            index,
            entries: vec![ThreadEntry::ThreadId(index), ThreadEntry::Name(format!("thread {index}"))],
        });
        trace.thread_block(&rows.collect::<Vec<_>>());
        let mut block = EventBlock::v6();
        for index in indexes.clone() {
            block.event(&Event { thread: index, capture_thread: index, timestamp: index, ..event(1) });
        }
        trace.event_block(&block);
        trace.remove_thread_block(&indexes.map(|index| (index, 1)).collect::<Vec<_>>());
    }
    trace.finish()
}

fn block(scale: u32) -> Vec<u8> {
    let mut trace = v4();
    trace.metadata_block(&[kind(1)]);
    let mut block = EventBlock::v4();
    for number in 1..=1_000_000 * scale {
        block.event(&Event { payload: vec![1; 100], ..event(number) });
    }
    trace.event_block(&block);
    trace.finish()
}

fn blocks(scale: u32) -> Vec<u8> {
    let mut trace = v4();
    trace.metadata_block(&[kind(1)]);
    for number in 1..=1_000_000 * scale {
        write_events(&mut trace, [event(number)]);
    }
    trace.finish()
}

fn block_size(scale: u32) -> Vec<u8> {
    let mut trace = v4();
    trace.metadata_block(&[kind(1)]);
    trace.block_of_claimed_size("EventBlock", 250_000_000, &[]);
    write_events(
        &mut trace,
        (1..=1_000_000 * scale).map(|number| Event { payload: vec![1; 100], ..event(number) }),
    );
    trace.finish()
}

fn stacks(scale: u32) -> Vec<u8> {
    stacks_between(scale, true)
}

fn stacks_kept(scale: u32) -> Vec<u8> {
    stacks_between(scale, false)
}

fn stacks_between(scale: u32, sequence_points: bool) -> Vec<u8> {
    let mut trace = v4();
    trace.metadata_block(&[kind(1)]);
    let frames: Vec<_> = (0..10_000).map(|frame| 0x7f00_0000_0000 + 16 * frame).collect();
    let stack = stack_bytes(&frames, 8);
    for first in (1..=1000 * scale).step_by(10) {
        trace.stack_block(first, &vec![stack.clone(); 10]);
        write_events(
            &mut trace,
            (first..first + 10).map(|number| Event { stack_id: number, ..event(number) }),
        );
        if sequence_points {
            trace.sequence_point(u64::from(first + 9) * 100, &[(1, first + 9)]);
        }
    }
    trace.finish()
}

fn stacks_anew(scale: u32) -> Vec<u8> {
    let mut trace = v4();
    trace.metadata_block(&[kind(1)]);
    for number in 1..=100_000 * scale {
        // Ten ids, all but one of them given before.
        let stacks = vec![stack_bytes(&[u64::from(number), 2, 3], 8); 10];
        trace.stack_block(number, &stacks);
        write_events(&mut trace, [Event { stack_id: number + 9, ..event(number) }]);
    }
    trace.finish()
}

fn labels_anew(scale: u32) -> Vec<u8> {
    let mut trace = v6::Trace::new(&TraceHeader::default());
    describe_thread(&mut trace);
    trace.metadata_block(&[kind(1)]);
    for number in 1..=100_000 * scale {
        trace.label_list_block(number, &vec![vec![Label::Number("n".into(), number.into())]; 10]);
        let mut block = EventBlock::v6();
        block.event(&Event { label_list: number + 9, ..event(number) });
        trace.event_block(&block);
    }
    trace.finish()
}

fn backwards(scale: u32) -> Vec<u8> {
    let count = 2_000_000 * scale;
    of_events((1..=count).map(|number| Event { timestamp: u64::from(count - number), ..event(number) }))
}

fn unsorted(scale: u32) -> Vec<u8> {
    of_events((0..2_000_000 * scale).map(|number| {
        // Blocks take turns among the threads, and the times of four blocks overlap.
        let (block, within) = (number / BLOCK, number % BLOCK);
        let thread = u64::from(block % 4) + 1;
        let timestamp = u64::from(block / 4 * BLOCK + within) * 100 + thread;
        Event { thread, capture_thread: thread, timestamp, ..event(block / 4 * BLOCK + within + 1) }
    }))
}

fn netperf(scale: u32) -> Vec<u8> {
    let mut trace = netperf::Trace::new(&TraceHeader::default());
    trace.event_block(&[netperf::metadata_event(&kind(1), 1, 0)]);
    for first in (0..1_000_000 * scale).step_by(1000) {
        let events = (first..first + 1000).map(|number| netperf::event(&event(number), true));
        trace.event_block(&events.collect::<Vec<_>>());
    }
    trace.finish()
}

fn sorted(scale: u32) -> Vec<u8> {
    of_events((1..=2_000_000 * scale).map(|number| Event { sorted: true, ..event(number) }))
}

fn sequence_points(scale: u32) -> Vec<u8> {
    let mut trace = v4();
    trace.metadata_block(&[kind(1)]);
    for number in 1..=1_000_000 * scale {
        write_events(&mut trace, [event(number)]);
        trace.sequence_point(u64::from(number) * 100, &[(1, number)]);
    }
    trace.finish()
}

fn losses(scale: u32) -> Vec<u8> {
    of_events((1..=1_000_000 * scale).map(|number| Event { sequence: 2 * number, ..event(number) }))
}

fn damages(scale: u32) -> Vec<u8> {
    let mut trace = v4();
    trace.metadata_block(&[kind(1)]);
    for number in 1..=300_000 * scale {
        if number % 2 == 0 {
            // The size is wrong, so that the end tag is not where it should be.
            trace.block_of_claimed_size("EventBlock", 40, &[1; 36]);
        } else {
            trace.block("EventBlock", &[0xff; 36]);
        }
    }
    trace.finish()
}

fn damages_v6(scale: u32) -> Vec<u8> {
    let mut trace = v6::Trace::new(&TraceHeader::default());
    describe_thread(&mut trace);
    trace.metadata_block(&[kind(1)]);
    for number in 1..=300_000 * scale {
        let mut block = EventBlock::v6();
        block.event(&event(number));
        if number % 2 == 0 {
            // Each claims to reach past the next one, no two to the same offset.
            trace.block_of_claimed_size(v6::kind::EVENT, 45 + number % 1_000_000, &block.content());
        } else {
            trace.event_block(&block);
        }
    }
    trace.finish()
}

fn locations(scale: u32) -> Vec<u8> {
    const COUNT: u16 = 8000;
    let mut trace = v6::Trace::new(&TraceHeader::default());
    let located = Type::DataLoc(Box::new(Type::Utf8CodeUnit));
    let fields = vec![Field::new("all", Type::FixedArray(Box::new(located), COUNT))];
    describe_thread(&mut trace);
    trace.metadata_block(&[Metadata { fields, ..kind(1) }]);
    let start = u32::from(COUNT) * 4;
    let mut payload = Bytes::new();
    for _ in 0..COUNT {
        payload.u32(30_000 << 16 | start);
    }
    payload.raw(&vec![b'x'; 30_000]);
    let payload = payload.into_vec();
    for number in 1..=200 * scale {
        let mut block = EventBlock::v6();
        block.event(&Event { payload: payload.clone(), ..event(number) });
        trace.event_block(&block);
    }
    trace.finish()
}
