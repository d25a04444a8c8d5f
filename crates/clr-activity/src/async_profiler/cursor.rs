//! Fields of buffers: little-endian numbers, and numbers in groups of seven bits.

use super::error::AsyncBufferError;

/// A place in the bytes of a buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'b> {
    bytes: &'b [u8],
    /// The offset of `bytes` in the buffer.
    offset: usize,
}

impl<'b> Cursor<'b> {
    pub(super) const fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    pub(super) const fn offset(&self) -> usize {
        self.offset
    }

    pub(super) const fn rest(&self) -> &'b [u8] {
        self.bytes
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes the next bytes, as a cursor over them alone.
    pub(super) fn take(&mut self, length: usize) -> Result<Self, AsyncBufferError> {
        let truncated = AsyncBufferError::Truncated { offset: self.offset };
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(truncated)?;
        let taken = Self { bytes: taken, offset: self.offset };
        self.bytes = rest;
        self.offset = self.offset.saturating_add(length);
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], AsyncBufferError> {
        let truncated = AsyncBufferError::Truncated { offset: self.offset };
        self.take(N)?.bytes.try_into().map_err(|_| truncated)
    }

    pub(super) fn u8(&mut self) -> Result<u8, AsyncBufferError> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, AsyncBufferError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, AsyncBufferError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, AsyncBufferError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number in groups of seven bits, the lowest first; the last has no bit 7.
    pub(super) fn compressed(&mut self) -> Result<u64, AsyncBufferError> {
        let too_large = AsyncBufferError::Number { offset: self.offset };
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7F);
            let shifted = bits << shift;
            if shifted >> shift != bits {
                return Err(too_large);
            }
            value |= shifted;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(too_large)
    }

    pub(super) fn compressed_u32(&mut self) -> Result<u32, AsyncBufferError> {
        let too_large = AsyncBufferError::Number { offset: self.offset };
        self.compressed().and_then(|value| u32::try_from(value).map_err(|_| too_large))
    }

    /// A signed number: bit 0 is its sign.
    pub(super) fn signed(&mut self) -> Result<i64, AsyncBufferError> {
        let value = self.compressed()?;
        Ok((value >> 1).cast_signed() ^ (value & 1).cast_signed().wrapping_neg())
    }

    pub(super) fn signed_i32(&mut self) -> Result<i32, AsyncBufferError> {
        let too_large = AsyncBufferError::Number { offset: self.offset };
        self.signed().and_then(|value| i32::try_from(value).map_err(|_| too_large))
    }
}
