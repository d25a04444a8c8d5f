//! Sequence points, which map IL to source code.

use crate::cursor::Cursor;
use crate::document::DocumentId;
use crate::error::Result;

/// A range of IL that was compiled from one span of source code. It ends at the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SequencePoint {
    /// The offset of its first instruction, in bytes of IL.
    pub il_offset: u32,
    /// The source file.
    pub document: DocumentId,
    /// The source code; `None` for a hidden point, IL that the compiler generated.
    pub span: Option<SourceSpan>,
}

/// A span of a source file. Lines and columns count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceSpan {
    /// Line of its first character.
    pub start_line: u32,
    /// Column of its first character.
    pub start_column: u32,
    /// Line of the character after its last one.
    pub end_line: u32,
    /// Column of the character after its last one.
    pub end_column: u32,
}

/// An iterator over the sequence points of a method, in the order of its IL. It ends after an error.
#[derive(Debug, Clone)]
pub struct SequencePoints<'a> {
    at: Cursor<'a>,
    document: DocumentId,
    /// The offset of the previous point.
    il_offset: Option<u32>,
    /// Line and column of the previous span.
    start: Option<(u32, u32)>,
}

impl<'a> SequencePoints<'a> {
    /// Returns an iterator over no points.
    pub(crate) const fn empty() -> Self {
        Self { at: Cursor::new(&[]), document: DocumentId(0), il_offset: None, start: None }
    }

    /// Returns the points in a blob. `document` is from the method's row, 0 if there are several.
    pub(crate) fn new(mut at: Cursor<'a>, document: u32) -> Result<Self> {
        at.compressed_u32("signature of local variables")?;
        let document = if document == 0 { at.compressed_u32("first document")? } else { document };
        Ok(Self { at, document: DocumentId(document), il_offset: None, start: None })
    }

    /// Returns the number of bytes that are not decoded yet.
    pub(crate) const fn byte_count(&self) -> usize {
        self.at.rest().len()
    }

    fn read(&mut self) -> Result<SequencePoint> {
        let at = &mut self.at;
        let mut step = at.compressed_u32("IL offset")?;
        let il_offset = match self.il_offset {
            None => step,
            Some(before) => {
                // A step of 0 is followed by the number of another document.
                while step == 0 {
                    self.document = DocumentId(at.compressed_u32("document")?);
                    step = at.compressed_u32("IL offset")?;
                }
                before.checked_add(step).ok_or(at.damaged("IL offset"))?
            }
        };
        self.il_offset = Some(il_offset);
        let lines = at.compressed_u32("lines")?;
        let columns = if lines == 0 {
            at.compressed_u32("columns")?.cast_signed()
        } else {
            at.compressed_i32("columns")?
        };
        if lines == 0 && columns == 0 {
            return Ok(SequencePoint { il_offset, document: self.document, span: None });
        }
        let (start_line, start_column) = match self.start {
            None => (at.compressed_u32("first line")?, at.compressed_u32("first column")?),
            Some((line, column)) => {
                let line = line.checked_add_signed(at.compressed_i32("line")?).ok_or(at.damaged("line"))?;
                let column =
                    column.checked_add_signed(at.compressed_i32("column")?).ok_or(at.damaged("column"))?;
                (line, column)
            }
        };
        self.start = Some((start_line, start_column));
        let end_line = start_line.checked_add(lines).ok_or(at.damaged("last line"))?;
        let end_column = start_column.checked_add_signed(columns).ok_or(at.damaged("last column"))?;
        let span = SourceSpan { start_line, start_column, end_line, end_column };
        Ok(SequencePoint { il_offset, document: self.document, span: Some(span) })
    }
}

impl Iterator for SequencePoints<'_> {
    type Item = Result<SequencePoint>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at.is_empty() {
            return None;
        }
        let point = self.read();
        if point.is_err() {
            self.at = Cursor::new(&[]);
        }
        Some(point)
    }
}
