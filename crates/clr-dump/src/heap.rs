//! The objects of the garbage collector's heap.
//!
//! # Source
//! dotnet/runtime `src/coreclr/gc/gcinterface.dac.h` (`GcDacVars`), `gc/gcinterface.dacvars.def`, `gc/gcpriv.h`
//! (`generation`, `heap_segment`), `vm/object.h`.

use hashbrown::{HashMap, HashSet};

use crate::lock::thin_lock;
use crate::memory::{Memory, MemoryResult, offset};
use crate::names::{HAS_COMPONENT_SIZE, Names};
use crate::runtime::Runtime;

/// The most generations: 0 to 2, large objects, pinned objects.
const MOST_GENERATIONS: u64 = 8;
/// The most heaps of a server's collector.
const MOST_HEAPS: u32 = 1024;
/// The most regions.
const MOST_REGIONS: usize = 1 << 20;
/// The most types.
const MOST_TYPES: usize = 1 << 20;
/// The most gaps and held thin locks that are listed.
const MOST_LISTED: usize = 4096;
/// The least bytes of an object.
const LEAST_OBJECT: u64 = 24;

/// The kind of a server's heap.
const SERVER: u32 = 2;

/// Indexes of the pointers in `GcDacVars`.
const GENERATION_TABLE: u64 = 3;
const EPHEMERAL_SEGMENT: u64 = 7;
const ALLOC_ALLOCATED: u64 = 12;
const HEAP_COUNT: u64 = 19;
const HEAPS: u64 = 20;
const STRUCTURES_INVALID: u64 = 21;
const HEAP_OFFSETS: u64 = 27;
const GENERATION_OFFSETS: u64 = 28;

/// The contents of a heap by type.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HeapStatistics {
    /// The types of all objects, those with the most bytes first.
    pub types: Vec<TypeStatistics>,
    /// Free memory between objects.
    pub free: Amount,
    /// The parts of the heap that could not be read.
    pub gaps: Vec<HeapGap>,
    /// Objects whose lock is held without a sync block: the object, and the managed id of the holder.
    pub thin_locks: Vec<(u64, u32)>,
    /// The number of regions or segments.
    pub regions: usize,
    /// Whether a collection was moving objects: objects can be missing or counted twice.
    pub is_moving: bool,
}

/// Objects, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amount {
    /// The number of objects.
    pub objects: u64,
    /// Their bytes, without padding between objects.
    pub bytes: u64,
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.objects = self.objects.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// The objects of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeStatistics {
    /// The address of its MethodTable.
    pub type_handle: u64,
    /// The name as the runtime writes it; `None` if the memory lacks it.
    pub name: Option<String>,
    /// The name of the module's file.
    pub module: Option<String>,
    /// Its objects.
    pub amount: Amount,
}

/// A part of the heap that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapGap {
    /// The address at which reading ended.
    pub address: u64,
    /// The bytes up to the end of the region.
    pub bytes: u64,
}

/// A part of the heap with objects one after the other.
struct Region {
    start: u64,
    end: u64,
}

/// The regions, and the unused parts in them where threads allocate.
#[derive(Default)]
struct Layout {
    regions: Vec<Region>,
    /// The end of each unused part, by its start.
    holes: HashMap<u64, u64>,
    is_moving: bool,
}

impl Names<'_> {
    /// Counts the objects of the heap by type.
    ///
    /// # Errors
    /// If the memory lacks the collector's description of its heap.
    pub fn heap_statistics(&self) -> MemoryResult<HeapStatistics> {
        let (memory, runtime) = (self.memory(), self.runtime());
        let layout = Layout::read(memory, runtime)?;
        let free = runtime.variable(memory, runtime.layout.slots.free_type)?;
        let mut statistics = HeapStatistics {
            regions: layout.regions.len(),
            is_moving: layout.is_moving,
            ..HeapStatistics::default()
        };
        let mut walk = Walk { memory, shapes: HashMap::new() };
        let mut amounts: HashMap<u64, Amount> = HashMap::new();
        for region in &layout.regions {
            let mut at = region.start;
            while at < region.end {
                if let Some(end) = layout.holes.get(&at).filter(|end| **end >= at) {
                    // The allocation limit leaves room for the smallest object.
                    at = end.saturating_add(LEAST_OBJECT);
                    continue;
                }
                let left = region.end.saturating_sub(at);
                let Some(object) = walk.object(at).filter(|object| object.aligned_size() <= left) else {
                    if statistics.gaps.len() < MOST_LISTED {
                        statistics.gaps.push(HeapGap { address: at, bytes: left });
                    }
                    break;
                };
                if object.type_handle == free {
                    statistics.free.add(object.size);
                } else {
                    if amounts.len() < MOST_TYPES || amounts.contains_key(&object.type_handle) {
                        amounts.entry(object.type_handle).or_default().add(object.size);
                    }
                    if let Some((holder, _)) = thin_lock(object.header)
                        && statistics.thin_locks.len() < MOST_LISTED
                    {
                        statistics.thin_locks.push((at, holder));
                    }
                }
                at = at.saturating_add(object.aligned_size());
            }
        }
        statistics.types = amounts
            .into_iter()
            .map(|(type_handle, amount)| TypeStatistics {
                type_handle,
                name: self.type_name(type_handle).map(|name| name.to_string()),
                module: self.type_module(type_handle),
                amount,
            })
            .collect();
        statistics.types.sort_by(|a, b| {
            b.amount.bytes.cmp(&a.amount.bytes).then_with(|| a.type_handle.cmp(&b.type_handle))
        });
        Ok(statistics)
    }

    /// The file of the module of a type; none of arrays, whose module is that of their elements.
    fn type_module(&self, type_handle: u64) -> Option<String> {
        let module = self.module(self.memory().u64(offset(type_handle, 24)).ok()?);
        Some(module.file_name().to_owned()).filter(|name| !name.is_empty())
    }
}

