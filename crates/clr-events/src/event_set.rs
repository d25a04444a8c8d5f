//! Sets of events.

use nettrace::Metadata;

use crate::provider::Provider;

/// A set of kinds of events, by provider and id. The sets in [`sets`](crate::sets) are by subject.
///
/// ```
/// use clr_events::{EventSet, Provider, ids, sets};
///
/// assert!(sets::COLLECTIONS.has(Provider::Runtime, ids::runtime::GC_START));
/// static MINE: EventSet = EventSet::new(&[(Provider::Runtime, ids::runtime::GC_TRIGGERED)]);
/// assert!(!MINE.has(Provider::Private, ids::runtime::GC_TRIGGERED));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct EventSet {
    /// A bit for each id, modulo their number: most events of a recording are not in a set, and one look at
    /// these bits shows it.
    bits: [u64; WORDS],
    kinds: &'static [(Provider, u32)],
}

const WORDS: usize = 8;

impl EventSet {
    /// The set of these kinds of events.
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "a constant expression; the loop ends with the list, and a place is less than their number"
    )]
    pub const fn new(kinds: &'static [(Provider, u32)]) -> Self {
        let mut bits = [0; WORDS];
        let mut next = 0;
        while next < kinds.len() {
            let (word, bit) = place(kinds[next].1);
            bits[word] |= bit;
            next += 1;
        }
        Self { bits, kinds }
    }

    /// Returns true if events of that kind are in the set.
    #[inline]
    pub fn contains(&self, metadata: &Metadata) -> bool {
        let id = metadata.event_id();
        self.may_have(id) && Provider::of(metadata).is_some_and(|provider| self.has(provider, id))
    }

    /// Returns true if the event of that provider and id is in the set.
    #[inline]
    pub fn has(&self, provider: Provider, id: u32) -> bool {
        self.may_have(id) && self.kinds.contains(&(provider, id))
    }

    /// The kinds of events of the set.
    pub const fn kinds(&self) -> &'static [(Provider, u32)] {
        self.kinds
    }

    #[inline]
    fn may_have(&self, id: u32) -> bool {
        let (word, bit) = place(id);
        self.bits.get(word).is_some_and(|bits| bits & bit != 0)
    }
}

/// The word and the bit of an id.
const fn place(id: u32) -> (usize, u64) {
    ((id >> 6) as usize & (WORDS - 1), 1 << (id & 63))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ids, sets};

    #[test]
    fn a_set_has_its_kinds_and_no_others() {
        let all = [
            &sets::ALLOCATIONS,
            &sets::CODE,
            &sets::COLLECTIONS,
            &sets::STARTUP,
            &sets::THREAD_POOL,
            &sets::THREAD_ROLES,
        ];
        // Miri is some thousand times slower.
        let ids = if cfg!(miri) { 0..128 } else { 0..2048 };
        for set in all {
            for &provider in Provider::ALL {
                for id in ids.clone() {
                    assert_eq!(set.has(provider, id), set.kinds().contains(&(provider, id)), "{id}");
                }
            }
        }
        assert!(sets::PAUSES.has(Provider::Runtime, ids::runtime::GC_SUSPEND_STOP));
        // An id with the same bit.
        assert!(!sets::PAUSES.has(Provider::Runtime, ids::runtime::GC_SUSPEND_STOP + 512));
    }
}
