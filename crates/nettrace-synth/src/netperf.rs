//! V1, V2 and V3: netperf.

use crate::{Bytes, Event, Metadata, ObjectStream, TraceHeader, bytes::length32};

/// Returns the bytes of one event of V1, V2 or V3, from its size field on.
///
/// | offset | size | meaning |
/// |---|---|---|
/// | 0 | 4 | size, not counting itself |
/// | 4 | 4 | metadata id; 0 = the payload is metadata |
/// | 8 | 4 | thread id (the low four bytes of a longer id) |
/// | 12 | 8 | timestamp |
/// | 20 | 16 | activity |
/// | 36 | 16 | related activity |
/// | 52 | 4 | size of the payload |
/// | 56 | … | payload |
/// | … | 4 | size of the stack in bytes |
/// | … | … | stack |
/// | … | 0–3 | V3 only: zeros up to a multiple of 4 |
///
/// # Source
/// microsoft/perfview, `src/TraceEvent/EventPipe/EventSerialization.md`. That document has the payload
/// padded; the runtimes (.NET Core 2.0 without padding, .NET 8 and 10 in format 0) put the size of the stack
/// directly after the payload and all padding after the stack.
pub fn event(event: &Event, aligned: bool) -> Vec<u8> {
    let mut out = Bytes::new();
    out.u32(0)
        .u32(event.metadata_id)
        .raw(&event.thread.to_le_bytes()[..4])
        .u64(event.timestamp)
        .raw(&event.activity)
        .raw(&event.related);
    out.u32(length32(event.payload.len())).raw(&event.payload);
    out.u32(length32(event.stack.len())).raw(&event.stack);
    if aligned {
        out.align4();
    }
    let size = length32(out.len() - 4);
    out.set_u32(0, size);
    out.into_vec()
}

/// A recording of V1 or V2 under construction: one object that holds every event.
///
/// | size | meaning |
/// |---|---|
/// | 24 | the signature |
/// | 54 | begin of an object `Microsoft.DotNet.Runtime.EventPipeFile`, version 1 or 2, least reader version 0 |
/// | 4 | index of a forward reference: 0 |
/// | 32 | start, sync ticks, frequency |
/// | … | events |
/// | 1 | end of the object; the forward reference leads here |
/// | 4 | count of forward references: 1 |
/// | 4 | offset of the end of the object |
/// | 4 | offset of the count |
/// | 4 | offset of the number before |
///
/// The id of a metadata event is the offset of its size field in the stream.
///
/// ```
/// use nettrace_synth::netperf::EarlyTrace;
/// use nettrace_synth::{Event, Metadata, TraceHeader};
///
/// let mut trace = EarlyTrace::v2(&TraceHeader::default());
/// // The id of a kind is its offset in the stream.
/// let id = trace.metadata(&Metadata { provider: "Demo".into(), event_id: 1, ..Metadata::default() });
/// trace.event(&Event { metadata_id: id, timestamp: 5, ..Event::default() });
/// assert!(trace.finish().windows(16).any(|bytes| bytes == b"Microsoft.DotNet"));
/// ```
///
/// # Source
/// microsoft/perfview, `src/TraceEvent/EventPipe/EventPipeEventSourceV1.cs` as it was; the trailer is from
/// the bytes of a .NET Core 2.0 recording (the same as in perfview's `FastSerialization.cs`).
#[derive(Clone, Debug)]
pub struct EarlyTrace {
    stream: ObjectStream,
    guid_providers: bool,
}

impl EarlyTrace {
    /// Creates a V1 recording. Its metadata identify providers by GUID.
    pub fn v1(header: &TraceHeader) -> Self {
        Self::new(header, 1)
    }

    /// Creates a V2 recording. Its metadata identify providers by name.
    pub fn v2(header: &TraceHeader) -> Self {
        Self::new(header, 2)
    }

    fn new(header: &TraceHeader, version: i32) -> Self {
        let mut stream = ObjectStream::new(b"", 4);
        let out = stream.begin_object("Microsoft.DotNet.Runtime.EventPipeFile", version, 0);
        out.u32(0);
        header.write_clock(out);
        Self { stream, guid_providers: version == 1 }
    }

    /// Returns the offset of the next byte.
    pub fn offset(&self) -> usize {
        self.stream.offset()
    }

    /// Writes bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.stream.bytes().raw(bytes);
        self
    }

    /// Writes a metadata event and returns the id that it defines. `metadata.id` is not used.
    pub fn metadata(&mut self, metadata: &Metadata) -> u32 {
        let id = length32(self.offset());
        let payload = metadata.payload_early(self.guid_providers);
        self.raw(&event(&Event { payload, ..Event::default() }, false));
        id
    }

    /// Writes an event.
    pub fn event(&mut self, event: &Event) -> &mut Self {
        self.raw(&self::event(event, false))
    }

    /// Returns the recording with its end.
    pub fn finish(mut self) -> Vec<u8> {
        let end = length32(self.offset());
        self.stream.end_object();
        let table = length32(self.offset());
        self.stream.bytes().u32(1).u32(end);
        let trailer = length32(self.offset());
        self.stream.bytes().u32(table).u32(trailer);
        self.stream.into_vec()
    }

    /// Returns the recording without its end.
    pub fn unfinished(self) -> Vec<u8> {
        self.stream.into_vec()
    }
}

