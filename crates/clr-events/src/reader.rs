//! Checked reading of payloads.

use nettrace::{FieldError, Utf16};
use uuid::Uuid;

use crate::list::{List, Row};

/// The reason why a value could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// The bytes end inside the value.
    UnexpectedEnd,
    /// The bytes mean nothing.
    Invalid(&'static str),
}

pub(crate) type ReadResult<T> = Result<T, ReadError>;

impl ReadError {
    pub(crate) const fn at(self, field: usize, fields: usize) -> FieldError {
        match self {
            Self::UnexpectedEnd => FieldError::TooShort { field, fields },
            Self::Invalid(what) => FieldError::Invalid { field, what },
        }
    }
}

/// Reads values from the front of a payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    /// Whether pointers have 8 bytes.
    pub(crate) wide: bool,
    /// Fields that have been read.
    pub(crate) field: usize,
}

macro_rules! numbers {
    ($($name:ident)*) => {$(
        #[inline]
        pub(crate) fn $name(&mut self) -> ReadResult<$name> {
            let (bytes, rest) = self.rest.split_first_chunk().ok_or(ReadError::UnexpectedEnd)?;
            self.rest = rest;
            Ok($name::from_le_bytes(*bytes))
        }
    )*};
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) const fn new(bytes: &'a [u8], wide: bool) -> Self {
        Self { rest: bytes, wide, field: 0 }
    }

    /// Returns the bytes that have not been read.
    #[inline]
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Counts a field as read.
    #[inline]
    pub(crate) const fn field_done(&mut self) {
        self.field = self.field.saturating_add(1);
    }

    numbers! { u8 u16 u32 u64 i32 i64 f64 }

    #[inline]
    pub(crate) fn bool32(&mut self) -> ReadResult<bool> {
        Ok(self.u32()? != 0)
    }

    #[inline]
    pub(crate) fn address(&mut self) -> ReadResult<u64> {
        if self.wide { self.u64() } else { self.u32().map(u64::from) }
    }

    #[inline]
    pub(crate) fn guid(&mut self) -> ReadResult<Uuid> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(ReadError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(Uuid::from_bytes_le(*bytes))
    }

    #[inline]
    pub(crate) fn utf16(&mut self) -> ReadResult<Utf16<'a>> {
        let (text, rest) = Utf16::until_nul(self.rest).ok_or(ReadError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(text)
    }

    /// Bytes up to a NUL.
    pub(crate) fn utf8(&mut self) -> ReadResult<&'a [u8]> {
        let end = self.rest.iter().position(|byte| *byte == 0).ok_or(ReadError::UnexpectedEnd)?;
        let (text, rest) = self.rest.split_at_checked(end).ok_or(ReadError::UnexpectedEnd)?;
        self.rest = rest.get(1..).unwrap_or_default();
        Ok(text)
    }

    /// u16 length, then as many bytes.
    pub(crate) fn counted_utf8(&mut self) -> ReadResult<&'a [u8]> {
        let length = self.u16()?;
        self.bytes(length.into())
    }

    /// 7 bits a byte, least significant first, at most 10 bytes.
    pub(crate) fn varuint(&mut self) -> ReadResult<u64> {
        let mut value = 0u64;
        for shift in (0..70u32).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            let placed = bits.checked_shl(shift).unwrap_or(0);
            if placed.checked_shr(shift).unwrap_or(0) != bits {
                return Err(ReadError::Invalid("variable-length integer over 64 bits"));
            }
            value |= placed;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ReadError::Invalid("variable-length integer without an end"))
    }

    #[inline]
    pub(crate) fn bytes(&mut self, count: u64) -> ReadResult<&'a [u8]> {
        let count = usize::try_from(count).map_err(|_| ReadError::UnexpectedEnd)?;
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(ReadError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn pad16(&mut self) -> ReadResult<()> {
        self.bytes(2).map(drop)
    }

    pub(crate) fn padword(&mut self) -> ReadResult<()> {
        self.bytes(if self.wide { 4 } else { 0 }).map(drop)
    }

    /// So many elements, which are walked unless all have one size.
    pub(crate) fn list<T: Row<'a>>(&mut self, count: u64) -> ReadResult<List<'a, T>> {
        let count = usize::try_from(count).map_err(|_| ReadError::UnexpectedEnd)?;
        let before = self.rest;
        if let Some((narrow, wide)) = T::SIZES {
            let size = if self.wide { wide } else { narrow };
            let bytes = count.checked_mul(size).ok_or(ReadError::UnexpectedEnd)?;
            self.rest = self.rest.get(bytes..).ok_or(ReadError::UnexpectedEnd)?;
        } else {
            // Every element takes at least a byte, so this ends with the payload.
            for _ in 0..count {
                T::read(self)?;
            }
        }
        Ok(List::new(Reader::new(before, self.wide), count))
    }
}
