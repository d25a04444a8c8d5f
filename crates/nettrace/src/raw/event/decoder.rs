//! The decoder of event rows: the loop in which a reader spends its time.

use crate::cursor::{self, Cursor, ReadError, ReadResult};
use crate::metadata::MetadataSlot;
use crate::thread::ThreadSlot;
use crate::time::Ticks;

/// The flags of a compressed header that announce something other than the time and the payload's size.
const CHANGES: u64 = 1 | 2 | 4 | 8 | 16 | 32;
/// The flags of the fields that name threads.
const THREADS: u8 = 2 | 4;
/// More bytes than the longest header takes that names no thread, and 8 of its payload.
const WINDOW: usize = 72;
const SORTED: u64 = 64;
const SIZE: u64 = 128;

/// The encoding of the rows of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    CompressedV4,
    CompressedV6,
    UncompressedV4,
    UncompressedV6,
    Netperf,
}

/// A thread in the header of a row: a slot of the thread table, or the index that the recording has.
pub(crate) trait ThreadRef: Copy + PartialEq {
    /// No thread yet: the value that each block starts with.
    const NONE: Self;
}

impl ThreadRef for ThreadSlot {
    const NONE: Self = Self::NONE;
}

impl ThreadRef for Option<u64> {
    const NONE: Self = None;
}

/// The tables that the headers of rows refer to, and the account of captured events.
pub(crate) trait RowResolver {
    type Thread: ThreadRef;
    /// The row of the metadata table with that id; [`MetadataSlot::NONE`] if it is missing.
    fn metadata(&self, id: u32) -> MetadataSlot;
    /// The thread with that index in the recording.
    fn thread(&mut self, index: u64) -> Self::Thread;
    /// Accounts for an event that need not directly follow the last event of its thread: the events in
    /// between were lost.
    fn captured(&mut self, thread: Self::Thread, sequence: u32, time: Ticks);
    /// Accounts for events of a thread without a gap, up to this one.
    fn captured_all(&mut self, thread: Self::Thread, sequence: u32, time: Ticks);
}

/// The header of a row, the same for every version. Offsets count from the start of the block's content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowHeader<T = ThreadSlot> {
    pub(crate) time: Ticks,
    pub(crate) start: u32,
    pub(crate) payload: u32,
    pub(crate) payload_len: u32,
    pub(crate) metadata_id: u32,
    pub(crate) metadata: MetadataSlot,
    pub(crate) sequence: u32,
    pub(crate) capture_thread: T,
    pub(crate) thread: T,
    pub(crate) processor: u32,
    /// Id of the stack; in netperf the offset of the stack, which follows the event.
    pub(crate) stack: u32,
    /// Offset of the activity GUID, 0 for none; in V6 the id of the label list.
    pub(crate) activity: u32,
    /// Offset of the related activity GUID, 0 for none.
    pub(crate) related: u32,
    pub(crate) is_sorted: bool,
}

impl<T: ThreadRef> RowHeader<T> {
    /// The header that each block starts with.
    pub(crate) const ZERO: Self = Self {
        time: Ticks(0),
        start: 0,
        payload: 0,
        payload_len: 0,
        metadata_id: 0,
        metadata: MetadataSlot::NONE,
        sequence: 0,
        capture_thread: T::NONE,
        thread: T::NONE,
        processor: 0,
        stack: 0,
        activity: 0,
        related: 0,
        is_sorted: false,
    };
}

/// The kind of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKind {
    Event,
    /// A well-formed row with an undefined metadata id.
    Unknown,
    /// Netperf: the row defines a kind of event.
    Metadata,
}

/// The decoder of the rows of one block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowDecoder<T = ThreadSlot> {
    /// The row read last.
    pub(crate) header: RowHeader<T>,
    /// Offset of the next row in the block's content.
    at: u32,
    encoding: Encoding,
    /// The row read last is an event with a compressed header: the next one can be read without any table.
    is_fast: bool,
    /// The row read last has its threads: rows that follow need not name them.
    has_threads: bool,
}

impl<T: ThreadRef> RowDecoder<T> {
    pub(crate) const fn new(at: u32, encoding: Encoding) -> Self {
        Self { header: RowHeader::ZERO, at, encoding, is_fast: false, has_threads: false }
    }

