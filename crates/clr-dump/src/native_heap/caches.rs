//! Free chunks that count as used ones for their neighbours: those in lists of small chunks, and in caches of
//! threads.

use super::chunk_size::size;
use super::library::Library;
use crate::memory::mapping::Mapping;
use crate::memory::{Memory, offset};

/// The number of lists of small chunks of an arena.
const FAST_LISTS: u64 = 10;
/// The number of lists of a thread's cache.
const THREAD_LISTS: usize = 64;
/// Maximum number of chunks of a list of a thread's cache: seven, unless a setting says more.
const MAX_CACHED: u64 = 127;
/// The size of the smallest chunk, and the difference to the next size.
const SMALLEST: u64 = 32;
const STEP: u64 = 16;

/// The layout of a thread's cache (`tcache_perthread_struct`): counts, then pointers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadCache {
    /// Counts of one byte: up to 2.29.
    Bytes,
    /// Counts of two bytes: 2.30 to 2.41.
    Words,
}

impl ThreadCache {
    /// The layout of the cache that a chunk of this size can have.
    pub(super) const fn of_chunk(bytes: u64) -> Option<Self> {
        match bytes {
            0x250 => Some(Self::Bytes),
            0x290 => Some(Self::Words),
            _ => None,
        }
    }

    const fn count_size(self) -> usize {
        match self {
            Self::Bytes => 1,
            Self::Words => 2,
        }
    }

    /// The size of the cache in bytes.
    pub(super) const fn size(self) -> usize {
        THREAD_LISTS.saturating_mul(self.count_size().saturating_add(8))
    }

    /// The bytes of free chunks that a cache has; zero if the content is not one: each list has a pointer
    /// into writable memory, or a count of zero.
    pub(super) fn free(self, content: &[u8], mappings: &[Mapping]) -> u64 {
        let (counts, lists) =
            content.split_at_checked(THREAD_LISTS.saturating_mul(self.count_size())).unwrap_or_default();
        let count = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte));
        let mut free = 0_u64;
        let sizes = (0_u64..).map(|index| index.saturating_mul(STEP).saturating_add(SMALLEST));
        let lists = lists.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        for ((count, list), size) in counts.chunks(self.count_size()).map(count).zip(lists).zip(sizes) {
            let is_list = match (count, list) {
                (0, 0) => true,
                (0, _) | (_, 0) => false,
                _ => count <= MAX_CACHED && list.is_multiple_of(STEP) && is_writable(mappings, list),
            };
            if !is_list {
                return 0;
            }
            free = free.saturating_add(count.saturating_mul(size));
        }
        free
    }
}

fn is_writable(mappings: &[Mapping], address: u64) -> bool {
    let next = mappings.partition_point(|mapping| mapping.start.get() <= address);
    let mapping = next.checked_sub(1).and_then(|index| mappings.get(index));
    mapping.is_some_and(|mapping| mapping.is_writable && address < mapping.end.get())
}

/// The bytes in an arena's lists of small chunks. A list ends where a chunk has another size, and no list has
/// more bytes than the arena has taken from the kernel. At most `left` chunks are counted.
pub(super) fn fast_chunks(
    library: &Library,
    memory: &dyn Memory,
    arena: u64,
    system: u64,
    left: &mut u64,
) -> u64 {
    let mut bytes = 0_u64;
    for index in 0..FAST_LISTS {
        let of_list = index.saturating_mul(STEP).saturating_add(SMALLEST);
        let is_chunk = |at: u64| {
            at != 0 && at.is_multiple_of(STEP) && memory.u64(offset(at, 8)).map(size) == Ok(of_list)
        };
        let list = offset(library.fast(arena), index.wrapping_mul(8));
        let mut chunk = memory.u64(list).unwrap_or_default();
        while *left > 0 && bytes < system && is_chunk(chunk) {
            bytes = bytes.saturating_add(of_list);
            *left = left.saturating_sub(1);
            let link = offset(chunk, 16);
            let next = memory.u64(link).unwrap_or_default();
            // From 2.32 on, links are combined with their own addresses.
            let combined = next ^ (link >> 12);
            chunk = if combined == 0 || is_chunk(combined) { combined } else { next };
        }
    }
    bytes
}
