//! Ranges of addresses, which may overlap: memory is used again, and a recording can contain anything.

mod overlaps;
mod span;

use alloc::vec::Vec;

use nettrace::Ticks;

use overlaps::Overlaps;
use span::distance;
pub(crate) use span::{Found, Span};

/// Ranges that begin before an address and are compared one by one. Where more of them may hold it,
/// [`Overlaps`] finds the right one.
const COMPARED: usize = 64;

/// The number of unsorted ranges up to which adding one never sorts; above it, [`FRACTION`] decides.
const MIN_UNSORTED: usize = 1 << 14;

/// The divisor for two fractions: the ranges that may be unsorted, of the sorted ones, and the capacity added
/// at a time, of the current one.
const FRACTION: usize = 8;

/// Ranges by address.
#[derive(Debug)]
pub(crate) struct Ranges<T> {
    entries: Vec<T>,
    /// Number of entries that are in order, each thing once.
    sorted: usize,
    /// The highest last address of each of these and all before it.
    reach: Vec<u64>,
    /// The entries at addresses with too many overlapping ranges to compare one by one.
    overlaps: Overlaps,
}

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), sorted: 0, reach: Vec::new(), overlaps: Overlaps::default() }
    }
}

impl<T: Span> Ranges<T> {
    pub(crate) fn add(&mut self, entry: T) {
        debug_assert!(self.sorted <= self.entries.len(), "entries are removed only while they are sorted");
        if self.entries.len().saturating_sub(self.sorted) >= MIN_UNSORTED.max(self.sorted / FRACTION) {
            self.sort_entries();
        }
        if self.entries.len() == self.entries.capacity() {
            // Grow by a part: doubling would hold twice the needed memory.
            self.entries.reserve_exact((self.entries.len() / FRACTION).max(4));
        }
        self.entries.push(entry);
    }

    /// Makes ready for [`find`](Self::find).
    pub(crate) fn sort(&mut self) {
        self.sort_entries();
        if self.reach.len() == self.entries.len() {
            return;
        }
        self.reach.clear();
        self.reach.reserve_exact(self.entries.len());
        let mut highest = 0;
        self.reach.extend(self.entries.iter().map(|entry| {
            highest = entry.last().max(highest);
            highest
        }));
        self.overlaps = Overlaps::new(&self.entries, self.overlapping());
    }

    /// The indices of entries of which more than [`COMPARED`] may hold one address.
    fn overlapping(&self) -> Vec<u32> {
        let mut indices = Vec::new();
        let (mut first, mut taken) = (0usize, 0usize);
        for (index, entry) in self.entries.iter().enumerate() {
            while self.reach.get(first).is_some_and(|reach| *reach < entry.start()) {
                first = first.saturating_add(1);
            }
            let end = index.saturating_add(1);
            if end.saturating_sub(first) > COMPARED {
                indices.extend((first.max(taken)..end).filter_map(|index| u32::try_from(index).ok()));
                taken = end;
            }
        }
        indices
    }

    /// Sorts the entries, and merges entries of one thing.
    fn sort_entries(&mut self) {
        if self.sorted == self.entries.len() {
            return;
        }
        let mut late = self.entries.split_off(self.sorted);
        late.sort_unstable_by_key(key);
        merge(&mut self.entries, &late);
        self.entries.dedup_by(|entry, before| before.start() == entry.start() && before.merge_with(entry));
        self.sorted = self.entries.len();
        self.reach.clear();
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.entries.get(index)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        let entry = size_of::<T>().saturating_add(size_of::<u64>());
        self.entries.capacity().saturating_mul(entry).saturating_add(self.overlaps.bytes())
    }