    /// Offset of the next row in the block's content.
    #[inline]
    pub(crate) const fn at(&self) -> usize {
        self.at as usize
    }

    /// Reads the next row if it is of the most frequent kind: an event with a compressed header of a time,
    /// perhaps a payload size, and nothing else. Returns false, without any change, for other rows and at the
    /// very end.
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

    /// Reads the row at `self.at`. On failure nothing has changed.
    #[inline]
    pub(crate) fn next(
        &mut self,
        content: &[u8],
        resolver: &mut impl RowResolver<Thread = T>,
    ) -> ReadResult<RowKind> {
        self.is_fast = false;
        match self.encoding {
            Encoding::CompressedV4 => self.compressed::<false>(content, resolver),
            Encoding::CompressedV6 => self.compressed::<true>(content, resolver),
            Encoding::UncompressedV4 => self.uncompressed::<false>(content, resolver),
            Encoding::UncompressedV6 => self.uncompressed::<true>(content, resolver),
            Encoding::Netperf => self.netperf(content, resolver),
        }
    }

    /// Accounts for the events of the last thread of the block; to be called at the end of the block.
    pub(crate) fn finish(&mut self, resolver: &mut impl RowResolver<Thread = T>) {
        if self.encoding != Encoding::Netperf {
            resolver.captured_all(self.header.capture_thread, self.header.sequence, self.header.time);
            self.header.capture_thread = T::NONE;
        }
    }

    #[inline]
    fn compressed<const V6: bool>(
        &mut self,
        content: &[u8],
        resolver: &mut impl RowResolver<Thread = T>,
    ) -> ReadResult<RowKind> {
        match self.of_same_thread::<V6>(content, resolver) {
            Some(kind) => Ok(kind),
            None => self.any_compressed::<V6>(content, resolver),
        }
    }

    /// Reads a row of the same thread as the previous row, which may differ in metadata, stack, time and
    /// size. Returns `None`, without any change, for rows of another thread, at the very end, and for rows
    /// that are not well-formed.
    #[inline]
    fn of_same_thread<const V6: bool>(
        &mut self,
        content: &[u8],
        resolver: &impl RowResolver<Thread = T>,
    ) -> Option<RowKind> {
        let window: &[u8; WINDOW] = content.get(self.at()..)?.first_chunk()?;
        let flags = window.first()?;
        if flags & THREADS != 0 || !self.has_threads {
            return None;
        }
        let mut at = 1;
        let header = &self.header;
        let (mut id, mut metadata) = (header.metadata_id, header.metadata);
        if flags & 1 != 0 {
            id = small(window, &mut at)?;
            metadata = resolver.metadata(id);
        }
        let stack = if flags & 8 != 0 { small(window, &mut at)? } else { header.stack };
        // The size of the difference is unpredictable, one byte to three: no branch depends on it.
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
        (header.metadata_id, header.metadata) = (id, metadata);
        header.sequence = header.sequence.wrapping_add(u32::from(V6 || id != 0));
        (header.stack, header.activity, header.related) = (stack, activity, related);
        header.time = Ticks(header.time.0.wrapping_add(time));
        (header.payload, header.payload_len) = (payload, payload_len);
        header.is_sorted = flags & 64 != 0;
        self.at = next;
        let kind = kind_of(header);
        self.is_fast = kind == RowKind::Event;
        Some(kind)
    }

