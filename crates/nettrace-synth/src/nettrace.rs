//! V4 and V5: nettrace, the magic and a stream of objects.

use crate::{Bytes, Event, EventBlock, Metadata, ObjectStream, TraceHeader, bytes::length32};

/// A recording of V4 or V5 under construction. The two differ in the tags of the metadata only.
///
/// Every method but [`Trace::raw`] writes a whole object; blocks are of version 2, least reader version 2.
///
/// ```
/// use nettrace_synth::{TraceHeader, nettrace::Trace};
///
/// let whole = Trace::new(&TraceHeader::default()).finish();
/// // The recording of a killed process lacks the end.
/// let cut = Trace::new(&TraceHeader::default()).unfinished();
/// assert!(whole.starts_with(&cut) && whole.len() == cut.len() + 1);
/// ```
///
/// # Source
/// microsoft/perfview, `src/TraceEvent/EventPipe/NetTraceFormat_v5.md`.
#[derive(Clone, Debug)]
pub struct Trace {
    stream: ObjectStream,
    metadata_timestamp: u64,
}

impl Trace {
    /// Creates a recording with a `Trace` object of version 4.
    pub fn new(header: &TraceHeader) -> Self {
        Self::with_version(header, 4, 4)
    }

    /// Creates a recording with a `Trace` object of another version.
    pub fn with_version(header: &TraceHeader, version: i32, min_reader_version: i32) -> Self {
        let mut trace = Self::without_header();
        header.write_object_data(trace.stream.begin_object("Trace", version, min_reader_version));
        trace.stream.end_object();
        trace.metadata_timestamp = header.sync_ticks.cast_unsigned();
        trace
    }

    /// Creates a recording without a `Trace` object.
    pub fn without_header() -> Self {
        Self { stream: ObjectStream::new(b"Nettrace", 5), metadata_timestamp: 0 }
    }

    /// The offset of the next byte.
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
        self.stream.block(name, 2, 2, content);
        self
    }

    /// Writes a block with `size` in its size field, independent of the content.
    ///
    /// ```
    /// use nettrace_synth::{TraceHeader, nettrace::Trace};
    ///
    /// // A mistake on purpose: a reader must not trust the size.
    /// let mut trace = Trace::new(&TraceHeader::default());
    /// trace.block_of_claimed_size("EventBlock", u32::MAX, b"a few bytes");
    /// assert!(trace.unfinished().windows(4).any(|bytes| bytes == [0xff; 4]));
    /// ```
    pub fn block_of_claimed_size(&mut self, name: &str, size: u32, content: &[u8]) -> &mut Self {
        self.stream.begin_object(name, 2, 2).u32(size).align4().raw(content);
        self.stream.end_object();
        self
    }

    /// Writes a metadata block of V5 (of V4, where no metadata has an opcode or an array), as the runtime
    /// writes it.
    pub fn metadata_block(&mut self, metadata: &[Metadata]) -> &mut Self {
        let payloads: Vec<_> = metadata.iter().map(Metadata::payload_v5).collect();
        self.metadata_block_of(&payloads)
    }

    /// Writes a metadata block of V4: the fields are in the list of V3, without tags.
    pub fn metadata_block_v4(&mut self, metadata: &[Metadata]) -> &mut Self {
        let payloads: Vec<_> = metadata.iter().map(Metadata::payload_v3).collect();
        self.metadata_block_of(&payloads)
    }

    /// Writes a metadata block of events with these payloads: metadata id 0, sequence 0, no known processor.
    pub fn metadata_block_of(&mut self, payloads: &[Vec<u8>]) -> &mut Self {
        let mut block = EventBlock::v4();
        for payload in payloads {
            block.event(&Event {
                sorted: true,
                processor: u32::MAX,
                timestamp: self.metadata_timestamp,
                payload: payload.clone(),
                ..Event::default()
            });
        }
        self.block("MetadataBlock", &block.content())
    }

    /// Writes an event block.
    pub fn event_block(&mut self, block: &EventBlock) -> &mut Self {
        self.block("EventBlock", &block.content())
    }

    /// Writes a stack block: stacks of the ids `first_id`, `first_id + 1` and so on.
    pub fn stack_block(&mut self, first_id: u32, stacks: &[Vec<u8>]) -> &mut Self {
        self.block("StackBlock", &crate::stack_block(first_id, stacks))
    }

    /// Writes a sequence point: threads, each with its last sequence number.
    ///
    /// | size | meaning |
    /// |---|---|
    /// | 8 | timestamp |
    /// | 4 | count |
    /// | 8, 4 | thread id, sequence number; `count` times |
    pub fn sequence_point(&mut self, timestamp: u64, threads: &[(u64, u32)]) -> &mut Self {
        let mut content = Bytes::new();
        content.u64(timestamp).u32(length32(threads.len()));
        for (thread, sequence) in threads {
            content.u64(*thread).u32(*sequence);
        }
        self.block("SPBlock", content.as_slice())
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

#[cfg(test)]
mod tests {
    use super::Trace;
    use crate::TraceHeader;

    #[test]
    fn a_sequence_point_by_hand() {
        let header = TraceHeader::default();
        let before = Trace::new(&header).offset();
        assert_eq!(before, 102, "32 of magic and signature, 21 of type and tags, 48 of data, the end tag");
        let mut trace = Trace::new(&header);
        trace.sequence_point(0x0102, &[(77, 3)]);
        let expected = [
            &[5, 5, 1, 2, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0][..],
            b"SPBlock\x06",
            &[24, 0, 0, 0],
            &[0, 0, 0], // from offset 129 to 132
            &[2, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
            &[77, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0],
            &[6, 1],
        ];
        assert_eq!(trace.finish()[before..], expected.concat());
    }
}
