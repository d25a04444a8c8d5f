//! Writes a plan in its version, and returns the expected reading.

use nettrace_synth::v6::{Label, ThreadEntry, ThreadRow};
use nettrace_synth::{
    Event, EventBlock, Guid, Headers, Metadata, TraceHeader, Value, group, netperf, nettrace, payload,
    stack_bytes, v6,
};

use crate::plan::{Block, EventPlan, Kind, Plan, Segment, THREADS, Version};
use crate::reading::Seen;
use crate::values::{self, Numbers};

/// A recording and its contents.
pub(crate) struct Written {
    pub(crate) bytes: Vec<u8>,
    pub(crate) header: TraceHeader,
    pub(crate) events: Vec<Seen>,
    /// By thread, as `reading::Reading` has it.
    pub(crate) lost: Vec<(u64, u64)>,
}

/// Writes the plan.
pub(crate) fn write(plan: &Plan) -> Written {
    let pointer_size = if plan.wide_pointers || plan.version <= Version::V2 { 8 } else { 4 };
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let header = TraceHeader {
        sync_ticks: plan.sync_ticks.into(),
        frequency: 10_000_000,
        pointer_size,
        minor: 7,
        key_values: vec![pair("ProcessId", "77"), pair("HardwareThreadCount", "12"), pair("", "anything")],
        ..TraceHeader::default()
    };
    let mut writer = Writer {
        plan,
        header: &header,
        out: Stream::new(plan.version, &header),
        kinds: Vec::new(),
        generation: 0,
        sequence: [0; THREADS],
        lost: [0; THREADS],
        sorted: truly_sorted(plan).into_iter(),
        events: Vec::new(),
    };
    let mut clock = u64::from(plan.sync_ticks);
    for (number, segment) in plan.segments.iter().enumerate() {
        clock = writer.segment(number, segment, clock);
    }
    let (events, out) = (writer.events, writer.out);
    let lost = (0..THREADS)
        .map(|at| (thread_number(plan.version, at), writer.lost[at]))
        .filter(|(_, lost)| *lost > 0);
    let lost = lost.collect();
    Written { bytes: out.finish(), header, events, lost }
}

/// The writer of a version.
enum Stream {
    Early(netperf::EarlyTrace),
    Netperf(netperf::Trace),
    Nettrace(nettrace::Trace),
    V6(v6::Trace),
}

impl Stream {
    fn new(version: Version, header: &TraceHeader) -> Self {
        match version {
            Version::V1 => Self::Early(netperf::EarlyTrace::v1(header)),
            Version::V2 => Self::Early(netperf::EarlyTrace::v2(header)),
            Version::V3 => Self::Netperf(netperf::Trace::new(header)),
            Version::V4 | Version::V5 => Self::Nettrace(nettrace::Trace::new(header)),
            Version::V6 => Self::V6(v6::Trace::new(header)),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Self::Early(trace) => trace.finish(),
            Self::Netperf(trace) => trace.finish(),
            Self::Nettrace(trace) => trace.finish(),
            Self::V6(trace) => trace.finish(),
        }
    }
}

struct Writer<'a> {
    plan: &'a Plan,
    header: &'a TraceHeader,
    out: Stream,
    /// The metadata of each kind, with the id that it has now; empty while they are not written.
    kinds: Vec<Metadata>,
    /// V6: how often the threads were forgotten.
    generation: u64,
    sequence: [u32; THREADS],
    lost: [u64; THREADS],
    sorted: std::vec::IntoIter<bool>,
    events: Vec<Seen>,
}

/// The times of the events of a segment that begins at `clock`, in file order, and when it ends.
fn times(segment: &Segment, clock: u64) -> (Vec<u64>, u64) {
    let mut threads = [clock; THREADS];
    let events = segment.blocks.iter().flat_map(|block| &block.events);
    let times: Vec<_> = events
        .map(|event| {
            let time = &mut threads[usize::from(event.capture_thread)];
            *time += u64::from(event.ticks);
            *time
        })
        .collect();
    let end = times.iter().copied().max().unwrap_or(clock) + 1;
    (times, end)
}

/// For each event whether it is marked as sorted: no later one is older.
fn truly_sorted(plan: &Plan) -> Vec<bool> {
    let mut clock = u64::from(plan.sync_ticks);
    let mut all = Vec::new();
    for segment in &plan.segments {
        let (times, end) = times(segment, clock);
        let events = segment.blocks.iter().flat_map(|block| &block.events);
        all.extend(times.into_iter().zip(events.map(|event| event.may_be_sorted)));
        clock = end;
    }
    let mut oldest = u64::MAX;
    let mut sorted: Vec<_> = all
        .into_iter()
        .rev()
        .map(|(time, may_be_sorted)| {
            let sorted = time <= oldest && may_be_sorted && plan.version >= Version::V4;
            oldest = oldest.min(time);
            sorted
        })
        .collect();
    sorted.reverse();
    sorted
}

