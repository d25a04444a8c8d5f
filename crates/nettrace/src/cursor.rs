//! Checked reading of little-endian values.

use crate::utf16::Utf16;

/// The fault of a value that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The bytes end inside the value.
    #[error("the bytes end inside a value")]
    UnexpectedEnd,
    /// The bytes violate the format: the value, and its fault.
    #[error("{0}")]
    Invalid(&'static str),
}

/// The result of reading a value.
pub type ReadResult<T> = Result<T, ReadError>;

/// Returns the variable-length integer at the front of 8 bytes, and its length; `None` if it is longer.
#[inline(always)]
#[allow(clippy::inline_always, reason = "every event has several of them")]
pub(crate) fn packed(word: u64) -> Option<(u64, u32)> {
    let last = !word & 0x8080_8080_8080_8080;
    if last == 0 {
        return None;
    }
    // The high bit of the last byte, and all below it.
    let bits = word & (last ^ last.wrapping_sub(1));
    let bits = bits & 0x007f_007f_007f_007f | (bits & 0x7f00_7f00_7f00_7f00) >> 1;
    let bits = bits & 0x0000_3fff_0000_3fff | (bits & 0x3fff_0000_3fff_0000) >> 2;
    let bits = bits & 0x0fff_ffff | (bits & 0x0fff_ffff_0000_0000) >> 4;
    Some((bits, (last.trailing_zeros() >> 3).wrapping_add(1)))
}

/// Returns the offset of the first UTF-16 NUL.
#[inline]
fn first_nul(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0001_0001_0001_0001;
    let (words, _) = bytes.as_chunks::<8>();
    let mut from = 0usize;
    for word in words {
        let word = u64::from_le_bytes(*word);
        // The lowest bit of these that is set belongs to the first code unit that is 0.
        let zeros = word.wrapping_sub(ONES) & !word & (ONES << 15);
        if zeros != 0 {
            return from.checked_add(usize::try_from(zeros.trailing_zeros() >> 4).ok()?.checked_mul(2)?);
        }
        from = from.checked_add(8)?;
    }
    let (units, _) = bytes.get(from..)?.as_chunks::<2>();
    from.checked_add(units.iter().position(|unit| *unit == [0, 0])?.checked_mul(2)?)
}

/// A position in bytes, from which little-endian values are read.
///
/// A value that cannot be read leaves the position where it was, or inside the value.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

