//! Objects and free memory by generation, and the largest free blocks with the pinned objects around them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::heap::generations::GenerationRanges;
use crate::heap::handle::{Handle, HandleKind, Handles};
use crate::heap::regions::{HeapLayout, RegionPart};
use crate::heap::{Amount, Heap, HeapObject, HeapVisitor, HeapWalk};
use crate::memory::MemoryResult;
use crate::memory::address::{Address, TypeHandle};

/// Maximum number of free blocks to list.
const MAX_BLOCKS: usize = 32;
/// Minimum size of a free block that is listed, in bytes.
const MIN_BLOCK_SIZE: u64 = 1024;
/// Maximum number of objects between a free block and a pinned object that keeps it.
const MAX_OBJECTS_BETWEEN: usize = 1024;

/// The objects of a generation of a heap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GenerationContents {
    /// The number of the heap of a server's collector; 0 of a workstation's.
    pub heap: u32,
    /// The number of the generation, as in [`Generation`](crate::Generation).
    pub generation: u64,
    /// The number of its regions, or of its parts of segments.
    pub regions: u64,
    /// Bytes of these up to their last objects.
    pub bytes: u64,
    /// Bytes that are committed for them. The memory past the objects of a segment that generations share is
    /// the youngest one's.
    pub committed_bytes: u64,
    /// The objects.
    pub objects: Amount,
    /// Free memory between objects.
    pub free: Amount,
}

/// A block of free memory between objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FreeBlock {
    /// The address of the block.
    pub address: Address,
    /// Bytes of the block.
    pub bytes: u64,
    /// The number of its generation.
    pub generation: u64,
    /// The object after it; `None` if it is the last of its region.
    pub next: Option<HeapObject>,
    /// The handle of the last pinned object before it, if only objects are between them: the collector moves
    /// such objects together, or none of them.
    pub pinned_before: Option<Handle>,
    /// The handle of the first pinned object after it, if only objects are between them.
    pub pinned_after: Option<Handle>,
}

/// The objects of a heap by generation.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HeapContents {
    /// The generations of each heap, the youngest first.
    pub generations: Vec<GenerationContents>,
    /// The largest free blocks of 1 KB and more, the largest first.
    pub free_blocks: Vec<FreeBlock>,
    /// The walk through the heap, with its gaps.
    pub walk: HeapWalk,
    ranges: GenerationRanges,
}

impl HeapContents {
    /// Returns the number of the generation of an object, as in [`Generation`](crate::Generation).
    pub fn generation_of(&self, object: Address) -> Option<u64> {
        Some(self.ranges.part(object)?.generation)
    }

    /// Returns the generations of all heaps together, the youngest first.
    pub fn sums(&self) -> Vec<GenerationContents> {
        let mut sums = BTreeMap::<u64, GenerationContents>::new();
        for of in &self.generations {
            let new = GenerationContents { generation: of.generation, ..GenerationContents::default() };
            sums.entry(of.generation).or_insert(new).add(of);
        }
        sums.into_values().collect()
    }
}

impl GenerationContents {
    /// Adds a generation of another heap, or another part.
    fn add(&mut self, other: &Self) {
        self.regions = self.regions.saturating_add(other.regions);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.committed_bytes = self.committed_bytes.saturating_add(other.committed_bytes);
        for (own, other) in [(&mut self.objects, other.objects), (&mut self.free, other.free)] {
            own.objects = own.objects.saturating_add(other.objects);
            own.bytes = own.bytes.saturating_add(other.bytes);
        }
    }
}

impl Heap<'_> {
    /// Counts the objects of the heap and the free memory between them by generation.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// let contents = dump.heap().contents()?;
    /// for of in contents.sums() {
    ///     println!("{}: {:?}, free {:?}", clr_dump::generation_name(of.generation), of.objects, of.free);
    /// }
    /// for block in &contents.free_blocks {
    ///     println!("{} bytes at {}, pinned after it: {:?}", block.bytes, block.address, block.pinned_after);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the memory lacks the collector's description of its heap.
    pub fn contents(self) -> MemoryResult<HeapContents> {
        let handles = self.handles().unwrap_or_default();
        let layout = HeapLayout::read(self.memory(), self.runtime())?;
        let mut counter = GenerationCounter::new(&layout);
        let walk = self.walk_layout(&layout, &mut counter)?;
        Ok(counter.finish(self, &handles, walk))
    }
}

/// The objects of a walk by generation.
#[derive(Default)]
pub(crate) struct GenerationCounter {
    ranges: GenerationRanges,
    /// The objects and the free memory of each part.
    amounts: Vec<[Amount; 2]>,
    /// The part of the last object: objects arrive in the order of their addresses.
    current: usize,
    /// The largest free blocks: bytes, address and generation.
    blocks: BinaryHeap<Reverse<(u64, Address, u64)>>,
}

