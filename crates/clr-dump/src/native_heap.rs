//! The heap of the C library: the memory that `malloc` has taken from the kernel, and the part of it that is
//! free.
//!
//! # Source
//! glibc `malloc/malloc.c` (`malloc_chunk`, `malloc_state`, `malloc_par`, `tcache_perthread_struct`) and
//! `malloc/arena.c` (`heap_info`), 2.26 to 2.41, on 64-bit systems. Nothing of it is exported: places are
//! found by what must be true of them, as that an empty list of free chunks refers to itself.

mod caches;
mod chunk_size;
mod chunks;
mod library;
pub(crate) mod musl;
pub(crate) mod own_mappings;

use std::cell::Cell;
use std::time::{Duration, Instant};

use hashbrown::HashSet;

use self::chunks::ChunkWalk;
use self::library::Library;
use crate::memory::address::Address;
use crate::memory::mapping::Mapping;
use crate::memory::resident::ResidentPages;
use crate::memory::{Memory, MemoryResult, offset};

/// Maximum number of arenas: a process has eight for each processor, unless it asks for more.
const MAX_ARENAS: usize = 1 << 14;
/// Maximum number of heaps of an arena.
const MAX_HEAPS: usize = 1 << 16;
/// The size to which the heaps of arenas are aligned.
const HEAP_ALIGNMENT: u64 = 64 << 20;
/// Maximum time for the list of arenas and their sizes, which is read also if there is no time for chunks.
const GRACE: Duration = Duration::from_millis(200);
/// Maximum number of small chunks of all arenas that are counted.
const MAX_FAST_CHUNKS: u64 = 1 << 18;
/// Maximum number of bytes of descriptions in an arena that are not chunks.
const HEADERS: u64 = 4096;

/// The reason why the heap of the C library cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum NativeHeapError {
    /// The process has neither glibc nor musl.
    #[error("the C library is not glibc")]
    NotGlibc,
    /// The C library is musl, as that of Alpine Linux: an account of memory has what it has taken from the
    /// kernel, and what of that is free is unknown.
    #[error("what is free in the heap of musl is not known")]
    Musl,
    /// The data of malloc was not found, as in a version with another layout.
    #[error("the data of glibc's malloc was not found")]
    UnknownLayout,
}

/// An arena of malloc: threads share it, and its lock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct NativeArena {
    /// The address of its description.
    pub address: Address,
    /// True for the arena that the kernel grows by `brk`.
    pub is_main: bool,
    /// Bytes that it has taken from the kernel.
    pub system: u64,
    /// Bytes in free chunks between used ones, and in the caches of free chunks.
    pub free: u64,
    /// Bytes at its end that were not given out yet, or are free again.
    pub top: u64,
    /// Bytes of `free` and `top` in pages that take no memory: they were never used, or were given back.
    pub returned: u64,
    /// Bytes that were not read: the time was over, or a chunk's size was wrong.
    pub unread: u64,
    /// Bytes of the largest free chunk, `top` apart.
    pub largest_free: u64,
}

impl NativeArena {
    /// Bytes that the program uses, with malloc's own headers.
    pub const fn used(&self) -> u64 {
        self.system.saturating_sub(self.free).saturating_sub(self.top).saturating_sub(self.unread)
    }

    /// Bytes that are free, and take memory.
    pub const fn held(&self) -> u64 {
        self.free.saturating_add(self.top).saturating_sub(self.returned)
    }
}

/// The heap of the C library of a process.
///
/// ```no_run
/// # #[cfg(target_os = "linux")]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use clr_dump::{NativeHeap, PageMap, ProcessMemory};
///
/// let memory = ProcessMemory::open(4711)?;
/// let pages = PageMap::open(4711)?;
/// let heap = NativeHeap::read(&memory, &memory.mappings()?, Some(&pages), None)?;
/// println!("{} of {} bytes are free and take memory", heap.held(), heap.resident());
/// # Ok(())
/// # }
/// # #[cfg(not(target_os = "linux"))]
/// # fn main() {}
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct NativeHeap {
    /// The arenas, the main one first.
    pub arenas: Vec<NativeArena>,
    /// Bytes of used blocks with mappings of their own, which are given back when they are freed; `None` if
    /// unknown.
    pub mapped: Option<u64>,
    /// The addresses of the arenas: start, end, and true for those of the main one.
    pub(crate) ranges: Vec<(u64, u64, bool)>,
}

