//! Recordings of four threads: each block holds a run of one thread, blocks take turns, and their times
//! overlap.

use nettrace_synth::{
    Event, EventBlock, Field, Metadata, TraceHeader, Type, Value, netperf, nettrace, payload, stack_bytes, v6,
};

/// The bytes of a recording, more or less.
const SIZE: usize = 24 << 20;
/// The bytes of a block.
const BLOCK: usize = 100 << 10;
/// The bytes between two sequence points.
const WINDOW: usize = 10 << 20;
const THREADS: usize = 4;
/// After this many blocks of each thread the runtime has written everything older, and marks the next event
/// accordingly: every 100 ms in a real recording.
const ROUNDS: usize = 10;
/// Stacks between two sequence points.
const STACKS: u32 = 1000;

pub(crate) struct Recording {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) events: u64,
}

pub(crate) const ALL: [fn() -> Recording; 5] = [
    || write("small events", Stream::V4(nettrace::Trace::new(&TraceHeader::default())), &[small()]),
    || write("small events V6", Stream::V6(v6::Trace::new(&TraceHeader::default())), &[small()]),
    || write("small events netperf", Stream::V3(netperf::Trace::new(&TraceHeader::default())), &[small()]),
    || write("mixed", Stream::V4(nettrace::Trace::new(&TraceHeader::default())), &mixed()),
    || write("large payloads", Stream::V4(nettrace::Trace::new(&TraceHeader::default())), &[large()]),
];

/// A kind of event, with the values that all its events have.
struct Kind {
    fields: Vec<(Type, Value)>,
    has_stack: bool,
}

fn small() -> Kind {
    let fields = vec![
        (Type::Int32, Value::Int32(1)),
        (Type::Int64, Value::Int64(2)),
        (Type::String16, Value::string16("tick")),
    ];
    Kind { fields, has_stack: false }
}

/// Eight kinds, from no fields to many, two thirds of them with stacks.
fn mixed() -> Vec<Kind> {
    let all = [
        (Type::Int32, Value::Int32(1)),
        (Type::String16, Value::string16("a name of some length")),
        (Type::UInt64, Value::UInt64(u64::MAX)),
        (Type::Guid, Value::Guid([1; 16])),
        (Type::Double, Value::Double(0.5)),
        (Type::Boolean32, Value::Boolean32(true)),
        (Type::Array(Box::new(Type::Int32)), Value::Array((0..8).map(Value::Int32).collect())),
    ];
    (0..=all.len()).map(|count| Kind { fields: all[..count].to_vec(), has_stack: count % 3 != 0 }).collect()
}

/// Eight kilobytes of text.
fn large() -> Kind {
    let text = "0123456789abcdef".repeat(256);
    let fields = vec![(Type::Int32, Value::Int32(1)), (Type::String16, Value::string16(&text))];
    Kind { fields, has_stack: true }
}

enum Stream {
    V3(netperf::Trace),
    V4(nettrace::Trace),
    V6(v6::Trace),
}

impl Stream {
    fn offset(&self) -> usize {
        match self {
            Self::V3(trace) => trace.offset(),
            Self::V4(trace) => trace.offset(),
            Self::V6(trace) => trace.offset(),
        }
    }

    fn metadata(&mut self, kinds: &[Metadata]) {
        match self {
            Self::V3(trace) => {
                let events: Vec<_> = kinds.iter().map(|kind| netperf::metadata_event(kind, 1, 0)).collect();
                trace.event_block(&events);
            }
            Self::V4(trace) => _ = trace.metadata_block(kinds),
            Self::V6(trace) => {
                trace.metadata_block(kinds);
                let rows = (1..=THREADS as u64).map(|index| v6::ThreadRow {
                    index,
                    entries: vec![v6::ThreadEntry::ThreadId(100 + index), v6::ThreadEntry::ProcessId(7)],
                });
                trace.thread_block(&rows.collect::<Vec<_>>());
            }
        }
    }

    fn stacks(&mut self, stacks: &[Vec<u8>]) {
        match self {
            Self::V3(_) => {}
            Self::V4(trace) => _ = trace.stack_block(1, stacks),
            Self::V6(trace) => _ = trace.stack_block(1, stacks),
        }
    }

    fn event_block(&mut self, events: &[Event]) {
        let block = |mut block: EventBlock| {
            for event in events {
                block.event(event);
            }
            block
        };
        match self {
            Self::V3(trace) => {
                let events: Vec<_> = events.iter().map(|event| netperf::event(event, true)).collect();
                trace.event_block(&events);
            }
            Self::V4(trace) => _ = trace.event_block(&block(EventBlock::v4())),
            Self::V6(trace) => _ = trace.event_block(&block(EventBlock::v6())),
        }
    }