/// The number by which events refer to a thread.
fn thread_number(version: Version, thread: usize) -> u64 {
    let thread = thread as u64;
    match version {
        Version::V6 => thread * 200,
        Version::V4 | Version::V5 => 100 + (thread << 33),
        _ => 100 + thread,
    }
}

fn guid(name: &str) -> Guid {
    std::array::from_fn(|at| name.as_bytes().get(at).copied().unwrap_or(1))
}

fn guid_text(g: &Guid) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    let swapped = |bytes: &[u8]| hex(&bytes.iter().rev().copied().collect::<Vec<_>>());
    [swapped(&g[..4]), swapped(&g[4..6]), swapped(&g[6..8]), hex(&g[8..10]), hex(&g[10..])].join("-")
}

fn metadata(kind: &Kind, id: u32, version: Version) -> Metadata {
    let v6 = version == Version::V6;
    Metadata {
        id,
        provider: kind.provider.clone(),
        provider_guid: (v6 || version == Version::V1).then(|| guid(&kind.provider)),
        event_id: kind.event_id.into(),
        name: kind.name.clone(),
        keywords: kind.keywords,
        version: kind.version.into(),
        level: kind.level.into(),
        opcode: kind.opcode.filter(|_| version >= Version::V5),
        fields: kind.fields.clone(),
        template: kind.described.clone().filter(|_| v6),
        description: kind.described.as_ref().filter(|_| v6).map(|text| format!("what {text} is")),
        key_values: kind
            .described
            .iter()
            .filter(|_| v6)
            .map(|text| ("key".to_owned(), text.clone()))
            .collect(),
    }
}

