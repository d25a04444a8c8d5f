//! The blocks of a recording in memory, in sequence.

use core::ops::Range;

use super::fast_serialization;
use super::frame::{Frame, ScanResult};
use super::metadata::MetadataEncoding;
use super::{
    BlockKind, EventBlock, Header, LabelListBlock, Layout, MetadataRows, ParseError, RemovedThreads,
    SequencePoint, StackBlock, ThreadRows, v6,
};
use crate::cursor::{ReadError, ReadResult};
use crate::error::Error;

/// A block: its kind, its content, and the place of both in the recording.
///
/// | version | before the content | after it |
/// |---|---|---|
/// | 1, 2 | nothing: a block is an event | nothing |
/// | 3 to 5 | the [`prefix`](Self::prefix), the size as i32, zeros up to an offset that is a multiple of 4 | the end tag |
/// | 6 | size and kind, 4 bytes | nothing |
///
/// # Source
/// microsoft/perfview, `src/TraceEvent/EventPipe/NetTraceFormat_v5.md`, "Object layout", and
/// `NetTraceFormat.md`, "Blocks".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block<'a> {
    kind: BlockKind,
    layout: Layout,
    metadata: Option<MetadataEncoding>,
    prefix: &'a [u8],
    content: &'a [u8],
    start: u64,
    content_offset: u64,
    end: u64,
}

