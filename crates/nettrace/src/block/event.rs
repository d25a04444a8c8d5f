//! Event blocks: the loop in which a reader spends its time.
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
//! The size of an uncompressed row counts everything behind itself, padding included.
//!
//! A group that is absent from a compressed header keeps the value of the event before it; every block starts from zeros.
//! Sequence numbers grow by one with every event, before V6 only with those whose metadata id is not 0.

use crate::cursor::{self, Cursor, ReadError, ReadResult};
use crate::event::Header;
use crate::metadata::MetadataSlot;
use crate::thread::ThreadSlot;
use crate::time::Ticks;

/// The flags of a compressed header that announce something besides the time and the payload's size.
const CHANGES: u64 = 1 | 2 | 4 | 8 | 16 | 32;
/// Those of them that name threads.
const THREADS: u8 = 2 | 4;
/// More bytes than the longest header takes that names no thread, and 8 of its payload.
const WINDOW: usize = 72;
const SORTED: u64 = 64;
const SIZE: u64 = 128;

/// How the rows of a block are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    CompressedV4,
    CompressedV6,
    UncompressedV4,
    UncompressedV6,
    Netperf,
}

/// Where the rows begin, and how they are written.
pub(crate) fn block_header(content: &[u8], v6: bool) -> ReadResult<(u32, Encoding)> {
    let mut cursor = Cursor::new(content);
    let size = cursor.u16()?;
    let flags = cursor.u16()?;
    if size < 20 {
        return Err(ReadError::Invalid("event block header shorter than its own fields"));
    }
    Cursor::new(content).bytes(usize::from(size))?;
    let encoding = match (flags & 1 != 0, v6) {
        (true, false) => Encoding::CompressedV4,
        (true, true) => Encoding::CompressedV6,
        (false, false) => Encoding::UncompressedV4,
        (false, true) => Encoding::UncompressedV6,
    };
    Ok((u32::from(size), encoding))
}

/// What the headers of events refer to, and who must know of them.
pub(crate) trait References {
    /// The kind of event with that id; [`MetadataSlot::NONE`] if there is none.
    fn kind(&self, id: u32) -> MetadataSlot;
    /// The thread that events call `index`.
    fn thread(&mut self, index: u64) -> ThreadSlot;
    /// The thread captured this event, and all between its last one and this were lost.
    fn captured(&mut self, thread: ThreadSlot, sequence: u32, time: Ticks);
    /// The thread captured events up to this one without a gap.
    fn captured_all(&mut self, thread: ThreadSlot, sequence: u32, time: Ticks);
}

/// What a row turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Row {
    Event,
    /// A well-formed row whose metadata id means nothing.
    Unknown,
    /// Netperf: the row defines a kind of event.
    Metadata,
}

/// The rows of one event block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    /// The row read last.
    pub(crate) header: Header,
    /// Offset of the next row in the block's content.
    at: u32,
    encoding: Encoding,
    /// The row read last is an event with a compressed header: one that only carries on needs no look at any table.
    is_fast: bool,
    /// The row read last says which threads it belongs to: rows that follow need not.
    has_threads: bool,
    /// The rows define kinds of events: whatever their headers say of threads and sequence numbers counts for nothing.
    defines_metadata: bool,
}

impl Rows {
    pub(crate) const fn new(at: u32, encoding: Encoding) -> Self {
        Self {
            header: Header::ZERO,
            at,
            encoding,
            is_fast: false,
            has_threads: false,
            defines_metadata: false,
        }
    }

    pub(crate) const fn of_metadata(at: u32, encoding: Encoding) -> Self {
        Self {
            header: Header::ZERO,
            at,
            encoding,
            is_fast: false,
            has_threads: false,
            defines_metadata: true,
        }
    }

    /// Offset of the next row in the block's content.
    #[inline]
    pub(crate) const fn at(&self) -> usize {
        self.at as usize
    }

