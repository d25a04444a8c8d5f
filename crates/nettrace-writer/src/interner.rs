//! Stacks and label lists: byte strings, each written once between two sequence points.

use alloc::vec::Vec;
use core::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::bytes::u32;
use crate::error::Error;

/// A table of byte strings with the numbers 1, 2, …, and the strings that are not written yet.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    bytes: Vec<u8>,
    /// The end of each item in `bytes`; an item begins at the end of the previous item.
    ends: Vec<usize>,
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// The number of items that are written.
    written: usize,
}

impl Interner {
    /// Returns the number of an item, which is added if it is new.
    pub(crate) fn intern(&mut self, item: &[u8]) -> Result<u32, Error> {
        let Self { bytes, ends, ids, hasher, .. } = self;
        let hash = hasher.hash_one(item);
        if let Some(id) = ids.find(hash, |id| at(bytes, ends, *id) == item) {
            return Ok(*id);
        }
        let id = u32::try_from(ends.len().saturating_add(1))
            .map_err(|_| Error::TooMany { what: "stacks or label lists", limit: u32::MAX.into() })?;
        bytes.extend_from_slice(item);
        ends.push(bytes.len());
        ids.insert_unique(hash, id, |id| hasher.hash_one(at(bytes, ends, *id)));
        Ok(id)
    }

    /// The number of items.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of all items.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes that are not written yet.
    pub(crate) fn pending_bytes(&self) -> usize {
        let start = self.written.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(0);
        self.bytes.len().saturating_sub(start)
    }

    /// Returns the content of a block of the unwritten items, with the size before each if `with_sizes`;
    /// `None` if all are written.
    pub(crate) fn take_pending(&mut self, with_sizes: bool) -> Option<Vec<u8>> {
        let count = self.ends.len().checked_sub(self.written).filter(|count| *count > 0)?;
        let mut out = Vec::with_capacity(self.pending_bytes().saturating_add(count.saturating_mul(4)));
        u32(&mut out, (self.written as u32).saturating_add(1));
        u32(&mut out, count as u32);
        for index in self.written..self.ends.len() {
            let item = at(&self.bytes, &self.ends, (index as u32).saturating_add(1));
            if with_sizes {
                u32(&mut out, item.len() as u32);
            }
            out.extend_from_slice(item);
        }
        self.written = self.ends.len();
        Some(out)
    }

    /// Ends the numbers of all items.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.ids.clear();
        self.written = 0;
    }
}

/// Returns the item with a number.
fn at<'a>(bytes: &'a [u8], ends: &[usize], id: u32) -> &'a [u8] {
    let index = id.saturating_sub(1) as usize;
    let end = ends.get(index).copied().unwrap_or(0);
    let start = index.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    bytes.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::Interner;

    #[test]
    fn equal_items_have_one_number_until_it_ends() {
        let mut interner = Interner::default();
        let ids = [b"ab", b"cd", b"ab"].map(|item| interner.intern(item).unwrap());
        assert_eq!(ids, [1, 2, 1]);
        assert_eq!(interner.pending_bytes(), 4);
        assert_eq!(interner.take_pending(false), Some(vec![1, 0, 0, 0, 2, 0, 0, 0, b'a', b'b', b'c', b'd']));
        assert_eq!(interner.take_pending(false), None);
        assert_eq!(interner.intern(b"").unwrap(), 3);
        assert_eq!(interner.take_pending(true), Some(vec![3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]));
        interner.clear();
        assert_eq!(interner.intern(b"cd").unwrap(), 1);
    }
}
