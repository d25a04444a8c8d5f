//! Labels of V6 events, in addition to their fields.

use uuid::Uuid;

use crate::cursor::{Cursor, ReadError, ReadResult};

/// The bit in the kind of the last label of a list.
const LAST: u8 = 0x80;

/// One label of an event.
///
/// # Source
/// `NetTraceFormat.md`, LabelListBlock. Text is UTF-8 as recorded, unchecked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Label<'a> {
    /// Kind 1.
    Activity(Uuid),
    /// Kind 2.
    RelatedActivity(Uuid),
    /// Kind 3: W3C trace id.
    TraceId([u8; 16]),
    /// Kind 4: W3C span id.
    SpanId(u64),
    /// Kind 5: key and text.
    Text(&'a [u8], &'a [u8]),
    /// Kind 6: key and number.
    Number(&'a [u8], i64),
    /// Kind 7: replaces the metadata's opcode.
    Opcode(u8),
    /// Kind 8: replaces the metadata's keywords.
    Keywords(u64),
    /// Kind 9: replaces the metadata's level.
    Level(u8),
    /// Kind 10: replaces the metadata's version.
    Version(u8),
}

/// The labels of an event: an iterator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Labels<'a>(&'a [u8]);

impl<'a> Labels<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Takes the first label of a list that is not empty.
    fn take_first(&mut self) -> Option<Label<'a>> {
        let mut cursor = Cursor::new(self.0);
        // The list was walked when its block was read: this cannot fail.
        let (label, _) = label(&mut cursor).ok()?;
        self.0 = cursor.rest();
        Some(label)
    }
}

impl<'a> Iterator for Labels<'a> {
    type Item = Label<'a>;

    #[inline]
    fn next(&mut self) -> Option<Label<'a>> {
        if self.0.is_empty() { None } else { self.take_first() }
    }
}

/// Reads a label. Returns also whether it is the last of its list.
fn label<'a>(cursor: &mut Cursor<'a>) -> ReadResult<(Label<'a>, bool)> {
    let kind = cursor.u8()?;
    let label = match kind & !LAST {
        1 => Label::Activity(Uuid::from_bytes_le(cursor.array()?)),
        2 => Label::RelatedActivity(Uuid::from_bytes_le(cursor.array()?)),
        3 => Label::TraceId(cursor.array()?),
        4 => Label::SpanId(cursor.u64()?),
        5 => Label::Text(cursor.string8()?, cursor.string8()?),
        6 => Label::Number(cursor.string8()?, cursor.varint64()?),
        7 => Label::Opcode(cursor.u8()?),
        8 => Label::Keywords(cursor.u64()?),
        9 => Label::Level(cursor.u8()?),
        10 => Label::Version(cursor.u8()?),
        _ => return Err(ReadError::Invalid("label of an unknown kind, and so of an unknown size")),
    };
    Ok((label, kind & LAST != 0))
}

/// Reads a list of labels, and returns its bytes.
pub(crate) fn label_list<'a>(cursor: &mut Cursor<'a>) -> ReadResult<&'a [u8]> {
    let start = *cursor;
    loop {
        let (_, is_last) = label(cursor)?;
        if is_last {
            break;
        }
    }
    debug_assert!(cursor.left() <= start.left(), "a cursor only moves forward");
    let length = start.left().saturating_sub(cursor.left());
    start.rest().get(..length).ok_or(ReadError::UnexpectedEnd)
}