    fn sequence_point(&mut self, time: u64, threads: &[(u64, u32)]) {
        match self {
            Self::V3(_) => {}
            Self::V4(trace) => _ = trace.sequence_point(time, threads),
            Self::V6(trace) => _ = trace.sequence_point(time, 0, threads),
        }
    }

    /// The bytes of an event besides its payload.
    fn header_size(&self) -> usize {
        if matches!(self, Self::V3(_)) { 62 } else { 4 }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Self::V3(trace) => trace.finish(),
            Self::V4(trace) => trace.finish(),
            Self::V6(trace) => trace.finish(),
        }
    }
}

/// Numbers without a pattern, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The threads that write.
struct Threads<'a> {
    kinds: &'a [Kind],
    payloads: Vec<Vec<u8>>,
    random: Random,
    clocks: [u64; THREADS],
    sequences: [u32; THREADS],
}

impl Threads<'_> {
    /// A time that no event so far is newer than, and no event that follows older.
    fn meet(&mut self) -> u64 {
        let now = self.clocks.iter().copied().max().unwrap_or_default() + 1;
        self.clocks = [now; THREADS];
        now
    }

    /// The next events of a thread; the first may be marked as sorted.
    fn run(&mut self, thread: usize, mut sorted: bool, header_size: usize) -> Vec<Event> {
        let mut events = Vec::new();
        let mut size = 0;
        while size < BLOCK {
            let kind = usize::try_from(self.random.below(self.kinds.len() as u64)).expect("few");
            self.clocks[thread] += if sorted { 0 } else { 1 + self.random.below(5000) };
            self.sequences[thread] += 1;
            let id = thread as u64 + 1;
            let stack_id = if self.kinds[kind].has_stack { 1 + self.random.below(STACKS.into()) } else { 0 };
            events.push(Event {
                metadata_id: u32::try_from(kind + 1).expect("few"),
                sorted: std::mem::take(&mut sorted),
                sequence: self.sequences[thread],
                thread: id,
                capture_thread: id,
                processor: u32::try_from(thread % 2).expect("few"),
                stack_id: u32::try_from(stack_id).expect("few"),
                timestamp: self.clocks[thread],
                payload: self.payloads[kind].clone(),
                ..Event::default()
            });
            size += self.payloads[kind].len() + header_size;
        }
        events
    }
}

fn write(name: &'static str, mut stream: Stream, kinds: &[Kind]) -> Recording {
    stream.metadata(&(1..).zip(kinds).map(|(id, kind)| metadata(id, kind)).collect::<Vec<_>>());
    let values = |kind: &Kind| kind.fields.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>();
    let mut threads = Threads {
        kinds,
        payloads: kinds.iter().map(|kind| payload(&values(kind))).collect(),
        random: Random(1),
        clocks: [1; THREADS],
        sequences: [0; THREADS],
    };
    let stacks = stacks(&mut threads.random);
    let mut window = stream.offset();
    stream.stacks(&stacks);
    for turn in 0.. {
        let thread = turn % THREADS;
        let sorted = turn % (THREADS * ROUNDS) == 0;
        if sorted {
            threads.meet();
        }
        stream.event_block(&threads.run(thread, sorted, stream.header_size()));
        let ends = stream.offset() > SIZE;
        if thread + 1 == THREADS && (ends || stream.offset() - window > WINDOW) {
            stream.sequence_point(threads.meet(), &(1..).zip(threads.sequences).collect::<Vec<_>>());
            if ends {
                break;
            }
            window = stream.offset();
            stream.stacks(&stacks);
        }
    }
    Recording { name, bytes: stream.finish(), events: threads.sequences.map(u64::from).iter().sum() }
}

/// Stacks of 10 to 39 frames.
fn stacks(random: &mut Random) -> Vec<Vec<u8>> {
    let stack = |_| {
        let count = 10 + random.below(30);
        let frames: Vec<_> = (0..count).map(|_| 0x7f00_0000_0000 + random.below(1 << 24)).collect();
        stack_bytes(&frames, 8)
    };
    (0..STACKS).map(stack).collect()
}

fn metadata(id: u32, kind: &Kind) -> Metadata {
    let fields = kind.fields.iter().enumerate();
    Metadata {
        id,
        provider: "Bench".into(),
        event_id: id,
        name: format!("Kind{id}"),
        level: 4,
        fields: fields.map(|(at, (ty, _))| Field::new(&format!("field{at}"), ty.clone())).collect(),
        ..Metadata::default()
    }
}