    /// The range that held an address at a time. The newest such range wins; without one, the nearest in
    /// time.
    ///
    /// The ranges must be sorted.
    pub(crate) fn find(&self, address: u64, time: Ticks) -> Option<Found> {
        let end = self.entries.partition_point(|entry| entry.start() <= address);
        let first = end.saturating_sub(COMPARED);
        let may_hold = |index: usize| self.reach.get(index).is_some_and(|reach| *reach >= address);
        if !self.overlaps.is_empty() && first.checked_sub(1).is_some_and(may_hold) {
            return self.overlaps.find(&self.entries, address, time);
        }
        let mut best: Option<((u64, u64), usize)> = None;
        let mut seen = 0usize;
        let entries = self.entries.get(first..end)?.iter().zip(self.reach.get(first..end)?);
        for (index, (entry, reach)) in (first..end).zip(entries).rev() {
            if *reach < address {
                break;
            }
            if entry.last() < address {
                continue;
            }
            seen = seen.saturating_add(1);
            let candidate = distance(entry, time);
            if best.is_none_or(|(best, _)| candidate < best) {
                best = Some((candidate, index));
            }
        }
        best.map(|(_, index)| Found { index, is_only: seen == 1 })
    }
}

fn key<T: Span>(entry: &T) -> (u64, (u64, u64), Ticks) {
    (entry.start(), entry.order(), entry.from())
}

