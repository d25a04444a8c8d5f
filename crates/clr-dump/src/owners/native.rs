//! Claims of the heap of the C library.

use std::time::{Duration, Instant};

use super::claims::Claims;
use super::owner::MemoryOwner;
use super::runtime::{common_part, is_anonymous};
use crate::memory::Memory;
use crate::memory::mapping::Mapping;
use crate::memory::resident::ResidentPages;
use crate::native_heap::{NativeHeap, NativeHeapError, musl, own_mappings};

/// Maximum time for blocks with mappings of their own, which are found by few pages: also if arenas took all
/// their time.
const BLOCKS_TIME: Duration = Duration::from_millis(200);
/// The names of the parts.
const MAIN: &str = "main arena";
const ARENAS: &str = "arenas of threads";
const BLOCKS: &str = "blocks with mappings of their own";
const MUSL: &str = "groups of musl";

/// Claims the arenas.
pub(super) fn claim_arenas(
    memory: &dyn Memory,
    mappings: &[Mapping],
    pages: Option<&dyn ResidentPages>,
    end: Option<Instant>,
    claims: &mut Claims,
) -> Result<NativeHeap, NativeHeapError> {
    let heap = match NativeHeap::read(memory, mappings, pages, end) {
        Err(NativeHeapError::NotGlibc) => return Err(claim_musl(memory, mappings, claims)),
        heap => heap?,
    };
    let [main, others] = [MAIN, ARENAS].map(|name| claims.part(common_part(name)));
    for (start, end, is_main) in &heap.ranges {
        let part = if *is_main { main } else { others };
        claims.add(*start, *end, MemoryOwner::NativeHeap, Some(part));
    }
    Ok(heap)
}

/// Claims the heap of musl. Returns the reason why blocks are not counted.
fn claim_musl(memory: &dyn Memory, mappings: &[Mapping], claims: &mut Claims) -> NativeHeapError {
    let Some(ranges) = musl::ranges(memory, mappings) else { return NativeHeapError::NotGlibc };
    let part = claims.part(common_part(MUSL));
    for (start, end) in ranges {
        claims.add(start, end, MemoryOwner::NativeHeap, Some(part));
    }
    NativeHeapError::Musl
}

/// Claims the blocks with mappings of their own, in anonymous memory that nothing else has claimed.
pub(super) fn claim_blocks<'m>(
    memory: &dyn Memory,
    mappings: impl Iterator<Item = &'m Mapping>,
    heap: &NativeHeap,
    claims: &mut Claims,
) {
    let is_candidate = |mapping: &&Mapping| {
        is_anonymous(mapping) && mapping.is_readable && mapping.is_writable && !mapping.is_executable
    };
    let ranges = mappings.filter(is_candidate);
    let ranges: Vec<_> =
        ranges.flat_map(|mapping| claims.unclaimed(mapping.start.get(), mapping.end.get())).collect();
    let part = claims.part(common_part(BLOCKS));
    let end = Instant::now().checked_add(BLOCKS_TIME);
    own_mappings::find(memory, ranges, heap.mapped, end, |start, end| {
        claims.add(start, end, MemoryOwner::NativeHeap, Some(part));
    });
}