    /// Reads the next row if it is of the commonest kind: an event whose compressed header has nothing but a time, and a
    /// payload size or none. If it is of another kind, or stands at the very end, nothing happens.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the loop around it is where a reader spends its time")]
    pub(crate) fn next_fast(&mut self, content: &[u8]) -> bool {
        let rest = content.get(self.at()..).unwrap_or_default();
        let Some(window) = rest.first_chunk::<8>().filter(|_| self.is_fast) else { return false };
        let flags = u64::from_le_bytes(*window);
        if flags & CHANGES != 0 {
            return false;
        }
        // The header in one register: flags, up to 3 bytes of time, up to 2 bytes of size.
        let mut word = flags >> 8;
        let mut payload = self.at.wrapping_add(1);
        let time;
        if word & 0x80 == 0 {
            time = word & 0x7f;
            word >>= 8;
            payload = payload.wrapping_add(1);
        } else if word & 0x8000 == 0 {
            time = word & 0x7f | word >> 1 & 0x3f80;
            word >>= 16;
            payload = payload.wrapping_add(2);
        } else if word & 0x80_0000 == 0 {
            time = word & 0x7f | word >> 1 & 0x3f80 | word >> 2 & 0x1f_c000;
            word >>= 24;
            payload = payload.wrapping_add(3);
        } else {
            return false;
        }
        let mut length = self.header.payload_len;
        if flags & SIZE != 0 {
            if word & 0x80 == 0 {
                length = (word & 0x7f) as u32;
                payload = payload.wrapping_add(1);
            } else if word & 0x8000 == 0 {
                length = (word & 0x7f) as u32 | (word >> 1 & 0x3f80) as u32;
                payload = payload.wrapping_add(2);
            } else {
                return false;
            }
        }
        // Blocks are far smaller than 4 GB, and a length is too once it was read: this cannot wrap around.
        let next = u64::from(payload).wrapping_add(u64::from(length));
        let Some(next) = u32::try_from(next).ok().filter(|next| *next as usize <= content.len()) else {
            return false;
        };
        let header = &mut self.header;
        header.start = self.at;
        header.payload = payload;
        header.payload_len = length;
        header.time = Ticks(header.time.0.wrapping_add(time));
        header.sequence = header.sequence.wrapping_add(1);
        header.is_sorted = flags & SORTED != 0;
        self.at = next;
        true
    }

    /// Reads the row at `self.at`. On failure nothing has changed, so that the rest can be tried when it is there.
    #[inline]
    pub(crate) fn next(&mut self, content: &[u8], references: &mut impl References) -> ReadResult<Row> {
        self.is_fast = false;
        match self.encoding {
            Encoding::CompressedV4 => self.compressed::<false>(content, references),
            Encoding::CompressedV6 => self.compressed::<true>(content, references),
            Encoding::UncompressedV4 => self.uncompressed::<false>(content, references),
            Encoding::UncompressedV6 => self.uncompressed::<true>(content, references),
            Encoding::Netperf => self.netperf(content, references),
        }
    }

    /// The block ends: what its last thread has captured must be known to the blocks that follow.
    pub(crate) fn finish(&mut self, references: &mut impl References) {
        if self.encoding != Encoding::Netperf {
            references.captured_all(self.header.capture_thread, self.header.sequence, self.header.time);
            self.header.capture_thread = ThreadSlot::NONE;
        }
    }

    #[inline]
    fn compressed<const V6: bool>(
        &mut self,
        content: &[u8],
        references: &mut impl References,
    ) -> ReadResult<Row> {
        match self.of_same_thread::<V6>(content, references) {
            Some(row) => Ok(row),
            None => self.any_compressed::<V6>(content, references),
        }
    }

    /// Rows of one thread differ in kind, stack, time and size, and this reads those that do. If the row is of another
    /// thread, stands at the very end or is not as it should be, nothing happens.
    #[inline]
    fn of_same_thread<const V6: bool>(
        &mut self,
        content: &[u8],
        references: &impl References,
    ) -> Option<Row> {
        let window: &[u8; WINDOW] = content.get(self.at()..)?.first_chunk()?;
        let flags = window.first()?;
        if flags & THREADS != 0 || !self.has_threads {
            return None;
        }
        let mut at = 1;
        let header = &self.header;
        let (mut id, mut kind) = (header.metadata_id, header.metadata);
        if flags & 1 != 0 {
            id = small(window, &mut at)?;
            kind = references.kind(id);
        }
        let stack = if flags & 8 != 0 { small(window, &mut at)? } else { header.stack };
        // Whether the difference takes one byte, two or three is what nobody can foresee: no branch depends on it.
        let (time, length) = cursor::packed(word(window, at))?;
        at = at.wrapping_add(length);
        let (mut activity, mut related) = (header.activity, header.related);
        if flags & 16 != 0 {
            if V6 {
                activity = small(window, &mut at)?;
            } else {
                activity = self.at.wrapping_add(at);
                at = at.wrapping_add(16);
            }
        }
        if !V6 && flags & 32 != 0 {
            related = self.at.wrapping_add(at);
            at = at.wrapping_add(16);
        }
        let payload_len = if flags & 128 != 0 { small(window, &mut at)? } else { header.payload_len };
        let payload = self.at.checked_add(at)?;
        let next = payload.checked_add(payload_len).filter(|next| *next as usize <= content.len())?;
        let header = &mut self.header;
        header.start = self.at;
        (header.metadata_id, header.metadata) = (id, kind);
        header.sequence = header.sequence.wrapping_add(u32::from(V6 || id != 0));
        (header.stack, header.activity, header.related) = (stack, activity, related);
        header.time = Ticks(header.time.0.wrapping_add(time));
        (header.payload, header.payload_len) = (payload, payload_len);
        header.is_sorted = flags & 64 != 0;
        self.at = next;
        let row = known(header);
        self.is_fast = row == Row::Event;
        Some(row)
    }