impl Writer<'_> {
    fn segment(&mut self, number: usize, segment: &Segment, clock: u64) -> u64 {
        if self.kinds.is_empty() {
            self.write_kinds(number);
        }
        let pointer_size = usize::try_from(self.header.pointer_size).expect("4 or 8");
        let stacks: Vec<_> = segment.stacks.iter().map(|stack| stack_bytes(stack, pointer_size)).collect();
        let first_id = 1 + 5 * u32::try_from(number).expect("few segments");
        match &mut self.out {
            Stream::Nettrace(trace) => _ = trace.stack_block(first_id, &stacks),
            Stream::V6(trace) => {
                trace.stack_block(first_id, &stacks).label_list_block(first_id, &segment.labels);
                if number == 0 || self.sequence == [u32::MAX; THREADS] {
                    trace.thread_block(&thread_rows(self.generation));
                    self.sequence = [0; THREADS];
                }
            }
            Stream::Early(_) | Stream::Netperf(_) => {}
        }
        let (times, end) = times(segment, clock);
        let mut times = times.into_iter();
        for block in &segment.blocks {
            let events: Vec<_> = block
                .events
                .iter()
                .map(|event| {
                    let time = times.next().expect("a time for each event");
                    self.event(event, segment, &stacks, first_id, time)
                })
                .collect();
            self.block(block, &events);
        }
        self.end_segment(segment, end);
        end
    }

    fn write_kinds(&mut self, number: usize) {
        let version = self.plan.version;
        // Ids with gaps, which mean another kind after they were forgotten.
        let count = self.plan.kinds.len();
        let id = |at: usize| u32::try_from(1 + 60 * ((at + number) % count)).expect("few kinds");
        let mut kinds: Vec<_> =
            self.plan.kinds.iter().enumerate().map(|(at, kind)| metadata(kind, id(at), version)).collect();
        match &mut self.out {
            Stream::Early(trace) => {
                for kind in &mut kinds {
                    kind.id = trace.metadata(kind);
                }
            }
            Stream::Netperf(trace) => {
                let events: Vec<_> = kinds.iter().map(|kind| netperf::metadata_event(kind, 1, 0)).collect();
                trace.event_block(&events);
            }
            Stream::Nettrace(trace) if version == Version::V4 => _ = trace.metadata_block_v4(&kinds),
            Stream::Nettrace(trace) => _ = trace.metadata_block(&kinds),
            Stream::V6(trace) => {
                // Bytes in the header and after a row that mean nothing to readers of this minor version.
                let rows: Vec<_> =
                    kinds.iter().map(|kind| kind.row_v6_with(&kind.optional_v6(), &[1, 2, 3])).collect();
                trace.metadata_block_of(&[9, 9], &rows);
            }
        }
        self.kinds = kinds;
    }

    /// Makes an event of a plan, and records its expected reading.
    fn event(
        &mut self,
        plan: &EventPlan,
        segment: &Segment,
        stacks: &[Vec<u8>],
        first_id: u32,
        time: u64,
    ) -> Event {
        let version = self.plan.version;
        let capture = usize::from(plan.capture_thread);
        let kind = self.kinds[usize::from(plan.kind) % self.kinds.len()].clone();
        let numbers = &mut Numbers(plan.seed);
        let values: Vec<_> = kind
            .fields
            .iter()
            .map(|field| values::value(&field.ty, version == Version::V6, numbers))
            .collect();
        if version >= Version::V4 {
            self.sequence[capture] += 1 + u32::from(plan.lost);
            self.lost[capture] += u64::from(plan.lost);
        }
        let none_or = |at: u8, count: usize| (usize::from(at) % (count + 1)).checked_sub(1);
        let stack = none_or(plan.stack, segment.stacks.len());
        let labels = none_or(plan.labels, segment.labels.len()).filter(|_| version == Version::V6);
        let id = |at: Option<usize>| at.map_or(0, |at| first_id + u32::try_from(at).expect("few"));
        let activity = |byte: Option<u8>| byte.filter(|_| version < Version::V6).map(|byte| [byte; 16]);
        let event = Event {
            metadata_id: kind.id,
            sorted: self.sorted.next().expect("an answer for each event"),
            sequence: self.sequence[capture],
            thread: thread_number(version, usize::from(plan.thread)),
            capture_thread: thread_number(version, capture),
            processor: plan.processor,
            stack_id: id(stack),
            timestamp: time,
            activity: activity(plan.activity).unwrap_or_default(),
            related: activity(plan.related).unwrap_or_default(),
            label_list: id(labels),
            payload: payload(&values),
            stack: stack.map(|at| stacks[at].clone()).unwrap_or_default(),
        };
        let stack = stack.map(|at| segment.stacks[at].clone()).unwrap_or_default();
        let labels = labels.map(|at| segment.labels[at].clone()).unwrap_or_default();
        self.note(plan, &kind, &event, &values, &stack, &labels);
        event
    }

    fn note(
        &mut self,
        plan: &EventPlan,
        kind: &Metadata,
        event: &Event,
        values: &[Value],
        stack: &[u64],
        labels: &[Label],
    ) {
        let version = self.plan.version;
        let v6 = version == Version::V6;
        let netperf = version <= Version::V3;
        // Netperf V1 and V2 say nothing more of events without a name and fields.
        let bare = version <= Version::V2 && kind.name.is_empty() && kind.fields.is_empty();
        let mut seen = Seen {
            provider: if version == Version::V1 {
                guid_text(&guid(&kind.provider))
            } else {
                kind.provider.clone()
            },
            event_id: kind.event_id,
            name: kind.name.clone(),
            version: kind.version,
            level: if bare { 0 } else { kind.level },
            keywords: if bare { 0 } else { kind.keywords },
            opcode: kind.opcode,
            provider_id: kind.provider_guid,
            template: kind.template.clone(),
            description: kind.description.clone(),
            key_values: kind.key_values.clone(),
            thread: if v6 { thread_id(self.generation, plan.thread) } else { event.thread },
            thread_name: v6.then(|| thread_name(plan.thread)),
            capture_thread: match version {
                Version::V6 => thread_id(self.generation, plan.capture_thread),
                _ if netperf => event.thread,
                _ => event.capture_thread,
            },
            process: match version {
                Version::V1 | Version::V2 => None,
                Version::V6 => Some(process_id(plan.thread)),
                _ => Some(4242),
            },
            processors: [event.thread == event.capture_thread, true]
                .map(|is_of_thread| (!netperf && is_of_thread).then_some(event.processor)),
            sequence: (!netperf).then_some(event.sequence),
            sorted: event.sorted,
            time: event.timestamp,
            activity: Some(event.activity).filter(|id| *id != [0; 16]),
            related: Some(event.related).filter(|id| *id != [0; 16]),
            labels: labels.iter().map(label_text).collect(),
            stack: stack
                .iter()
                .map(|ip| if self.header.pointer_size == 4 { ip & 0xffff_ffff } else { *ip })
                .collect(),
            payload: event.payload.clone(),
            fields: values::texts(values, &kind.fields).collect(),
        };
        for label in labels {
            apply(label, &mut seen);
        }
        self.events.push(seen);
    }

    fn block(&mut self, block: &Block, events: &[Event]) {
        let reserved = vec![0xee; block.reserved.into()];
        match &mut self.out {
            Stream::Early(trace) => events.iter().for_each(|event| _ = trace.event(event)),
            Stream::Netperf(trace) => {
                if block.unknown_before {
                    trace.block("FutureBlock", &reserved);
                }
                trace
                    .event_block(&events.iter().map(|event| netperf::event(event, true)).collect::<Vec<_>>());
            }
            Stream::Nettrace(trace) => {
                if block.unknown_before {
                    trace.block("FutureBlock", &reserved);
                }
                trace.event_block(&event_block(EventBlock::v4(), block, &reserved, events));
            }
            Stream::V6(trace) => {
                if block.unknown_before {
                    trace.block(0xc3, &reserved);
                }
                trace.event_block(&event_block(EventBlock::v6(), block, &reserved, events));
            }
        }
    }

    fn end_segment(&mut self, segment: &Segment, time: u64) {
        if self.plan.version < Version::V4 {
            return;
        }
        for thread in 0..THREADS {
            self.sequence[thread] += u32::from(segment.lost[thread]);
            self.lost[thread] += u64::from(segment.lost[thread]);
        }
        let threads: Vec<_> =
            (0..THREADS).map(|at| (thread_number(self.plan.version, at), self.sequence[at])).collect();
        match &mut self.out {
            Stream::Nettrace(trace) => _ = trace.sequence_point(time, &threads),
            Stream::V6(trace) => {
                let (forgets_threads, forgets_metadata) = segment.forgets;
                if segment.removes_threads {
                    trace.remove_thread_block(&threads);
                }
                let flags = u32::from(forgets_threads) | u32::from(forgets_metadata) << 1;
                trace.sequence_point(time, flags, if segment.removes_threads { &[] } else { &threads });
                if forgets_threads || segment.removes_threads {
                    self.generation += 1;
                    // To be described anew.
                    self.sequence = [u32::MAX; THREADS];
                }
                if forgets_metadata {
                    self.kinds.clear();
                }
            }
            Stream::Early(_) | Stream::Netperf(_) => {}
        }
    }
}

