//! Stacks and label lists, which a recording writes once and refers to by id until the next sequence point.
//!
//! The recording gives the ids, and two items may be equal: this is a table of runs of ids, and not an
//! interner.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// A table of byte strings with consecutive ids, in blocks. A block with an id that was there before replaces
/// the older item.
#[derive(Debug, Default)]
pub(crate) struct InternedTable {
    bytes: Vec<u8>,
    /// The end of each item in `bytes`; an item begins at the end of the previous item.
    ends: Vec<usize>,
    /// The run that is being written: its first id and its first index in `ends`.
    open: (u32, usize),
    /// Finished runs by first id: their range of `ends`. No two have an id in common.
    runs: BTreeMap<u32, (usize, usize)>,
}

impl InternedTable {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.open = (0, 0);
        self.runs.clear();
    }

    /// The number of items.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.ends.len()).unwrap_or(u32::MAX)
    }

    /// Returns true if any of the `count` ids from `first_id` on already has an item.
    pub(crate) fn has_any(&self, first_id: u32, count: u32) -> bool {
        let end = u64::from(first_id).saturating_add(u64::from(count));
        let overlaps = |first: u32, start: usize, until: usize| {
            let items = until.saturating_sub(start) as u64;
            items > 0
                && u64::from(first) < end
                && u64::from(first_id) < u64::from(first).saturating_add(items)
        };
        overlaps(self.open.0, self.open.1, self.ends.len())
            || self.last_before(end).is_some_and(|(first, (start, until))| overlaps(first, start, until))
    }

    /// Starts a block: the items that follow get the ids `first_id`, `first_id + 1`, ….
    pub(crate) fn begin(&mut self, first_id: u32) {
        let (first, start) = self.open;
        let count = self.ends.len().saturating_sub(start);
        // Blocks between two sequence points continue one another's ids: together they are one run.
        if usize::try_from(first_id.wrapping_sub(first)) == Ok(count) && count > 0 {
            return;
        }
        if count > 0 {
            self.finish(first, start, count);
        }
        self.open = (first_id, self.ends.len());
    }

    /// Finishes the open run, which replaces the items with its ids in others.
    fn finish(&mut self, first: u32, start: usize, count: usize) {
        debug_assert!(start.checked_add(count) == Some(self.ends.len()), "the open run is the last");
        let end = u64::from(first).saturating_add(count as u64);
        while let Some((other, (from, to))) = self.last_before(end) {
            let other_end = u64::from(other).saturating_add(to.saturating_sub(from) as u64);
            if other_end <= u64::from(first) {
                break;
            }
            self.runs.remove(&other);
            let kept = usize::try_from(first.saturating_sub(other)).unwrap_or(usize::MAX);
            if kept > 0 {
                self.runs.insert(other, (from, from.saturating_add(kept)));
            }
            let distance = other_end.saturating_sub(end);
            if let (Ok(id), Ok(distance), 1..) = (u32::try_from(end), usize::try_from(distance), distance) {
                self.runs.insert(id, (to.saturating_sub(distance), to));
            }
        }
        self.runs.insert(first, (start, start.saturating_add(count)));
    }

    pub(crate) fn push(&mut self, item: &[u8]) {
        self.bytes.extend_from_slice(item);
        self.ends.push(self.bytes.len());
    }

    /// Returns the item with that id among the first `known`; `None` if it was not defined since the last
    /// sequence point.
    pub(crate) fn get(&self, id: u32, known: u32) -> Option<&[u8]> {
        let (first, start) = self.open;
        let known = usize::try_from(known).unwrap_or(usize::MAX).min(self.ends.len());
        if let Some(item) = self.item(id, first, start, known) {
            return Some(item);
        }
        let (first, (start, end)) = self.last_before(u64::from(id).saturating_add(1))?;
        self.item(id, first, start, end.min(known))
    }

    /// Returns the last finished run that begins before an id.
    #[inline]
    fn last_before(&self, end: u64) -> Option<(u32, (usize, usize))> {
        let last = u32::try_from(end.checked_sub(1)?).unwrap_or(u32::MAX);
        self.runs.range(..=last).next_back().map(|(first, run)| (*first, *run))
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
        let mut table = InternedTable::default();
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
        assert_eq!(table.get(1, u32::MAX), Some(&[1; 8][..]));
        assert_eq!(table.get(2, u32::MAX), Some(&[22; 8][..]), "the newest wins");
        assert_eq!(table.get(3, u32::MAX), Some(&[3; 16][..]));
        assert_eq!(table.get(100, u32::MAX), Some(&[100; 8][..]));
        for missing in [0, 4, 99, 101, u32::MAX] {
            assert_eq!(table.get(missing, u32::MAX), None, "{missing}");
        }
        assert_eq!(table.get(100, 3), None, "not among the first three");
        assert_eq!(table.get(3, 3), Some(&[3; 16][..]));
        for (first, count, has) in [
            (0, 1, false),
            (0, 2, true),
            (3, 50, true),
            (4, 96, false),
            (4, 97, true),
            (101, u32::MAX, false),
        ] {
            assert_eq!(table.has_any(first, count), has, "{count} from {first}");
        }
        table.clear();
        assert_eq!(table.get(1, u32::MAX), None);
    }

    #[test]
    fn a_run_in_the_middle_of_another_replaces_its_ids_alone() {
        let mut table = InternedTable::default();
        for (first, count, value) in [(10, 10, 1), (13, 2, 2), (5, 6, 3), (40, 1, 4), (18, 30, 5), (90, 1, 6)]
        {
            table.begin(first);
            (0..count).for_each(|_| table.push(&[value]));
        }
        let value = |id| table.get(id, u32::MAX).map_or(0, |item| item[0]);
        assert_eq!(
            (4..=49).map(value).collect::<Vec<_>>(),
            [
                0, 3, 3, 3, 3, 3, 3, 1, 1, 2, 2, 1, 1, 1, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5,
                5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 0, 0
            ]
        );
        assert_eq!(value(90), 6);
    }
}
