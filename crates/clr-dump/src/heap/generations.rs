//! Generations of the heap, with the free memory between their objects.

use hashbrown::HashMap;

use crate::dump::Dump;
use crate::heap::regions::{FROZEN, HeapLayout, RegionPart};
use crate::heap::{Amount, Heap, MAX_TYPES, Walk};
use crate::memory::address::{Address, TypeHandle};
use crate::memory::resident::{MAX_RESIDENT_RANGE, ResidentPages};
use crate::memory::{MemoryResult, PAGE};

/// The number of the large object heap.
const LARGE: u64 = 3;
/// The number of the pinned object heap.
const PINNED: u64 = 4;

/// A generation, or one of the heaps that are collected with the oldest one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Generation {
    /// Its number: 3 is the large object heap, 4 that of pinned objects, 5 that of frozen objects. Without
    /// regions, as in .NET Core 3.1, young generations have a part of a segment of the oldest one.
    pub number: u64,
    /// Bytes of its regions up to their last objects.
    pub bytes: u64,
    /// Bytes of them between objects, by the collector's own count, which changes with a collection; `None`
    /// if the layout of the runtime is another one.
    pub free: Option<u64>,
    /// Bytes that are committed past the last objects of its regions.
    pub unused: u64,
}

impl Generation {
    /// Returns true for the large object heap.
    pub const fn is_large(&self) -> bool {
        self.number == LARGE
    }

    /// The name in a sentence.
    pub const fn name(&self) -> &'static str {
        generation_name(self.number)
    }
}

/// Returns the name in a sentence of a generation with a number as in [`Generation`].
///
/// ```
/// assert_eq!([2, 3].map(clr_dump::generation_name), ["generation 2", "the large object heap"]);
/// ```
pub const fn generation_name(number: u64) -> &'static str {
    match number {
        0 => "generation 0",
        1 => "generation 1",
        2 => "generation 2",
        LARGE => "the large object heap",
        PINNED => "the pinned object heap",
        FROZEN => "the frozen object heap",
        _ => "another generation",
    }
}

/// The generations of addresses.
#[derive(Debug, Clone, Default)]
pub(crate) struct GenerationRanges {
    /// The parts of the heap, by start.
    parts: Vec<RegionPart>,
}

impl GenerationRanges {
    pub(crate) fn new(layout: &HeapLayout) -> Self {
        Self { parts: layout.parts() }
    }

    pub(crate) fn parts(&self) -> &[RegionPart] {
        &self.parts
    }

    /// Returns the part with an address.
    pub(crate) fn part(&self, address: Address) -> Option<&RegionPart> {
        self.part_before(address).filter(|part| address.get() < part.end)
    }

    /// Returns the last part that begins at an address or before it.
    fn part_before(&self, address: Address) -> Option<&RegionPart> {
        let next = self.parts.partition_point(|part| part.start <= address.get());
        self.parts.get(next.checked_sub(1)?)
    }
}

/// A part of the heap: a region, or the part of a segment that belongs to one generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapRegion {
    /// The address of its first object.
    pub start: Address,
    /// The end of its last object.
    pub end: Address,
    /// The end of its committed memory.
    pub committed: Address,
    /// The number of its generation, as in [`Generation`].
    pub generation: u64,
    /// The number of the heap of a server's collector that it belongs to; 0 of a workstation's.
    pub heap: u32,
}

impl From<&RegionPart> for HeapRegion {
    fn from(&RegionPart { start, end, committed, generation, heap, .. }: &RegionPart) -> Self {
        let [start, end, committed] = [start, end, committed].map(Address::new);
        Self { start, end, committed, generation, heap }
    }
}

/// The regions or segments of a heap, as the collector describes them at one moment: no object is read.
pub struct HeapRegions<'d> {
    pub(crate) dump: &'d Dump<'d>,
    pub(crate) layout: HeapLayout,
    ranges: GenerationRanges,
}

impl std::fmt::Debug for HeapRegions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeapRegions").field("regions", &self.layout.regions.len()).finish_non_exhaustive()
    }
}

impl<'d> Heap<'d> {
    /// Reads the regions of the heap.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// let regions = dump.heap().regions()?;
    /// println!("{} bytes are committed", regions.committed_bytes());
    /// for generation in regions.generations() {
    ///     println!("{}: {} bytes, {:?} free", generation.name(), generation.bytes, generation.free);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the memory lacks the collector's description of its heap.
    pub fn regions(self) -> MemoryResult<HeapRegions<'d>> {
        let layout = HeapLayout::read(self.memory(), self.runtime())?;
        let ranges = GenerationRanges::new(&layout);
        Ok(HeapRegions { dump: self.dump, layout, ranges })
    }
}

