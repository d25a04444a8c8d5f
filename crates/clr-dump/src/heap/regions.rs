//! The regions or segments of the garbage collector's heap.
//!
//! # Source
//! dotnet/runtime `src/coreclr/gc/gcinterface.dac.h`, `gc/gcpriv.h` (`generation`, `heap_segment`).

pub(crate) mod tables;
pub(crate) mod variables;

use hashbrown::{HashMap, HashSet};

use self::variables::{
    ALLOC_ALLOCATED, EPHEMERAL_SEGMENT, FINALIZE_QUEUE, GENERATION_TABLE, HEAP_COUNT, HEAPS, Variables,
    is_moving, is_server,
};
use crate::memory::{Memory, MemoryResult, offset};
use crate::runtime::Runtime;
use crate::runtime::layout::AllocationContext;

/// Maximum number of heaps of a server's collector.
const MAX_HEAPS: u32 = 1024;
/// Maximum number of regions.
const MAX_REGIONS: usize = 1 << 20;

/// The number of generations that can share segments.
const YOUNG: u64 = 2;
/// The flag of a segment of frozen objects, which no collection frees.
const READ_ONLY: u64 = 1;
/// The number of frozen objects, which are in a list of the oldest generation.
pub(crate) const FROZEN: u64 = 5;

/// Maximum number of bytes by which a segment's description precedes its objects.
const MAX_DESCRIPTION: u64 = 1 << 16;

/// A part of the heap with consecutive objects.
pub(crate) struct Region {
    /// The first address that belongs to it: of its description, if that precedes the objects, as in a
    /// segment.
    pub(crate) first: u64,
    /// The address of the first object.
    pub(crate) start: u64,
    /// The end of the last object.
    pub(crate) end: u64,
    /// The end of its committed memory.
    pub(crate) committed: u64,
    /// The end of the addresses that are reserved for it.
    pub(crate) reserved: u64,
    /// The oldest of the generations that it belongs to; [`FROZEN`] of frozen objects.
    pub(crate) generation: u64,
    /// The number of the heap of a server's collector; 0 of a workstation's.
    pub(crate) heap: u32,
}

/// A region, or the part of a segment that belongs to one of the generations that share it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RegionPart {
    pub(crate) first: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) committed: u64,
    pub(crate) reserved: u64,
    pub(crate) generation: u64,
    pub(crate) heap: u32,
}

/// Free memory between the objects of a generation of a heap.
#[derive(Clone, Copy)]
pub(crate) struct FreeMemory {
    /// The generation of its parts: the oldest one, if the parts of others are not known.
    pub(crate) generation: u64,
    /// The bytes; `None` if the layout is another one.
    pub(crate) bytes: Option<u64>,
}

/// The regions, and the unused parts in them where threads allocate.
#[derive(Default)]
pub(crate) struct HeapLayout {
    /// In the order of their addresses; no two overlap.
    pub(crate) regions: Vec<Region>,
    /// The first address of each young generation that shares a segment with an older one, with its number,
    /// in ascending order.
    pub(crate) young: Vec<(u64, u64)>,
    /// The end of each unused part, keyed by start.
    pub(crate) holes: HashMap<u64, u64>,
    pub(crate) is_moving: bool,
    /// Bytes committed for the regions, including the memory past their objects.
    pub(crate) committed: u64,
    /// The queues of objects with finalizers, one for each heap.
    pub(crate) finalize_queues: Vec<u64>,
    /// The number of generations, including the large and pinned object heaps.
    pub(crate) generations: u64,
    /// The number of heaps of a server's collector.
    pub(crate) server_heaps: Option<u32>,
    /// Free memory between objects, by heap and generation.
    pub(crate) free: Vec<FreeMemory>,
}

/// The generations of a heap, with the end of its ephemeral segment.
struct HeapTable {
    end: u64,
    ephemeral: u64,
    table: u64,
}

impl HeapLayout {
    pub(crate) fn read(memory: &dyn Memory, runtime: &Runtime) -> MemoryResult<Self> {
        let variables = Variables::of(memory, runtime)?;
        let (generation_size, generations) = variables.generations()?;
        let mut layout = Self { is_moving: is_moving(memory, runtime)?, generations, ..Self::default() };
        let [context, first] = variables.generation_fields()?;
        let start = variables.allocation_start_field();
        let heaps = layout.read_heaps(memory, runtime, &variables)?;
        let mut seen = HashSet::new();
        for (number, heap) in (0..).zip(heaps) {
            // Generations share segments. Their list begins with the oldest generation.
            let mut shared = None;
            for index in (0..generations).rev() {
                let generation = offset(heap.table, generation_size.wrapping_mul(index));
                layout.add_hole(memory, offset(generation, context))?;
                let first = memory.u64(offset(generation, first))?;
                let has_regions = layout.add_regions(memory, first, &heap, (number, index), &mut seen)?;
                // A young generation without regions of its own shares a segment with the older one.
                let start = start.map(|field| offset(generation, field));
                if index >= YOUNG || has_regions || layout.add_young(memory, start, index) {
                    shared = Some(index);
                }
                let bytes = variables.free_bytes(generation, generation_size, index);
                layout.free.push(FreeMemory { generation: shared.unwrap_or(index), bytes });
            }
        }
        layout.young.sort_unstable();
        // Regions lie apart: others are not read twice.
        layout.regions.sort_by_key(|region| region.start);
        let mut last = 0;
        layout.regions.retain(|region| {
            let is_apart = region.start >= last;
            last = last.max(region.end);
            is_apart
        });
        layout.add_contexts(memory, runtime)?;
        Ok(layout)
    }