impl NativeHeap {
    /// Reads the heap of a process with these mappings, while it runs. Chunks are read one after another
    /// until `end`: the rest is unread. `pages` are known of a live process; without them all free memory
    /// counts as held.
    ///
    /// # Errors
    /// If the C library is another one, or its data was not found.
    pub fn read(
        memory: &dyn Memory,
        mappings: &[Mapping],
        pages: Option<&dyn ResidentPages>,
        end: Option<Instant>,
    ) -> Result<Self, NativeHeapError> {
        let library = Library::find(memory, mappings)?;
        let fast_chunks_left = Cell::new(MAX_FAST_CHUNKS);
        let reader = Reader { memory, mappings, pages, end, library, fast_chunks_left };
        let top = memory.u64(reader.library.top(reader.library.main_arena)).unwrap_or_default();
        let mapped = brk_heap(mappings, top).and_then(|(heap, _)| reader.library.mapped(memory, heap));
        let mut ranges = Vec::new();
        let arenas = reader.arenas(&mut ranges);
        Ok(Self { arenas, mapped, ranges })
    }

    /// Reads what arenas have taken from the kernel, and no chunks: all of it is unread, apart from their
    /// ends.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_sizes(memory: &dyn Memory, mappings: &[Mapping]) -> Result<Self, NativeHeapError> {
        Self::read(memory, mappings, None, Some(Instant::now()))
    }

    /// Bytes that are free, and take memory.
    pub fn held(&self) -> u64 {
        self.sum(NativeArena::held)
    }

    /// Bytes of the heap that take memory: those in use, those held, and those that were not read.
    pub fn resident(&self) -> u64 {
        let of_arenas = self.sum(|arena| arena.system.saturating_sub(arena.returned));
        of_arenas.saturating_add(self.mapped.unwrap_or_default())
    }

    /// The sum of a number over all arenas.
    pub fn sum(&self, of: impl Fn(&NativeArena) -> u64) -> u64 {
        self.arenas.iter().map(of).fold(0, u64::saturating_add)
    }
}

struct Reader<'m> {
    memory: &'m dyn Memory,
    mappings: &'m [Mapping],
    pages: Option<&'m dyn ResidentPages>,
    end: Option<Instant>,
    library: Library,
    fast_chunks_left: Cell<u64>,
}

/// The memory that `brk` has made: core dumps do not name it, and it is the mapping with the end of the main
/// arena there.
fn brk_heap(mappings: &[Mapping], top: u64) -> Option<(u64, u64)> {
    let mut parts = mappings.iter().filter(|mapping| &*mapping.name == "[heap]");
    let range = |first: &Mapping, last: &Mapping| (first.start.get(), last.end.get());
    if let Some(first) = parts.next() {
        return Some(range(first, parts.next_back().unwrap_or(first)));
    }
    let has_top = |mapping: &&Mapping| (mapping.start.get()..mapping.end.get()).contains(&top);
    mappings.iter().find(has_top).map(|mapping| range(mapping, mapping))
}

/// A range of chunks.
struct Chunks {
    start: u64,
    end: u64,
}

