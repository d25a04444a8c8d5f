//! The regions or segments of the garbage collector's heap.
//!
//! # Source
//! dotnet/runtime `src/coreclr/gc/gcinterface.dac.h` (`GcDacVars`), `gc/gcinterface.dacvars.def`,
//! `gc/dac_gcheap_fields.h`, `gc/gcpriv.h` (`generation`, `heap_segment`).

pub(crate) mod owned;

use hashbrown::{HashMap, HashSet};

use crate::memory::{Memory, MemoryResult, offset};
use crate::runtime::Runtime;
use crate::runtime::layout::{AllocationContext, Heap};

/// Maximum number of generations: 0 to 2, large objects, pinned objects.
const MAX_GENERATIONS: u64 = 8;
/// Maximum number of heaps of a server's collector.
const MAX_HEAPS: u32 = 1024;
/// Maximum number of regions.
const MAX_REGIONS: usize = 1 << 20;

/// The number of generations that can share segments.
const YOUNG: u64 = 2;
/// The kind of a server's heap.
const SERVER: u32 = 2;

/// Indexes of the pointers in `GcDacVars`.
const GENERATION_TABLE: u64 = 3;
const EPHEMERAL_SEGMENT: u64 = 7;
const ALLOC_ALLOCATED: u64 = 12;
const FINALIZE_QUEUE: u64 = 15;
const HEAP_COUNT: u64 = 19;
const HEAPS: u64 = 20;
const STRUCTURES_INVALID: u64 = 21;
const HANDLE_MAP: u64 = 26;
const HEAP_OFFSETS: u64 = 27;
const GENERATION_OFFSETS: u64 = 28;

/// Indexes of the offsets of fields of `gc_heap`.
const OF_ALLOC_ALLOCATED: u64 = 0;
const OF_EPHEMERAL_SEGMENT: u64 = 1;
const OF_FINALIZE_QUEUE: u64 = 2;
const OF_GENERATION_TABLE: u64 = 18;

/// The last fields of a generation, from its end: the bytes of its list of free memory, those of other free memory, and
/// its number. .NET Core 3.1 has one more between them, and none after the number.
const FREE_FIELDS: [u64; 3] = [56, 48, 16];
const FREE_FIELDS_3_1: [u64; 3] = [72, 64, 8];

/// A part of the heap with consecutive objects.
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The oldest of the generations that it belongs to.
    pub(crate) generation: u64,
}

/// Free memory between the objects of a generation of a heap.
#[derive(Clone, Copy)]
pub(crate) struct FreeMemory {
    /// The generation of its regions: the oldest one, if generations share segments.
    pub(crate) generation: u64,
    /// The bytes; `None` if the layout is another one.
    pub(crate) bytes: Option<u64>,
}

/// The regions, and the unused parts in them where threads allocate.
#[derive(Default)]
pub(crate) struct HeapLayout {
    /// In the order of their addresses; no two overlap.
    pub(crate) regions: Vec<Region>,
    /// The end of each unused part, keyed by start.
    pub(crate) holes: HashMap<u64, u64>,
    pub(crate) is_moving: bool,
    /// Bytes committed for the regions, including the memory past their objects.
    pub(crate) committed: u64,
    /// The ranges of these bytes.
    pub(crate) committed_ranges: Vec<(u64, u64)>,
    /// The queues of objects with finalizers, one for each heap.
    pub(crate) finalize_queues: Vec<u64>,
    /// The address of the map of handle tables.
    pub(crate) handle_map: u64,
    /// The number of generations, including the large and pinned object heaps.
    pub(crate) generations: u64,
    /// The number of heaps of a server's collector.
    pub(crate) server_heaps: Option<u32>,
    /// Free memory between objects, by heap and generation.
    pub(crate) free: Vec<FreeMemory>,
}

/// `GcDacVars`: versions, the size of a generation, pointers to variables.
struct Variables<'m> {
    memory: &'m dyn Memory,
    address: u64,
    heap: Heap,
}