fn event_block(empty: EventBlock, plan: &Block, reserved: &[u8], events: &[Event]) -> EventBlock {
    let mut block = empty.with_headers(plan.headers).with_reserved(reserved);
    for event in events {
        if plan.headers == Headers::Compressed {
            block.compressed(block.needed_groups(event) | plan.spare_groups & group::ALL, event);
        } else {
            block.event(event);
        }
    }
    block
}

fn thread_id(generation: u64, thread: u8) -> u64 {
    1000 + 10 * generation + u64::from(thread)
}

fn process_id(thread: u8) -> u64 {
    500 + u64::from(thread)
}

fn thread_name(thread: u8) -> String {
    format!("thread {thread}")
}

fn thread_rows(generation: u64) -> Vec<ThreadRow> {
    (0..3u8)
        .map(|thread| ThreadRow {
            index: thread_number(Version::V6, thread.into()),
            entries: vec![
                ThreadEntry::KeyValue("kind".into(), "test".into()),
                ThreadEntry::Name(thread_name(thread)),
                ThreadEntry::ProcessId(process_id(thread)),
                ThreadEntry::ThreadId(thread_id(generation, thread)),
            ],
        })
        .collect()
}

fn label_text(label: &Label) -> String {
    match label {
        Label::Activity(id) => format!("activity {id:02x?}"),
        Label::RelatedActivity(id) => format!("related {id:02x?}"),
        Label::TraceId(id) => format!("trace {id:02x?}"),
        Label::SpanId(id) => format!("span {id}"),
        Label::Text(key, value) => format!("{key:?}={value:?}"),
        Label::Number(key, value) => format!("{key:?}={value}"),
        Label::Opcode(opcode) => format!("opcode {opcode}"),
        Label::Keywords(keywords) => format!("keywords {keywords}"),
        Label::Level(level) => format!("level {level}"),
        Label::Version(version) => format!("version {version}"),
        Label::Raw(..) => unreachable!("no plan has raw labels"),
    }
}

/// Some labels override the metadata; the last of several of a kind counts.
fn apply(label: &Label, seen: &mut Seen) {
    let id = |id: &Guid| Some(*id).filter(|id| *id != [0; 16]);
    match label {
        Label::Activity(guid) => seen.activity = id(guid),
        Label::RelatedActivity(guid) => seen.related = id(guid),
        Label::Opcode(opcode) => seen.opcode = Some(*opcode),
        Label::Keywords(keywords) => seen.keywords = *keywords,
        Label::Level(level) => seen.level = u32::from(*level),
        Label::Version(version) => seen.version = u32::from(*version),
        _ => {}
    }
}
