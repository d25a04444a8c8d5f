//! Event blocks.
//!
//! ```text
//! block         = header-size:u16 flags:u16 min:i64 max:i64 reserved* row*   (V4, V6; header-size counts itself)
//! block         = row*                                                         (netperf V3)
//! flags         = 1: rows have compressed headers
//!
//! compressed    = flags:u8
//!                 [1:   metadata-id:varuint32]
//!                 [2:   sequence-delta:varuint32 capture-thread:varuint64 processor:varuint32]
//!                 [4:   thread:varuint64]
//!                 [8:   stack-id:varuint32]
//!                 time-delta:varuint64
//!                 [16:  activity:guid]  [32: related:guid]     (V4)
//!                 [16:  label-list:varuint32]                  (V6)
//!                 [128: payload-size:varuint32]
//!                 payload                                      (64 in flags: sorted)
//!
//! uncompressed  = size:u32 metadata-id:u32 sequence:u32 thread:u64 capture-thread:u64 processor:u32 stack-id:u32 time:u64
//!                 (activity:guid related:guid | label-list:u32) payload-size:u32 payload padding
//!
//! netperf       = size:i32 metadata-id:i32 thread:i32 time:i64 activity:guid related:guid
//!                 payload-size:i32 payload stack-size:i32 stack padding
//! ```
//!
//! The size of an uncompressed row counts everything after itself, including padding.
//!
//! A group that is absent from a compressed header keeps the value of the event before it; every block starts
//! from zeros. Sequence numbers grow by one with every event, before V6 only with events of a nonzero
//! metadata id.

pub(super) mod decoder;

use uuid::Uuid;

use super::metadata::MetadataEncoding;
use super::{Layout, MetadataRow, ParseError, RowDecoder, RowHeader, RowResolver};
use crate::cursor::{Cursor, ReadError, ReadResult};
use crate::metadata::MetadataSlot;
use crate::time::Ticks;
use decoder::Encoding;

/// Minimum size of a block's header in bytes: its own fields.
const HEADER_SIZE: u16 = 20;

/// The content of an event block: a header, and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventBlock<'a> {
    content: &'a [u8],
    layout: Layout,
    /// Version of netperf, and where the content begins in the recording: ids of V1 and V2 are offsets of
    /// rows.
    metadata: Option<MetadataEncoding>,
    content_offset: u64,
    header_size: u16,
    encoding: Encoding,
}

impl<'a> EventBlock<'a> {
    /// Parses the header of an event block's content. Netperf has no such header.
    ///
    /// # Errors
    /// If the content ends inside the header, or the header's size is less than its fields take.
    pub fn parse(content: &'a [u8], layout: Layout) -> Result<Self, ParseError> {
        let metadata = (layout == Layout::Netperf).then_some(MetadataEncoding::V3);
        Self::new(content, 0, layout, metadata).map_err(|error| ParseError { offset: 0, error })
    }

    /// Parses the header of content that begins at an offset in the recording. `metadata`: the encoding of
    /// metadata rows among the events.
    pub(crate) fn new(
        content: &'a [u8],
        content_offset: u64,
        layout: Layout,
        metadata: Option<MetadataEncoding>,
    ) -> ReadResult<Self> {
        let (header_size, encoding) = match layout {
            Layout::Netperf => (0, Encoding::Netperf),
            Layout::V4 => block_header(content, Encoding::CompressedV4, Encoding::UncompressedV4)?,
            Layout::V6 => block_header(content, Encoding::CompressedV6, Encoding::UncompressedV6)?,
        };
        Ok(Self { content, layout, metadata, content_offset, header_size, encoding })
    }

    /// The size of the header in bytes: the offset of the first row. 0 in netperf.
    pub const fn header_size(&self) -> u16 {
        self.header_size
    }

    /// Returns true if the rows have compressed headers, as all runtimes write them.
    pub const fn is_compressed(&self) -> bool {
        matches!(self.encoding, Encoding::CompressedV4 | Encoding::CompressedV6)
    }

    /// The oldest and the newest time of the block's rows, as its header has them; `None` in netperf.
    pub fn time_range(&self) -> Option<(Ticks, Ticks)> {
        let mut header = Cursor::new(self.content.get(4..usize::from(self.header_size))?);
        Some((Ticks(header.u64().ok()?), Ticks(header.u64().ok()?)))
    }

    /// The rows.
    pub const fn rows(&self) -> EventRows<'a> {
        EventRows { block: *self, decoder: self.decoder(), has_failed: false }
    }

    /// A decoder at the first row.
    pub(crate) const fn decoder<T: super::ThreadRef>(&self) -> RowDecoder<T> {
        RowDecoder::new(self.header_size as u32, self.encoding)
    }
}

fn block_header(content: &[u8], compressed: Encoding, uncompressed: Encoding) -> ReadResult<(u16, Encoding)> {
    let mut cursor = Cursor::new(content);
    let size = cursor.u16()?;
    let flags = cursor.u16()?;
    if size < HEADER_SIZE {
        return Err(ReadError::Invalid("event block header shorter than its own fields"));
    }
    Cursor::new(content).bytes(usize::from(size))?;
    Ok((size, if flags & 1 == 0 { uncompressed } else { compressed }))
}

/// Returns true if the content of an event block of V4 begins with a whole header.
pub(super) fn has_header(content: &[u8]) -> bool {
    block_header(content, Encoding::CompressedV4, Encoding::UncompressedV4).is_ok()
}

