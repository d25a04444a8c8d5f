//! V6: nettrace with block headers.

use crate::{Bytes, EventBlock, Guid, Metadata, TraceHeader, bytes::length16, bytes::length32};

/// The kinds of blocks.
pub mod kind {
    #![expect(missing_docs, reason = "named as in the document")]
    pub const END_OF_STREAM: u8 = 0;
    pub const TRACE: u8 = 1;
    pub const EVENT: u8 = 2;
    pub const METADATA: u8 = 3;
    pub const SEQUENCE_POINT: u8 = 4;
    pub const STACK: u8 = 5;
    pub const THREAD: u8 = 6;
    pub const REMOVE_THREAD: u8 = 7;
    pub const LABEL_LIST: u8 = 8;
}

/// A row of a thread block.
///
/// | size | meaning |
/// |---|---|
/// | 2 | size of the row, not counting this |
/// | … | index, `var_u64` |
/// | 1, … | an entry: kind, value |
///
/// # Source
/// microsoft/perfview, `src/TraceEvent/EventPipe/NetTraceFormat.md`, "ThreadBlock".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadRow {
    /// The index by which events refer to it.
    pub index: u64,
    /// The entries of the description.
    pub entries: Vec<ThreadEntry>,
}

impl ThreadRow {
    /// The thread that has the number of its process, as the first one does; its index is that number, too.
    pub fn of_process(process: u64) -> Self {
        Self {
            index: process,
            entries: vec![ThreadEntry::ProcessId(process), ThreadEntry::ThreadId(process)],
        }
    }
}

/// An entry of the description of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadEntry {
    /// Kind 1: a name, `string8`.
    Name(String),
    /// Kind 2: the operating system's number of the process, `var_u64`.
    ProcessId(u64),
    /// Kind 3: the operating system's number of the thread, `var_u64`.
    ThreadId(u64),
    /// Kind 4: a key and a value, `string8` each.
    KeyValue(String, String),
    /// Bytes, the kind among them.
    Raw(Vec<u8>),
}

impl ThreadRow {
    fn write(&self, out: &mut Bytes) {
        let mut row = Bytes::new();
        row.var_u64(self.index);
        for entry in &self.entries {
            match entry {
                ThreadEntry::Name(name) => row.u8(1).string8(name),
                ThreadEntry::ProcessId(id) => row.u8(2).var_u64(*id),
                ThreadEntry::ThreadId(id) => row.u8(3).var_u64(*id),
                ThreadEntry::KeyValue(key, value) => row.u8(4).string8(key).string8(value),
                ThreadEntry::Raw(bytes) => row.raw(bytes),
            };
        }
        out.u16(length16(row.len())).raw(row.as_slice());
    }
}

/// A label. The high bit of the kind is set in the last label of a list.
///
/// ```
/// use nettrace_synth::v6::{Label, Trace};
/// use nettrace_synth::{Event, EventBlock, TraceHeader};
///
/// let mut trace = Trace::new(&TraceHeader::default());
/// trace.label_list_block(1, &[vec![Label::Level(2), Label::Text("region".into(), "eu".into())]]);
/// let mut block = EventBlock::v6();
/// block.event(&Event { metadata_id: 1, label_list: 1, ..Event::default() });
/// trace.event_block(&block);
/// assert!(trace.finish().windows(6).any(|bytes| bytes == b"region"));
/// ```
///
/// # Source
/// microsoft/perfview, `src/TraceEvent/EventPipe/NetTraceFormat.md`, "LabelListBlock".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Label {
    /// Kind 1.
    Activity(Guid),
    /// Kind 2.
    RelatedActivity(Guid),
    /// Kind 3: of W3C trace context.
    TraceId([u8; 16]),
    /// Kind 4: of W3C trace context, u64.
    SpanId(u64),
    /// Kind 5: key and value, `string8` each.
    Text(String, String),
    /// Kind 6: key, `string8`; value, `var_i64`.
    Number(String, i64),
    /// Kind 7: replaces the metadata's opcode.
    Opcode(u8),
    /// Kind 8: replaces the metadata's keywords.
    Keywords(u64),
    /// Kind 9: replaces the metadata's level.
    Level(u8),
    /// Kind 10: replaces the metadata's version.
    Version(u8),
    /// A kind and the bytes after it.
    Raw(u8, Vec<u8>),
}

