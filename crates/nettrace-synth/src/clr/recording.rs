//! A recording of a process, event by event.

use std::collections::BTreeMap;

use super::{Kind, Method, allocation, contention_start, contention_stop, diagnostic, kind, module};
use crate::nettrace::Trace;
use crate::{Event, EventBlock, Guid, Metadata, TraceHeader, Value, payload, stack_bytes};

/// Events of a block.
const BLOCK: usize = 1000;

/// A V4 recording of one process under construction.
///
/// Events have the time and the thread that [`Recording::at`] and [`Recording::thread`] set last, at first
/// tick 0 and thread 1, which also writes them. A tick is a nanosecond.
#[derive(Clone, Debug)]
pub struct Recording {
    header: TraceHeader,
    kinds: Vec<Metadata>,
    stacks: Vec<Vec<u8>>,
    blocks: Vec<Vec<Event>>,
    time: u64,
    thread: u64,
    writer: Option<u64>,
}

impl Default for Recording {
    fn default() -> Self {
        Self::new()
    }
}

impl Recording {
    /// Creates a recording with the default header.
    pub fn new() -> Self {
        Self::with_header(TraceHeader::default())
    }

    /// Creates a recording.
    pub fn with_header(header: TraceHeader) -> Self {
        Self {
            header,
            kinds: Vec::new(),
            stacks: Vec::new(),
            blocks: vec![Vec::new()],
            time: 0,
            thread: 1,
            writer: None,
        }
    }

    /// Sets the time of the events that follow, in ticks.
    pub fn at(&mut self, ticks: u64) -> &mut Self {
        self.time = ticks;
        self
    }

    /// Sets the thread of the events that follow.
    pub fn thread(&mut self, id: u64) -> &mut Self {
        self.thread = id;
        self
    }

    /// Sets the thread that writes the events that follow, where it is not the thread that they are about.
    pub fn written_by(&mut self, id: u64) -> &mut Self {
        self.writer = Some(id);
        self
    }

    /// Adds stacks, each as its addresses, leaf first. Their ids are 1, 2 and so on.
    pub fn stacks(&mut self, stacks: &[&[u64]]) -> &mut Self {
        self.stacks.extend(stacks.iter().map(|addresses| stack_bytes(addresses, 8)));
        self
    }

    /// Adds an event of a kind without a description.
    pub fn event(&mut self, kind: Kind, values: &[Value]) -> &mut Self {
        self.event_of(kind, payload(values))
    }

    /// Adds an event of a kind without a description and with these bytes.
    pub fn event_of(&mut self, kind: Kind, payload: Vec<u8>) -> &mut Self {
        let is_same = |known: &Metadata| {
            (known.name.is_empty() && known.fields.is_empty())
                && known.provider == kind.provider
                && (known.event_id, known.version) == (kind.event_id, kind.version)
        };
        let known = self.kinds.iter().position(is_same);
        let metadata_id = known.unwrap_or_else(|| {
            self.add_kind(Metadata {
                provider: kind.provider.into(),
                event_id: kind.event_id,
                version: kind.version,
                ..Metadata::default()
            })
        });
        self.push(metadata_id, payload)
    }

    /// Adds an event with its description. The id of `metadata` is not used.
    pub fn described(&mut self, metadata: Metadata, values: &[Value]) -> &mut Self {
        let known =
            self.kinds.iter().position(|known| *known == Metadata { id: known.id, ..metadata.clone() });
        let index = known.unwrap_or_else(|| self.add_kind(metadata));
        self.push(index, payload(values))
    }

    fn add_kind(&mut self, metadata: Metadata) -> usize {
        let index = self.kinds.len();
        self.kinds.push(Metadata { id: number(index + 1), ..metadata });
        index
    }

    fn push(&mut self, kind: usize, payload: Vec<u8>) -> &mut Self {
        let event = Event {
            metadata_id: number(kind + 1),
            thread: self.thread,
            capture_thread: self.writer.unwrap_or(self.thread),
            timestamp: self.time,
            payload,
            ..Event::default()
        };
        match self.blocks.last_mut() {
            Some(block) if block.len() < BLOCK => block.push(event),
            _ => self.blocks.push(vec![event]),
        }
        self
    }