/// Merges two sorted parts in place, from the end, so that no item is overwritten before it was moved.
fn merge<T: Span>(entries: &mut Vec<T>, late: &[T]) {
    let mut left = entries.len();
    entries.extend_from_slice(late);
    let mut end = entries.len();
    for entry in late.iter().rev() {
        while let Some(before) = left.checked_sub(1)
            && entries.get(before).is_some_and(|other| key(other) > key(entry))
        {
            end = end.saturating_sub(1);
            entries.copy_within(before..left, end);
            left = before;
        }
        debug_assert!(end > left, "each late range has a place");
        end = end.saturating_sub(1);
        if let Some(place) = entries.get_mut(end) {
            *place = *entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Plain(u64, u64, u64, u64, &'static str);

    impl Span for Plain {
        fn start(&self) -> u64 {
            self.0
        }
        fn last(&self) -> u64 {
            self.1
        }
        fn from(&self) -> Ticks {
            Ticks(self.2)
        }
        fn to(&self) -> Ticks {
            Ticks(self.3)
        }
        fn order(&self) -> (u64, u64) {
            (self.1, 0)
        }
        fn merge_with(&mut self, other: &Self) -> bool {
            self == other
        }
    }

    fn of(entries: &[Plain]) -> Ranges<Plain> {
        let mut ranges = Ranges::default();
        for entry in entries {
            ranges.add(*entry);
        }
        ranges.sort();
        ranges
    }

    fn at(ranges: &Ranges<Plain>, address: u64, time: u64) -> Option<(&'static str, bool)> {
        ranges.find(address, Ticks(time)).map(|found| (ranges.get(found.index).unwrap().4, found.is_only))
    }

    #[test]
    fn time_decides_between_ranges_that_overlap() {
        let ranges = of(&[
            Plain(100, 199, 0, 50, "old"),
            Plain(150, 249, 60, 90, "new"),
            Plain(150, 249, 60, 90, "new"),
            Plain(300, 399, 0, u64::MAX, "always"),
            Plain(0, 1000, 20, 30, "around"),
        ]);
        assert_eq!(ranges.len(), 4);
        assert_eq!(at(&ranges, 160, 10), Some(("old", false)));
        assert_eq!(at(&ranges, 160, 25), Some(("around", false)));
        assert_eq!(at(&ranges, 160, 70), Some(("new", false)));
        // No code at that time: the nearest.
        assert_eq!(at(&ranges, 160, 52), Some(("old", false)));
        assert_eq!(at(&ranges, 160, 58), Some(("new", false)));
        assert_eq!(at(&ranges, 160, 200), Some(("new", false)));
        assert_eq!(at(&ranges, 350, 25), Some(("around", false)));
        assert_eq!(at(&ranges, 350, 40), Some(("always", false)));
        assert_eq!(at(&ranges, 500, 40), Some(("around", true)));
        assert_eq!(at(&ranges, 1001, 40), None);
    }

    /// The part of a large number that a test takes: Miri is some thousand times slower.
    const PART: u64 = if cfg!(miri) { 1000 } else { 1 };

    #[test]
    fn ranges_can_be_added_after_a_lookup() {
        let count = 200_000 / PART;
        let mut ranges = Ranges::default();
        for number in (0..count).rev() {
            ranges.add(Plain(number * 10, number * 10 + 8, 0, u64::MAX, "range"));
        }
        ranges.sort();
        let last_of_one = count / 2 * 10 + 8;
        let between = last_of_one + 1;
        assert_eq!(at(&ranges, last_of_one, 0), Some(("range", true)));
        assert_eq!(at(&ranges, between, 0), None);
        ranges.add(Plain(between, between, 0, u64::MAX, "late"));
        ranges.sort();
        assert_eq!(at(&ranges, between, 0), Some(("late", true)));
        assert_eq!(ranges.len() as u64, count + 1);
    }
    /// The range that [`Ranges::find`] promises, by comparing all.
    fn compared(ranges: &Ranges<Plain>, address: u64, time: u64) -> Option<(usize, bool)> {
        let holds = |range: &Plain| (range.0..=range.1).contains(&address);
        let mut holding: Vec<_> =
            (0..ranges.len()).filter(|index| holds(ranges.get(*index).unwrap())).collect();
        let is_only = holding.len() == 1;
        holding.reverse();
        let index =
            holding.into_iter().min_by_key(|index| distance(ranges.get(*index).unwrap(), Ticks(time)))?;
        Some((index, is_only))
    }

    mod random {
        use super::*;

        #[test]
        fn of_many_ranges_at_one_address_time_finds_the_right_one() {
            let seed =
                std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0u64);
            let mut state = seed.wrapping_add(1);
            let mut random = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) % below
            };
            let count = if cfg!(miri) { 70 } else { 700 };
            // Addresses: one, some, many. Times: consecutive, random, endless, all equal.
            for (starts, lengths, times) in
                [(1, 1, 0), (1, 100, 1), (5, 20, 1), (400, 900, 1), (400, 3000, 2), (300, 200, 3)]
            {
                let mut ranges = Ranges::default();
                for number in 0..count {
                    let start = random(starts) * 3 + 10;
                    let (from, to) = match times {
                        0 => (number * 10, number * 10 + 5),
                        1 => (random(7000), 0),
                        2 => (random(300), u64::MAX),
                        _ => (0, u64::MAX),
                    };
                    let to = if times == 1 { from + random(100) } else { to };
                    ranges.add(Plain(start, start + random(lengths), from, to, ""));
                }
                ranges.add(Plain(0, u64::MAX, 3, 4, "around"));
                ranges.add(Plain(50, 40, 3, 4, "ends before it begins"));
                ranges.sort();
                for _ in 0..3000 / PART {
                    let (address, time) = (random(starts * 3 + lengths + 12), random(7200));
                    let found = ranges.find(address, Ticks(time)).map(|found| (found.index, found.is_only));
                    assert_eq!(
                        found,
                        compared(&ranges, address, time),
                        "{starts} {lengths} {times}: {address} at {time}"
                    );
                }
            }
        }
    }

    #[test]
    fn many_ranges_at_one_address_are_found_quickly_and_take_little() {
        let mut ranges = Ranges::default();
        let count = 300_000 / PART;
        for number in 0..count {
            ranges.add(Plain(16, 31, number * 10, number * 10 + 5, "again"));
        }
        ranges.sort();
        for number in 0..count {
            assert_eq!(ranges.find(20, Ticks(number * 10 + 2)).map(|found| found.index as u64), Some(number));
        }
        assert!(ranges.overlaps.bytes() <= 16 * ranges.len(), "{}", ranges.overlaps.bytes());
        let mut apart = Ranges::default();
        (0..1000).for_each(|number| apart.add(Plain(number * 10, number * 10 + 20, 0, u64::MAX, "apart")));
        apart.sort();
        assert!(apart.overlaps.bytes() < 64, "none of these overlaps many");
    }
}