    /// Reads any row with a compressed header.
    #[inline(never)]
    fn any_compressed<const V6: bool>(
        &mut self,
        content: &[u8],
        resolver: &mut impl RowResolver<Thread = T>,
    ) -> ReadResult<RowKind> {
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
            // If a block's first event names no capturing thread, the value starts from zero like all others.
            (header.capture_thread == T::NONE).then_some(0)
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
            header.metadata = resolver.metadata(header.metadata_id);
        }
        self.at = position(content, &cursor)?;
        self.change_threads(&mut header, capture, thread, resolver);
        let kind = kind_of(&self.header);
        self.is_fast = kind == RowKind::Event;
        Ok(kind)
    }

    #[inline]
    fn change_threads(
        &mut self,
        header: &mut RowHeader<T>,
        capture: Option<u64>,
        thread: Option<u64>,
        resolver: &mut impl RowResolver<Thread = T>,
    ) {
        if let Some(index) = capture {
            let slot = resolver.thread(index);
            if slot != header.capture_thread {
                resolver.captured_all(self.header.capture_thread, self.header.sequence, self.header.time);
                header.capture_thread = slot;
                resolver.captured(slot, header.sequence, header.time);
            } else if header.sequence != self.header.sequence.wrapping_add(1) {
                resolver.captured_all(slot, self.header.sequence, self.header.time);
                resolver.captured(slot, header.sequence, header.time);
            }
        }
        if let Some(index) = thread {
            header.thread = resolver.thread(index);
        } else if header.thread == T::NONE {
            header.thread = resolver.thread(0);
        }
        self.header = *header;
        self.has_threads = true;
    }

    fn uncompressed<const V6: bool>(
        &mut self,
        content: &[u8],
        resolver: &mut impl RowResolver<Thread = T>,
    ) -> ReadResult<RowKind> {
        let mut cursor = Cursor::new(content.get(self.at()..).unwrap_or_default());
        let size = cursor.u32()?;
        let body_len = usize::try_from(size).map_err(|_| ReadError::UnexpectedEnd)?;
        let body_start = content.len().saturating_sub(cursor.left());
        let mut body = Cursor::new(cursor.bytes(body_len)?);
        let position =
            |body: &Cursor<'_>| offset(body_start.saturating_add(body_len).saturating_sub(body.left()));
        let mut header = self.header;
        header.start = self.at;
        let short = |error| {
            if error == ReadError::UnexpectedEnd {
                ReadError::Invalid("event smaller than its header and payload")
            } else {
                error
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
            header.metadata = resolver.metadata(header.metadata_id);
            self.at = self::position(content, &cursor)?;
            self.change_threads(&mut header, Some(capture), Some(thread), resolver);
            Ok(kind_of(&self.header))
        })()
        .map_err(short)
    }

    fn netperf(
        &mut self,
        content: &[u8],
        resolver: &mut impl RowResolver<Thread = T>,
    ) -> ReadResult<RowKind> {
        let mut cursor = Cursor::new(content.get(self.at()..).unwrap_or_default());
        let size = cursor.length("event of negative size")?;
        let body_start = content.len().saturating_sub(cursor.left());
        let mut body = Cursor::new(cursor.bytes(size)?);
        let position =
            |body: &Cursor<'_>| offset(body_start.saturating_add(size).saturating_sub(body.left()));
        let mut header = RowHeader { start: self.at, ..RowHeader::ZERO };
        let short = |error| {
            if error == ReadError::UnexpectedEnd {
                ReadError::Invalid("event smaller than its header, payload and stack")
            } else {
                error
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
            self.at = self::position(content, &cursor)?;
            if header.metadata_id == 0 {
                self.header = header;
                return Ok(RowKind::Metadata);
            }
            header.metadata = resolver.metadata(header.metadata_id);
            header.thread = resolver.thread(u64::from(thread));
            header.capture_thread = header.thread;
            self.header = header;
            Ok(kind_of(&header))
        })()
        .map_err(short)
    }
}

/// The 8 bytes at `at`, which is below 64: the mask keeps the compiler from checking that.
#[inline(always)]
#[allow(clippy::inline_always, reason = "every event has several of them")]
fn word(window: &[u8; WINDOW], at: u32) -> u64 {
    let bytes = window.get((at & 63) as usize..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Reads an unsigned variable-length integer that is seldom longer than two bytes.
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
fn kind_of<T>(header: &RowHeader<T>) -> RowKind {
    if header.metadata == MetadataSlot::NONE { RowKind::Unknown } else { RowKind::Event }
}

#[inline]
fn offset(at: usize) -> ReadResult<u32> {
    u32::try_from(at).map_err(|_| ReadError::Invalid("block over 4 GB"))
}

fn position(content: &[u8], cursor: &Cursor<'_>) -> ReadResult<u32> {
    offset(content.len().saturating_sub(cursor.left()))
}
