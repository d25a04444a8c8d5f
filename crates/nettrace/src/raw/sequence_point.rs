//! Sequence points.
//!
//! ```text
//! block = time:i64 count:i32 (thread:i64 sequence:u32)*                       (V4)
//! block = time:u64 flags:u32 count:u32 (thread:varuint64 sequence:varuint32)*   (V6)
//! flags = 1: thread indexes end, 2: metadata ids end                            (V6)
//! ```

use super::rows::Rows;
use super::{Layout, ParseError};
use crate::cursor::{Cursor, ReadResult};
use crate::time::Ticks;

/// The flag that ends the meaning of thread indexes.
const ENDS_THREADS: u32 = 1;
/// The flag that ends the meaning of metadata ids.
const ENDS_METADATA: u32 = 2;

/// The content of a sequence point. All events before it are older than all events after it; ids of stacks
/// and label lists lose their meaning there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequencePoint<'a> {
    time: Ticks,
    flags: u32,
    content: &'a [u8],
    is_v6: bool,
}

impl<'a> SequencePoint<'a> {
    /// Parses the time and the flags.
    ///
    /// # Errors
    /// If the content ends inside them.
    pub fn parse(content: &'a [u8], layout: Layout) -> Result<Self, ParseError> {
        Self::new(content, layout).map_err(|error| ParseError { offset: 0, error })
    }

    pub(crate) fn new(content: &'a [u8], layout: Layout) -> ReadResult<Self> {
        let mut cursor = Cursor::new(content);
        let is_v6 = layout == Layout::V6;
        let time = Ticks(cursor.u64()?);
        let flags = if is_v6 { cursor.u32()? } else { 0 };
        Ok(Self { time, flags, content, is_v6 })
    }

    /// Time of the point.
    pub const fn time(&self) -> Ticks {
        self.time
    }

    /// V6: the flags as they are; 0 before.
    pub const fn flags(&self) -> u32 {
        self.flags
    }

    /// V6: whether thread indexes lose their meaning at the point.
    pub const fn ends_threads(&self) -> bool {
        self.flags & ENDS_THREADS != 0
    }

    /// V6: whether metadata ids lose their meaning at the point.
    pub const fn ends_metadata(&self) -> bool {
        self.flags & ENDS_METADATA != 0
    }

    /// The threads that the point names, with the number of the last event that each has captured.
    pub fn threads(&self) -> SequenceNumbers<'a> {
        let count_offset = if self.is_v6 { 12 } else { 8 };
        SequenceNumbers { rows: Rows::new(self.content, count_offset), left: None, is_v6: self.is_v6 }
    }
}

/// The number of the last event that a thread has captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SequenceNumber {
    /// The thread: before V6 the operating system's number, in V6 its index.
    pub thread: u64,
    /// The number of its last event, lost events counted.
    pub sequence: u32,
}

impl SequenceNumber {
    /// Reads the variable-length form of V6.
    #[inline]
    pub(super) fn read_v6(cursor: &mut Cursor<'_>) -> ReadResult<Self> {
        Ok(Self { thread: cursor.varuint64()?, sequence: cursor.varuint32()? })
    }

    #[inline]
    fn read_v4(cursor: &mut Cursor<'_>) -> ReadResult<Self> {
        Ok(Self { thread: cursor.u64()?, sequence: cursor.u32()? })
    }
}

/// The threads of a sequence point, in their order. Ends after the first incomplete one.
#[derive(Debug, Clone)]
pub struct SequenceNumbers<'a> {
    rows: Rows<'a>,
    /// The threads that are left; `None` before the count was read.
    left: Option<u32>,
    is_v6: bool,
}

impl Iterator for SequenceNumbers<'_> {
    type Item = Result<SequenceNumber, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        let left = match self.left {
            Some(left) => left,
            None => match self.rows.next_at(0, Cursor::u32)? {
                Ok(count) => count,
                Err(error) => return Some(Err(error)),
            },
        };
        self.left = Some(left.checked_sub(1)?);
        self.rows.next(if self.is_v6 { SequenceNumber::read_v6 } else { SequenceNumber::read_v4 })
    }
}

impl core::iter::FusedIterator for SequenceNumbers<'_> {}