impl<'m> Variables<'m> {
    fn of(memory: &'m dyn Memory, runtime: &Runtime) -> MemoryResult<Self> {
        let address = match runtime.layout.heap {
            Heap::Stated(_) => 0,
            _ => runtime.variable(memory, runtime.layout.slots.gc_data)?,
        };
        Ok(Self { memory, address, heap: runtime.layout.heap })
    }

    /// The address in a pointer.
    fn pointer(&self, index: u64) -> MemoryResult<u64> {
        if let Heap::Stated(collector) = &self.heap {
            let variable = collector.variables.iter().find(|(place, _)| *place == index);
            return Ok(variable.map(|(_, address)| *address).unwrap_or_default());
        }
        // The number of generations precedes the pointers if the heap is described.
        let first = if self.heap == Heap::Described { 24 } else { 16 };
        self.memory.u64(offset(self.address, index.wrapping_mul(8).wrapping_add(first)))
    }

    /// The size of a generation, and the number of generations.
    fn generations(&self) -> MemoryResult<(u64, u64)> {
        let size = || self.memory.u64(offset(self.address, 8));
        Ok(match self.heap {
            Heap::Described => (size()?, self.memory.u64(offset(self.address, 16))?.min(MAX_GENERATIONS)),
            Heap::Stated(of) => (of.generation_size, of.generations.min(MAX_GENERATIONS)),
            Heap::Fixed { generations, .. } => (size()?, generations),
        })
    }

    /// The offsets of the allocation context and of the first segment in a generation.
    fn generation_fields(&self) -> MemoryResult<[u64; 2]> {
        match self.heap {
            Heap::Fixed { first_segment, .. } => return Ok([0, first_segment]),
            Heap::Stated(collector) => return Ok([collector.context, collector.first_segment]),
            Heap::Described => {}
        }
        let offsets = self.pointer(GENERATION_OFFSETS)?;
        let [context, first] = [0, 4].map(|field| self.memory.u32(offset(offsets, field)));
        Ok([context?.into(), first?.into()])
    }

    /// The offsets of the fields of a heap of a server's collector: of its end, its ephemeral segment, its
    /// queue of objects with finalizers, and its generations.
    fn heap_fields(&self) -> MemoryResult<[u64; 4]> {
        if let Heap::Fixed { generation_table, .. } = self.heap {
            return Ok([0, 8, 16, generation_table]);
        }
        let fields = self.pointer(HEAP_OFFSETS)?;
        let field = |index: u64| self.memory.u32(offset(fields, index.wrapping_mul(4))).map(u64::from);
        Ok([
            field(OF_ALLOC_ALLOCATED)?,
            field(OF_EPHEMERAL_SEGMENT)?,
            field(OF_FINALIZE_QUEUE)?,
            field(OF_GENERATION_TABLE)?,
        ])
    }

    /// Bytes of free memory between the objects of a generation; `None` if its number is not where it is expected.
    fn free_bytes(&self, generation: u64, size: u64, number: u64) -> Option<u64> {
        let fields = if self.heap == Heap::Described { FREE_FIELDS } else { FREE_FIELDS_3_1 };
        let [listed, other, own_number] =
            fields.map(|from_end| offset(generation, size.wrapping_sub(from_end)));
        if u64::from(self.memory.u32(own_number).ok()?) != number {
            return None;
        }
        Some(self.memory.u64(listed).ok()?.saturating_add(self.memory.u64(other).ok()?))
    }
}

/// Returns true if the heap belongs to the server collector.
fn is_server(memory: &dyn Memory, runtime: &Runtime, variables: &Variables<'_>) -> MemoryResult<bool> {
    match runtime.slot(runtime.layout.slots.heap_type) {
        // NativeAOT does not say: only a server's collector has the variable of its heaps.
        0 => Ok(variables.pointer(HEAPS)? != 0),
        kind => Ok(memory.u32(kind)? == SERVER),
    }
}

/// Returns true if a collection is moving objects.
pub(crate) fn is_moving(memory: &dyn Memory, runtime: &Runtime) -> MemoryResult<bool> {
    Ok(memory.u32(moving_mark(memory, runtime)?)? != 0)
}

