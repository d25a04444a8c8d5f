//! Sets of small numbers, a bit each.
#![allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "numbers are below the count that a set was made for"
)]

/// Bits of a word.
const BITS: u32 = u64::BITS;

/// A set of numbers below a count.
#[derive(Debug)]
pub(crate) struct NodeSet {
    words: Vec<u64>,
}

impl NodeSet {
    /// Creates an empty set for numbers below `count`.
    pub(crate) fn new(count: usize) -> Self {
        Self { words: vec![0; count.div_ceil(BITS as usize)] }
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        self.words[(number / BITS) as usize] >> (number % BITS) & 1 != 0
    }

    /// Adds a number. Returns true if it was not in the set.
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        let word = &mut self.words[(number / BITS) as usize];
        let bit = 1 << (number % BITS);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Removes the numbers of another set for the same count.
    pub(crate) fn remove_all(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= !other);
    }
}

/// A set with ranked members. The rank is the number of smaller members. Takes 1.5 bits a number.
#[derive(Debug)]
pub(crate) struct RankedSet {
    set: NodeSet,
    /// The number of members before each word.
    before: Vec<u32>,
    count: u32,
}

impl RankedSet {
    pub(crate) fn new(set: NodeSet) -> Self {
        let mut count = 0;
        let before = set.words.iter().map(|word| {
            let before = count;
            count += word.count_ones();
            before
        });
        Self { before: before.collect(), set, count }
    }

    /// The number of members.
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        self.set.contains(number)
    }

    /// Returns the number of members below a number.
    pub(crate) fn count_below(&self, number: u32) -> u32 {
        let place = (number / BITS) as usize;
        let below = self.set.words[place] & ((1 << (number % BITS)) - 1);
        self.before[place] + below.count_ones()
    }

    /// Returns the rank of a number; `None` if it is not a member.
    pub(crate) fn rank(&self, number: u32) -> Option<u32> {
        self.contains(number).then(|| self.count_below(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_ranks_in_rising_order() {
        let members = [0, 1, 63, 64, 65, 127, 128, 199];
        let mut set = NodeSet::new(200);
        for member in members {
            assert!(set.insert(member));
            assert!(!set.insert(member));
        }
        let mut other = NodeSet::new(200);
        other.insert(65);
        other.insert(66);
        set.remove_all(&other);
        let ranked = RankedSet::new(set);
        let found: Vec<_> = (0..200).filter_map(|number| Some((number, ranked.rank(number)?))).collect();
        assert_eq!(found, [(0, 0), (1, 1), (63, 2), (64, 3), (127, 4), (128, 5), (199, 6)]);
        assert_eq!((ranked.count(), ranked.count_below(126), ranked.count_below(66)), (7, 4, 4));
        assert_eq!(RankedSet::new(NodeSet::new(0)).count(), 0);
    }
}
