//! Synthetic recordings of counters.

use clr_counters::{Counters, Measurement, Sample};
use nettrace_synth::v6::{self, ThreadRow};
use nettrace_synth::{Event, EventBlock, Field, Metadata, TraceHeader, Type, Value, nettrace, payload};

pub(crate) const METRICS: &str = "System.Diagnostics.Metrics";

/// Writes a recording, one event at a time.
pub(crate) struct Recording {
    metadata: Vec<Metadata>,
    events: EventBlock,
    count: u32,
    /// The processes of a V6 recording, each with one thread; its index is the process's number.
    processes: Vec<u64>,
    /// The thread of the next events.
    thread: u64,
}

impl Recording {
    pub(crate) fn new() -> Self {
        Self { metadata: Vec::new(), events: EventBlock::v4(), count: 0, processes: Vec::new(), thread: 0 }
    }

    /// A recording of several processes: V6.
    pub(crate) fn of_processes(processes: &[u64]) -> Self {
        Self { events: EventBlock::v6(), processes: processes.to_vec(), ..Self::new() }
    }

    /// Assigns the next events to this process.
    pub(crate) fn process(self, process: u64) -> Self {
        Self { thread: process, ..self }
    }

    /// Adds an event at this many milliseconds after the start, with these fields.
    pub(crate) fn event(
        self,
        millis: i64,
        provider: &str,
        id: u32,
        name: &str,
        fields: &[(&str, Value)],
    ) -> Self {
        let kind = Metadata {
            provider: provider.into(),
            event_id: id,
            name: name.into(),
            fields: fields.iter().map(|(name, value)| Field::new(name, type_of(value))).collect(),
            ..Metadata::default()
        };
        self.event_of(millis, kind, payload(&values(fields)))
    }

    /// Adds an event of a kind of its own, which gets the next number.
    fn event_of(mut self, millis: i64, kind: Metadata, payload: Vec<u8>) -> Self {
        self.count += 1;
        self.metadata.push(Metadata { id: self.count, ..kind });
        self.events.event(&Event {
            metadata_id: self.count,
            sequence: self.count,
            thread: self.thread,
            capture_thread: self.thread,
            timestamp: ticks(millis),
            payload,
            ..Event::default()
        });
        self
    }

    /// Adds a value of an EventCounter.
    pub(crate) fn counter(self, millis: i64, provider: &str, name: &str, increment: f64) -> Self {
        let inner = vec![
            ("Name", text(name)),
            ("Increment", Value::Double(increment)),
            ("IntervalSec", Value::Single(0.5)),
            ("Series", text("Interval=500")),
        ];
        let list = |inner: &[(&str, Value)]| {
            inner.iter().map(|(name, value)| Field::new(name, type_of(value))).collect::<Vec<_>>()
        };
        self.structured(millis, provider, "EventCounters", list(&inner), payload(&values(&inner)))
    }

    fn structured(
        self,
        millis: i64,
        provider: &str,
        name: &str,
        inner: Vec<Field>,
        payload: Vec<u8>,
    ) -> Self {
        let outer = Type::Object(vec![Field::new("Payload", Type::Object(inner))]);
        let kind = Metadata {
            provider: provider.into(),
            event_id: 40,
            name: name.into(),
            fields: vec![Field::new("", outer)],
            ..Metadata::default()
        };
        self.event_of(millis, kind, payload)
    }

    /// Adds an event of the provider of Meters with times for its whole numbers, as declared by programs'
    /// metadata.
    pub(crate) fn timed(mut self, millis: i64, id: u32, name: &str, fields: &[(&str, Value)]) -> Self {
        self = self.event(millis, METRICS, id, name, fields);
        for field in &mut self.metadata.last_mut().unwrap().fields {
            if field.ty == Type::Int64 {
                field.ty = Type::DateTime;
            }
        }
        self
    }

    /// Adds a value of a Counter.
    pub(crate) fn total(self, millis: i64, meter: &str, name: &str, tags: &str, rate: &str) -> Self {
        let fields = instrument(meter, name, tags);
        let values = [("rate", text(rate)), ("value", text("10"))];
        self.event(millis, METRICS, 4, "CounterRateValuePublished", &[fields, values.to_vec()].concat())
    }

    /// The bytes of the recording: V4, or V6 if events belong to processes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        if self.processes.is_empty() {
            let mut trace = nettrace::Trace::new(&TraceHeader::default());
            trace.metadata_block(&self.metadata);
            trace.event_block(&self.events);
            return trace.finish();
        }
        let mut trace = v6::Trace::new(&TraceHeader::default());
        trace.thread_block(&self.processes.iter().copied().map(ThreadRow::of_process).collect::<Vec<_>>());
        trace.metadata_block(&self.metadata);
        trace.event_block(&self.events);
        trace.finish()
    }

    pub(crate) fn read(&self, mut counters: Counters) -> (Counters, Vec<(String, String, Measurement)>) {
        let bytes = self.bytes();
        let mut seen = Vec::new();
        let mut events = ::nettrace::Reader::new(&*bytes).unwrap().in_time_order();
        let mut emit = |sample: Sample<'_>| {
            seen.push((sample.series.name.clone(), sample.series.tags.clone(), sample.measurement.clone()));
        };
        while let Some(event) = events.next().unwrap() {
            counters.add(&event, &mut emit);
        }
        counters.finish(&mut emit);
        (counters, seen)
    }
}

/// The time this many milliseconds after the start of a default recording.
fn ticks(millis: i64) -> u64 {
    let header = TraceHeader::default();
    u64::try_from(header.sync_ticks + millis * header.frequency / 1000).unwrap()
}

fn values(fields: &[(&str, Value)]) -> Vec<Value> {
    fields.iter().map(|(_, value)| value.clone()).collect()
}

pub(crate) fn text(text: &str) -> Value {
    Value::String16(text.encode_utf16().collect())
}

fn type_of(value: &Value) -> Type {
    match value {
        Value::String16(_) => Type::String16,
        Value::Int32(_) => Type::Int32,
        Value::Int64(_) => Type::Int64,
        Value::Single(_) => Type::Single,
        Value::Double(_) => Type::Double,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn instrument(meter: &str, name: &str, tags: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("sessionId", text("SHARED")),
        ("meterName", text(meter)),
        ("meterVersion", text("")),
        ("instrumentName", text(name)),
        ("unit", text("")),
        ("tags", text(tags)),
    ]
}
