//! Ranges of addresses, which may overlap: memory is used again, and a recording may say anything.

use alloc::vec::Vec;

use nettrace::Ticks;

/// Something that lies at addresses for some time.
pub(crate) trait Span: Copy {
    /// First address.
    fn start(&self) -> u64;
    /// Last address.
    fn last(&self) -> u64;
    /// Since when; 0 if that is not known.
    #[inline]
    fn from(&self) -> Ticks {
        Ticks(0)
    }
    /// Until when; the maximum if that is not known.
    #[inline]
    fn to(&self) -> Ticks {
        Ticks(u64::MAX)
    }
    /// Ranges that begin at one address and are ordered as equal may be one thing, told of several times.
    fn order(&self) -> (u64, u64);
    /// Takes in another that begins at the same address, if both are the same thing.
    fn absorb(&mut self, other: &Self) -> bool;
}

/// How many ranges are looked at that begin before an address, in search of one that holds it. Real ones hardly overlap.
const MOST_OVERLAPPING: usize = 64;

/// How many ranges may wait for being put in order, at least.
const UNSETTLED: usize = 1 << 14;

/// Which part of the ranges may wait, and how much room is made for more: an eighth.
const PART: usize = 8;

/// What [`Ranges::find`] found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// Where it stands.
    pub(crate) index: usize,
    /// Nothing else has ever been at the address: the answer is the same for all times.
    pub(crate) is_only: bool,
}

/// Ranges by address.
#[derive(Debug)]
pub(crate) struct Ranges<T> {
    entries: Vec<T>,
    /// So many entries are in order, each thing once.
    settled: usize,
    /// The highest last address of each of these and all before it.
    reach: Vec<u64>,
}

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), settled: 0, reach: Vec::new() }
    }
}

impl<T: Span> Ranges<T> {
    pub(crate) fn add(&mut self, entry: T) {
        if self.entries.len().saturating_sub(self.settled) >= UNSETTLED.max(self.settled / PART) {
            self.settle();
        }
        if self.entries.len() == self.entries.capacity() {
            // By a part: doubling would hold twice as much as there is.
            self.entries.reserve_exact((self.entries.len() / PART).max(4));
        }
        self.entries.push(entry);
    }

    /// Puts the entries in order, and makes one of those that tell of one thing.
    pub(crate) fn settle(&mut self) {
        if self.settled == self.entries.len() {
            return;
        }
        let mut late = self.entries.split_off(self.settled);
        late.sort_unstable_by_key(key);
        merge(&mut self.entries, &late);
        self.entries.dedup_by(|entry, before| before.start() == entry.start() && before.absorb(entry));
        self.settled = self.entries.len();
        self.reach.clear();
        self.reach.reserve_exact(self.settled);
        let mut highest = 0;
        self.reach.extend(self.entries.iter().map(|entry| {
            highest = entry.last().max(highest);
            highest
        }));
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
        self.entries.capacity().saturating_mul(entry)
    }

    /// What lay at an address at a time: the newest of those that did, else the one that did soonest before or after.
    ///
    /// The ranges must have been settled.
    pub(crate) fn find(&self, address: u64, time: Ticks) -> Option<Found> {
        let end = self.entries.partition_point(|entry| entry.start() <= address);
        let mut best: Option<(u64, u64, usize)> = None;
        let mut seen = 0usize;
        let first = end.saturating_sub(MOST_OVERLAPPING);
        let entries = self.entries.get(first..end)?.iter().zip(self.reach.get(first..end)?);
        for (index, (entry, reach)) in (first..end).zip(entries).rev() {
            if *reach < address {
                break;
            }
            if entry.last() < address {
                continue;
            }
            seen = seen.saturating_add(1);
            let away = entry.from().0.saturating_sub(time.0).max(time.0.saturating_sub(entry.to().0));
            let age = time.0.saturating_sub(entry.from().0);
            if best.is_none_or(|(best_away, best_age, _)| (away, age) < (best_away, best_age)) {
                best = Some((away, age, index));
            }
        }
        best.map(|(_, _, index)| Found { index, is_only: seen == 1 })
    }
}

fn key<T: Span>(entry: &T) -> (u64, (u64, u64), Ticks) {
    (entry.start(), entry.order(), entry.from())
}

/// Merges what is in order into what is in order, in place: from the end, so that nothing is written over before it was moved.
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
        fn absorb(&mut self, other: &Self) -> bool {
            self == other
        }
    }

    fn of(entries: &[Plain]) -> Ranges<Plain> {
        let mut ranges = Ranges::default();
        for entry in entries {
            ranges.add(*entry);
        }
        ranges.settle();
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
        // Nothing was there then: the nearest.
        assert_eq!(at(&ranges, 160, 52), Some(("old", false)));
        assert_eq!(at(&ranges, 160, 58), Some(("new", false)));
        assert_eq!(at(&ranges, 160, 200), Some(("new", false)));
        assert_eq!(at(&ranges, 350, 25), Some(("around", false)));
        assert_eq!(at(&ranges, 350, 40), Some(("always", false)));
        assert_eq!(at(&ranges, 500, 40), Some(("around", true)));
        assert_eq!(at(&ranges, 1001, 40), None);
    }

    #[test]
    fn adding_goes_on_after_looking() {
        let mut ranges = Ranges::default();
        for number in (0..200_000u64).rev() {
            ranges.add(Plain(number * 10, number * 10 + 8, 0, u64::MAX, "range"));
        }
        ranges.settle();
        assert_eq!(at(&ranges, 1_234_568, 0), Some(("range", true)));
        assert_eq!(at(&ranges, 1_234_569, 0), None);
        ranges.add(Plain(1_234_569, 1_234_569, 0, u64::MAX, "late"));
        ranges.settle();
        assert_eq!(at(&ranges, 1_234_569, 0), Some(("late", true)));
        assert_eq!(ranges.len(), 200_001);
    }
}