/// An object.
struct Object {
    type_handle: u64,
    size: u64,
    /// The word before it.
    header: u32,
}

impl Object {
    const fn aligned_size(&self) -> u64 {
        let size = self.size.saturating_add(7) & !7;
        if size < LEAST_OBJECT { LEAST_OBJECT } else { size }
    }
}

/// The reading of objects, with the sizes of their types.
struct Walk<'m> {
    memory: &'m dyn Memory,
    shapes: HashMap<u64, (u32, u32)>,
}

impl Walk<'_> {
    /// The flags and the base size of a type.
    fn shape(&mut self, type_handle: u64) -> Option<(u32, u32)> {
        if let Some(shape) = self.shapes.get(&type_handle) {
            return Some(*shape);
        }
        let flags = self.memory.u32(type_handle).ok()?;
        let shape = (flags, self.memory.u32(offset(type_handle, 4)).ok()?);
        if self.shapes.len() < MOST_TYPES {
            self.shapes.insert(type_handle, shape);
        }
        Some(shape)
    }

    fn object(&mut self, at: u64) -> Option<Object> {
        let bytes: [u8; 20] = self.memory.array(at.wrapping_sub(4)).ok()?;
        let (header, rest) = bytes.split_first_chunk()?;
        let (word, rest) = rest.split_first_chunk()?;
        let length = u32::from_le_bytes(*rest.first_chunk()?);
        // The lowest bits are marks of a collection.
        let type_handle = u64::from_le_bytes(*word) & !7;
        let (flags, base) = self.shape(type_handle)?;
        let mut size = u64::from(base);
        if flags & HAS_COMPONENT_SIZE != 0 {
            size = size.saturating_add(u64::from(flags & 0xffff).saturating_mul(length.into()));
        }
        // A smaller one is not of a type.
        (base >= 16).then_some(Object { type_handle, size, header: u32::from_le_bytes(*header) })
    }
}

impl Layout {
    fn read(memory: &dyn Memory, runtime: &Runtime) -> MemoryResult<Self> {
        let slots = &runtime.layout.slots;
        let variables = runtime.variable(memory, slots.gc_data)?;
        let pointer = |index: u64| memory.u64(offset(variables, index.wrapping_mul(8).wrapping_add(24)));
        let [generation_size, generations] = memory.words(offset(variables, 8))?;
        let mut layout =
            Self { is_moving: memory.u32(pointer(STRUCTURES_INVALID)?)? != 0, ..Self::default() };
        let offsets = pointer(GENERATION_OFFSETS)?;
        let [context, first] = [0, 4].map(|field| memory.u32(offset(offsets, field)));
        let (context, first) = (u64::from(context?), u64::from(first?));
        let mut heaps = Vec::new();
        if memory.u32(runtime.slot(slots.heap_type))? == SERVER {
            let (fields, table) = (pointer(HEAP_OFFSETS)?, memory.u64(pointer(HEAPS)?)?);
            let field = |index: u64| memory.u32(offset(fields, index.wrapping_mul(4))).map(u64::from);
            let (end, ephemeral, generations) = (field(0)?, field(1)?, field(18)?);
            for index in 0..memory.u32(pointer(HEAP_COUNT)?)?.min(MOST_HEAPS) {
                let heap = memory.u64(offset(table, u64::from(index).wrapping_mul(8)))?;
                let [end, ephemeral] = [end, ephemeral].map(|at| memory.u64(offset(heap, at)));
                heaps.push((end?, ephemeral?, offset(heap, generations)));
            }
        } else {
            let end = memory.u64(pointer(ALLOC_ALLOCATED)?)?;
            let ephemeral = memory.u64(pointer(EPHEMERAL_SEGMENT)?)?;
            heaps.push((end, ephemeral, pointer(GENERATION_TABLE)?));
        }
        let mut seen = HashSet::new();
        for (end, ephemeral, table) in heaps {
            for index in 0..generations.min(MOST_GENERATIONS) {
                let generation = offset(table, generation_size.wrapping_mul(index));
                layout.add_hole(memory, offset(generation, context))?;
                let mut segment = memory.u64(offset(generation, first))?;
                while segment != 0 && seen.len() < MOST_REGIONS && seen.insert(segment) {
                    let [allocated, _, _, _, start, _, next] = memory.words(segment)?;
                    let end = if segment == ephemeral { end } else { allocated };
                    layout.regions.push(Region { start, end });
                    segment = next;
                }
            }
        }
        // Regions lie apart: others are not read twice.
        layout.regions.sort_by_key(|region| region.start);
        let mut last = 0;
        layout.regions.retain(|region| {
            let is_apart = region.start >= last;
            last = last.max(region.end);
            is_apart
        });
        for thread in runtime.threads(memory)? {
            let locals = memory.u64(offset(thread.address, 32))?;
            if locals != 0 {
                layout.add_hole(memory, offset(locals, runtime.layout.allocation_context))?;
            }
        }
        Ok(layout)
    }

    /// Adds the unused part of an allocation context.
    fn add_hole(&mut self, memory: &dyn Memory, context: u64) -> MemoryResult<()> {
        let [pointer, limit] = memory.words(context)?;
        if pointer != 0 && limit >= pointer {
            self.holes.insert(pointer, limit);
        }
        Ok(())
    }
}
