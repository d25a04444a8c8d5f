//! The data of glibc's malloc.

use std::cell::Cell;

use super::{MAX_ARENAS, NativeHeapError};
use crate::memory::mapping::Mapping;
use crate::memory::{Memory, offset};

/// The beginnings of the names of glibc's file.
const NAMES: [&str; 2] = ["libc.so.6", "libc-2."];
/// Maximum number of bytes of glibc's variables to search.
const MAX_DATA: u64 = 1 << 20;
/// Maximum number of mappings with these variables, and of chunks that are looked at to find the lists.
const MAX_PARTS: usize = 8;
const MAX_CHUNKS: u32 = 1 << 16;
/// Offsets of `malloc_state`'s lists: without `have_fastchunks` before 2.27.
const BINS: [u64; 2] = [112, 104];
/// The number of lists of free chunks.
const BIN_COUNT: usize = 127;
/// Minimum number of lists that must be as expected; a running process changes some meanwhile.
const MIN_BINS: usize = 100;
/// Minimum number of those that are empty, which is looked at first.
const MIN_EMPTY: usize = 8;
/// The chunk of a list's head begins before it.
const LINKS: u64 = 16;
/// Offsets of fields after the lists, from their begin.
const NEXT: u64 = 2048;
const SYSTEM: u64 = 2072;
const END: u64 = 2088;
/// Offsets before the lists.
const TOP: u64 = 16;
const FAST: u64 = 96;
/// The default of `n_mmaps_max` in `malloc_par`, and its offsets before `sbrk_base` in versions.
const MAX_MAPPED_BLOCKS: u32 = 65536;
const MAPPED_BLOCKS: [u64; 2] = [32, 28];
/// Maximum number of bytes of `heap_info`.
const MAX_HEADER: u64 = 4096;

/// The data of malloc in a process.
#[derive(Debug, Clone)]
pub(super) struct Library {
    pub(super) main_arena: u64,
    /// The offset of the lists in an arena's description.
    bins: u64,
    /// The ranges of glibc's variables.
    data: Vec<(u64, u64)>,
}

impl Library {
    pub(super) fn find(memory: &dyn Memory, mappings: &[Mapping]) -> Result<Self, NativeHeapError> {
        let is_glibc = |mapping: &&Mapping| {
            let file = mapping.name.rsplit('/').next().unwrap_or_default();
            mapping.is_file() && NAMES.iter().any(|name| file.starts_with(name))
        };
        let mut of_glibc = mappings.iter().filter(is_glibc).peekable();
        of_glibc.peek().ok_or(NativeHeapError::NotGlibc)?;
        let of_data = of_glibc.filter(|mapping| mapping.is_writable);
        let data: Vec<_> = of_data
            .take(MAX_PARTS)
            .map(|mapping| {
                (mapping.start.get(), mapping.end.get().min(offset(mapping.start.get(), MAX_DATA)))
            })
            .collect();
        let lists = data.iter().find_map(|(start, end)| lists(memory, *start, *end));
        let lists = lists.ok_or(NativeHeapError::UnknownLayout)?;
        // The ring of arenas leads back to the main one.
        let is_arena = |bins: &u64| {
            let library = Self { main_arena: lists.wrapping_sub(*bins), bins: *bins, data: Vec::new() };
            library.is_ring(memory)
        };
        let bins = BINS.into_iter().find(is_arena).ok_or(NativeHeapError::UnknownLayout)?;
        Ok(Self { main_arena: lists.wrapping_sub(bins), bins, data })
    }

    /// Returns true if the arenas follow one another, the main one last. It holds the arenas of all threads.
    fn is_ring(&self, memory: &dyn Memory) -> bool {
        let mut arena = self.main_arena;
        for _ in 0..MAX_ARENAS {
            arena = memory.u64(self.next(arena)).unwrap_or_default();
            if arena == self.main_arena || arena == 0 {
                break;
            }
        }
        arena == self.main_arena
    }

