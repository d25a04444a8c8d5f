//! Stack blocks.
//!
//! ```text
//! block = first-id:u32 count:u32 (size:u32 addresses)*
//! ```

use super::ParseError;
use super::rows::Rows;
use crate::cursor::{Cursor, ReadResult};
use crate::stack::Stack;

/// The content of a stack block: stacks with consecutive ids, valid up to the next sequence point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackBlock<'a> {
    first_id: u32,
    count: u32,
    content: &'a [u8],
}

impl<'a> StackBlock<'a> {
    /// Parses the first id and the count.
    ///
    /// # Errors
    /// If the content ends inside them.
    pub fn parse(content: &'a [u8]) -> Result<Self, ParseError> {
        Self::new(content).map_err(|error| ParseError { offset: 0, error })
    }

    pub(crate) fn new(content: &'a [u8]) -> ReadResult<Self> {
        let mut cursor = Cursor::new(content);
        Ok(Self { first_id: cursor.u32()?, count: cursor.u32()?, content })
    }

    /// Id of the first stack.
    pub const fn first_id(&self) -> u32 {
        self.first_id
    }

    /// The number of stacks stated by the block; there may be fewer.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// The stacks.
    pub fn rows(&self) -> StackRows<'a> {
        StackRows { rows: Rows::new(self.content, 8), next_id: self.first_id, left: self.count }
    }
}

/// One stack of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackRow<'a> {
    /// Id of the stack.
    pub id: u32,
    /// The addresses of the stack, leaf first, little-endian.
    pub bytes: &'a [u8],
}

impl<'a> StackRow<'a> {
    /// The addresses of a recording with that [pointer size](crate::TraceInfo::pointer_size).
    pub const fn addresses(&self, pointer_size: u8) -> Stack<'a> {
        Stack::new(self.bytes, pointer_size)
    }
}

/// The stacks of a block, in the order of their ids. Ends after the first incomplete one.
#[derive(Debug, Clone)]
pub struct StackRows<'a> {
    rows: Rows<'a>,
    next_id: u32,
    left: u32,
}

impl<'a> Iterator for StackRows<'a> {
    type Item = Result<StackRow<'a>, ParseError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        self.rows.next(|cursor| {
            let size = cursor.length("stack of negative size")?;
            Ok(StackRow { id, bytes: cursor.bytes(size)? })
        })
    }
}

impl core::iter::FusedIterator for StackRows<'_> {}