    /// Any row with a compressed header.
    #[inline(never)]
    fn any_compressed<const V6: bool>(
        &mut self,
        content: &[u8],
        references: &mut impl References,
    ) -> ReadResult<Row> {
        let mut cursor = Cursor::new(content.get(self.at()..).unwrap_or_default());
        let flags = cursor.u8()?;
        let mut header = self.header;
        header.start = self.at;
        if flags & 1 != 0 {
            header.metadata_id = cursor.varuint32()?;
        }
        let capture = if flags & 2 != 0 {
            header.sequence = header.sequence.wrapping_add(cursor.varuint32()?);
            let capture = cursor.varuint64()?;
            header.processor = cursor.varuint32()?;
            Some(capture)
        } else {
            // A block whose first event names no capturing thread starts from zeros like everything else.
            (header.capture_thread == ThreadSlot::NONE).then_some(0)
        };
        header.sequence = header.sequence.wrapping_add(u32::from(V6 || header.metadata_id != 0));
        let thread = if flags & 4 != 0 { Some(cursor.varuint64()?) } else { None };
        if flags & 8 != 0 {
            header.stack = cursor.varuint32()?;
        }
        header.time = Ticks(header.time.0.wrapping_add(cursor.varuint64()?));
        if V6 {
            if flags & 16 != 0 {
                header.activity = cursor.varuint32()?;
            }
        } else {
            if flags & 16 != 0 {
                header.activity = position(content, &cursor)?;
                cursor.bytes(16)?;
            }
            if flags & 32 != 0 {
                header.related = position(content, &cursor)?;
                cursor.bytes(16)?;
            }
        }
        header.is_sorted = flags & 64 != 0;
        if flags & 128 != 0 {
            header.payload_len = cursor.varuint32()?;
        }
        header.payload = position(content, &cursor)?;
        cursor.bytes(header.payload_len as usize)?;
        // The row is whole: only now may anything outside it change.
        if flags & 1 != 0 {
            header.metadata = references.kind(header.metadata_id);
        }
        self.at = position(content, &cursor)?;
        self.change_threads(header, capture, thread, references);
        let row = known(&self.header);
        self.is_fast = row == Row::Event;
        Ok(row)
    }

    #[inline]
    fn change_threads(
        &mut self,
        mut header: Header,
        capture: Option<u64>,
        thread: Option<u64>,
        references: &mut impl References,
    ) {
        if self.defines_metadata {
            self.header = header;
            return;
        }
        if let Some(index) = capture {
            let slot = references.thread(index);
            if slot != header.capture_thread {
                references.captured_all(self.header.capture_thread, self.header.sequence, self.header.time);
                header.capture_thread = slot;
                references.captured(slot, header.sequence, header.time);
            } else if header.sequence != self.header.sequence.wrapping_add(1) {
                references.captured_all(slot, self.header.sequence, self.header.time);
                references.captured(slot, header.sequence, header.time);
            }
        }
        if let Some(index) = thread {
            header.thread = references.thread(index);
        } else if header.thread == ThreadSlot::NONE {
            header.thread = references.thread(0);
        }
        self.header = header;
        self.has_threads = true;
    }

