//! The rows of metadata blocks.

use super::metadata::MetadataEncoding;
use super::{EventBlock, EventRows, Layout, MetadataRow, ParseError};
use crate::cursor::{Cursor, ReadResult};

/// The rows of a metadata block (V4 and later), in their order. Ends after the first incomplete row.
#[derive(Debug, Clone)]
pub struct MetadataRows<'a> {
    content: &'a [u8],
    content_offset: u64,
    rows: Encoded<'a>,
}

#[derive(Debug, Clone)]
enum Encoded<'a> {
    /// Rows as in event blocks; their payloads are the definitions.
    V4(EventRows<'a>),
    /// Definitions after their size; empty after a failure.
    V6(Cursor<'a>),
}

impl<'a> MetadataRows<'a> {
    /// Parses the header of a metadata block's content. Netperf has [rows](super::EventRow::metadata_row)
    /// instead of metadata blocks.
    ///
    /// # Errors
    /// If the content ends inside the header, or the header's size is wrong.
    pub fn parse(content: &'a [u8], layout: Layout) -> Result<Self, ParseError> {
        Self::new(content, 0, layout).map_err(|error| ParseError { offset: 0, error })
    }

    pub(crate) fn new(content: &'a [u8], content_offset: u64, layout: Layout) -> ReadResult<Self> {
        let rows = if layout == Layout::V6 {
            let mut cursor = Cursor::new(content);
            let header = cursor.u16()?;
            cursor.bytes(usize::from(header))?;
            Encoded::V6(cursor)
        } else {
            Encoded::V4(EventBlock::new(content, content_offset, Layout::V4, None)?.rows())
        };
        Ok(Self { content, content_offset, rows })
    }
}

impl<'a> Iterator for MetadataRows<'a> {
    type Item = Result<MetadataRow<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        let row_at = |bytes, offset: u64, encoding| {
            MetadataRow::new(bytes, self.content_offset.saturating_add(offset), offset, encoding)
        };
        match &mut self.rows {
            Encoded::V4(rows) => {
                Some(rows.next()?.map(|row| row_at(row.payload, u64::from(row.offset), MetadataEncoding::V3)))
            }
            Encoded::V6(cursor) if cursor.is_empty() => None,
            Encoded::V6(cursor) => {
                let offset = self.content.len().saturating_sub(cursor.left()) as u64;
                let row = cursor.u16().and_then(|size| cursor.bytes(usize::from(size)));
                Some(match row {
                    Ok(row) => Ok(row_at(row, offset, MetadataEncoding::V6)),
                    Err(error) => {
                        *cursor = Cursor::new(&[]);
                        Err(ParseError { offset, error })
                    }
                })
            }
        }
    }
}

impl core::iter::FusedIterator for MetadataRows<'_> {}