/// A recording of V3 under construction: a `Trace` object (version 3, least reader version 0) and
/// `EventBlock` objects (version 1, least reader version 0) that hold events and metadata events alike.
///
/// ```
/// use nettrace_synth::netperf::{Trace, event, metadata_event};
/// use nettrace_synth::{Event, Metadata, TraceHeader};
///
/// let tick = Metadata { id: 1, provider: "Demo".into(), event_id: 7, ..Metadata::default() };
/// let events = [metadata_event(&tick, 8, 0), event(&Event { metadata_id: 1, ..Event::default() }, true)];
/// let mut trace = Trace::new(&TraceHeader::default());
/// trace.event_block(&events);
/// assert!(trace.finish().ends_with(&[1]));
/// ```
///
/// # Source
/// microsoft/perfview, `src/TraceEvent/EventPipe/NetPerfFormat.md`; the versions are from the bytes of
/// recordings.
#[derive(Clone, Debug)]
pub struct Trace {
    stream: ObjectStream,
}

impl Trace {
    /// Creates a recording with a `Trace` object.
    pub fn new(header: &TraceHeader) -> Self {
        let mut stream = ObjectStream::new(b"", 4);
        header.write_object_data(stream.begin_object("Trace", 3, 0));
        stream.end_object();
        Self { stream }
    }

    /// Returns the offset of the next byte.
    pub fn offset(&self) -> usize {
        self.stream.offset()
    }

    /// Writes bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.stream.bytes().raw(bytes);
        self
    }

    /// Writes an object with a block of this content.
    pub fn block(&mut self, name: &str, content: &[u8]) -> &mut Self {
        self.stream.block(name, 1, 0, content);
        self
    }

    /// Writes a block with `size` in its size field, independent of the content.
    pub fn block_of_claimed_size(&mut self, name: &str, size: u32, content: &[u8]) -> &mut Self {
        self.stream.begin_object(name, 1, 0).u32(size).align4().raw(content);
        self.stream.end_object();
        self
    }

    /// Writes an event block: see [`event`], [`metadata_event`].
    pub fn event_block(&mut self, events: &[Vec<u8>]) -> &mut Self {
        self.block("EventBlock", &events.concat())
    }

    /// Returns the recording with its end.
    pub fn finish(mut self) -> Vec<u8> {
        self.stream.null_reference();
        self.stream.into_vec()
    }

    /// Returns the recording without its end.
    pub fn unfinished(self) -> Vec<u8> {
        self.stream.into_vec()
    }
}

/// Returns the bytes of a metadata event of V3.
pub fn metadata_event(metadata: &Metadata, thread: u64, timestamp: u64) -> Vec<u8> {
    event(&Event { thread, timestamp, payload: metadata.payload_v3(), ..Event::default() }, true)
}

#[cfg(test)]
mod tests {
    use super::{EarlyTrace, event};
    use crate::{Event, Metadata, SystemTime, TraceHeader};

    #[test]
    fn an_event_by_hand() {
        let some = Event {
            metadata_id: 5,
            thread: 0x1234,
            timestamp: 0x0102_0304_0506_0708,
            activity: [1; 16],
            related: [2; 16],
            payload: vec![9],
            stack: vec![3; 8],
            ..Event::default()
        };
        let unaligned = [
            &[65, 0, 0, 0, 5, 0, 0, 0, 0x34, 0x12, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1][..],
            &[1; 16],
            &[2; 16],
            &[1, 0, 0, 0, 9, 8, 0, 0, 0, 3, 3, 3, 3, 3, 3, 3, 3],
        ]
        .concat();
        assert_eq!(event(&some, false), unaligned);
        let mut aligned = [&unaligned[..], &[0, 0, 0]].concat();
        aligned[0] = 68;
        assert_eq!(event(&some, true), aligned);
    }

    #[test]
    fn an_early_trace_by_hand() {
        let header = TraceHeader {
            start: SystemTime { year: 2017, month: 9, ..SystemTime::default() },
            sync_ticks: 5,
            frequency: 7,
            ..TraceHeader::default()
        };
        let mut trace = EarlyTrace::v2(&header);
        assert_eq!(trace.offset(), 0x72, "where .NET Core 2.0 has its first event");
        let id = trace.metadata(&Metadata {
            provider: "P".into(),
            event_id: 1,
            version: 2,
            ..Metadata::default()
        });
        assert_eq!(id, 0x72);
        trace.event(&Event { metadata_id: id, ..Event::default() });
        let expected = [
            &b"\x14\0\0\0!FastSerialization.1"[..],
            &[4, 4, 1, 2, 0, 0, 0, 0, 0, 0, 0, 38, 0, 0, 0],
            b"Microsoft.DotNet.Runtime.EventPipeFile\x06",
            &[0, 0, 0, 0],
            &[0xe1, 7, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[5, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0],
            &[72, 0, 0, 0],
            &[0; 48],
            &[16, 0, 0, 0, b'P', 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0],
            &[0, 0, 0, 0],
            &[56, 0, 0, 0, 0x72, 0, 0, 0],
            &[0; 52],
            &[6, 1, 0, 0, 0, 0xfa, 0, 0, 0, 0xfb, 0, 0, 0, 3, 1, 0, 0],
        ]
        .concat();
        assert_eq!(trace.finish(), expected);
    }
}