    fn uncompressed<const V6: bool>(
        &mut self,
        content: &[u8],
        references: &mut impl References,
    ) -> ReadResult<Row> {
        let mut cursor = Cursor::new(content.get(self.at()..).unwrap_or_default());
        let size = cursor.u32()?;
        let body_len = usize::try_from(size).map_err(|_| ReadError::UnexpectedEnd)?;
        let body_start = content.len().saturating_sub(cursor.left());
        let mut body = Cursor::new(cursor.bytes(body_len)?);
        let position =
            |body: &Cursor<'_>| offset(body_start.saturating_add(body_len).saturating_sub(body.left()));
        let mut header = self.header;
        header.start = self.at;
        let short = |bad| {
            if bad == ReadError::UnexpectedEnd {
                ReadError::Invalid("event smaller than its header and payload")
            } else {
                bad
            }
        };
        (|| {
            let id = body.u32()?;
            header.metadata_id = id & 0x7fff_ffff;
            header.is_sorted = id & 0x8000_0000 == 0;
            header.sequence = body.u32()?;
            let thread = body.u64()?;
            let capture = body.u64()?;
            header.processor = body.u32()?;
            header.stack = body.u32()?;
            header.time = Ticks(body.u64()?);
            if V6 {
                header.activity = body.u32()?;
            } else {
                header.activity = position(&body)?;
                body.bytes(16)?;
                header.related = position(&body)?;
                body.bytes(16)?;
            }
            header.payload_len = body.u32()?;
            header.payload = position(&body)?;
            body.bytes(header.payload_len as usize)?;
            header.metadata = references.kind(header.metadata_id);
            self.at = crate::block::event::position(content, &cursor)?;
            self.change_threads(header, Some(capture), Some(thread), references);
            Ok(known(&self.header))
        })()
        .map_err(short)
    }

    fn netperf(&mut self, content: &[u8], references: &mut impl References) -> ReadResult<Row> {
        let mut cursor = Cursor::new(content.get(self.at()..).unwrap_or_default());
        let size = cursor.length("event of negative size")?;
        let body_start = content.len().saturating_sub(cursor.left());
        let mut body = Cursor::new(cursor.bytes(size)?);
        let position =
            |body: &Cursor<'_>| offset(body_start.saturating_add(size).saturating_sub(body.left()));
        let mut header = Header { start: self.at, ..Header::ZERO };
        let short = |bad| {
            if bad == ReadError::UnexpectedEnd {
                ReadError::Invalid("event smaller than its header, payload and stack")
            } else {
                bad
            }
        };
        (|| {
            header.metadata_id = body.u32()?;
            let thread = body.u32()?;
            header.time = Ticks(body.u64()?);
            header.activity = position(&body)?;
            body.bytes(16)?;
            header.related = position(&body)?;
            body.bytes(16)?;
            let payload = body.length("payload of negative size")?;
            header.payload = position(&body)?;
            header.payload_len = offset(payload)?;
            body.bytes(payload)?;
            header.stack = position(&body)?;
            let stack = body.length("stack of negative size")?;
            body.bytes(stack)?;
            self.at = crate::block::event::position(content, &cursor)?;
            if header.metadata_id == 0 {
                self.header = header;
                return Ok(Row::Metadata);
            }
            header.metadata = references.kind(header.metadata_id);
            header.thread = references.thread(u64::from(thread));
            header.capture_thread = header.thread;
            self.header = header;
            Ok(known(&header))
        })()
        .map_err(short)
    }
}

/// The 8 bytes at `at`, which is below 64: saying so keeps the compiler from checking it.
#[inline(always)]
#[allow(clippy::inline_always, reason = "every event has several of them")]
fn word(window: &[u8; WINDOW], at: u32) -> u64 {
    let bytes = window.get((at & 63) as usize..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// An unsigned variable-length integer that is seldom longer than two bytes.
#[inline(always)]
#[allow(clippy::inline_always, reason = "every event has several of them")]
fn small(window: &[u8; WINDOW], at: &mut u32) -> Option<u32> {
    let word = word(window, *at);
    if word & 0x80 == 0 {
        *at = at.wrapping_add(1);
        return u32::try_from(word & 0x7f).ok();
    }
    if word & 0x8000 == 0 {
        *at = at.wrapping_add(2);
        return u32::try_from(word & 0x7f | word >> 1 & 0x3f80).ok();
    }
    let (value, length) = cursor::packed(word)?;
    *at = at.wrapping_add(length);
    u32::try_from(value).ok().filter(|_| length <= 5)
}

#[inline]
fn known(header: &Header) -> Row {
    if header.metadata == MetadataSlot::NONE { Row::Unknown } else { Row::Event }
}

#[inline]
fn offset(at: usize) -> ReadResult<u32> {
    u32::try_from(at).map_err(|_| ReadError::Invalid("block over 4 GB"))
}

fn position(content: &[u8], cursor: &Cursor<'_>) -> ReadResult<u32> {
    offset(content.len().saturating_sub(cursor.left()))
}
