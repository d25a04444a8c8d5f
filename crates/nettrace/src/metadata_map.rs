//! Values by kind of event.

use alloc::vec::Vec;

/// Values by [`Event::metadata_index`](crate::Event::metadata_index).
///
/// The map has at most as many entries as the recording has definitions of events. Its operations do not
/// panic.
///
/// ```
/// let mut counts = nettrace::MetadataMap::<u64>::new();
/// for index in [2, 0, 2] {
///     counts.update(index, |count| *count += 1);
/// }
/// assert!(counts.iter().eq([(0, &1), (2, &2)]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataMap<T> {
    values: Vec<Option<T>>,
}

impl<T> Default for MetadataMap<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> MetadataMap<T> {
    /// Creates an empty map, without allocating.
    pub const fn new() -> Self {
        Self { values: Vec::new() }
    }

    /// Returns the value of a kind.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.values.get(index)?.as_ref()
    }

    /// Returns the value of a kind, to be changed.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.values.get_mut(index)?.as_mut()
    }

    /// Sets the value of a kind, and returns the previous value.
    pub fn insert(&mut self, index: usize, value: T) -> Option<T> {
        if self.values.len() <= index {
            self.values.resize_with(index.saturating_add(1), || None);
        }
        self.values.get_mut(index)?.replace(value)
    }

    /// Returns the value of a kind, which is computed and kept at the first request.
    #[inline]
    pub fn get_or_insert_with(&mut self, index: usize, value: impl FnOnce() -> T) -> T
    where
        T: Copy,
    {
        if let Some(known) = self.get(index) {
            return *known;
        }
        let value = value();
        self.insert(index, value);
        value
    }

    /// Changes the value of a kind, which begins as the default.
    #[inline]
    pub fn update(&mut self, index: usize, change: impl FnOnce(&mut T))
    where
        T: Default,
    {
        if let Some(value) = self.get_mut(index) {
            change(value);
            return;
        }
        let mut value = T::default();
        change(&mut value);
        self.insert(index, value);
    }

    /// Returns the kinds that have values, and their values, in the order of the recording's definitions.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.values.iter().enumerate().filter_map(|(index, value)| Some((index, value.as_ref()?)))
    }

    /// Removes all values, and keeps the memory.
    pub fn clear(&mut self) {
        self.values.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_value() {
        let mut map = MetadataMap::new();
        assert_eq!(map.get(0), None);
        assert_eq!(map.insert(3, 'a'), None);
        assert_eq!(map.insert(3, 'b'), Some('a'));
        assert_eq!((map.get(2), map.get(3), map.get(4)), (None, Some(&'b'), None));
        assert_eq!(map.get_or_insert_with(1, || 'c'), 'c');
        assert_eq!(map.get_or_insert_with(1, || unreachable!("it is known")), 'c');
        map.update(1, |value| *value = 'd');
        map.update(0, |value| assert_eq!(*value, char::default()));
        assert!(map.iter().eq([(0, &'\0'), (1, &'d'), (3, &'b')]));
        map.clear();
        assert_eq!(map, MetadataMap::default());
    }
}
