//! Chunks of malloc, one after another.

use std::time::Instant;

use super::caches;
use super::chunk_size::size;
use crate::memory::mapping::Mapping;
use crate::memory::resident::ResidentPages;
use crate::memory::{Memory, PAGE, offset};

/// The flag of a chunk with a used one before it.
const PREVIOUS_IN_USE: u64 = 1;
/// Alignment of chunks.
const ALIGNMENT: u64 = 16;
/// Bytes at the begin of a free chunk that malloc uses.
const LINKS: u64 = 48;
/// Bytes to read at once: many where chunks are small, few after one that is larger than that.
const WINDOW: usize = 1 << 16;
const SMALL_WINDOW: usize = 4096;
/// The number of attempts to read a range that changes meanwhile.
const ATTEMPTS: u32 = 3;

/// The sums over chunks.
pub(super) struct ChunkWalk<'m> {
    memory: &'m dyn Memory,
    pages: Option<&'m dyn ResidentPages>,
    until: Option<Instant>,
    mappings: &'m [Mapping],
    /// The address of the pointer to the chunk at the arena's end.
    top: u64,
    window: Vec<u8>,
    window_start: u64,
    pub(super) free: u64,
    /// Bytes that the caches of threads have.
    pub(super) cached: u64,
    pub(super) returned: u64,
    pub(super) unread: u64,
    pub(super) largest_free: u64,
}

/// The sums of a range, up to where it could be read.
#[derive(Default, Clone, Copy)]
struct Sums {
    at: u64,
    free: u64,
    cached: u64,
    returned: u64,
    largest_free: u64,
}

impl<'m> ChunkWalk<'m> {
    pub(super) const fn new(
        memory: &'m dyn Memory,
        pages: Option<&'m dyn ResidentPages>,
        until: Option<Instant>,
        mappings: &'m [Mapping],
        top: u64,
    ) -> Self {
        Self {
            memory,
            pages,
            until,
            mappings,
            top,
            window: Vec::new(),
            window_start: 0,
            free: 0,
            cached: 0,
            returned: 0,
            unread: 0,
            largest_free: 0,
        }
    }

    /// Adds the chunks of a range. Of several attempts the one that has come furthest counts.
    pub(super) fn read(&mut self, start: u64, end: u64) {
        let mut best = Sums { at: start, ..Sums::default() };
        for _ in 0..ATTEMPTS {
            let sums = self.sums(start, end);
            if sums.at > best.at {
                best = sums;
            }
            if best.at >= end || self.is_over() {
                break;
            }
        }
        self.free = self.free.saturating_add(best.free);
        self.cached = self.cached.saturating_add(best.cached);
        self.returned = self.returned.saturating_add(best.returned);
        self.largest_free = self.largest_free.max(best.largest_free);
        self.unread = self.unread.saturating_add(end.saturating_sub(best.at));
    }

    /// Adds the pages of a free chunk that take no memory.
    pub(super) fn returned_of_free(&mut self, chunk: u64, size: u64) {
        self.returned = self.returned.saturating_add(self.returned_in(chunk, size));
    }

    fn returned_in(&self, chunk: u64, size: u64) -> u64 {
        let Some(pages) = self.pages else { return 0 };
        let start = offset(chunk, LINKS).checked_next_multiple_of(PAGE);
        let end = (offset(chunk, size) / PAGE).wrapping_mul(PAGE);
        match start.and_then(|start| Some((start, end.checked_sub(start)?))) {
            Some((start, bytes)) if bytes > 0 => {
                bytes.saturating_sub(pages.resident_bytes(start, end).unwrap_or(bytes))
            }
            _ => 0,
        }
    }

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    fn sums(&mut self, start: u64, end: u64) -> Sums {
        let mut sums = Sums { at: start, ..Sums::default() };
        // The chunk that has been passed last: the next one has the flag for it.
        let mut last: Option<(u64, u64)> = None;
        self.window.clear();
        while sums.at < end {
            let Some(word) = self.word(offset(sums.at, 8)) else { return sums };
            if let Some((chunk, bytes)) = last {
                self.add(&mut sums, chunk, bytes, word & PREVIOUS_IN_USE == 0);
            }
            let bytes = size(word);
            if bytes == 0 {
                // The end of a heap that has a successor.
                sums.at = end;
                return sums;
            }
            let left = end.saturating_sub(sums.at);
            if bytes > left && self.has_moved(&mut sums, bytes, left) {
                sums.at = end;
                return sums;
            }
            if !bytes.is_multiple_of(ALIGNMENT) || bytes > left {
                return sums;
            }
            last = Some((sums.at, bytes));
            sums.at = offset(sums.at, bytes);
        }
        // The last chunk is free if the one at the arena's end says so, which is not of the range.
        if let (Some((chunk, bytes)), Some(word)) = (last, self.word(offset(end, 8))) {
            self.add(&mut sums, chunk, bytes, word & PREVIOUS_IN_USE == 0);
        }
        sums
    }

    /// Returns true if the arena's end has moved since it was read: to the chunk at hand, whose rest is free,
    /// or beyond it, as a block has grown in its place.
    fn has_moved(&self, sums: &mut Sums, bytes: u64, left: u64) -> bool {
        let Ok(top) = self.memory.u64(self.top) else { return false };
        if top == sums.at {
            sums.free = sums.free.saturating_add(left);
        }
        top == sums.at || sums.at.checked_add(bytes).is_some_and(|end| end <= top)
    }

    fn add(&mut self, sums: &mut Sums, chunk: u64, bytes: u64, is_free: bool) {
        if is_free {
            sums.free = sums.free.saturating_add(bytes);
            sums.largest_free = sums.largest_free.max(bytes);
            sums.returned = sums.returned.saturating_add(self.returned_in(chunk, bytes));
        } else if let Some(cache) = caches::ThreadCache::of_chunk(bytes)
            && let Some(content) = self.bytes(offset(chunk, ALIGNMENT), cache.size())
        {
            sums.cached = sums.cached.saturating_add(cache.free(&content, self.mappings));
        }
    }

    /// Reads a word through the window.
    fn word(&mut self, address: u64) -> Option<u64> {
        if let Some(word) = self.in_window(address, 8) {
            return Some(u64::from_le_bytes(*word.first_chunk()?));
        }
        if self.is_over() {
            return None;
        }
        let past = offset(self.window_start, u64::try_from(self.window.len()).unwrap_or_default());
        let is_near = address.wrapping_sub(past) < PAGE;
        let wanted = if is_near { WINDOW } else { SMALL_WINDOW };
        // Up to the end of a page: the next one can be missing.
        for bytes in [wanted, SMALL_WINDOW] {
            let inside = usize::try_from(address % PAGE).ok()?;
            let bytes = bytes.saturating_sub(inside).max(8);
            self.window.resize(bytes, 0);
            if self.memory.read(address, &mut self.window).is_ok() {
                self.window_start = address;
                let word = self.in_window(address, 8)?;
                return Some(u64::from_le_bytes(*word.first_chunk()?));
            }
        }
        self.window.clear();
        None
    }

    fn in_window(&self, address: u64, bytes: usize) -> Option<&[u8]> {
        let from = usize::try_from(address.checked_sub(self.window_start)?).ok()?;
        self.window.get(from..from.checked_add(bytes)?)
    }

    fn bytes(&self, address: u64, size: usize) -> Option<Vec<u8>> {
        match self.in_window(address, size) {
            Some(bytes) => Some(bytes.to_vec()),
            None => self.memory.bytes(address, size).ok(),
        }
    }
}
