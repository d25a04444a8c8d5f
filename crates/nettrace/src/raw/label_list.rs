//! Label list blocks (V6).
//!
//! ```text
//! block = first-id:u32 count:u32 list*
//! list  = label* last-label         (the last one has the high bit of its kind set)
//! ```

use super::ParseError;
use super::rows::Rows;
use crate::cursor::{Cursor, ReadError, ReadResult};
use crate::label::{Labels, label_list};

/// The content of a label list block: lists with consecutive ids, valid up to the next sequence point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelListBlock<'a> {
    first_id: u32,
    count: u32,
    content: &'a [u8],
}

impl<'a> LabelListBlock<'a> {
    /// Parses the first id and the count.
    ///
    /// # Errors
    /// If the content ends inside them, or the first id is 0, which means no labels.
    pub fn parse(content: &'a [u8]) -> Result<Self, ParseError> {
        Self::new(content).map_err(|error| ParseError { offset: 0, error })
    }

    pub(crate) fn new(content: &'a [u8]) -> ReadResult<Self> {
        let mut cursor = Cursor::new(content);
        let (first_id, count) = (cursor.u32()?, cursor.u32()?);
        if first_id == 0 {
            return Err(ReadError::Invalid("label lists are counted from 1"));
        }
        Ok(Self { first_id, count, content })
    }

    /// Id of the first list, at least 1.
    pub const fn first_id(&self) -> u32 {
        self.first_id
    }

    /// The number of lists stated by the block; there may be fewer.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// The lists.
    pub fn rows(&self) -> LabelListRows<'a> {
        LabelListRows { rows: Rows::new(self.content, 8), next_id: self.first_id, left: self.count }
    }
}

/// One label list of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LabelListRow<'a> {
    /// Id of the list.
    pub id: u32,
    /// The labels of the list, as recorded.
    pub bytes: &'a [u8],
}

impl<'a> LabelListRow<'a> {
    /// The labels.
    pub const fn labels(&self) -> Labels<'a> {
        Labels::new(self.bytes)
    }
}

/// The lists of a block, in the order of their ids. Ends after the first unreadable one.
#[derive(Debug, Clone)]
pub struct LabelListRows<'a> {
    rows: Rows<'a>,
    next_id: u32,
    left: u32,
}

impl<'a> Iterator for LabelListRows<'a> {
    type Item = Result<LabelListRow<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        self.rows.next(|cursor| Ok(LabelListRow { id, bytes: label_list(cursor)? }))
    }
}

impl core::iter::FusedIterator for LabelListRows<'_> {}