/// A row of an event block: an event, or in netperf the definition of a kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventRow<'a> {
    /// Offset of the row in the block's content.
    pub offset: u32,
    /// Id of the metadata that describes the event. 0 in netperf: the row is metadata itself.
    pub metadata_id: u32,
    /// Nothing later in the recording is older than this event. Always false in netperf.
    pub is_sorted: bool,
    /// Sequence number of the event within its capture thread, from 1, including lost events. 0 in netperf.
    pub sequence: u32,
    /// The thread that wrote it: before V6 the operating system's number, in V6 an index of the recording's
    /// own.
    pub capture_thread: u64,
    /// The thread that it is about.
    pub thread: u64,
    /// The processor of the capture thread; `u32::MAX` where the runtime does not know it. 0 in netperf.
    pub processor: u32,
    /// Id of the stack, 0 for none. 0 in netperf, which has [`stack`](Self::stack).
    pub stack_id: u32,
    /// Time of the event.
    pub time: Ticks,
    /// The activity, nil for none. Nil in V6, which has [`label_list`](Self::label_list).
    pub activity: Uuid,
    /// The activity that caused this one, nil for none. Nil in V6.
    pub related_activity: Uuid,
    /// V6: id of the label list, 0 for none.
    pub label_list: u32,
    /// The values of the event's fields; of a metadata row the definition.
    pub payload: &'a [u8],
    /// Netperf: the addresses of the stack, leaf first.
    pub stack: &'a [u8],
    metadata_row: Option<MetadataRow<'a>>,
}

impl<'a> EventRow<'a> {
    /// The definition of a kind of event that this row of netperf is; `None` for events. V4 and later have
    /// [metadata blocks](super::MetadataRows).
    pub const fn metadata_row(&self) -> Option<MetadataRow<'a>> {
        self.metadata_row
    }
}

/// The rows of an event block, in their order. Ends after the first unreadable row.
#[derive(Debug, Clone)]
pub struct EventRows<'a> {
    block: EventBlock<'a>,
    decoder: RowDecoder<Option<u64>>,
    has_failed: bool,
}

/// Resolves nothing: threads stay indexes.
struct Unresolved;

impl RowResolver for Unresolved {
    type Thread = Option<u64>;
    fn metadata(&self, _: u32) -> MetadataSlot {
        MetadataSlot(0)
    }
    fn thread(&mut self, index: u64) -> Option<u64> {
        Some(index)
    }
    fn captured(&mut self, _: Option<u64>, _: u32, _: Ticks) {}
    fn captured_all(&mut self, _: Option<u64>, _: u32, _: Ticks) {}
}

impl<'a> Iterator for EventRows<'a> {
    type Item = Result<EventRow<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        let content = self.block.content;
        let offset = self.decoder.at();
        if self.has_failed || offset >= content.len() {
            return None;
        }
        if !self.decoder.next_fast(content)
            && let Err(error) = self.decoder.next(content, &mut Unresolved)
        {
            self.has_failed = true;
            return Some(Err(ParseError { offset: offset as u64, error }));
        }
        Some(Ok(self.block.row(&self.decoder.header)))
    }
}

impl core::iter::FusedIterator for EventRows<'_> {}

impl<'a> EventBlock<'a> {
    fn row(&self, header: &RowHeader<Option<u64>>) -> EventRow<'a> {
        let content = self.content;
        let payload = slice(content, header.payload, header.payload_len);
        let is_v6 = self.layout == Layout::V6;
        let is_netperf = self.layout == Layout::Netperf;
        let offset = self.content_offset.saturating_add(u64::from(header.start));
        let encoding = self.metadata.filter(|_| header.metadata_id == 0);
        EventRow {
            offset: header.start,
            metadata_id: header.metadata_id,
            is_sorted: header.is_sorted,
            sequence: header.sequence,
            capture_thread: header.capture_thread.unwrap_or(0),
            thread: header.thread.unwrap_or(0),
            processor: header.processor,
            stack_id: if is_netperf { 0 } else { header.stack },
            time: header.time,
            activity: if is_v6 { Uuid::nil() } else { guid(content, header.activity) },
            related_activity: if is_v6 { Uuid::nil() } else { guid(content, header.related) },
            label_list: if is_v6 { header.activity } else { 0 },
            payload,
            stack: if is_netperf { sized(content, header.stack) } else { &[] },
            metadata_row: encoding
                .map(|encoding| MetadataRow::new(payload, offset, u64::from(header.start), encoding)),
        }
    }
}

fn slice(content: &[u8], offset: u32, length: u32) -> &[u8] {
    let range = usize::try_from(offset).ok().zip(usize::try_from(length).ok());
    range.and_then(|(offset, length)| content.get(offset..offset.checked_add(length)?)).unwrap_or_default()
}

/// The GUID at an offset; 0 means none.
fn guid(content: &[u8], offset: u32) -> Uuid {
    let bytes = if offset == 0 { &[] } else { slice(content, offset, 16) };
    bytes.first_chunk().map_or_else(Uuid::nil, |bytes| Uuid::from_bytes_le(*bytes))
}

/// The bytes after a u32 that counts them.
fn sized(content: &[u8], offset: u32) -> &[u8] {
    let size = slice(content, offset, 4).first_chunk().map_or(0, |size| u32::from_le_bytes(*size));
    slice(content, offset.saturating_add(4), size)
}