impl GenerationCounter {
    pub(crate) fn new(layout: &HeapLayout) -> Self {
        let ranges = GenerationRanges::new(layout);
        let amounts = vec![Default::default(); ranges.parts().len()];
        Self { ranges, amounts, ..Self::default() }
    }

    /// The part with an address that is not below the last one, and its amounts.
    fn part(&mut self, address: Address) -> Option<(&RegionPart, &mut [Amount; 2])> {
        let mut part = self.ranges.parts().get(self.current)?;
        while part.end <= address.get() {
            self.current = self.current.saturating_add(1);
            part = self.ranges.parts().get(self.current)?;
        }
        Some((part, self.amounts.get_mut(self.current)?))
    }

    /// The generations of each heap, and the largest free blocks between the objects that `handles` pin.
    pub(crate) fn finish(self, heap: Heap<'_>, handles: &Handles, walk: HeapWalk) -> HeapContents {
        let mut generations = BTreeMap::<(u32, u64), GenerationContents>::new();
        for (part, [objects, free]) in self.ranges.parts().iter().zip(&self.amounts) {
            let of = GenerationContents {
                heap: part.heap,
                generation: part.generation,
                regions: 1,
                bytes: part.end.saturating_sub(part.start),
                committed_bytes: part.committed.saturating_sub(part.start),
                objects: *objects,
                free: *free,
            };
            let key = (part.heap, part.generation);
            generations.entry(key).and_modify(|sum| sum.add(&of)).or_insert(of);
        }
        let mut pinned: Vec<_> = handles.handles.iter().filter(|handle| pins(handle)).copied().collect();
        pinned.sort_unstable_by_key(|handle| (handle.object, handle.address));
        let blocks = self.blocks.into_sorted_vec();
        let gap = Gap::new(heap);
        let block = |&Reverse((bytes, address, generation)): &Reverse<(u64, Address, u64)>| {
            let end = address.saturating_add(bytes.checked_next_multiple_of(8).unwrap_or(bytes));
            let part = self.ranges.part(address)?;
            let is_in_part =
                |handle: &&Handle| part.start <= handle.object.get() && handle.object.get() < part.end;
            let is_next_before =
                |handle: &&Handle| is_in_part(handle) && gap.has_only_objects(handle.object, address);
            let is_next_after =
                |handle: &&Handle| is_in_part(handle) && gap.has_only_objects(end, handle.object);
            let (before, after) = pinned.split_at(pinned.partition_point(|handle| handle.object < address));
            Some(FreeBlock {
                address,
                bytes,
                generation,
                next: (end.get() < part.end).then(|| heap.object_at(end)).flatten(),
                pinned_before: before.last().filter(is_next_before).copied(),
                pinned_after: after.first().filter(is_next_after).copied(),
            })
        };
        HeapContents {
            generations: generations.into_values().collect(),
            free_blocks: blocks.iter().filter_map(block).collect(),
            walk,
            ranges: self.ranges,
        }
    }
}

/// The memory between free blocks and pinned objects.
struct Gap<'d> {
    heap: Heap<'d>,
    free: Option<TypeHandle>,
}

impl<'d> Gap<'d> {
    fn new(heap: Heap<'d>) -> Self {
        let runtime = heap.runtime();
        let free = runtime.variable(heap.memory(), runtime.layout.slots.free_type);
        Self { heap, free: free.ok().map(TypeHandle::new) }
    }

    /// Returns true if objects fill the memory from an object to an address, without free memory.
    fn has_only_objects(&self, mut from: Address, to: Address) -> bool {
        for _ in 0..MAX_OBJECTS_BETWEEN {
            if from >= to {
                return from == to;
            }
            match self.heap.object_at(from) {
                Some(object) if Some(object.type_handle) != self.free => {
                    from = from.saturating_add(object.aligned_size());
                }
                _ => return false,
            }
        }
        false
    }
}

impl HeapVisitor for GenerationCounter {
    fn object(&mut self, object: &HeapObject) {
        if let Some((_, [objects, _])) = self.part(object.address) {
            objects.add(object.size);
        }
    }

    fn free(&mut self, block: &HeapObject) {
        let Some((part, [_, free])) = self.part(block.address) else { return };
        free.add(block.size);
        if block.size < MIN_BLOCK_SIZE {
            return;
        }
        let generation = part.generation;
        let is_larger = |smallest: &Reverse<(u64, Address, u64)>| smallest.0.0 < block.size;
        if self.blocks.len() < MAX_BLOCKS || self.blocks.peek().is_some_and(is_larger) {
            self.blocks.push(Reverse((block.size, block.address, generation)));
            if self.blocks.len() > MAX_BLOCKS {
                self.blocks.pop();
            }
        }
    }
}

/// Returns true for a handle with an object that does not move.
fn pins(handle: &Handle) -> bool {
    matches!(handle.kind, HandleKind::PINNED | HandleKind::ASYNC_PINNED)
}
