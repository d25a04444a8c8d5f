//! Synthetic heap dumps.

use gcdump::{Error, HeapGraph, HeapGraphBuilder};
use nettrace_synth::v6::{self, ThreadRow};
use nettrace_synth::{Bytes, Event, EventBlock, Metadata, TraceHeader, nettrace::Trace};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";

/// The ids of the runtime's events in a dump.
const RUNTIME_EVENTS: [(u32, u32); 10] =
    [(1, 2), (2, 1), (15, 0), (16, 0), (17, 0), (18, 0), (19, 0), (36, 0), (37, 0), (38, 0)];

/// A recording of a heap dump, event by event.
pub(crate) struct Dump {
    metadata: Vec<Metadata>,
    events: Vec<Event>,
    /// The processes of a V6 recording, each with one thread. The thread's index is the process's number.
    processes: Vec<u64>,
    /// The thread of the next events.
    thread: u64,
    objects: u32,
    references: u32,
}

impl Dump {
    /// A recording before the start of the dump.
    pub(crate) fn new() -> Self {
        let of = |provider: &str, id, event_id, version| Metadata {
            id,
            provider: provider.into(),
            event_id,
            version,
            ..Metadata::default()
        };
        let mut metadata: Vec<_> =
            (1..).zip(RUNTIME_EVENTS).map(|(id, (event, version))| of(RUNTIME, id, event, version)).collect();
        metadata.push(of(RUNDOWN, 11, 154, 1));
        Self { metadata, events: Vec::new(), processes: Vec::new(), thread: 0, objects: 0, references: 0 }
    }

    /// A recording of several processes in which no dump has begun.
    pub(crate) fn of_processes(processes: &[u64]) -> Self {
        Self { processes: processes.to_vec(), ..Self::new() }
    }

    /// Assigns the next events to this process. Its events with objects and references are numbered from 0
    /// again.
    pub(crate) fn process(self, process: u64) -> Self {
        Self { thread: process, objects: 0, references: 0, ..self }
    }

    /// A recording after the start of the dump.
    pub(crate) fn begun() -> Self {
        Self::new().start(5, 1)
    }

    fn event(mut self, metadata_id: u32, payload: &Bytes) -> Self {
        // Events of a thread are numbered.
        let sequence = self.events.iter().filter(|event| event.thread == self.thread).count() + 1;
        let time = self.events.len() as u64 + 1;
        self.events.push(Event {
            metadata_id,
            sequence: length(sequence),
            thread: self.thread,
            capture_thread: self.thread,
            timestamp: TraceHeader::default().sync_ticks.cast_unsigned() + time,
            payload: payload.as_slice().to_vec(),
            ..Event::default()
        });
        self
    }

    fn runtime_event(self, id: u32, payload: &Bytes) -> Self {
        let metadata = (1..).zip(RUNTIME_EVENTS).find(|(_, (event, _))| *event == id).unwrap().0;
        self.event(metadata, payload)
    }

    /// A collection of all generations begins.
    pub(crate) fn start(self, count: u32, reason: u32) -> Self {
        let mut payload = Bytes::new();
        payload.u32(count).u32(2).u32(reason).u32(0).u16(0).u64(0);
        self.runtime_event(1, &payload)
    }

    /// A collection ends.
    pub(crate) fn stop(self, count: u32) -> Self {
        let mut payload = Bytes::new();
        payload.u32(count).u32(2).u16(0);
        self.runtime_event(2, &payload)
    }

    /// Types, each with id, module, flags, name and type parameters.
    pub(crate) fn types(self, types: &[(u64, u64, u32, &str, &[u64])]) -> Self {
        let mut payload = Bytes::new();
        payload.u32(length(types.len())).u16(0);
        for (id, module, flags, name, parameters) in types {
            payload.u64(*id).u64(*module).u32(0x0200_0002).u32(*flags).u8(0x12).string16(name);
            payload.u32(length(parameters.len()));
            for parameter in *parameters {
                payload.u64(*parameter);
            }
        }
        self.runtime_event(15, &payload)
    }

    /// Objects: address, size, type and number of references.
    pub(crate) fn objects(mut self, objects: &[(u64, u64, u64, u64)]) -> Self {
        self.objects += 1;
        let index = self.objects - 1;
        self.objects_of_index(index, objects)
    }

