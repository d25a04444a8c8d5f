//! A bounded table that evicts its oldest entries.

use std::hash::Hash;

use hashbrown::HashMap;

/// The number of newer entries up to which an entry is never evicted.
const KEPT: usize = 1 << 17;

/// A table with at most twice as many entries as it is guaranteed to keep.
#[derive(Debug)]
pub(crate) struct BoundedMap<K, V> {
    new: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K, V> Default for BoundedMap<K, V> {
    fn default() -> Self {
        Self { new: HashMap::new(), old: HashMap::new() }
    }
}

impl<K: Eq + Hash, V> BoundedMap<K, V> {
    /// Inserts or replaces an entry.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.new.len() >= KEPT {
            self.old = std::mem::take(&mut self.new);
        }
        self.old.remove(&key);
        self.new.insert(key, value);
    }

    /// Returns the value of a key.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.new.get(key).or_else(|| self.old.get(key))
    }

    /// Returns the value of a key, mutably.
    #[cfg(feature = "spans")]
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        match self.new.get_mut(key) {
            Some(value) => Some(value),
            None => self.old.get_mut(key),
        }
    }

    /// Removes an entry and returns its value.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.new.remove(key).or_else(|| self.old.remove(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let mut recent = BoundedMap::default();
        let count = u64::try_from(5 * KEPT).expect("small");
        for number in 0..count {
            recent.insert(number, number);
            recent.insert(7, number);
        }
        assert!(recent.new.len() <= KEPT && recent.old.len() <= KEPT);
        assert_eq!((recent.get(&0), recent.get(&7)), (None, Some(&(count - 1))));
        for number in count - u64::try_from(KEPT).expect("small") / 2..count {
            assert_eq!(recent.remove(&number), Some(number));
            assert_eq!(recent.get(&number), None);
        }
    }
}