impl Label {
    fn write(&self, out: &mut Bytes, last: bool) {
        let kind = |kind: u8| if last { kind | 0x80 } else { kind };
        match self {
            Self::Activity(guid) => out.u8(kind(1)).raw(guid),
            Self::RelatedActivity(guid) => out.u8(kind(2)).raw(guid),
            Self::TraceId(id) => out.u8(kind(3)).raw(id),
            Self::SpanId(id) => out.u8(kind(4)).u64(*id),
            Self::Text(key, value) => out.u8(kind(5)).string8(key).string8(value),
            Self::Number(key, value) => out.u8(kind(6)).string8(key).var_i64(*value),
            Self::Opcode(opcode) => out.u8(kind(7)).u8(*opcode),
            Self::Keywords(keywords) => out.u8(kind(8)).u64(*keywords),
            Self::Level(level) => out.u8(kind(9)).u8(*level),
            Self::Version(version) => out.u8(kind(10)).u8(*version),
            Self::Raw(raw_kind, bytes) => out.u8(kind(*raw_kind)).raw(bytes),
        };
    }
}

/// A recording of V6 under construction.
///
/// | bytes | meaning |
/// |---|---|
/// | `Nettrace` | the magic |
/// | 4 | reserved: 0 |
/// | 4 | major version: 6 |
/// | 4 | minor version |
/// | … | blocks, the first of them the trace block |
///
/// A block is a u32 with the size of the content in the low 24 bits and its kind in the high 8 bits, followed
/// by the content. Nothing is aligned.
///
/// ```
/// use nettrace_synth::v6::{ThreadEntry, ThreadRow, Trace};
/// use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader};
///
/// let mut trace = Trace::new(&TraceHeader::default());
/// trace.metadata_block(&[Metadata { id: 1, provider: "Demo".into(), event_id: 1, ..Metadata::default() }]);
/// let entries = vec![ThreadEntry::Name("main".into()), ThreadEntry::ThreadId(8)];
/// trace.thread_block(&[ThreadRow { index: 1, entries }]);
/// let mut block = EventBlock::v6();
/// block.event(&Event { metadata_id: 1, sequence: 1, thread: 1, capture_thread: 1, ..Event::default() });
/// trace.event_block(&block).sequence_point(9, 0, &[(1, 1)]);
/// assert!(trace.finish().starts_with(b"Nettrace"));
/// ```
///
/// # Source
/// microsoft/perfview, `src/TraceEvent/EventPipe/NetTraceFormat.md`.
#[derive(Clone, Debug)]
pub struct Trace {
    out: Bytes,
}

impl Trace {
    /// Creates a recording with the trace block.
    pub fn new(header: &TraceHeader) -> Self {
        let mut trace = Self::without_header(6, header.minor);
        let mut content = Bytes::new();
        header.write_v6_content(&mut content);
        trace.block(kind::TRACE, content.as_slice());
        trace
    }

    /// Creates a recording with any version, and without a trace block.
    pub fn without_header(major: u32, minor: u32) -> Self {
        let mut out = Bytes::new();
        out.raw(b"Nettrace").u32(0).u32(major).u32(minor);
        Self { out }
    }

    /// Returns the offset of the next byte.
    pub fn offset(&self) -> usize {
        self.out.len()
    }

