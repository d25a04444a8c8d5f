//! Values by process and name.

use std::collections::HashMap;

use crate::series::MAX_TEXT_LENGTH;

/// Values by process and name: at most a given number over all processes.
///
/// Names are looked up borrowed, without an allocation.
#[derive(Debug)]
pub(crate) struct ProcessMap<T> {
    of_processes: HashMap<Option<u64>, HashMap<String, T>>,
    count: usize,
    most: usize,
}

impl<T> ProcessMap<T> {
    pub(crate) fn new(most: usize) -> Self {
        Self { of_processes: HashMap::new(), count: 0, most }
    }

    pub(crate) fn get(&self, process_id: Option<u64>, name: &str) -> Option<&T> {
        self.of_processes.get(&process_id)?.get(name)
    }

    pub(crate) fn get_mut(&mut self, process_id: Option<u64>, name: &str) -> Option<&mut T> {
        self.of_processes.get_mut(&process_id)?.get_mut(name)
    }

    /// Sets a value. A new name is left out if there are too many, or if the name is longer than a series may
    /// have.
    pub(crate) fn set(&mut self, process_id: Option<u64>, name: &str, value: T) {
        if let Some(old) = self.get_mut(process_id, name) {
            *old = value;
        } else if self.count < self.most && name.len() <= MAX_TEXT_LENGTH {
            self.of_processes.entry(process_id).or_default().insert(name.to_owned(), value);
            self.count = self.count.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_separate_by_process_and_bounded_in_total() {
        let mut map = ProcessMap::new(3);
        map.set(Some(1), "a", 1);
        map.set(Some(2), "a", 2);
        map.set(None, "a", 3);
        map.set(Some(3), "a", 4);
        map.set(Some(1), "b", 5);
        map.set(Some(2), "a", 6);
        let values = [Some(1), Some(2), None, Some(3)].map(|process| map.get(process, "a").copied());
        assert_eq!(values, [Some(1), Some(6), Some(3), None]);
        assert_eq!((map.get(Some(1), "b"), map.of_processes.len()), (None, 3));
    }

    #[test]
    fn a_name_that_is_too_long_is_not_kept() {
        let mut map = ProcessMap::new(3);
        map.set(None, &"x".repeat(MAX_TEXT_LENGTH), ());
        map.set(None, &"x".repeat(MAX_TEXT_LENGTH + 1), ());
        assert_eq!(map.count, 1);
    }
}
