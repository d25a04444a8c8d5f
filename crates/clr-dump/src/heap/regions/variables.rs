//! The garbage collector's description of its own variables and structures.
//!
//! # Source
//! dotnet/runtime `src/coreclr/gc/gcinterface.dac.h` (`GcDacVars`), `gc/gcinterface.dacvars.def`,
//! `gc/dac_gcheap_fields.h`, `gc/dac_generation_fields.h`, `gc/gcpriv.h` (`generation`).

use crate::memory::{Memory, MemoryResult, offset};
use crate::runtime::Runtime;
use crate::runtime::layout::Heap;

/// Maximum number of generations: 0 to 2, large objects, pinned objects.
const MAX_GENERATIONS: u64 = 8;
/// The kind of a server's heap.
const SERVER: u32 = 2;

/// Indexes of the pointers in `GcDacVars`.
pub(crate) const GENERATION_TABLE: u64 = 3;
pub(crate) const EPHEMERAL_SEGMENT: u64 = 7;
pub(crate) const ALLOC_ALLOCATED: u64 = 12;
pub(crate) const FINALIZE_QUEUE: u64 = 15;
pub(crate) const HEAP_COUNT: u64 = 19;
pub(crate) const HEAPS: u64 = 20;
const STRUCTURES_INVALID: u64 = 21;
const HANDLE_MAP: u64 = 26;
const HEAP_OFFSETS: u64 = 27;
const GENERATION_OFFSETS: u64 = 28;

/// Indexes of the offsets of fields of `gc_heap`.
const OF_ALLOC_ALLOCATED: u64 = 0;
const OF_EPHEMERAL_SEGMENT: u64 = 1;
const OF_FINALIZE_QUEUE: u64 = 2;
const OF_GENERATION_TABLE: u64 = 18;

/// The last fields of a generation, from its end: the bytes of its list of free memory, those of other free
/// memory, and its number. .NET Core 3.1 has one more between them, and none after the number.
const FREE_FIELDS: [u64; 3] = [56, 48, 16];
const FREE_FIELDS_3_1: [u64; 3] = [72, 64, 8];
/// The offset that stands for a field that a collector with regions does not have.
const NO_FIELD: u32 = u32::MAX;

/// `GcDacVars`: versions, the size of a generation, pointers to variables.
pub(crate) struct Variables<'m> {
    pub(crate) memory: &'m dyn Memory,
    pub(crate) address: u64,
    pub(crate) heap: Heap,
}

impl<'m> Variables<'m> {
    pub(crate) fn of(memory: &'m dyn Memory, runtime: &Runtime) -> MemoryResult<Self> {
        let address = match runtime.layout.heap {
            Heap::Stated(_) => 0,
            _ => runtime.variable(memory, runtime.layout.slots.gc_data)?,
        };
        Ok(Self { memory, address, heap: runtime.layout.heap })
    }

    /// The address in a pointer.
    pub(crate) fn pointer(&self, index: u64) -> MemoryResult<u64> {
        if let Heap::Stated(collector) = &self.heap {
            let variable = collector.variables.iter().find(|(place, _)| *place == index);
            return Ok(variable.map(|(_, address)| *address).unwrap_or_default());
        }
        // The number of generations precedes the pointers if the heap is described.
        let first = if self.heap == Heap::Described { 24 } else { 16 };
        self.memory.u64(offset(self.address, index.wrapping_mul(8).wrapping_add(first)))
    }

    /// The size of a generation, and the number of generations.
    pub(crate) fn generations(&self) -> MemoryResult<(u64, u64)> {
        let size = || self.memory.u64(offset(self.address, 8));
        Ok(match self.heap {
            Heap::Described => (size()?, self.memory.u64(offset(self.address, 16))?.min(MAX_GENERATIONS)),
            Heap::Stated(of) => (of.generation_size, of.generations.min(MAX_GENERATIONS)),
            Heap::Fixed { generations, .. } => (size()?, generations),
        })
    }

    /// The offsets of the allocation context and of the first segment in a generation.
    pub(crate) fn generation_fields(&self) -> MemoryResult<[u64; 2]> {
        match self.heap {
            Heap::Fixed { first_segment, .. } => return Ok([0, first_segment]),
            Heap::Stated(collector) => return Ok([collector.context, collector.first_segment]),
            Heap::Described => {}
        }
        let offsets = self.pointer(GENERATION_OFFSETS)?;
        let [context, first] = [0, 4].map(|field| self.memory.u32(offset(offsets, field)));
        Ok([context?.into(), first?.into()])
    }

    /// The offset in a generation of the address of its first object, which counts in a segment that
    /// generations share; `None` with regions.
    pub(crate) fn allocation_start_field(&self) -> Option<u64> {
        match self.heap {
            Heap::Fixed { first_segment, .. } => Some(first_segment.wrapping_add(8)),
            Heap::Stated(_) => None,
            Heap::Described => {
                let offsets = self.pointer(GENERATION_OFFSETS).ok()?;
                let start = self.memory.u32(offset(offsets, 8)).ok()?;
                (start != NO_FIELD && start != 0).then_some(start.into())
            }
        }
    }

    /// The offsets of the fields of a heap of a server's collector: of its end, its ephemeral segment, its
    /// queue of objects with finalizers, and its generations.
    pub(crate) fn heap_fields(&self) -> MemoryResult<[u64; 4]> {
        match self.heap {
            Heap::Fixed { generation_table, .. } => return Ok([0, 8, 16, generation_table]),
            Heap::Stated(collector) => return Ok(collector.heap_fields),
            Heap::Described => {}
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

    /// Bytes of free memory between the objects of a generation; `None` if its number is not where it is
    /// expected.
    pub(crate) fn free_bytes(&self, generation: u64, size: u64, number: u64) -> Option<u64> {
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
pub(crate) fn is_server(
    memory: &dyn Memory,
    runtime: &Runtime,
    variables: &Variables<'_>,
) -> MemoryResult<bool> {
    match runtime.slot(runtime.layout.slots.heap_type) {
        // NativeAOT does not say: only a server's collector has the variable of its heaps.
        0 => Ok(variables.pointer(HEAPS)? != 0),
        kind => Ok(memory.u32(kind)? == SERVER),
    }
}

/// The address of the map of handle tables.
pub(crate) fn handle_map(memory: &dyn Memory, runtime: &Runtime) -> MemoryResult<u64> {
    Variables::of(memory, runtime)?.pointer(HANDLE_MAP)
}

/// Returns true if a collection is moving objects.
pub(crate) fn is_moving(memory: &dyn Memory, runtime: &Runtime) -> MemoryResult<bool> {
    Ok(memory.u32(moving_mark(memory, runtime)?)? != 0)
}

/// The address of the variable that says so.
pub(crate) fn moving_mark(memory: &dyn Memory, runtime: &Runtime) -> MemoryResult<u64> {
    Variables::of(memory, runtime)?.pointer(STRUCTURES_INVALID)
}
