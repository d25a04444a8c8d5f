//! Claims of the runtime: the managed heap, code, and what lies between it.

use std::sync::Arc;

use hashbrown::HashMap;

use super::claims::Claims;
use super::files::Files;
use super::owner::{GenerationUse, MemoryOwner};
use super::parts::PartName;
use crate::code::map::RangeUse;
use crate::dump::Dump;
use crate::heap::handle;
use crate::heap::regions::owned::CollectorRanges;
use crate::memory::address::Address;
use crate::memory::mapping::Mapping;
use crate::runtime::module;

/// The memory of the runtime.
#[derive(Debug, Default)]
pub(super) struct RuntimeMemory {
    /// Addresses of the runtime's own structures and code, rising.
    marks: Vec<u64>,
    /// The addresses that are reserved for the managed heap.
    reserved: Option<(u64, u64)>,
    pub(super) generations: Vec<GenerationUse>,
    /// True if the collector's description of its heap was read.
    pub(super) has_heap: bool,
    /// True if the collector's tables were found.
    pub(super) has_tables: bool,
}

impl RuntimeMemory {
    /// Claims the ranges that the runtime itself describes.
    pub(super) fn claim(dump: &Dump<'_>, mappings: &[Mapping], claims: &mut Claims) -> Self {
        let mut own = Self::default();
        let starts = mappings.iter().filter(|mapping| is_anonymous(mapping) && mapping.is_writable);
        let starts: Vec<u64> = starts.map(|mapping| mapping.start.get()).collect();
        if let Ok(ranges) = CollectorRanges::read(dump.memory(), dump.runtime(), &starts) {
            own.claim_heap(dump, &ranges, claims);
        }
        own.claim_code(dump, claims);
        own.marks.sort_unstable();
        own
    }

    fn claim_heap(&mut self, dump: &Dump<'_>, ranges: &CollectorRanges, claims: &mut Claims) {
        self.has_heap = true;
        self.has_tables = !ranges.tables.is_empty();
        self.reserved = ranges.reserved;
        for region in &ranges.regions {
            let owner = match region.generation {
                _ if region.is_frozen => MemoryOwner::FrozenObjects,
                number => MemoryOwner::Generation(number),
            };
            claims.add(region.start, region.end, owner, None);
        }
        for (start, end) in &ranges.tables {
            claims.add(*start, *end, MemoryOwner::CollectorTables, None);
        }
        let tables = dump.runtime().layout.handle_tables;
        for segment in handle::segments(dump.memory(), tables, ranges.handle_map) {
            let end = segment.saturating_add(handle::SEGMENT_SIZE);
            claims.add(segment, end, MemoryOwner::HandleTables, None);
        }
        let of = |(generation, numbers): (&Option<u64>, &_)| {
            let crate::heap::regions::owned::GenerationNumbers { bytes, free, unused } = *numbers;
            GenerationUse {
                owner: generation.map_or(MemoryOwner::FrozenObjects, MemoryOwner::Generation),
                used: bytes.saturating_sub(free.unwrap_or_default()),
                free,
                unused,
            }
        };
        self.generations = ranges.numbers.iter().map(of).collect();
        self.generations.sort_by_key(|of| of.owner);
    }

    fn claim_code(&mut self, dump: &Dump<'_>, claims: &mut Claims) {
        let (memory, runtime) = (dump.memory(), dump.runtime());
        let mut parts: HashMap<Address, usize> = HashMap::new();
        for (start, end, of) in runtime.code().all_ranges(memory) {
            match of {
                RangeUse::Jit => {
                    claims.add(start, end, MemoryOwner::JitCode, None);
                    self.marks.push(start);
                }
                RangeUse::Stubs => self.marks.push(start),
                RangeUse::Image(module) => {
                    self.marks.push(module.get());
                    let part = *parts.entry(module).or_insert_with(|| {
                        let path = module::path_of(memory, &runtime.layout.module, module);
                        claims.part(PartName::new(path.unwrap_or_default()))
                    });
                    claims.add(start, end, MemoryOwner::Assemblies, Some(part));
                }
            }
        }
    }

    /// Claims the other memory that is reserved for the managed heap.
    pub(super) fn claim_reserved(&self, mappings: &[Mapping], claims: &mut Claims) {
        let Some((low, high)) = self.reserved else { return };
        for mapping in mappings.iter().filter(|mapping| is_anonymous(mapping)) {
            let (start, end) = (mapping.start.get().max(low), mapping.end.get().min(high));
            if start < end {
                claims.add(start, end, MemoryOwner::FreeRegions, None);
            }
        }
    }

    /// Claims the loader heaps of runtimes that do not map code twice. They are reserved in one piece with the code and
    /// the images of assemblies, so they lie between these in consecutive mappings, up to what has not been used yet.
    pub(super) fn claim_loader_heaps(&self, mappings: &[Mapping], files: &Files, claims: &mut Claims) {
        let is_marked = |mapping: &Mapping| {
            let next = self.marks.partition_point(|mark| *mark < mapping.start.get());
            let has_mark = self.marks.get(next).is_some_and(|mark| *mark < mapping.end.get());
            is_anonymous(mapping) && (mapping.is_executable || has_mark)
        };
        let is_member =
            |mapping: &Mapping| is_anonymous(mapping) || files.owner(mapping).0 == MemoryOwner::Assemblies;
        let is_next = |one: &Mapping, next: &Mapping| {
            one.end == next.start && is_member(one) && is_member(next) && !is_rest(one)
        };
        for run in mappings.chunk_by(is_next) {
            let Some(first) = run.iter().position(is_marked) else { continue };
            let is_own = |mapping: &&Mapping| is_anonymous(mapping) && !is_rest(mapping);
            for mapping in run.iter().skip(first).filter(is_own) {
                claims.add(mapping.start.get(), mapping.end.get(), MemoryOwner::LoaderHeaps, None);
            }
        }
    }
}

/// Minimum size of addresses that were reserved in one piece with others, and have not been used yet.
const MIN_REST: u64 = 16 << 20;

/// Returns true for such addresses.
fn is_rest(mapping: &Mapping) -> bool {
    !mapping.is_readable && !mapping.is_writable && mapping.size() >= MIN_REST
}

/// Returns true for memory of the process alone without a name.
pub(super) fn is_anonymous(mapping: &Mapping) -> bool {
    mapping.name.is_empty() && !mapping.is_shared
}

/// The name of a part that has several mappings.
pub(super) fn common_part(name: &str) -> PartName {
    PartName::new(Arc::from(name))
}
