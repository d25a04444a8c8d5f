//! Sequence points: which IL of a method came from where.

use crate::cursor::Cursor;
use crate::document::DocumentId;
use crate::error::Result;

/// From here to the next one, IL came from one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequencePoint {
    /// Where it begins, in bytes of IL.
    pub il_offset: u32,
    /// The source file.
    pub document: DocumentId,
    /// The place in it; `None` if the IL is the compiler's own, and came from nowhere.
    pub place: Option<Place>,
}

/// A stretch of text. Lines and columns count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Line of its first character.
    pub start_line: u32,
    /// Column of its first character.
    pub start_column: u32,
    /// Line of the character behind its last one.
    pub end_line: u32,
    /// Column of the character behind its last one.
    pub end_column: u32,
}

/// The sequence points of a method, in the order of its IL. After an error there is nothing more.
#[derive(Debug, Clone)]
pub struct SequencePoints<'a> {
    at: Cursor<'a>,
    document: DocumentId,
    /// The point before, if there was one.
    il_offset: Option<u32>,
    /// Where the last point that came from somewhere begins: line and column.
    before: Option<(u32, u32)>,
}

impl<'a> SequencePoints<'a> {
    /// None.
    pub(crate) const fn none() -> Self {
        Self { at: Cursor::new(&[]), document: DocumentId(0), il_offset: None, before: None }
    }

    /// Those of a blob; `document` is the one that its method names, 0 if it has several.
    pub(crate) fn new(mut at: Cursor<'a>, document: u32) -> Result<Self> {
        at.unsigned("signature of local variables")?;
        let document = if document == 0 { at.unsigned("first document")? } else { document };
        Ok(Self { at, document: DocumentId(document), il_offset: None, before: None })
    }

    fn read(&mut self) -> Result<SequencePoint> {
        let at = &mut self.at;
        let mut step = at.unsigned("IL offset")?;
        let il_offset = match self.il_offset {
            None => step,
            Some(before) => {
                // A step of nothing is no point: the document changes.
                while step == 0 {
                    self.document = DocumentId(at.unsigned("document")?);
                    step = at.unsigned("IL offset")?;
                }
                before.checked_add(step).ok_or(at.damaged("IL offset"))?
            }
        };
        self.il_offset = Some(il_offset);
        let lines = at.unsigned("lines")?;
        let columns = if lines == 0 { at.unsigned("columns")?.cast_signed() } else { at.signed("columns")? };
        if lines == 0 && columns == 0 {
            return Ok(SequencePoint { il_offset, document: self.document, place: None });
        }
        let (start_line, start_column) = match self.before {
            None => (at.unsigned("first line")?, at.unsigned("first column")?),
            Some((line, column)) => {
                let line = line.checked_add_signed(at.signed("line")?).ok_or(at.damaged("line"))?;
                let column = column.checked_add_signed(at.signed("column")?).ok_or(at.damaged("column"))?;
                (line, column)
            }
        };
        self.before = Some((start_line, start_column));
        let end_line = start_line.checked_add(lines).ok_or(at.damaged("last line"))?;
        let end_column = start_column.checked_add_signed(columns).ok_or(at.damaged("last column"))?;
        let place = Place { start_line, start_column, end_line, end_column };
        Ok(SequencePoint { il_offset, document: self.document, place: Some(place) })
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