impl Reader<'_> {
    /// Follows the ring of arenas, and adds their addresses. A part that cannot be read ends it.
    fn arenas(&self, owned: &mut Vec<(u64, u64, bool)>) -> Vec<NativeArena> {
        let mut arenas = Vec::new();
        let mut seen = HashSet::new();
        let mut address = self.library.main_arena;
        while address != 0 && arenas.len() < MAX_ARENAS && !self.is_late() && seen.insert(address) {
            let Ok(arena) = self.arena(address, owned) else { break };
            arenas.push(arena);
            address = self.memory.u64(self.library.next(address)).unwrap_or_default();
        }
        arenas
    }

    fn arena(&self, address: u64, owned: &mut Vec<(u64, u64, bool)>) -> MemoryResult<NativeArena> {
        let is_main = address == self.library.main_arena;
        let system = self.memory.u64(self.library.system(address))?;
        let top = self.memory.u64(self.library.top(address))?;
        let top_size = self.memory.u64(offset(top, 8)).map_or(0, chunk_size::size);
        // A process makes room meanwhile, of which the mappings are not known.
        let mapped = self.mapped_after(top);
        let max_top = if is_main { mapped.max(HEAP_ALIGNMENT) } else { HEAP_ALIGNMENT };
        let top_size = top_size.min(system).min(max_top);
        let mut arena = NativeArena {
            address: Address::new(address),
            is_main,
            system,
            top: top_size,
            ..NativeArena::default()
        };
        let ranges = if is_main { self.main_chunks(top) } else { self.heaps(address, top) };
        if is_main {
            owned.extend(brk_heap(self.mappings, top).map(|(start, end)| (start, end, true)));
        } else {
            // A heap has all addresses up to the next one's alignment.
            let heap = |chunks: &Chunks| chunks.start & !HEAP_ALIGNMENT.wrapping_sub(1);
            let heaps = ranges.iter().map(heap).map(|heap| (heap, offset(heap, HEAP_ALIGNMENT), false));
            owned.extend(heaps);
        }
        let mut walk =
            ChunkWalk::new(self.memory, self.pages, self.end, self.mappings, self.library.top(address));
        walk.returned_of_free(top, top_size.min(mapped));
        // Heaps that were not found are unread, too.
        let mut left = system.saturating_sub(top_size);
        for chunks in ranges {
            let bytes = chunks.end.saturating_sub(chunks.start);
            walk.read(chunks.start, chunks.end);
            left = left.saturating_sub(bytes);
        }
        // Headers and the ends of heaps are less than a page each.
        let headers = if is_main { 0 } else { HEADERS };
        arena.unread = walk.unread.saturating_add(left.saturating_sub(headers));
        let cached = walk.cached.saturating_add(self.fast_chunks(address, system));
        let read = system.saturating_sub(top_size).saturating_sub(arena.unread);
        arena.free = walk.free.saturating_add(cached).min(read);
        arena.returned = walk.returned.min(arena.free.saturating_add(top_size));
        arena.largest_free = walk.largest_free;
        Ok(arena)
    }

    /// The bytes in an arena's lists of small chunks.
    fn fast_chunks(&self, arena: u64, system: u64) -> u64 {
        let mut left = self.fast_chunks_left.get();
        if self.end.is_some_and(|end| Instant::now() >= end) {
            left = 0;
        }
        let bytes = caches::fast_chunks(&self.library, self.memory, arena, system, &mut left);
        self.fast_chunks_left.set(left);
        bytes
    }

    /// Returns true after the end of the time, once all arenas could have been listed.
    fn is_late(&self) -> bool {
        let is_late = |end: Instant| end.checked_add(GRACE).is_some_and(|late| Instant::now() >= late);
        self.end.is_some_and(is_late)
    }

    /// The bytes from an address to the end of its mapping.
    fn mapped_after(&self, address: u64) -> u64 {
        let next = self.mappings.partition_point(|mapping| mapping.start.get() <= address);
        let mapping = next.checked_sub(1).and_then(|index| self.mappings.get(index));
        mapping.map_or(0, |mapping| mapping.end.get().saturating_sub(address))
    }

    /// The chunks that `brk` has made. If others use it, too, they end before its end.
    fn main_chunks(&self, top: u64) -> Vec<Chunks> {
        let Some((start, end)) = brk_heap(self.mappings, top) else { return Vec::new() };
        let end = if (start..end).contains(&top) { top } else { end };
        vec![Chunks { start, end }]
    }

    /// The chunks of the heaps of another arena, the newest first.
    fn heaps(&self, arena: u64, top: u64) -> Vec<Chunks> {
        let mut ranges = Vec::new();
        let mut seen = HashSet::new();
        let mut heap = top & !HEAP_ALIGNMENT.wrapping_sub(1);
        while heap != 0 && ranges.len() < MAX_HEAPS && !self.is_late() && seen.insert(heap) {
            let Ok([of, previous, size]) = self.memory.words(heap) else { break };
            if of != arena || size > HEAP_ALIGNMENT || !heap.is_multiple_of(HEAP_ALIGNMENT) {
                break;
            }
            let start = if (heap..offset(heap, size)).contains(&arena) {
                self.library.first_chunk(arena)
            } else {
                // The description of a heap is as long as that before the arena's.
                offset(heap, library::heap_header(self.memory, arena))
            };
            let end = offset(heap, size);
            let end = if (start..end).contains(&top) { top } else { end };
            ranges.push(Chunks { start, end });
            heap = previous;
        }
        ranges
    }
}

#[cfg(test)]
mod tests;
