//! Recordings of a made-up runtime.

use clr_events::Provider;
use nettrace_synth::nettrace::Trace;
use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader, Value, payload};

/// A kind of event: provider, number, version.
pub(crate) type Kind = (Provider, u32, u32);

pub(crate) const LOAD: Kind = (Provider::Runtime, 143, 1);
pub(crate) const UNLOAD: Kind = (Provider::Runtime, 144, 1);
pub(crate) const NAMELESS_LOAD: Kind = (Provider::Runtime, 141, 1);
pub(crate) const RUNDOWN: Kind = (Provider::Rundown, 144, 1);
pub(crate) const MODULE: Kind = (Provider::Rundown, 154, 1);

/// Writes events one by one, all of one process and thread.
#[derive(Default)]
pub(crate) struct Recording {
    kinds: Vec<Kind>,
    events: Vec<Event>,
}

impl Recording {
    pub(crate) fn event(&mut self, kind: Kind, time: u64, values: &[Value]) -> &mut Self {
        self.event_of(kind, 7, time, payload(values))
    }

    pub(crate) fn event_of(&mut self, kind: Kind, thread: u64, time: u64, payload: Vec<u8>) -> &mut Self {
        let known = self.kinds.iter().position(|known| *known == kind);
        let place = known.unwrap_or_else(|| {
            self.kinds.push(kind);
            self.kinds.len() - 1
        });
        self.events.push(Event {
            metadata_id: u32::try_from(place).unwrap() + 1,
            sequence: u32::try_from(self.events.len()).unwrap() + 1,
            thread,
            capture_thread: 7,
            timestamp: time,
            payload,
            ..Event::default()
        });
        self
    }

    /// A runtime's description of a range of code.
    pub(crate) fn method(&mut self, kind: Kind, time: u64, start: u64, size: u32, name: &str) -> &mut Self {
        self.event(kind, time, &method(start, size, name))
    }

    pub(crate) fn module(&mut self, time: u64, id: u64, path: &str) -> &mut Self {
        let values = [
            Value::UInt64(id),
            Value::UInt64(0),
            Value::UInt32(0),
            Value::UInt32(0),
            Value::string16(path),
            Value::string16(""),
            Value::UInt16(0),
        ];
        self.event(MODULE, time, &values)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut trace = Trace::new(&TraceHeader::default());
        let metadata = self.kinds.iter().zip(1..).map(|((provider, event_id, version), id)| Metadata {
            id,
            provider: provider.name().into(),
            event_id: *event_id,
            version: *version,
            ..Metadata::default()
        });
        trace.metadata_block(&metadata.collect::<Vec<_>>());
        for events in self.events.chunks(500) {
            let mut block = EventBlock::v4();
            for event in events {
                block.event(event);
            }
            trace.event_block(&block);
        }
        trace.finish()
    }
}

/// Module 1, id and names after `name`; an empty name for events without one.
pub(crate) fn method(start: u64, size: u32, name: &str) -> Vec<Value> {
    let mut values = vec![
        Value::UInt64(name.len() as u64),
        Value::UInt64(1),
        Value::UInt64(start),
        Value::UInt32(size),
        Value::UInt32(0x0600_0001),
        Value::UInt32(0x188),
    ];
    if !name.is_empty() {
        values.extend([
            Value::string16("App.Type"),
            Value::string16(name),
            Value::string16("instance void  (int32)"),
        ]);
    }
    values.push(Value::UInt16(0));
    values
}
