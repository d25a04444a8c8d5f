//! Call stacks.

/// The addresses of a call stack, leaf first: an iterator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stack<'a> {
    bytes: &'a [u8],
    pointer_size: u8,
}

impl<'a> Stack<'a> {
    pub(crate) const fn new(bytes: &'a [u8], pointer_size: u8) -> Self {
        Self { bytes, pointer_size }
    }

    /// The addresses as the recording has them: little-endian, [`TraceInfo::pointer_size`](crate::TraceInfo)
    /// bytes each.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The number of addresses that are left.
    pub fn len(&self) -> usize {
        self.bytes.len().checked_div(usize::from(self.pointer_size)).unwrap_or(0)
    }

    /// Returns true if no address is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Iterator for Stack<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.pointer_size == 4 {
            let (address, rest) = self.bytes.split_first_chunk()?;
            self.bytes = rest;
            Some(u64::from(u32::from_le_bytes(*address)))
        } else {
            let (address, rest) = self.bytes.split_first_chunk()?;
            self.bytes = rest;
            Some(u64::from_le_bytes(*address))
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

impl ExactSizeIterator for Stack<'_> {}

/// From the root.
impl DoubleEndedIterator for Stack<'_> {
    fn next_back(&mut self) -> Option<u64> {
        let size = usize::from(self.pointer_size);
        // Bytes after the last whole address are ignored.
        let whole = self.bytes.get(..self.len().checked_mul(size)?)?;
        let (rest, address) = whole.split_at_checked(whole.len().checked_sub(size)?)?;
        self.bytes = rest;
        match address.first_chunk::<8>() {
            Some(address) => Some(u64::from_le_bytes(*address)),
            None => address.first_chunk().map(|address| u64::from(u32::from_le_bytes(*address))),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn addresses() {
        let bytes = [1, 0, 0, 0, 0, 0, 0, 0x80, 2, 0, 0, 0, 9];
        assert_eq!(Stack::new(&bytes, 8).collect::<Vec<_>>(), [0x8000_0000_0000_0001]);
        assert_eq!(Stack::new(&bytes, 4).collect::<Vec<_>>(), [1, 0x8000_0000, 2]);
        assert_eq!(Stack::new(&bytes, 4).len(), 3);
        assert_eq!(Stack::new(&bytes, 8).rev().collect::<Vec<_>>(), [0x8000_0000_0000_0001]);
        assert_eq!(Stack::new(&bytes, 4).rev().collect::<Vec<_>>(), [2, 0x8000_0000, 1]);
        let mut both = Stack::new(&bytes, 4);
        assert_eq!(
            (both.next_back(), both.next(), both.next_back(), both.next()),
            (Some(2), Some(1), Some(0x8000_0000), None)
        );
    }
}