    /// Reads the places of the generations of each heap, and of its queue of objects with finalizers.
    fn read_heaps(
        &mut self,
        memory: &dyn Memory,
        runtime: &Runtime,
        variables: &Variables<'_>,
    ) -> MemoryResult<Vec<HeapTable>> {
        let pointer = |index: u64| variables.pointer(index);
        if !is_server(memory, runtime, variables)? {
            let end = memory.u64(pointer(ALLOC_ALLOCATED)?)?;
            let ephemeral = memory.u64(pointer(EPHEMERAL_SEGMENT)?)?;
            let table = pointer(GENERATION_TABLE)?;
            self.finalize_queues.extend(memory.u64(pointer(FINALIZE_QUEUE)?));
            return Ok(vec![HeapTable { end, ephemeral, table }]);
        }
        let mut heaps = Vec::new();
        let table = memory.u64(pointer(HEAPS)?)?;
        let [end, ephemeral, queue, generations] = variables.heap_fields()?;
        let count = memory.u32(pointer(HEAP_COUNT)?)?.min(MAX_HEAPS);
        self.server_heaps = Some(count);
        for index in 0..count {
            let heap = memory.u64(offset(table, u64::from(index).wrapping_mul(8)))?;
            let [end, ephemeral] = [end, ephemeral].map(|at| memory.u64(offset(heap, at)));
            let (end, ephemeral) = (end?, ephemeral?);
            heaps.push(HeapTable { end, ephemeral, table: offset(heap, generations) });
            self.finalize_queues.extend(memory.u64(offset(heap, queue)));
        }
        Ok(heaps)
    }

    /// Adds the regions of a list that are not `seen` yet, of the generation with these numbers of its heap
    /// and of itself. Returns true if there are any.
    fn add_regions(
        &mut self,
        memory: &dyn Memory,
        mut segment: u64,
        of: &HeapTable,
        (heap, index): (u32, u64),
        seen: &mut HashSet<u64>,
    ) -> MemoryResult<bool> {
        let before = self.regions.len();
        while segment != 0 && seen.len() < MAX_REGIONS && seen.insert(segment) {
            let [allocated, committed, reserved, _, start, flags, next] = memory.words(segment)?;
            let end = match segment == of.ephemeral {
                // A collection sets the two at different times.
                true if self.is_moving => of.end.max(allocated),
                true => of.end,
                false => allocated,
            };
            let committed = committed.max(end);
            let generation = if flags & READ_ONLY == 0 { index } else { FROZEN };
            let is_before = start.checked_sub(segment).is_some_and(|before| before <= MAX_DESCRIPTION);
            let first = if is_before { segment } else { start };
            let reserved = reserved.max(committed);
            self.regions.push(Region { first, start, end, committed, reserved, generation, heap });
            self.committed = self.committed.saturating_add(committed.saturating_sub(start));
            segment = next;
        }
        Ok(self.regions.len() > before)
    }

    /// Adds a young generation that shares a segment, with the place of the address of its first object.
    /// Returns true if the address is known.
    fn add_young(&mut self, memory: &dyn Memory, start: Option<u64>, index: u64) -> bool {
        let start = start.and_then(|field| memory.u64(field).ok()).filter(|start| *start != 0);
        self.young.extend(start.map(|start| (start, index)));
        start.is_some()
    }

    /// Adds the unused parts where threads allocate.
    fn add_contexts(&mut self, memory: &dyn Memory, runtime: &Runtime) -> MemoryResult<()> {
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
            self.add_hole(memory, context)?;
        }
        Ok(())
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