    /// Begins a new block. Blocks also end after 1,000 events.
    pub fn block(&mut self) -> &mut Self {
        self.blocks.push(Vec::new());
        self
    }

    /// Puts all events in the order of their times, and those of equal times in the order in which they were
    /// added.
    pub fn sort(&mut self) -> &mut Self {
        let mut events = self.blocks.concat();
        events.sort_by_key(|event| event.timestamp);
        self.blocks = events.chunks(BLOCK).map(<[_]>::to_vec).collect();
        self
    }

    /// Returns the last event of the block, to change it.
    ///
    /// # Panics
    /// Without an event.
    pub fn last(&mut self) -> &mut Event {
        self.blocks.last_mut().and_then(|block| block.last_mut()).expect("an event")
    }

    /// Gives the last event the stack with this id.
    pub fn on(&mut self, stack: u32) -> &mut Self {
        self.last().stack_id = stack;
        self
    }

    /// Gives the last event an activity.
    pub fn activity(&mut self, activity: Guid) -> &mut Self {
        self.last().activity = activity;
        self
    }

    /// Adds a module: ModuleLoad.
    pub fn module(&mut self, id: u64, path: &str) -> &mut Self {
        self.event(kind::MODULE_LOAD, &module(id, path))
    }

    /// Adds a method: MethodLoadVerbose.
    pub fn method(&mut self, method: &Method<'_>) -> &mut Self {
        self.event(kind::METHOD_LOAD_VERBOSE, &method.verbose())
    }

    /// Adds a sample of the runtime's sampler: [`MANAGED`](super::MANAGED) or [`EXTERNAL`](super::EXTERNAL).
    pub fn sample(&mut self, stack: u32, mode: u32) -> &mut Self {
        self.event(kind::THREAD_SAMPLE, &[Value::UInt32(mode)]).on(stack)
    }

    /// Adds a sampled allocation.
    pub fn allocation(&mut self, bytes: u64, type_name: &str) -> &mut Self {
        self.event(kind::GC_ALLOCATION_TICK, &allocation(bytes, type_name))
    }

    /// Adds a thrown exception.
    pub fn exception(&mut self, type_name: &str, message: &str) -> &mut Self {
        let [address, result] = [Value::UInt64(0), Value::UInt32(0x8013_1505)];
        let [flags, instance] = [0, 0].map(Value::UInt16);
        let [type_name, message] = [type_name, message].map(Value::string16);
        self.event(kind::EXCEPTION_THROWN, &[type_name, message, address, result, flags, instance])
    }

    /// Adds the beginning of a wait for the lock at an address, which thread `owner` has.
    pub fn contention_start(&mut self, lock: u64, owner: u64) -> &mut Self {
        self.event(kind::CONTENTION_START, &contention_start(lock, owner))
    }

    /// Adds the end of a wait for a lock of this length.
    pub fn contention_stop(&mut self, nanoseconds: f64) -> &mut Self {
        self.event(kind::CONTENTION_STOP, &contention_stop(nanoseconds))
    }

    /// Adds the request for a suspension of all threads; reason 1 is a collection.
    pub fn suspend_begin(&mut self, reason: u32) -> &mut Self {
        let values = [Value::UInt32(reason), Value::UInt32(1), Value::UInt16(0)];
        self.event(kind::GC_SUSPEND_EE_BEGIN, &values)
    }

    /// Adds the end of a request for a suspension: all threads are stopped.
    pub fn suspend_end(&mut self) -> &mut Self {
        self.event(kind::GC_SUSPEND_EE_END, &[Value::UInt16(0)])
    }

    /// Adds the end of a suspension: all threads run.
    pub fn restart_end(&mut self) -> &mut Self {
        self.event(kind::GC_RESTART_EE_END, &[Value::UInt16(0)])
    }

    /// Adds the beginning of a collection of a generation; reason 1 is induced.
    pub fn gc_start(&mut self, count: u32, generation: u32, reason: u32) -> &mut Self {
        let numbers = [count, generation, reason, 0].map(Value::UInt32);
        let values = [&numbers[..], &[Value::UInt16(0), Value::UInt64(0)]].concat();
        self.event(kind::GC_START, &values)
    }

