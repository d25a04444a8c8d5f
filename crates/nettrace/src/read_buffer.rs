//! The buffer between the input and the engine.

use alloc::vec::Vec;

/// Bytes that are added at the back and dropped at the front.
#[derive(Debug, Default)]
pub(crate) struct ReadBuffer {
    storage: Vec<u8>,
    start: usize,
    end: usize,
}

impl ReadBuffer {
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.storage.get(self.start..self.end).unwrap_or_default()
    }

    pub(crate) fn drop_front(&mut self, count: usize) {
        debug_assert!(count <= self.bytes().len(), "more is dropped than there is");
        self.start = self.start.saturating_add(count).min(self.end);
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Returns room for at least `least` bytes behind the last one.
    pub(crate) fn room(&mut self, least: usize) -> &mut [u8] {
        let free = self.storage.len().saturating_sub(self.end);
        if free < least {
            let kept = self.end.saturating_sub(self.start);
            // Moving costs at most as much as reading the dropped bytes did; where more is kept than dropped, growing is cheaper.
            if self.start >= kept {
                self.storage.copy_within(self.start..self.end, 0);
                self.end = kept;
                self.start = 0;
            }
            let needed = self.end.saturating_add(least);
            if self.storage.len() < needed {
                self.storage.resize(needed.max(kept.saturating_mul(2)), 0);
            }
        }
        self.storage.get_mut(self.end..).unwrap_or_default()
    }

    /// Adds the first `count` bytes of the room.
    pub(crate) fn filled(&mut self, count: usize) {
        self.end = self.end.saturating_add(count).min(self.storage.len());
    }
}
