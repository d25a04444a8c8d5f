//! The content of event blocks, with compressed headers.
//!
//! ```text
//! block      = header-size:u16 flags:u16 min:i64 max:i64 row*
//! row        = flags:u8
//!              [1:   metadata-id:varuint32]
//!              [2:   sequence-delta:varuint32 capture-thread:varuint64 processor:varuint32]
//!              [4:   thread:varuint64]
//!              [8:   stack-id:varuint32]
//!              time-delta:varuint64
//!              [16:  activity:guid]  [32: related:guid]     (V4)
//!              [16:  label-list:varuint32]                  (V6)
//!              [128: payload-size:varuint32]
//!              payload                                      (64 in flags: sorted)
//! ```
//!
//! A group is written where it differs from the row before; every block starts from zeros.

use alloc::vec::Vec;

use nettrace::{Ticks, Uuid};

use crate::bytes::{u16, u64, varuint};

const HEADER_SIZE: u16 = 20;
const COMPRESSED: u16 = 1;

const METADATA_ID: u8 = 1;
const CAPTURE: u8 = 2;
const THREAD: u8 = 4;
const STACK: u8 = 8;
const ACTIVITY: u8 = 16;
const RELATED: u8 = 32;
const SORTED: u8 = 64;
const PAYLOAD_SIZE: u8 = 128;

/// The header of a row, with the numbers that the new recording gives to things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RowHeader {
    pub(crate) metadata_id: u32,
    pub(crate) sequence: u32,
    pub(crate) capture_thread: u64,
    pub(crate) processor: u32,
    pub(crate) thread: u64,
    pub(crate) stack_id: u32,
    pub(crate) time: Ticks,
    /// V4.
    pub(crate) activity: Option<Uuid>,
    /// V4.
    pub(crate) related: Option<Uuid>,
    /// V6.
    pub(crate) label_list: u32,
    pub(crate) is_sorted: bool,
}

/// The rows of an event block, or of a metadata block of V4, which has the same form.
#[derive(Debug)]
pub(crate) struct EventBlock {
    content: Vec<u8>,
    last: RowHeader,
    last_size: usize,
    oldest: i64,
    newest: i64,
}

impl EventBlock {
    pub(crate) fn new() -> Self {
        let mut block = Self {
            content: Vec::new(),
            last: RowHeader::default(),
            last_size: 0,
            oldest: i64::MAX,
            newest: i64::MIN,
        };
        block.clear();
        block
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.content.len() <= usize::from(HEADER_SIZE)
    }

    pub(crate) fn len(&self) -> usize {
        self.content.len()
    }

    /// The capture thread of the last event; 0 before the first.
    #[inline]
    pub(crate) const fn last_capture_thread(&self) -> u64 {
        self.last.capture_thread
    }

    #[inline]
    pub(crate) fn push(&mut self, row: &RowHeader, payload: &[u8]) {
        let last = &self.last;
        let mut flags = if row.is_sorted { SORTED } else { 0 };
        if row.metadata_id != last.metadata_id {
            flags |= METADATA_ID;
        }
        let next = last.sequence.wrapping_add(u32::from(row.metadata_id != 0));
        if row.sequence != next
            || row.capture_thread != last.capture_thread
            || row.processor != last.processor
        {
            flags |= CAPTURE;
        }
        if row.thread != last.thread {
            flags |= THREAD;
        }
        if row.stack_id != last.stack_id {
            flags |= STACK;
        }
        if row.activity != last.activity || row.label_list != last.label_list {
            flags |= ACTIVITY;
        }
        if row.related != last.related {
            flags |= RELATED;
        }
        if payload.len() != self.last_size {
            flags |= PAYLOAD_SIZE;
        }
        let out = &mut self.content;
        out.reserve(payload.len().saturating_add(MAX_HEADER_LENGTH));
        out.push(flags);
        if flags & METADATA_ID != 0 {
            varuint(out, row.metadata_id.into());
        }
        if flags & CAPTURE != 0 {
            varuint(out, row.sequence.wrapping_sub(last.sequence).wrapping_sub(1).into());
            varuint(out, row.capture_thread);
            varuint(out, row.processor.into());
        }
        if flags & THREAD != 0 {
            varuint(out, row.thread);
        }
        if flags & STACK != 0 {
            varuint(out, row.stack_id.into());
        }
        varuint(out, row.time.0.wrapping_sub(last.time.0));
        if flags & ACTIVITY != 0 {
            // A single recording sets only one id.
            if row.label_list == last.label_list {
                activity(out, row.activity);
            } else {
                varuint(out, row.label_list.into());
            }
        }
        if flags & RELATED != 0 {
            activity(out, row.related);
        }
        if flags & PAYLOAD_SIZE != 0 {
            varuint(out, payload.len() as u64);
        }
        out.extend_from_slice(payload);
        self.last = *row;
        self.last_size = payload.len();
        self.oldest = self.oldest.min(row.time.0.cast_signed());
        self.newest = self.newest.max(row.time.0.cast_signed());
    }

    /// Returns the content of the block.
    pub(crate) fn content(&mut self) -> &[u8] {
        let mut header = Vec::with_capacity(usize::from(HEADER_SIZE));
        u16(&mut header, HEADER_SIZE);
        u16(&mut header, COMPRESSED);
        u64(&mut header, self.oldest.cast_unsigned());
        u64(&mut header, self.newest.cast_unsigned());
        if let Some(place) = self.content.get_mut(..header.len()) {
            place.copy_from_slice(&header);
        }
        &self.content
    }

    /// Begins the next block.
    pub(crate) fn clear(&mut self) {
        self.content.clear();
        self.content.resize(usize::from(HEADER_SIZE), 0);
        self.last = RowHeader::default();
        self.last_size = 0;
        self.oldest = i64::MAX;
        self.newest = i64::MIN;
    }
}

/// Appends an activity, or zeros for none.
#[inline]
fn activity(out: &mut Vec<u8>, id: Option<Uuid>) {
    out.extend_from_slice(&id.map_or([0; 16], |id| id.to_bytes_le()));
}

/// Upper bound on the length of a header, in bytes.
const MAX_HEADER_LENGTH: usize = 96;