    /// Objects in an event with this number.
    pub(crate) fn objects_of_index(self, index: u32, objects: &[(u64, u64, u64, u64)]) -> Self {
        let mut payload = Bytes::new();
        payload.u32(index).u32(length(objects.len())).u16(0);
        for (address, size, of, edges) in objects {
            payload.u64(*address).u64(*size).u64(*of).u64(*edges);
        }
        self.runtime_event(18, &payload)
    }

    /// The next references.
    pub(crate) fn references(mut self, targets: &[u64]) -> Self {
        self.references += 1;
        let index = self.references - 1;
        self.references_of_index(index, targets)
    }

    /// References in an event with this number.
    pub(crate) fn references_of_index(self, index: u32, targets: &[u64]) -> Self {
        let mut payload = Bytes::new();
        payload.u32(index).u32(length(targets.len())).u16(0);
        for target in targets {
            payload.u64(*target).u32(0);
        }
        self.runtime_event(19, &payload)
    }

    /// Roots: object, kind and flags.
    pub(crate) fn roots(self, roots: &[(u64, u8, u32)]) -> Self {
        let mut payload = Bytes::new();
        payload.u32(0).u32(length(roots.len())).u16(0);
        for (target, kind, flags) in roots {
            payload.u64(*target).u8(*kind).u32(*flags).u64(0x7000);
        }
        self.runtime_event(16, &payload)
    }

    /// Dependent handles: key and value.
    pub(crate) fn dependent_handles(self, handles: &[(u64, u64)]) -> Self {
        let mut payload = Bytes::new();
        payload.u32(0).u32(length(handles.len())).u16(0);
        for (key, value) in handles {
            payload.u64(*key).u64(*value).u64(0x7000);
        }
        self.runtime_event(17, &payload)
    }

    /// Static fields: object, its type and the field's name.
    pub(crate) fn statics(self, fields: &[(u64, u64, &str)]) -> Self {
        let mut payload = Bytes::new();
        payload.u32(length(fields.len())).u64(1).u16(0);
        for (object, of, name) in fields {
            payload.u64(0x7000).u64(*object).u64(*of).u32(0).string16(name);
        }
        self.runtime_event(38, &payload)
    }

    /// A module of the rundown.
    pub(crate) fn module(self, id: u64, path: &str) -> Self {
        let mut payload = Bytes::new();
        payload.u64(id).u64(1).u32(0).u32(0).string16(path).string16("").u16(0);
        self.event(11, &payload)
    }

    /// The bytes of the recording.
    pub(crate) fn bytes(self) -> Vec<u8> {
        // One block per event.
        let block = |mut block: EventBlock, event| {
            block.event(event);
            block
        };
        if self.processes.is_empty() {
            let mut trace = Trace::new(&TraceHeader::default());
            trace.metadata_block(&self.metadata);
            for event in &self.events {
                trace.event_block(&block(EventBlock::v4(), event));
            }
            return trace.finish();
        }
        let mut trace = v6::Trace::new(&TraceHeader::default());
        trace.thread_block(&self.processes.iter().copied().map(ThreadRow::of_process).collect::<Vec<_>>());
        trace.metadata_block(&self.metadata);
        for event in &self.events {
            trace.event_block(&block(EventBlock::v6(), event));
        }
        trace.finish()
    }

    /// The graph.
    pub(crate) fn graph(self) -> Result<HeapGraph, Error> {
        graph_of(&self.bytes())
    }
}

/// The graph of a recording.
pub(crate) fn graph_of(bytes: &[u8]) -> Result<HeapGraph, Error> {
    graph_with(HeapGraphBuilder::new(), bytes)
}

/// The graph that a builder makes of a recording.
pub(crate) fn graph_with(mut builder: HeapGraphBuilder, bytes: &[u8]) -> Result<HeapGraph, Error> {
    let mut events = nettrace::SliceReader::new(bytes).map_err(|_| Error::NoDump)?.in_time_order();
    while let Ok(Some(event)) = events.next() {
        builder.add(&event);
    }
    builder.finish(events.loss().total())
}

fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap()
}
