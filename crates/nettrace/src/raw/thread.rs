//! Thread and RemoveThread blocks (V6).
//!
//! ```text
//! thread-block  = (size:u16 index:varuint64 entry*)*
//! entry         = 1 name:string | 2 process:varuint64 | 3 thread:varuint64 | 4 key:string value:string
//! remove-block  = (index:varuint64 last-sequence:varuint32)*
//! ```

use super::rows::Rows;
use super::{ParseError, SequenceNumber};
use crate::cursor::{Cursor, ReadError, ReadResult};

/// The description of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadRow<'a> {
    /// Offset of the row in the block's content.
    pub offset: usize,
    /// The index by which events refer to the thread, up to its removal.
    pub index: u64,
    entries: &'a [u8],
}

impl<'a> ThreadRow<'a> {
    /// Returns the entries of the description.
    pub const fn entries(&self) -> ThreadEntries<'a> {
        ThreadEntries(Cursor::new(self.entries))
    }
}

/// An entry of the description of a thread. Text is UTF-8 as recorded, unchecked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThreadEntry<'a> {
    /// Kind 1: the name of the thread.
    Name(&'a [u8]),
    /// Kind 2: the operating system's number of the process.
    ProcessId(u64),
    /// Kind 3: the operating system's number of the thread.
    ThreadId(u64),
    /// Kind 4: key and value.
    KeyValue(&'a [u8], &'a [u8]),
}

/// The entries of the description of a thread, in their order. Ends at the first kind of a later minor
/// version, which has an unknown size, and after the first incomplete entry.
#[derive(Debug, Clone)]
pub struct ThreadEntries<'a>(Cursor<'a>);

impl<'a> Iterator for ThreadEntries<'a> {
    type Item = Result<ThreadEntry<'a>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut cursor = core::mem::replace(&mut self.0, Cursor::new(&[]));
        if cursor.is_empty() {
            return None;
        }
        let entry = entry(&mut cursor).map_err(row_error).transpose()?;
        if entry.is_ok() {
            self.0 = cursor;
        }
        Some(entry)
    }
}

impl core::iter::FusedIterator for ThreadEntries<'_> {}

/// Reads an entry; `None` for an unknown kind.
fn entry<'a>(cursor: &mut Cursor<'a>) -> ReadResult<Option<ThreadEntry<'a>>> {
    Ok(Some(match cursor.u8()? {
        1 => ThreadEntry::Name(cursor.string8()?),
        2 => ThreadEntry::ProcessId(cursor.varuint64()?),
        3 => ThreadEntry::ThreadId(cursor.varuint64()?),
        4 => ThreadEntry::KeyValue(cursor.string8()?, cursor.string8()?),
        _ => return Ok(None),
    }))
}

/// Converts the error of a value that the row ends in, which is a fault of the row's size.
fn row_error(error: ReadError) -> ReadError {
    match error {
        ReadError::UnexpectedEnd => ReadError::Invalid("thread row smaller than its entries"),
        other => other,
    }
}

/// The rows of a thread block, in their order. Ends after the first incomplete one.
#[derive(Debug, Clone)]
pub struct ThreadRows<'a>(Rows<'a>);

impl<'a> ThreadRows<'a> {
    /// Creates an iterator over the rows of a thread block's content.
    pub fn new(content: &'a [u8]) -> Self {
        Self(Rows::new(content, 0))
    }
}

impl<'a> Iterator for ThreadRows<'a> {
    type Item = Result<ThreadRow<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.0.offset();
        self.0.next_if_any(|cursor| {
            let size = usize::from(cursor.u16()?);
            let mut row = Cursor::new(cursor.bytes(size)?);
            let index = row.varuint64().map_err(row_error)?;
            Ok(ThreadRow { offset, index, entries: row.rest() })
        })
    }
}

impl core::iter::FusedIterator for ThreadRows<'_> {}

/// The rows of a block of removed threads, in their order: each thread with the number of its last event.
/// Ends after the first incomplete one.
#[derive(Debug, Clone)]
pub struct RemovedThreads<'a>(Rows<'a>);

impl<'a> RemovedThreads<'a> {
    /// Creates an iterator over the rows of the content of a block of removed threads.
    pub fn new(content: &'a [u8]) -> Self {
        Self(Rows::new(content, 0))
    }
}

impl Iterator for RemovedThreads<'_> {
    type Item = Result<SequenceNumber, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_if_any(SequenceNumber::read_v6)
    }
}

impl core::iter::FusedIterator for RemovedThreads<'_> {}
