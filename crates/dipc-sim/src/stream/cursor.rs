//! Checked reading of a recording's numbers.

/// The bytes left to read. Methods return `None` where there are too few.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The number of bytes left.
    pub(super) fn len(self) -> usize {
        self.0.len()
    }

    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length or count.
    pub(super) fn length(&mut self) -> Option<usize> {
        usize::try_from(self.u32()?).ok()
    }

    /// A number of variable length, 7 bits a byte, the lowest first.
    pub(super) fn var_u64(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// The same, of 32 bits.
    pub(super) fn var_u32(&mut self) -> Option<u32> {
        u32::try_from(self.var_u64()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::Cursor;

    #[test]
    fn numbers_of_variable_length_are_read_and_bounded() {
        assert_eq!(Cursor::new(&[0x85, 0x01]).var_u64(), Some(0x85));
        assert_eq!(Cursor::new(&[0xff; 9]).var_u64(), None);
        assert_eq!(Cursor::new(&[0xff; 11]).var_u64(), None);
        assert_eq!(
            Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).var_u64(),
            Some(u64::MAX)
        );
        assert_eq!(Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0x1f]).var_u32(), None);
    }

    #[test]
    fn nothing_is_read_past_the_end() {
        let mut cursor = Cursor::new(&[1, 2, 3]);
        assert_eq!(cursor.u32(), None);
        assert_eq!(cursor.u16(), Some(0x0201));
        assert_eq!(cursor.take(2), None);
        assert_eq!((cursor.take(1), cursor.is_empty()), (Some(&[3][..]), true));
    }
}