/// The content of a block, by kind.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum BlockContent<'a> {
    /// Events.
    Event(EventBlock<'a>),
    /// Definitions of kinds of events.
    Metadata(MetadataRows<'a>),
    /// A sequence point.
    SequencePoint(SequencePoint<'a>),
    /// Call stacks.
    Stack(StackBlock<'a>),
    /// V6: descriptions of threads.
    Thread(ThreadRows<'a>),
    /// V6: threads that no later event refers to.
    RemoveThread(RemovedThreads<'a>),
    /// V6: lists of labels.
    LabelList(LabelListBlock<'a>),
    /// The bytes of a kind that this crate does not know.
    Unknown(&'a [u8]),
}

impl<'a> Block<'a> {
    /// The kind of the block.
    pub const fn kind(&self) -> BlockKind {
        self.kind
    }

    /// The offsets of the whole block in the recording, in bytes.
    pub const fn range(&self) -> Range<u64> {
        self.start..self.end
    }

    /// The bytes before the size: tags, versions and the name of the object's type. Empty in V1, V2 and V6.
    pub const fn prefix(&self) -> &'a [u8] {
        self.prefix
    }

    /// The content, without size, padding and tags.
    pub const fn content(&self) -> &'a [u8] {
        self.content
    }

    /// Offset of the content in the recording, in bytes.
    pub const fn content_offset(&self) -> u64 {
        self.content_offset
    }

    /// Parses the beginning of the content; its iterator parses the rows.
    ///
    /// # Errors
    /// If the content ends inside its header, or the header violates the format.
    pub fn parse(&self) -> Result<BlockContent<'a>, ParseError> {
        BlockContent::new(self.kind, self.content, self.content_offset, self.layout, self.metadata)
            .map_err(|error| ParseError { offset: 0, error })
    }
}

impl<'a> BlockContent<'a> {
    /// Parses content that begins at an offset in the recording. `metadata`: the encoding of metadata rows
    /// among events.
    pub(crate) fn new(
        kind: BlockKind,
        content: &'a [u8],
        content_offset: u64,
        layout: Layout,
        metadata: Option<MetadataEncoding>,
    ) -> ReadResult<Self> {
        Ok(match kind {
            BlockKind::Event => Self::Event(EventBlock::new(content, content_offset, layout, metadata)?),
            BlockKind::Metadata => Self::Metadata(MetadataRows::new(content, content_offset, layout)?),
            BlockKind::SequencePoint => Self::SequencePoint(SequencePoint::new(content, layout)?),
            BlockKind::Stack => Self::Stack(StackBlock::new(content)?),
            BlockKind::Thread => Self::Thread(ThreadRows::new(content)),
            BlockKind::RemoveThread => Self::RemoveThread(RemovedThreads::new(content)),
            BlockKind::LabelList => Self::LabelList(LabelListBlock::new(content)?),
            BlockKind::Unknown => Self::Unknown(content),
        })
    }
}

impl Header {
    /// The encoding of metadata rows among events, which only netperf has.
    pub(crate) fn metadata_among_events(&self) -> Option<MetadataEncoding> {
        match (self.layout, self.info.version) {
            (_, 1) => Some(MetadataEncoding::V1),
            (_, 2) => Some(MetadataEncoding::V2),
            (Layout::Netperf, _) => Some(MetadataEncoding::V3),
            _ => None,
        }
    }
}

/// The blocks of a recording in memory, in their order. Ends after the first cut or damaged block, and at the
/// end of the stream.
///
/// ```
/// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
/// use nettrace::raw::{BlockKind, Blocks};
///
/// let mut kinds = Vec::new();
/// for block in Blocks::new(bytes)? {
///     kinds.push(block?.kind());
/// }
/// assert!(kinds.contains(&BlockKind::Event) && kinds.contains(&BlockKind::Metadata));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Blocks<'a> {
    bytes: &'a [u8],
    header: Header,
    at: usize,
    is_done: bool,
}

impl<'a> Blocks<'a> {
    /// Parses the header of a recording.
    ///
    /// # Errors
    /// If the bytes are not a recording, are of a newer version, or end inside the header.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        let header = Header::parse(bytes)?;
        Ok(Self { bytes, at: header.size, header, is_done: false })
    }

    /// The header.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Offset in the recording of the next block, or of the block that could not be parsed. Once the iterator
    /// has ended without an error it is the end of the stream, including its end mark; later bytes do not
    /// belong to the recording.
    pub const fn offset(&self) -> usize {
        self.at
    }

    fn parse(&mut self) -> Result<Option<Block<'a>>, ParseError> {
        let found = match (self.header.is_flat(), self.header.layout) {
            (true, _) => self.netperf_event(),
            (false, Layout::V6) => self.v6_block(),
            (false, _) => self.object(),
        };
        let error = match found {
            ScanResult::Found(block) => return Ok(block),
            ScanResult::NeedMore(_) => ReadError::UnexpectedEnd,
            ScanResult::Invalid(what) => ReadError::Invalid(what),
        };
        Err(ParseError { offset: self.at as u64, error })
    }

    fn object(&mut self) -> ScanResult<Option<Block<'a>>> {
        let (found, data) = match fast_serialization::item(self.bytes, self.at) {
            ScanResult::Found(fast_serialization::Item::Object(found, data)) => (found, data),
            ScanResult::Found(fast_serialization::Item::Null) => {
                self.at = self.at.saturating_add(1);
                return ScanResult::Found(None);
            }
            ScanResult::NeedMore(more) => return ScanResult::NeedMore(more),
            ScanResult::Invalid(what) => return ScanResult::Invalid(what),
        };
        match fast_serialization::frame(self.bytes, found.kind(), data, 0) {
            ScanResult::Found(frame) => match fast_serialization::ends_at(self.bytes, frame.end) {
                Some(true) => self.block(frame, data),
                Some(false) => ScanResult::Invalid("block without its end tag"),
                None => ScanResult::NeedMore(frame.next.saturating_sub(self.bytes.len())),
            },
            ScanResult::NeedMore(more) => ScanResult::NeedMore(more),
            ScanResult::Invalid(what) => ScanResult::Invalid(what),
        }
    }

    fn v6_block(&mut self) -> ScanResult<Option<Block<'a>>> {
        match v6::item(self.bytes, self.at) {
            ScanResult::Found(v6::Item::End(frame)) => {
                let missing = frame.next.saturating_sub(self.bytes.len());
                if missing > 0 {
                    return ScanResult::NeedMore(missing);
                }
                self.at = frame.next;
                ScanResult::Found(None)
            }
            ScanResult::Found(v6::Item::Block(frame) | v6::Item::Trace(frame)) => self.block(frame, self.at),
            ScanResult::NeedMore(more) => ScanResult::NeedMore(more),
            ScanResult::Invalid(what) => ScanResult::Invalid(what),
        }
    }

    fn netperf_event(&mut self) -> ScanResult<Option<Block<'a>>> {
        match fast_serialization::is_netperf_tail(self.bytes, self.at, 0) {
            ScanResult::Found(true) => {
                self.at = self.at.saturating_add(fast_serialization::NETPERF_TAIL_SIZE);
                return ScanResult::Found(None);
            }
            ScanResult::Found(false) => {}
            ScanResult::NeedMore(more) => return ScanResult::NeedMore(more),
            ScanResult::Invalid(what) => return ScanResult::Invalid(what),
        }
        match fast_serialization::netperf_event(self.bytes, self.at) {
            ScanResult::Found(frame) => self.block(frame, self.at),
            ScanResult::NeedMore(more) => ScanResult::NeedMore(more),
            ScanResult::Invalid(what) => ScanResult::Invalid(what),
        }
    }

    /// Moves past a block. Its prefix ends at `prefix_end`.
    fn block(&mut self, frame: Frame, prefix_end: usize) -> ScanResult<Option<Block<'a>>> {
        let start = self.at;
        let Some(content) = self.bytes.get(frame.start..frame.end) else {
            return ScanResult::NeedMore(frame.next.saturating_sub(self.bytes.len()));
        };
        self.at = frame.next;
        ScanResult::Found(Some(Block {
            kind: frame.kind,
            layout: self.header.layout,
            metadata: self.header.metadata_among_events(),
            prefix: self.bytes.get(start..prefix_end).unwrap_or_default(),
            content,
            start: start as u64,
            content_offset: frame.start as u64,
            end: frame.next as u64,
        }))
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Result<Block<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let block = self.parse().transpose();
        self.is_done = !matches!(block, Some(Ok(_)));
        block
    }
}

impl core::iter::FusedIterator for Blocks<'_> {}
