//! The rows of a block as bytes, and the error of parsing them.

use crate::cursor::{Cursor, ReadError, ReadResult};

/// A block, or a row in it, that cannot be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("offset {offset}: {error}")]
#[non_exhaustive]
pub struct ParseError {
    /// Offset of the block in the recording, or of the row in the block's content.
    pub offset: u64,
    /// The fault. The message includes it.
    pub error: ReadError,
}

/// The rows of a block as bytes: a position in the content, which fails once.
#[derive(Debug, Clone)]
pub(super) struct Rows<'a> {
    length: usize,
    cursor: Cursor<'a>,
    has_failed: bool,
}

impl<'a> Rows<'a> {
    /// The rows from an offset in the content on.
    pub(super) fn new(content: &'a [u8], from: usize) -> Self {
        let rest = content.get(from..).unwrap_or_default();
        Self { length: content.len(), cursor: Cursor::new(rest), has_failed: false }
    }

    /// Offset of the next row in the content.
    #[inline]
    pub(super) const fn offset(&self) -> usize {
        self.length.saturating_sub(self.cursor.left())
    }

    /// Reads the next row, which must be there; `None` after a row that failed.
    #[inline]
    pub(super) fn next<T>(
        &mut self,
        read: impl FnOnce(&mut Cursor<'a>) -> ReadResult<T>,
    ) -> Option<Result<T, ParseError>> {
        self.next_at(self.offset() as u64, read)
    }

    /// Reads the next row; `None` also at the end of the content.
    #[inline]
    pub(super) fn next_if_any<T>(
        &mut self,
        read: impl FnOnce(&mut Cursor<'a>) -> ReadResult<T>,
    ) -> Option<Result<T, ParseError>> {
        if self.cursor.is_empty() { None } else { self.next(read) }
    }

    /// Reads a value; an error is reported at an offset.
    #[inline]
    pub(super) fn next_at<T>(
        &mut self,
        offset: u64,
        read: impl FnOnce(&mut Cursor<'a>) -> ReadResult<T>,
    ) -> Option<Result<T, ParseError>> {
        if self.has_failed {
            return None;
        }
        let outcome = read(&mut self.cursor).map_err(|error| ParseError { offset, error });
        self.has_failed = outcome.is_err();
        Some(outcome)
    }
}