    /// Adds the end of a collection of a generation.
    pub fn gc_end(&mut self, count: u32, generation: u32) -> &mut Self {
        self.event(kind::GC_END, &[Value::UInt32(count), Value::UInt32(generation), Value::UInt16(0)])
    }

    /// Adds the start or the end of a request to ASP.NET, as the bridge from DiagnosticSource forwards it to
    /// dotnet-monitor's filter.
    pub fn bridged_request(&mut self, is_start: bool, arguments: &[(&str, &str)]) -> &mut Self {
        let phase = if is_start { "Start" } else { "Stop" };
        let metadata = Metadata {
            provider: "Microsoft-Diagnostics-DiagnosticSource".into(),
            event_id: if is_start { 4 } else { 5 },
            name: format!("Activity1{phase}"),
            version: 1,
            level: 5,
            ..Metadata::default()
        };
        let event = format!("Microsoft.AspNetCore.Hosting.HttpRequestIn.{phase}");
        self.described(metadata, &diagnostic("Microsoft.AspNetCore", &event, arguments))
    }

    /// Returns the recording: all kinds and stacks, then the events in blocks, in the order in which they
    /// were added. Their sequence numbers count from 1 for each thread that wrote them: none is lost.
    pub fn bytes(&self) -> Vec<u8> {
        let mut trace = Trace::new(&self.header);
        trace.metadata_block(&self.kinds);
        if !self.stacks.is_empty() {
            trace.stack_block(1, &self.stacks);
        }
        let mut sequences = BTreeMap::new();
        for events in self.blocks.iter().filter(|events| !events.is_empty()) {
            let mut block = EventBlock::v4();
            for event in events {
                let sequence: &mut u32 = sequences.entry(event.capture_thread).or_default();
                *sequence += 1;
                block.event(&Event { sequence: *sequence, ..event.clone() });
            }
            trace.event_block(&block);
        }
        trace.finish()
    }
}

/// Panics for a number that its field cannot hold.
fn number(count: usize) -> u32 {
    crate::bytes::length32(count)
}

#[cfg(test)]
mod tests {
    use super::Recording;
    use crate::clr::{MANAGED, Method};
    use crate::nettrace::Trace;
    use crate::{Event, EventBlock, Metadata, TraceHeader};

    /// The bytes of MethodLoadVerbose as a runtime writes them.
    const METHOD: &[u8] = b"\x00\x10\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x00\x10\0\0\0\0\0\0\
        \x00\x01\0\0\x01\0\0\x06\x08\0\0\0N\0\0\0M\0\0\0(\0)\0\0\0\0\0";

    #[test]
    fn events_have_the_time_the_thread_and_the_stack_that_were_set() {
        let mut recording = Recording::new();
        recording.stacks(&[&[0x1008]]).method(&Method { signature: "()", ..Method::new(0x1000, "N", "M") });
        recording.at(5).thread(7).sample(1, MANAGED).thread(1).at(6).sample(0, MANAGED);

        let mut trace = Trace::new(&TraceHeader::default());
        let kind = |id, provider: &str, event_id, version| Metadata {
            id,
            provider: provider.into(),
            event_id,
            version,
            ..Metadata::default()
        };
        trace.metadata_block(&[
            kind(1, "Microsoft-Windows-DotNETRuntime", 143, 1),
            kind(2, "Microsoft-DotNETCore-SampleProfiler", 0, 0),
        ]);
        trace.stack_block(1, &[vec![8, 0x10, 0, 0, 0, 0, 0, 0]]);
        let event = |metadata_id, sequence, thread, timestamp, payload: &[u8]| Event {
            metadata_id,
            sequence,
            thread,
            capture_thread: thread,
            timestamp,
            payload: payload.to_vec(),
            ..Event::default()
        };
        let mut block = EventBlock::v4();
        block.event(&event(1, 1, 1, 0, METHOD));
        block.event(&Event { stack_id: 1, ..event(2, 1, 7, 5, &[2, 0, 0, 0]) });
        block.event(&event(2, 2, 1, 6, &[2, 0, 0, 0]));
        trace.event_block(&block);
        assert_eq!(recording.bytes(), trace.finish());
    }
}