impl HeapRegions<'_> {
    /// The parts of the heap, by address.
    pub(crate) fn parts(&self) -> &[RegionPart] {
        self.ranges.parts()
    }

    /// Returns the bytes that are committed for the regions or segments of the heap, as
    /// [`HeapWalk::committed_bytes`](crate::HeapWalk::committed_bytes).
    pub const fn committed_bytes(&self) -> u64 {
        self.layout.committed
    }

    /// Returns the part of the [committed bytes](Self::committed_bytes) that takes memory: the collector
    /// commits memory before objects are in it. `None` for more than 64 GB, which take half a second, and for
    /// unknown pages.
    pub fn resident_bytes(&self, pages: &dyn ResidentPages) -> Option<u64> {
        if self.layout.committed > MAX_RESIDENT_RANGE {
            return None;
        }
        let mut sum = 0_u64;
        let mut last = 0;
        for region in &self.layout.regions {
            // Regions lie apart; others are not counted twice.
            let (start, end) = (region.start.max(last), region.committed.checked_next_multiple_of(PAGE)?);
            if start < end {
                last = end;
                sum = sum.checked_add(pages.resident_bytes(start, end)?)?;
            }
        }
        Some(sum)
    }

    /// Returns the generations, the youngest first, with the free memory between their objects as the
    /// collector counts it.
    pub fn generations(&self) -> Vec<Generation> {
        let generation = |number: u64| {
            let mut parts = self.ranges.parts().iter().filter(|part| part.generation == number).peekable();
            parts.peek()?;
            let (mut bytes, mut unused) = (0_u64, 0_u64);
            for part in parts {
                bytes = bytes.saturating_add(part.end.saturating_sub(part.start));
                unused = unused.saturating_add(part.committed.saturating_sub(part.end));
            }
            let free = self.layout.free.iter().filter(|free| free.generation == number);
            let free =
                free.map(|free| free.bytes).try_fold(0, |sum: u64, part| Some(sum.saturating_add(part?)));
            Some(Generation { number, bytes, free: free.map(|free| free.min(bytes)), unused })
        };
        (0..=self.layout.generations.max(FROZEN)).filter_map(generation).collect()
    }

    /// Returns the number of the generation of an object.
    pub fn generation_of(&self, object: Address) -> Option<u64> {
        Some(self.ranges.part(object)?.generation)
    }

    /// Returns the regions by address.
    pub fn regions(&self) -> impl Iterator<Item = HeapRegion> {
        self.ranges.parts().iter().map(HeapRegion::from)
    }

    /// Returns the region with an address, up to the end of its committed memory.
    pub fn region_of(&self, address: Address) -> Option<HeapRegion> {
        let region = HeapRegion::from(self.ranges.part_before(address)?);
        (address < region.committed.max(region.end)).then_some(region)
    }

    /// Returns the number of heaps of a server's collector, each with a thread for collections; `None` of a
    /// workstation's.
    pub const fn server_heaps(&self) -> Option<u32> {
        self.layout.server_heaps
    }

    /// Counts the first `max` objects of the large object heap by type, those with the most bytes first. They
    /// are few: each has 85,000 bytes or more.
    ///
    /// # Errors
    /// If the memory lacks the types of free memory.
    pub fn large_objects(&self, max: usize) -> MemoryResult<Vec<(TypeHandle, Amount)>> {
        let (memory, runtime) = (self.dump.memory(), self.dump.runtime());
        let free = TypeHandle::new(runtime.variable(memory, runtime.layout.slots.free_type)?);
        let mut amounts: HashMap<TypeHandle, Amount> = HashMap::new();
        let mut left = max.min(MAX_TYPES);
        let mut walk = Walk::new(memory, runtime.layout.types.contains_pointers);
        for region in self.layout.regions.iter().filter(|region| region.generation == LARGE) {
            walk.window.set_end(region.end);
            let mut at = region.start;
            while at < region.end && left > 0 {
                // New objects are made while they are read.
                let Some(object) = walk.object(at) else { break };
                left = left.saturating_sub(1);
                if object.type_handle != free {
                    amounts.entry(object.type_handle).or_default().add(object.size);
                }
                at = at.saturating_add(object.aligned_size());
            }
        }
        let mut amounts: Vec<_> = amounts.into_iter().collect();
        amounts.sort_by_key(|(of, amount)| (std::cmp::Reverse(amount.bytes), *of));
        Ok(amounts)
    }
}
