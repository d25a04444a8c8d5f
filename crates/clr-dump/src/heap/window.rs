//! Reading of the heap in order of addresses, in large pieces.

use crate::memory::Memory;

/// Bytes of a piece. A core dump reads this size at once, without its page cache.
const PIECE: u64 = 1 << 18;
/// Bytes of a piece if a larger piece is incomplete.
const SMALL_PIECE: u64 = 1 << 14;
/// Bytes of a page, which memory has or lacks as a whole.
const PAGE: u64 = 1 << 12;

/// Memory with a cache of the last piece.
pub(crate) struct HeapWindow<'m> {
    memory: &'m dyn Memory,
    /// The end of the region that is read.
    end: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl<'m> HeapWindow<'m> {
    pub(crate) const fn new(memory: &'m dyn Memory) -> Self {
        Self { memory, end: 0, start: 0, bytes: Vec::new() }
    }

    /// Sets the end of the region that is read next: pieces end there.
    pub(crate) const fn set_end(&mut self, end: u64) {
        self.end = end;
    }

    /// Reads bytes; `None` if the memory lacks any of them.
    pub(crate) fn array<const N: usize>(&mut self, at: u64) -> Option<[u8; N]> {
        if let Some(bytes) = self.kept(at) {
            return Some(bytes);
        }
        self.fill(at);
        // Across the end of a piece, or on an incomplete page.
        self.kept(at).or_else(|| self.memory.array(at).ok())
    }

    fn kept<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let from = usize::try_from(at.checked_sub(self.start)?).ok()?;
        self.bytes.get(from..)?.first_chunk().copied()
    }

    /// Reads the piece at an address: up to the end of the region, or less if memory before that is missing.
    fn fill(&mut self, at: u64) {
        let to_end = self.end.saturating_sub(at);
        let to_page = PAGE.saturating_sub(at & PAGE.saturating_sub(1));
        for size in [to_end.min(PIECE), to_end.min(SMALL_PIECE), to_page] {
            self.start = at;
            self.bytes.resize(usize::try_from(size).unwrap_or_default(), 0);
            if self.memory.read(at, &mut self.bytes).is_ok() {
                return;
            }
        }
        self.bytes.clear();
    }
}