    /// Writes bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.raw(bytes);
        self
    }

    /// Writes a block of any kind.
    pub fn block(&mut self, kind: u8, content: &[u8]) -> &mut Self {
        self.block_of_claimed_size(kind, length24(content.len()), content)
    }

    /// Writes a block with `size` (24 bits of it) in the header, independent of the content.
    pub fn block_of_claimed_size(&mut self, kind: u8, size: u32, content: &[u8]) -> &mut Self {
        self.out.u32(u32::from(kind) << 24 | size & 0xff_ffff).raw(content);
        self
    }

    /// Writes a metadata block with an empty header.
    pub fn metadata_block(&mut self, metadata: &[Metadata]) -> &mut Self {
        let rows: Vec<_> = metadata.iter().map(Metadata::row_v6).collect();
        self.metadata_block_of(&[], &rows)
    }

    /// Writes a metadata block: a u16 size of the header (not counting itself), the header, rows.
    pub fn metadata_block_of(&mut self, header: &[u8], rows: &[Vec<u8>]) -> &mut Self {
        let mut content = Bytes::new();
        content.u16(length16(header.len())).raw(header).raw(&rows.concat());
        self.block(kind::METADATA, content.as_slice())
    }

    /// Writes an event block.
    pub fn event_block(&mut self, block: &EventBlock) -> &mut Self {
        self.block(kind::EVENT, &block.content())
    }

    /// Writes a stack block: stacks of the ids `first_id`, `first_id + 1` and so on.
    pub fn stack_block(&mut self, first_id: u32, stacks: &[Vec<u8>]) -> &mut Self {
        self.block(kind::STACK, &crate::stack_block(first_id, stacks))
    }

    /// Writes a sequence point: thread indexes, each with its last sequence number.
    ///
    /// | size | meaning |
    /// |---|---|
    /// | 8 | timestamp |
    /// | 4 | flags: 1 = thread indexes end, 2 = metadata ids end |
    /// | 4 | count |
    /// | …, … | thread index, sequence number: `var_u64` each; `count` times |
    pub fn sequence_point(&mut self, timestamp: u64, flags: u32, threads: &[(u64, u32)]) -> &mut Self {
        let mut content = Bytes::new();
        content.u64(timestamp).u32(flags).u32(length32(threads.len()));
        write_sequence_numbers(&mut content, threads);
        self.block(kind::SEQUENCE_POINT, content.as_slice())
    }

    /// Writes a thread block.
    pub fn thread_block(&mut self, rows: &[ThreadRow]) -> &mut Self {
        let mut content = Bytes::new();
        for row in rows {
            row.write(&mut content);
        }
        self.block(kind::THREAD, content.as_slice())
    }

    /// Writes a block of threads that no later event refers to, each with its last sequence number.
    pub fn remove_thread_block(&mut self, threads: &[(u64, u32)]) -> &mut Self {
        let mut content = Bytes::new();
        write_sequence_numbers(&mut content, threads);
        self.block(kind::REMOVE_THREAD, content.as_slice())
    }

    /// Writes label lists of the indexes `first_index`, `first_index + 1` and so on; none of them may be
    /// empty.
    ///
    /// | size | meaning |
    /// |---|---|
    /// | 4 | first index, from 1 |
    /// | 4 | count of lists |
    /// | 1, … | a label: kind, value |
    pub fn label_list_block(&mut self, first_index: u32, lists: &[Vec<Label>]) -> &mut Self {
        let mut content = Bytes::new();
        content.u32(first_index).u32(length32(lists.len()));
        for list in lists {
            for (at, label) in list.iter().enumerate() {
                label.write(&mut content, at + 1 == list.len());
            }
        }
        self.block(kind::LABEL_LIST, content.as_slice())
    }

    /// Returns the recording with its end.
    pub fn finish(mut self) -> Vec<u8> {
        self.block(kind::END_OF_STREAM, &[]);
        self.out.into_vec()
    }

    /// Returns the recording without its end.
    pub fn unfinished(self) -> Vec<u8> {
        self.out.into_vec()
    }
}

/// Writes indexes of threads, each with its last sequence number.
fn write_sequence_numbers(content: &mut Bytes, threads: &[(u64, u32)]) {
    for (thread, sequence) in threads {
        content.var_u64(*thread).var_u64((*sequence).into());
    }
}

/// Returns a length for the size of a block, which has 24 bits.
fn length24(length: usize) -> u32 {
    assert!(length < 1 << 24, "the block does not fit its size of 24 bits");
    length32(length)
}

#[cfg(test)]
mod tests;