    const fn field(&self, arena: u64, after_bins: u64) -> u64 {
        offset(offset(arena, self.bins), after_bins)
    }

    /// The address of the pointer to the next arena.
    pub(super) const fn next(&self, arena: u64) -> u64 {
        self.field(arena, NEXT)
    }

    /// The address of the number of bytes that an arena has taken from the kernel.
    pub(super) const fn system(&self, arena: u64) -> u64 {
        self.field(arena, SYSTEM)
    }

    /// The address of the pointer to the chunk at an arena's end.
    pub(super) const fn top(&self, arena: u64) -> u64 {
        self.field(arena, TOP.wrapping_neg())
    }

    /// The address of the lists of small free chunks.
    pub(super) const fn fast(&self, arena: u64) -> u64 {
        self.field(arena, FAST.wrapping_neg())
    }

    /// The first chunk after an arena's description.
    pub(super) const fn first_chunk(&self, arena: u64) -> u64 {
        self.field(arena, END).wrapping_add(15) & !15
    }

    /// Bytes in blocks with mappings of their own. They are counted before the beginning of the main heap.
    pub(super) fn mapped(&self, memory: &dyn Memory, heap: u64) -> Option<u64> {
        let is_counted = |at: &u64| {
            let is_maximum = |before: u64| memory.u32(at.wrapping_sub(before)) == Ok(MAX_MAPPED_BLOCKS);
            MAPPED_BLOCKS.into_iter().any(is_maximum)
        };
        let at = self.data.iter().find_map(|(start, end)| {
            let words = words(memory, *start, *end)?;
            let mut places = (*start..).step_by(8).zip(words).filter(|(_, word)| *word == heap);
            places.find(|(at, _)| is_counted(at)).map(|(at, _)| at)
        })?;
        let [bytes, most] = memory.words(at.wrapping_sub(16)).ok()?;
        (bytes <= most).then_some(bytes)
    }
}

/// The number of bytes of the description of a heap, by that of the arena's first one.
pub(super) fn heap_header(memory: &dyn Memory, arena: u64) -> u64 {
    let sizes = (16..=MAX_HEADER).step_by(16);
    let mut of_arena = sizes.filter(|size| memory.u64(arena.wrapping_sub(*size)) == Ok(arena));
    of_arena.next().unwrap_or(MAX_HEADER)
}

/// Finds the lists of the main arena among glibc's variables: of the places that could be theirs, the one
/// with most.
fn lists(memory: &dyn Memory, start: u64, end: u64) -> Option<u64> {
    let words = words(memory, start, end)?;
    let left = Cell::new(MAX_CHUNKS);
    let places = words.windows(BIN_COUNT.saturating_mul(2)).zip((start..).step_by(8));
    let lists = places.filter_map(|(words, lists)| {
        let heads = (lists.wrapping_sub(LINKS)..).step_by(16);
        let pairs = words.as_chunks::<2>().0.iter().zip(heads);
        let is_empty = |([first, last], head): &(&[u64; 2], u64)| first == head && last == head;
        if pairs.clone().filter(is_empty).count() < MIN_EMPTY {
            return None;
        }
        // The first chunk of a list leads back to it.
        let is_list = |pair: &(&[u64; 2], u64)| {
            let (&[first, _], head) = *pair;
            let leads_back = || {
                left.set(left.get().saturating_sub(1));
                left.get() > 0 && memory.u64(offset(first, 24)) == Ok(head)
            };
            is_empty(pair) || leads_back()
        };
        let good = pairs.filter(is_list).count();
        (good >= MIN_BINS).then_some((good, lists))
    });
    lists.max_by_key(|(good, lists)| (*good, std::cmp::Reverse(*lists))).map(|(_, lists)| lists)
}

fn words(memory: &dyn Memory, start: u64, end: u64) -> Option<Vec<u64>> {
    let size = usize::try_from(end.checked_sub(start)?).ok()?;
    let bytes = memory.bytes(start, size).ok()?;
    Some(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
}
