//! Numbers of bits, the lowest bit first.

use super::GcInfoError;

/// A reader of bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct BitReader<'b> {
    bytes: &'b [u8],
    position: usize,
}

impl<'b> BitReader<'b> {
    pub(super) const fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// A reader of the same bytes at a bit. The first read fails if it is after the end.
    pub(super) const fn at(bytes: &'b [u8], position: usize) -> Self {
        Self { bytes, position }
    }

    pub(super) const fn position(&self) -> usize {
        self.position
    }

    /// Reads at most 32 bits.
    pub(super) fn take(&mut self, count: u32) -> Result<u32, GcInfoError> {
        if count > 32 {
            return Err(GcInfoError::Damaged);
        }
        let end = self.skip_end(count, 1)?;
        let mut bytes = [0; 8];
        let from = self.bytes.get(self.position / 8..).unwrap_or_default();
        for (to, byte) in bytes.iter_mut().zip(from) {
            *to = *byte;
        }
        let word = u64::from_le_bytes(bytes) >> (self.position % 8);
        let mask = u64::MAX.checked_shl(count).map_or(u64::MAX, |above| !above);
        self.position = end;
        u32::try_from(word & mask).map_err(|_| GcInfoError::Damaged)
    }

    /// Reads a bit.
    pub(super) fn bit(&mut self) -> Result<bool, GcInfoError> {
        self.take(1).map(|bit| bit != 0)
    }

    /// Skips `times` numbers of `count` bits.
    pub(super) fn skip(&mut self, count: u32, times: usize) -> Result<(), GcInfoError> {
        self.position = self.skip_end(count, times)?;
        Ok(())
    }

    fn skip_end(&self, count: u32, times: usize) -> Result<usize, GcInfoError> {
        let bits = usize::try_from(count).ok().and_then(|count| count.checked_mul(times));
        let end = bits.and_then(|bits| self.position.checked_add(bits)).ok_or(GcInfoError::Damaged)?;
        let available = self.bytes.len().saturating_mul(8);
        if end <= available { Ok(end) } else { Err(GcInfoError::Cut) }
    }

    /// Skips to the next whole byte.
    pub(super) fn align(&mut self) -> Result<(), GcInfoError> {
        self.position = self.position.checked_next_multiple_of(8).ok_or(GcInfoError::Damaged)?;
        Ok(())
    }

    /// Reads a number: groups of `base` bits, the lowest first, each followed by a bit that says if there is
    /// another.
    pub(super) fn number(&mut self, base: u32) -> Result<u32, GcInfoError> {
        let (value, _) = self.groups(base)?;
        u32::try_from(value).map_err(|_| GcInfoError::Damaged)
    }

    /// Reads a number with a sign, which is the highest bit of its last group.
    pub(super) fn signed(&mut self, base: u32) -> Result<i32, GcInfoError> {
        let (value, count) = self.groups(base)?;
        let unused = 64_u32.saturating_sub(count);
        let value = value.wrapping_shl(unused).cast_signed().wrapping_shr(unused);
        i32::try_from(value).map_err(|_| GcInfoError::Damaged)
    }

    /// Reads groups of bits; returns their number of bits, too.
    fn groups(&mut self, base: u32) -> Result<(u64, u32), GcInfoError> {
        let (mut value, mut count) = (0_u64, 0_u32);
        loop {
            let group = self.take(base)?;
            value |= u64::from(group).wrapping_shl(count);
            count = count.saturating_add(base);
            if !self.bit()? {
                return Ok((value, count));
            }
            if count > 40 {
                return Err(GcInfoError::Damaged);
            }
        }
    }
}