    /// Returns the regions in the order of their addresses, segments that generations share in parts. The
    /// memory past the objects of a segment belongs to its last part.
    pub(crate) fn parts(&self) -> Vec<RegionPart> {
        let mut parts = Vec::with_capacity(self.regions.len().saturating_add(self.young.len()));
        for &Region { first, start, end, committed, reserved, generation, heap } in &self.regions {
            let mut part = RegionPart { first, start, end, committed, reserved, generation, heap };
            let next = self.young.partition_point(|(young, _)| *young < start);
            let young = self.young.iter().skip(next).take_while(|(young, _)| *young < end);
            for &(young, generation) in young {
                if part.start < young {
                    parts.push(RegionPart { end: young, committed: young, reserved: young, ..part });
                    part.first = young;
                }
                part = RegionPart { start: young, generation, ..part };
            }
            parts.push(part);
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    #[test]
    fn shared_segments_are_divided_at_the_starts_of_young_generations() {
        let region = |start, end, generation| Region {
            first: start - 2,
            start,
            end,
            committed: end + 8,
            reserved: end + 16,
            generation,
            heap: 0,
        };
        let layout = HeapLayout {
            regions: vec![region(100, 200, 2), region(300, 400, 2), region(500, 600, FROZEN)],
            // The last one is outside all regions.
            young: vec![(320, 1), (380, 0), (450, 0)],
            ..HeapLayout::default()
        };
        let parts = layout.parts();
        // A part has all addresses up to the next one's.
        let owned = parts.iter().map(|part| (part.first, part.reserved));
        let expected = [(98, 216), (298, 320), (320, 380), (380, 416), (498, 616)];
        assert_eq!(owned.collect::<Vec<_>>(), expected);
        let facts = parts.iter().map(|part| (part.start, part.end, part.committed, part.generation));
        let expected = [
            (100, 200, 208, 2),
            (300, 320, 320, 2),
            (320, 380, 380, 1),
            (380, 400, 408, 0),
            (500, 600, 608, FROZEN),
        ];
        assert_eq!(facts.collect::<Vec<_>>(), expected);
        // An older generation without objects has no part.
        let layout = HeapLayout { regions: vec![region(320, 400, 2)], young: vec![(320, 1)], ..layout };
        let facts = layout.parts().iter().map(|part| (part.first, part.generation)).collect::<Vec<_>>();
        assert_eq!(facts, [(318, 1)]);
    }

    /// A server's collector as the contract GC states it, with offsets that no version has.
    #[test]
    fn heaps_of_a_server_are_read_by_the_contract() {
        use crate::runtime::layout::{Collector, Heap, Layout, NET_10};
        let collector = Collector {
            generation_size: 32,
            generations: 2,
            context: 16,
            first_segment: 8,
            heap_fields: [24, 40, 56, 64],
            handle_tables: NET_10.handle_tables,
            variables: [(19, 0x100), (20, 0x110), (21, 0x120), (26, 0x130), (u64::MAX, 0), (u64::MAX, 0)],
        };
        let layout: &'static Layout = Box::leak(Box::new(Layout { heap: Heap::Stated(collector), ..NET_10 }));
        let mut memory = TestMemory::default();
        // Two heaps, a table of them; no collection moves objects.
        memory.put_words(0x100, &[2]).put_words(0x110, &[0x200]).put_words(0x120, &[0]);
        memory.put_words(0x200, &[0x1000, 0x2000]);
        for heap in [0x1000, 0x2000] {
            let region = |at: u64| heap * 0x100 + at;
            let mut words = [0; 16];
            // The end of the youngest objects, their region, the queue; two generations.
            (words[3], words[5], words[7]) = (region(0x80), region(0x1000), heap + 0x800);
            (words[9], words[10], words[11]) = (region(0x1000), region(0x90), region(0xa8));
            words[13] = region(0x2000);
            memory.put_words(heap, &words);
            for (at, start) in [(0x1000, 0x10), (0x2000, 0x100)] {
                let ends = [start + 0x20, start + 0x40, start + 0x60, start + 0x20].map(region);
                memory.put_words(region(at), &[&ends[..], &[region(start), 0, 0]].concat());
            }
        }
        // There are no threads; a server's collector is of kind 2.
        memory.put_words(0x300, &[0x400, 2]).put_words(0x400, &[0; 20]);
        let slots = [(NET_10.slots.thread_store, 0x300), (NET_10.slots.heap_type, 0x308)];
        let heap = HeapLayout::read(&memory, &Runtime::of_slots(layout, &slots)).unwrap();
        assert_eq!((heap.server_heaps, heap.is_moving, heap.generations), (Some(2), false, 2));
        assert_eq!(heap.finalize_queues, [0x1800, 0x2800]);
        assert_eq!(heap.holes.get(&0x10_0090), Some(&0x10_00a8));
        let regions = heap.regions.iter().map(|of| (of.start, of.end, of.generation, of.heap));
        let expected = [
            (0x10_0010, 0x10_0080, 0, 0),
            (0x10_0100, 0x10_0120, 1, 0),
            (0x20_0010, 0x20_0080, 0, 1),
            (0x20_0100, 0x20_0120, 1, 1),
        ];
        assert_eq!(regions.collect::<Vec<_>>(), expected);
    }
}
