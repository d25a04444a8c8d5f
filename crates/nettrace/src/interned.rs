//! Things that a recording writes once and refers to by number until the next sequence point: stacks and label lists.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Byte strings with consecutive ids, in blocks. A block with an id that was there before replaces what had it.
#[derive(Debug, Default)]
pub(crate) struct Interned {
    bytes: Vec<u8>,
    /// Where each item ends in `bytes`; it begins where the one before it ends.
    ends: Vec<usize>,
    /// The run that grows: its first id and its first index in `ends`.
    open: (u32, usize),
    /// Finished runs by first id: the range of `ends` that they take.
    runs: BTreeMap<u32, (usize, usize)>,
}

impl Interned {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.open = (0, 0);
        self.runs.clear();
    }

    /// The items that follow get the ids `first_id`, `first_id + 1`, ….
    pub(crate) fn begin(&mut self, first_id: u32) {
        let (first, start) = self.open;
        let count = self.ends.len().saturating_sub(start);
        // Blocks of one window continue one another's ids: then all of them are one run.
        if usize::try_from(first_id.wrapping_sub(first)) == Ok(count) && count > 0 {
            return;
        }
        if count > 0 {
            self.runs.insert(first, (start, self.ends.len()));
        }
        self.open = (first_id, self.ends.len());
    }

    pub(crate) fn push(&mut self, item: &[u8]) {
        self.bytes.extend_from_slice(item);
        self.ends.push(self.bytes.len());
    }

    /// The item with that id; `None` if there is none since the last sequence point.
    pub(crate) fn get(&self, id: u32) -> Option<&[u8]> {
        let (first, start) = self.open;
        if let Some(item) = self.item(id, first, start, self.ends.len()) {
            return Some(item);
        }
        let (&first, &(start, end)) = self.runs.range(..=id).next_back()?;
        self.item(id, first, start, end)
    }

    fn item(&self, id: u32, first: u32, start: usize, end: usize) -> Option<&[u8]> {
        let within = usize::try_from(id.checked_sub(first)?).ok()?;
        let index = start.checked_add(within).filter(|index| *index < end)?;
        let begin = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.bytes.get(begin..*self.ends.get(index)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_find_their_items() {
        let mut table = Interned::default();
        table.begin(1);
        table.push(&[1; 8]);
        table.push(&[]);
        table.begin(3);
        table.push(&[3; 16]);
        assert!(table.runs.is_empty(), "a block that continues the ids before it is no run of its own");
        table.begin(100);
        table.push(&[100; 8]);
        table.begin(2);
        table.push(&[22; 8]);
        assert_eq!(table.get(1), Some(&[1; 8][..]));
        assert_eq!(table.get(2), Some(&[22; 8][..]), "the newest wins");
        assert_eq!(table.get(3), Some(&[3; 16][..]));
        assert_eq!(table.get(100), Some(&[100; 8][..]));
        for missing in [0, 4, 99, 101, u32::MAX] {
            assert_eq!(table.get(missing), None, "{missing}");
        }
        table.clear();
        assert_eq!(table.get(1), None);
    }
}