macro_rules! fixed {
    ($($name:ident: $type:ty),* $(,)?) => {$(
        #[doc = concat!("Reads a little-endian `", stringify!($type), "`.")]
        #[inline]
        pub fn $name(&mut self) -> ReadResult<$type> {
            self.array().map(<$type>::from_le_bytes)
        }
    )*};
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the front of the bytes.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes that are left.
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The number of bytes that are left.
    #[inline]
    pub const fn left(&self) -> usize {
        self.rest.len()
    }

    /// Returns true if no bytes are left.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads `count` bytes.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> ReadResult<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(ReadError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> ReadResult<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(ReadError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads one byte.
    #[inline]
    pub fn u8(&mut self) -> ReadResult<u8> {
        let (first, rest) = self.rest.split_first().ok_or(ReadError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(*first)
    }

    fixed! { u16: u16, u32: u32, i32: i32, u64: u64, i64: i64, f64: f64 }

    /// Reads a length or count that the format stores as a signed 32-bit integer.
    pub(crate) fn length(&mut self, what: &'static str) -> ReadResult<usize> {
        usize::try_from(self.i32()?).map_err(|_| ReadError::Invalid(what))
    }

    /// Reads 7 bits a byte, least significant first, at most 5 bytes.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "every event has several of them")]
    pub fn varuint32(&mut self) -> ReadResult<u32> {
        match self.rest {
            [first, rest @ ..] if *first < 0x80 => {
                self.rest = rest;
                Ok(u32::from(*first))
            }
            [first, second, rest @ ..] if *second < 0x80 => {
                self.rest = rest;
                Ok(u32::from(*first & 0x7f) | u32::from(*second) << 7)
            }
            _ => {
                let wide = self.varuint64_long(5)?;
                u32::try_from(wide).map_err(|_| ReadError::Invalid("variable-length integer over 32 bits"))
            }
        }
    }

    /// Reads 7 bits a byte, least significant first, at most 10 bytes.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "every event has several of them")]
    pub fn varuint64(&mut self) -> ReadResult<u64> {
        match self.rest {
            [first, rest @ ..] if *first < 0x80 => {
                self.rest = rest;
                Ok(u64::from(*first))
            }
            [first, second, rest @ ..] if *second < 0x80 => {
                self.rest = rest;
                Ok(u64::from(*first & 0x7f) | u64::from(*second) << 7)
            }
            [first, second, third, rest @ ..] if *third < 0x80 => {
                self.rest = rest;
                Ok(u64::from(*first & 0x7f) | u64::from(*second & 0x7f) << 7 | u64::from(*third) << 14)
            }
            _ => self.varuint64_long(10),
        }
    }

    /// The general form, of at most `most` bytes.
    #[inline(never)]
    fn varuint64_long(&mut self, most: usize) -> ReadResult<u64> {
        let mut value = 0u64;
        let mut shift = 0u32;
        for (index, byte) in self.rest.iter().enumerate().take(most) {
            let bits = u64::from(byte & 0x7f);
            let placed = bits.checked_shl(shift).unwrap_or(0);
            if placed.checked_shr(shift).unwrap_or(0) != bits {
                return Err(ReadError::Invalid("variable-length integer over 64 bits"));
            }
            value |= placed;
            if byte & 0x80 == 0 {
                self.bytes(index.saturating_add(1))?;
                return Ok(value);
            }
            shift = shift.saturating_add(7);
        }
        if self.left() < most {
            Err(ReadError::UnexpectedEnd)
        } else {
            Err(ReadError::Invalid("variable-length integer without an end"))
        }
    }

    /// Reads a signed variable-length integer of V6, which has its sign in the lowest bit.
    pub fn varint64(&mut self) -> ReadResult<i64> {
        let raw = self.varuint64()?;
        Ok((raw >> 1).cast_signed() ^ (raw & 1).cast_signed().wrapping_neg())
    }

    /// Reads 8 bytes if pointers are `wide`, else 4.
    #[inline]
    pub fn address(&mut self, wide: bool) -> ReadResult<u64> {
        if wide { self.u64() } else { self.u32().map(u64::from) }
    }

    /// Reads bytes up to a NUL, which is consumed and not part of the result.
    pub fn until_nul(&mut self) -> ReadResult<&'a [u8]> {
        let end = self.rest.iter().position(|byte| *byte == 0).ok_or(ReadError::UnexpectedEnd)?;
        let text = self.bytes(end)?;
        self.u8()?;
        Ok(text)
    }

    /// Reads UTF-16 text up to a NUL, which is consumed and not part of the result.
    #[inline]
    pub fn utf16(&mut self) -> ReadResult<Utf16<'a>> {
        self.string16().map(Utf16)
    }

    /// Reads UTF-16 code units up to a NUL, which is consumed and not part of the result.
    pub(crate) fn string16(&mut self) -> ReadResult<&'a [u8]> {
        let text = self.bytes(first_nul(self.rest).ok_or(ReadError::UnexpectedEnd)?)?;
        self.bytes(2)?;
        Ok(text)
    }

    /// Reads a string of V6: length in bytes, then UTF-8.
    pub(crate) fn string8(&mut self) -> ReadResult<&'a [u8]> {
        let length = self.varuint32()?;
        self.bytes(usize::try_from(length).map_err(|_| ReadError::UnexpectedEnd)?)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn variable_length_integers() {
        let cases: [(&[u8], ReadResult<u64>); 9] = [
            (&[0x00], Ok(0)),
            (&[0x7f], Ok(127)),
            (&[0x80, 0x01], Ok(128)),
            (&[0xff, 0xff, 0x7f], Ok(0x1f_ffff)),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], Ok(u64::MAX)),
            (
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
                Err(ReadError::Invalid("variable-length integer over 64 bits")),
            ),
            (&[0x80; 10], Err(ReadError::Invalid("variable-length integer without an end"))),
            (&[0x80; 9], Err(ReadError::UnexpectedEnd)),
            (&[], Err(ReadError::UnexpectedEnd)),
        ];
        for (bytes, expected) in cases {
            assert_eq!(Cursor::new(bytes).varuint64(), expected, "{bytes:02x?}");
        }
        assert_eq!(Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0x0f]).varuint32(), Ok(u32::MAX));
        assert_eq!(
            Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0x1f]).varuint32(),
            Err(ReadError::Invalid("variable-length integer over 32 bits"))
        );
        assert_eq!(
            Cursor::new(&[0x80; 5]).varuint32(),
            Err(ReadError::Invalid("variable-length integer without an end"))
        );
        assert_eq!(Cursor::new(&[0x03]).varint64(), Ok(-2));
        assert_eq!(Cursor::new(&[0x04]).varint64(), Ok(2));
    }

    #[test]
    fn a_word_holds_up_to_eight_bytes_of_an_integer() {
        for value in (0..56).flat_map(|bits| [(1u64 << bits) - 1, 1 << bits, (1 << bits) + 1]) {
            let mut bytes = Vec::new();
            let mut rest = value;
            while rest >= 0x80 {
                bytes.push(rest.to_le_bytes()[0] | 0x80);
                rest >>= 7;
            }
            bytes.push(rest.to_le_bytes()[0]);
            for following in [0, 0x7f, 0x80, 0xff] {
                let mut word = [following; 8];
                word[..bytes.len()].copy_from_slice(&bytes);
                assert_eq!(
                    packed(u64::from_le_bytes(word)),
                    Some((value, u32::try_from(bytes.len()).unwrap())),
                    "{value:#x}"
                );
            }
        }
        assert_eq!(packed(u64::MAX), None);
    }

    #[test]
    fn strings_need_their_end() {
        assert_eq!(Cursor::new(b"a\0b\0\0\0rest").string16(), Ok(&b"a\0b\0"[..]));
        let text: Vec<u8> = (1..=40u16).flat_map(|unit| ((unit << 8) | (unit % 3)).to_le_bytes()).collect();
        for length in (0..text.len()).step_by(2) {
            let bytes = [&text[..length], &[0, 0], &text[length..]].concat();
            assert_eq!(Cursor::new(&bytes).string16(), Ok(&text[..length]));
            assert_eq!(Cursor::new(&text[..length]).string16(), Err(ReadError::UnexpectedEnd));
        }
        // A zero byte pair that straddles two code units is not a terminator.
        assert_eq!(Cursor::new(&[0x61, 0x00, 0x00, 0x01]).string16(), Err(ReadError::UnexpectedEnd));
        assert_eq!(Cursor::new(&[3, b'a', b'b', b'c']).string8(), Ok(&b"abc"[..]));
        assert_eq!(Cursor::new(&[4, b'a', b'b', b'c']).string8(), Err(ReadError::UnexpectedEnd));
    }
}
