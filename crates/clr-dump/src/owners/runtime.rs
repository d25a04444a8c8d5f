//! Claims of the runtime: the managed heap, code, and what lies between it.

use std::sync::Arc;

use hashbrown::HashMap;

use super::claims::Claims;
use super::files::Files;
use super::loader_heaps;
use super::owner::{GenerationUse, MemoryOwner};
use super::parts::PartName;
use crate::code::map::RangeUse;
use crate::dump::Dump;
use crate::heap::generations::{Generation, HeapRegions};
use crate::heap::handle;
use crate::heap::regions::FROZEN;
use crate::heap::regions::tables::{CollectorTables, SearchPlaces};
use crate::heap::regions::variables::handle_map;
use crate::memory::address::Address;
use crate::memory::mapping::Mapping;
use crate::runtime::module;

/// The names of the parts of JIT-compiled code.
const CODE_PARTS: [&str; 2] = ["methods", "dynamic methods, and load contexts that can be unloaded"];

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
        let writable = mappings.iter().filter(|mapping| is_anonymous(mapping) && mapping.is_writable);
        let starts: Vec<u64> = writable.map(|mapping| mapping.start.get()).collect();
        let data = dump.runtime().is_native_aot().then(|| data_of(dump.runtime().path(), mappings));
        let places = SearchPlaces { starts: &starts, data: &data.unwrap_or_default() };
        if let Ok(regions) = dump.heap().regions() {
            own.claim_heap(dump, &regions, places, claims);
        }
        let code_heaps = own.claim_code(dump, claims);
        loader_heaps::claim(dump, &code_heaps, claims);
        own.marks.sort_unstable();
        own
    }

    /// Claims the regions, the collector's tables, which are looked for at `places`, and those of handles.
    fn claim_heap(
        &mut self,
        dump: &Dump<'_>,
        regions: &HeapRegions<'_>,
        places: SearchPlaces<'_>,
        claims: &mut Claims,
    ) {
        let (memory, runtime) = (dump.memory(), dump.runtime());
        self.has_heap = true;
        for part in regions.parts() {
            claims.add(part.first, part.end, of_generation(part.generation), None);
            claims.add(part.end, part.reserved, MemoryOwner::UnusedCommitted, None);
        }
        if let Ok(CollectorTables { tables, reserved }) =
            CollectorTables::read(memory, runtime, &regions.layout, places)
        {
            self.has_tables = !tables.is_empty();
            self.reserved = reserved;
            for (start, end) in tables {
                claims.add(start, end, MemoryOwner::CollectorTables, None);
            }
        }
        if let Ok(map) = handle_map(memory, runtime) {
            for segment in handle::segments(memory, runtime.layout.handle_tables, map) {
                let end = segment.saturating_add(handle::SEGMENT_SIZE);
                claims.add(segment, end, MemoryOwner::HandleTables, None);
            }
        }
        let of = |generation: &Generation| GenerationUse {
            owner: of_generation(generation.number),
            used: generation.bytes.saturating_sub(generation.free.unwrap_or_default()),
            free: generation.free,
            unused: generation.unused,
        };
        self.generations = regions.generations().iter().map(of).collect();
    }

    /// Claims JIT-compiled code, and images of assemblies. Returns the descriptions of the heaps of code.
    fn claim_code(&mut self, dump: &Dump<'_>, claims: &mut Claims) -> Vec<Address> {
        let (memory, runtime) = (dump.memory(), dump.runtime());
        let mut parts: HashMap<Address, usize> = HashMap::new();
        let mut code_heaps = Vec::new();
        let methods = CODE_PARTS.map(|name| claims.part(common_part(name)));
        for (start, end, of) in runtime.code().all_ranges(memory) {
            match of {
                RangeUse::Jit { is_collectible, heap } => {
                    code_heaps.push(heap);
                    let [others, collectible] = methods;
                    let part = if is_collectible { collectible } else { others };
                    claims.add(start, end, MemoryOwner::JitCode, Some(part));
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
        code_heaps
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

    /// Claims the loader heaps of runtimes that do not map code twice. They are reserved in one piece with
    /// the code and the images of assemblies, so they lie between these in consecutive mappings, up to what
    /// has not been used yet.
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

/// The variables of a program: its file's writable mappings, and the anonymous ones that follow them.
fn data_of(path: &str, mappings: &[Mapping]) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for mapping in mappings.iter().filter(|mapping| mapping.is_writable) {
        let (start, end) = (mapping.start.get(), mapping.end.get());
        let follows = || ranges.last().is_some_and(|(_, last)| *last == start);
        if &*mapping.name == path || (is_anonymous(mapping) && follows()) {
            ranges.push((start, end));
        }
    }
    ranges
}

/// The owner of the objects of a generation.
const fn of_generation(number: u64) -> MemoryOwner {
    match number {
        FROZEN => MemoryOwner::FrozenObjects,
        number => MemoryOwner::Generation(number),
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
