//! The buffer between the input and the engine.

use alloc::vec::Vec;

/// The storage, in bytes, that is kept however little of it is used.
const SMALL: usize = 1 << 20;

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

    /// Returns room for at least `least` bytes after the last one.
    pub(crate) fn room(&mut self, least: usize) -> &mut [u8] {
        let free = self.storage.len().saturating_sub(self.end);
        if free < least {
            let kept = self.end.saturating_sub(self.start);
            // Moving costs at most as much as reading the dropped bytes did; where more is kept than dropped,
            // growing is cheaper.
            if self.start >= kept {
                self.storage.copy_within(self.start..self.end, 0);
                self.end = kept;
                self.start = 0;
                // A burst may have made the storage large.
                let used = kept.saturating_add(least).max(SMALL);
                if self.storage.len() / 4 > used {
                    self.storage.truncate(used.saturating_mul(2));
                    self.storage.shrink_to_fit();
                }
            }
            let needed = self.end.saturating_add(least);
            if self.storage.len() < needed {
                // Twice as large while that is little; then by a quarter, which costs little where large
                // blocks are moved by remapping.
                let more = kept.min(SMALL).max(kept / 4);
                let larger = needed.max(kept.saturating_add(more));
                self.storage.reserve_exact(larger.saturating_sub(self.storage.len()));
                self.storage.resize(larger, 0);
            }
        }
        self.storage.get_mut(self.end..).unwrap_or_default()
    }

    /// Adds the first `count` bytes of the room.
    pub(crate) fn filled(&mut self, count: usize) {
        self.end = self.end.saturating_add(count).min(self.storage.len());
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    fn add(buffer: &mut ReadBuffer, bytes: &[u8]) {
        buffer.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        buffer.filled(bytes.len());
    }

    #[test]
    fn storage_shrinks_after_a_burst_and_keeps_its_bytes() {
        let mut buffer = ReadBuffer::default();
        let piece = vec![7_u8; 1 << 16];
        for _ in 0..512 {
            add(&mut buffer, &piece);
        }
        let burst = buffer.storage.capacity();
        assert!(burst >= 512 << 16, "{burst}");
        buffer.drop_front((512 << 16) - 3);
        for number in 0..=255 {
            add(&mut buffer, &vec![number; 1 << 16]);
            assert_eq!(buffer.bytes().len(), 3 + (1 << 16));
            buffer.drop_front(1 << 16);
            assert_eq!(buffer.bytes(), [number; 3]);
        }
        let capacity = buffer.storage.capacity();
        assert!(capacity <= 4 * SMALL, "{capacity}");
    }
}
