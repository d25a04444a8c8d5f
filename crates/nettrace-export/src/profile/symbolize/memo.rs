//! Results by a small number.

/// Results that are computed once for each number.
#[derive(Debug)]
pub(super) struct Memo<T>(Vec<Option<T>>);

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy> Memo<T> {
    /// Returns the result of a number, which is computed if it is new. Numbers count from 0 without gaps:
    /// there are as many places.
    pub(super) fn get(&mut self, number: usize, compute: impl FnOnce() -> T) -> T {
        if self.0.len() <= number {
            self.0.resize(number.saturating_add(1), None);
        }
        match self.0.get_mut(number) {
            Some(result) => *result.get_or_insert_with(compute),
            None => compute(),
        }
    }
}