/// The address of the variable that says so.
pub(crate) fn moving_mark(memory: &dyn Memory, runtime: &Runtime) -> MemoryResult<u64> {
    Variables::of(memory, runtime)?.pointer(STRUCTURES_INVALID)
}

impl HeapLayout {
    pub(crate) fn read(memory: &dyn Memory, runtime: &Runtime) -> MemoryResult<Self> {
        let variables = Variables::of(memory, runtime)?;
        let pointer = |index: u64| variables.pointer(index);
        let (generation_size, generations) = variables.generations()?;
        let mut layout = Self {
            is_moving: is_moving(memory, runtime)?,
            handle_map: pointer(HANDLE_MAP)?,
            generations,
            ..Self::default()
        };
        let [context, first] = variables.generation_fields()?;
        let mut heaps = Vec::new();
        if is_server(memory, runtime, &variables)? {
            let table = memory.u64(pointer(HEAPS)?)?;
            let [end, ephemeral, queue, generations] = variables.heap_fields()?;
            let count = memory.u32(pointer(HEAP_COUNT)?)?.min(MAX_HEAPS);
            layout.server_heaps = Some(count);
            for index in 0..count {
                let heap = memory.u64(offset(table, u64::from(index).wrapping_mul(8)))?;
                let [end, ephemeral] = [end, ephemeral].map(|at| memory.u64(offset(heap, at)));
                heaps.push((end?, ephemeral?, offset(heap, generations)));
                layout.finalize_queues.extend(memory.u64(offset(heap, queue)));
            }
        } else {
            let end = memory.u64(pointer(ALLOC_ALLOCATED)?)?;
            let ephemeral = memory.u64(pointer(EPHEMERAL_SEGMENT)?)?;
            heaps.push((end, ephemeral, pointer(GENERATION_TABLE)?));
            layout.finalize_queues.extend(memory.u64(pointer(FINALIZE_QUEUE)?));
        }
        let mut seen = HashSet::new();
        for (end, ephemeral, table) in heaps {
            // Generations share segments. Their list begins with the oldest generation.
            let mut shared = None;
            for index in (0..generations).rev() {
                let generation = offset(table, generation_size.wrapping_mul(index));
                let regions = layout.regions.len();
                layout.add_hole(memory, offset(generation, context))?;
                let mut segment = memory.u64(offset(generation, first))?;
                while segment != 0 && seen.len() < MAX_REGIONS && seen.insert(segment) {
                    let [allocated, committed, _, _, start, _, next] = memory.words(segment)?;
                    let end = match segment == ephemeral {
                        // A collection sets the two at different times.
                        true if layout.is_moving => end.max(allocated),
                        true => end,
                        false => allocated,
                    };
                    layout.regions.push(Region { start, end, generation: index });
                    let committed = committed.max(end);
                    layout.committed = layout.committed.saturating_add(committed.saturating_sub(start));
                    layout.committed_ranges.push((start, committed));
                    segment = next;
                }
                // A young generation without regions of its own shares a segment with the older one.
                if index >= YOUNG || layout.regions.len() > regions {
                    shared = Some(index);
                }
                let bytes = variables.free_bytes(generation, generation_size, index);
                layout.free.push(FreeMemory { generation: shared.unwrap_or(index), bytes });
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
            let context = match runtime.layout.thread.allocation_context {
                AllocationContext::Thread(at) => thread.address.at(at),
                AllocationContext::RuntimeThreadLocals { pointer, context } => {
                    match memory.u64(thread.address.at(pointer))? {
                        0 => continue,
                        locals => offset(locals, context),
                    }
                }
            };
            layout.add_hole(memory, context)?;
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

    /// Returns true if an address is in a region.
    pub(crate) fn contains(&self, address: u64) -> bool {
        let after = self.regions.partition_point(|region| region.start <= address);
        let region = after.checked_sub(1).and_then(|index| self.regions.get(index));
        region.is_some_and(|region| address < region.end)
    }
}
