//! Checked reading of the PDB's bytes.

use crate::error::{Error, Result};

/// A reader of little-endian values from the front of a part of the PDB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    /// The offset of `rest` in the PDB.
    offset: usize,
}

/// Defines methods that read an integer of a fixed size, each named as its type.
macro_rules! fixed_size {
    ($($name:ident)*) => {$(
        pub(crate) fn $name(&mut self, what: &'static str) -> Result<$name> {
            self.array(what).map($name::from_le_bytes)
        }
    )*};
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, offset: 0 }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the bytes that were not read yet.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the error for damage at this position.
    pub(crate) const fn damaged(&self, what: &'static str) -> Error {
        Error::Damaged { offset: self.offset, what }
    }

    fn advance(&mut self, rest: &'a [u8]) {
        debug_assert!(rest.len() <= self.rest.len(), "a cursor only moves forward");
        self.offset = self.offset.saturating_add(self.rest.len().saturating_sub(rest.len()));
        self.rest = rest;
    }

    fixed_size! { u8 u16 u32 u64 }

    pub(crate) fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(self.damaged(what))?;
        self.advance(rest);
        Ok(*taken)
    }

    pub(crate) fn bytes(&mut self, count: usize, what: &'static str) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(self.damaged(what))?;
        self.advance(rest);
        Ok(taken)
    }

    /// Returns a cursor over the `count` bytes that begin `from` bytes ahead. This cursor does not move.
    pub(crate) fn part(&self, from: usize, count: usize, what: &'static str) -> Result<Self> {
        let mut at = *self;
        at.bytes(from, what)?;
        let offset = at.offset;
        Ok(Self { rest: at.bytes(count, what)?, offset })
    }

    /// Returns a cursor over everything that begins `from` bytes ahead. This cursor does not move.
    pub(crate) fn from(&self, from: usize, what: &'static str) -> Result<Self> {
        let mut at = *self;
        at.bytes(from, what)?;
        Ok(at)
    }

    /// Reads an index into a heap or table: 2 bytes or 4.
    pub(crate) fn index(&mut self, is_wide: bool, what: &'static str) -> Result<u32> {
        if is_wide { self.u32(what) } else { Ok(self.u16(what)?.into()) }
    }

    /// Reads a compressed unsigned integer, and returns the position of its highest bit as well (ECMA-335
    /// II.23.2).
    fn compressed(&mut self, what: &'static str) -> Result<(u32, u32)> {
        let first = u32::from(self.u8(what)?);
        if first & 0x80 == 0 {
            return Ok((first, 6));
        }
        let second = u32::from(self.u8(what)?);
        if first & 0x40 == 0 {
            return Ok(((first & 0x3f) << 8 | second, 13));
        }
        if first & 0x20 != 0 {
            return Err(self.damaged(what));
        }
        let (third, fourth) = (u32::from(self.u8(what)?), u32::from(self.u8(what)?));
        Ok(((first & 0x1f) << 24 | second << 16 | third << 8 | fourth, 28))
    }

    /// Reads a compressed unsigned integer.
    pub(crate) fn compressed_u32(&mut self, what: &'static str) -> Result<u32> {
        self.compressed(what).map(|(value, _)| value)
    }

    /// Reads a compressed signed integer. The lowest bit is the sign, which is extended from the highest bit
    /// on.
    pub(crate) fn compressed_i32(&mut self, what: &'static str) -> Result<i32> {
        let (value, highest_bit) = self.compressed(what)?;
        let magnitude = (value >> 1).cast_signed();
        let sign = if value & 1 == 0 { 0 } else { -1 << highest_bit };
        Ok(magnitude | sign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_compressed_as_in_ecma_335() {
        // The examples of II.23.2.
        for (bytes, value) in [
            (&[0x03u8][..], 3),
            (&[0x7f], 0x7f),
            (&[0x80, 0x80], 0x80),
            (&[0xae, 0x57], 0x2e57),
            (&[0xbf, 0xff], 0x3fff),
            (&[0xc0, 0x00, 0x40, 0x00], 0x4000),
            (&[0xdf, 0xff, 0xff, 0xff], 0x1fff_ffff),
        ] {
            assert_eq!(Cursor::new(bytes).compressed_u32("x"), Ok(value));
        }
        for (bytes, value) in [
            (&[0x06u8][..], 3),
            (&[0x7b], -3),
            (&[0x80, 0x80], 64),
            (&[0x01], -64),
            (&[0xc0, 0x00, 0x40, 0x00], 8192),
            (&[0x80, 0x01], -8192),
            (&[0xdf, 0xff, 0xff, 0xfe], 268_435_455),
            (&[0xc0, 0x00, 0x00, 0x01], -268_435_456),
        ] {
            assert_eq!(Cursor::new(bytes).compressed_i32("x"), Ok(value));
        }
        for bytes in [&[][..], &[0x80], &[0xc0, 0, 0], &[0xe0, 0, 0, 0], &[0xff]] {
            assert!(Cursor::new(bytes).compressed_u32("x").is_err());
        }
    }
}
