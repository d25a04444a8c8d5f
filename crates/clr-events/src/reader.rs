//! Checked reading of payloads into typed views.

use nettrace::raw::{Cursor, ReadError, ReadResult};
use nettrace::{FieldError, Utf16};
use uuid::Uuid;

/// A typed view of a payload.
pub(crate) trait PayloadView<'a>: Sized {
    fn read(reader: &mut Reader<'a>, version: u8) -> ReadResult<Self>;
}

/// A [`Cursor`] that knows the size of pointers and counts fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    cursor: Cursor<'a>,
    /// True if pointers have 8 bytes.
    pub(crate) wide: bool,
    /// The number of fields that have been read.
    field: usize,
}

macro_rules! numbers {
    ($($name:ident)*) => {$(
        #[inline]
        pub(crate) fn $name(&mut self) -> ReadResult<$name> {
            self.cursor.$name()
        }
    )*};
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) const fn new(bytes: &'a [u8], wide: bool) -> Self {
        Self { cursor: Cursor::new(bytes), wide, field: 0 }
    }

    /// Returns the bytes that have not been read.
    #[inline]
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.cursor.rest()
    }

    /// Counts a field as read.
    #[inline]
    pub(crate) const fn field_done(&mut self) {
        self.field = self.field.wrapping_add(1);
    }

    /// Returns the result for the fields of an event, given their number.
    pub(crate) fn finish<T>(&self, result: ReadResult<T>, fields: usize) -> Result<T, FieldError> {
        result.map_err(|error| FieldError::from_read_error(error, self.field, fields))
    }

    numbers! { u8 u16 u32 u64 i32 i64 f64 }

    #[inline]
    pub(crate) fn bool32(&mut self) -> ReadResult<bool> {
        Ok(self.u32()? != 0)
    }

    #[inline]
    pub(crate) fn address(&mut self) -> ReadResult<u64> {
        self.cursor.address(self.wide)
    }

    #[inline]
    pub(crate) fn guid(&mut self) -> ReadResult<Uuid> {
        self.cursor.array().map(Uuid::from_bytes_le)
    }

    #[inline]
    pub(crate) fn utf16(&mut self) -> ReadResult<Utf16<'a>> {
        self.cursor.utf16()
    }

    /// Reads a u16 length, then as many bytes.
    pub(crate) fn counted_utf8(&mut self) -> ReadResult<&'a [u8]> {
        let length = self.u16()?;
        self.cursor.bytes(length.into())
    }

    #[inline]
    pub(crate) fn varuint(&mut self) -> ReadResult<u64> {
        self.cursor.varuint64()
    }

    #[inline]
    pub(crate) fn bytes(&mut self, count: impl Into<u32>) -> ReadResult<&'a [u8]> {
        self.cursor.bytes(usize::try_from(count.into()).map_err(|_| ReadError::UnexpectedEnd)?)
    }

    /// Skips a number of elements of a fixed size.
    #[inline]
    pub(crate) fn skip(&mut self, count: usize, size: usize) -> ReadResult<()> {
        self.cursor.bytes(count.checked_mul(size).ok_or(ReadError::UnexpectedEnd)?).map(drop)
    }

    pub(crate) fn pad16(&mut self) -> ReadResult<()> {
        self.cursor.bytes(2).map(drop)
    }

    pub(crate) fn padword(&mut self) -> ReadResult<()> {
        self.cursor.bytes(if self.wide { 4 } else { 0 }).map(drop)
    }
}
