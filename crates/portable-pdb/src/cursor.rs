//! A position in bytes that are checked at every step.

use crate::error::{Error, Result};

/// Reads little-endian values from the front of a part of the PDB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    /// Where that begins in the PDB.
    offset: usize,
}

macro_rules! fixed {
    ($($name:ident)*) => {$(
        pub(crate) fn $name(&mut self, what: &'static str) -> Result<$name> {
            let (taken, rest) = self.rest.split_first_chunk().ok_or(self.damaged(what))?;
            self.advance(rest);
            Ok($name::from_le_bytes(*taken))
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

    /// What has not been read.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) const fn damaged(&self, what: &'static str) -> Error {
        Error::Damaged { offset: self.offset, what }
    }

    fn advance(&mut self, rest: &'a [u8]) {
        self.offset = self.offset.saturating_add(self.rest.len().saturating_sub(rest.len()));
        self.rest = rest;
    }

    fixed! { u8 u16 u32 u64 }

    pub(crate) fn bytes(&mut self, count: usize, what: &'static str) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(self.damaged(what))?;
        self.advance(rest);
        Ok(taken)
    }

    /// So many bytes, `from` bytes behind here; here stays here.
    pub(crate) fn part(&self, from: usize, count: usize, what: &'static str) -> Result<Self> {
        let mut at = *self;
        at.bytes(from, what)?;
        let offset = at.offset;
        Ok(Self { rest: at.bytes(count, what)?, offset })
    }

    /// Everything from `from` bytes behind here on.
    pub(crate) fn from(&self, from: usize, what: &'static str) -> Result<Self> {
        let mut at = *self;
        at.bytes(from, what)?;
        Ok(at)
    }

    /// An index into a heap or table: 2 bytes or 4.
    pub(crate) fn index(&mut self, is_wide: bool, what: &'static str) -> Result<u32> {
        if is_wide { self.u32(what) } else { Ok(self.u16(what)?.into()) }
    }

    /// A compressed unsigned integer, and how many bits it has room for: ECMA-335 II.23.2.
    fn packed(&mut self, what: &'static str) -> Result<(u32, u32)> {
        let first = u32::from(self.u8(what)?);
        if first & 0x80 == 0 {
            return Ok((first, 7));
        }
        let second = u32::from(self.u8(what)?);
        if first & 0x40 == 0 {
            return Ok(((first & 0x3f) << 8 | second, 14));
        }
        if first & 0x20 != 0 {
            return Err(self.damaged(what));
        }
        let (third, fourth) = (u32::from(self.u8(what)?), u32::from(self.u8(what)?));
        Ok(((first & 0x1f) << 24 | second << 16 | third << 8 | fourth, 29))
    }

    pub(crate) fn unsigned(&mut self, what: &'static str) -> Result<u32> {
        self.packed(what).map(|(value, _)| value)
    }

    /// A compressed signed integer: the sign is the lowest bit, and stands for all above the highest.
    pub(crate) fn signed(&mut self, what: &'static str) -> Result<i32> {
        let (value, bits) = self.packed(what)?;
        let magnitude = (value >> 1).cast_signed();
        let sign = if value & 1 == 0 { 0 } else { -1 << bits.saturating_sub(1) };
        Ok(magnitude | sign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_compressed_as_ecma_335_says() {
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
            assert_eq!(Cursor::new(bytes).unsigned("x"), Ok(value));
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
            assert_eq!(Cursor::new(bytes).signed("x"), Ok(value));
        }
        for bytes in [&[][..], &[0x80], &[0xc0, 0, 0], &[0xe0, 0, 0, 0], &[0xff]] {
            assert!(Cursor::new(bytes).unsigned("x").is_err());
        }
    }
}
