//! Values by kind of event.

/// Values by [`metadata_index`](nettrace::Event::metadata_index), each computed once.
#[derive(Debug, Clone)]
pub(crate) struct KindTable<T>(Vec<Option<T>>);

impl<T> Default for KindTable<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy> KindTable<T> {
    /// Returns the value of a kind, which is computed if it is unknown.
    #[inline]
    pub(crate) fn get_or_insert_with(&mut self, index: usize, value: impl FnOnce() -> T) -> T {
        if let Some(Some(known)) = self.0.get(index) {
            return *known;
        }
        let value = value();
        if self.0.len() <= index {
            self.0.resize(index.saturating_add(1), None);
        }
        if let Some(entry) = self.0.get_mut(index) {
            *entry = Some(value);
        }
        value
    }
}
