//! Generations of the heap, with the free memory between their objects.

use hashbrown::HashMap;

use crate::heap::regions::HeapLayout;
use crate::heap::{Amount, Heap, MAX_TYPES, Walk};
use crate::memory::MemoryResult;
use crate::memory::address::{Address, TypeHandle};

/// The number of the large object heap.
const LARGE: u64 = 3;

/// A generation, or one of the heaps that are collected with the oldest one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Generation {
    /// Its number: 3 is the large object heap, 4 that of pinned objects. Generations that share segments, as in .NET
    /// Core 3.1, have the oldest one's.
    pub number: u64,
    /// Bytes of its regions up to their last objects.
    pub bytes: u64,
    /// Bytes of them between objects; `None` if the layout of the runtime is another one.
    pub free: Option<u64>,
}

impl Generation {
    /// Returns true for the large object heap.
    pub const fn is_large(&self) -> bool {
        self.number == LARGE
    }

    /// The name in a sentence.
    pub const fn name(&self) -> &'static str {
        match self.number {
            0 => "generation 0",
            1 => "generation 1",
            2 => "generation 2",
            LARGE => "the large object heap",
            4 => "the pinned object heap",
            _ => "another generation",
        }
    }
}

/// The generations of a heap.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Generations {
    /// The generations, the youngest first.
    pub generations: Vec<Generation>,
    /// The number of heaps of a server's collector, each with a thread for collections; `None` of a workstation's.
    pub server_heaps: Option<u32>,
    /// The ranges of the regions with their generations, by start.
    regions: Vec<(u64, u64, u64)>,
}

impl Generations {
    /// Returns the number of the generation of an object.
    pub fn of(&self, object: Address) -> Option<u64> {
        let next = self.regions.partition_point(|(start, ..)| *start <= object.get());
        let (_, end, generation) = self.regions.get(next.checked_sub(1)?)?;
        (object.get() < *end).then_some(*generation)
    }
}

impl Heap<'_> {
    /// Returns the generations with the free memory between their objects, as the collector counts it: no object is read.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// for generation in dump.heap().generations()?.generations {
    ///     println!("{}: {} bytes, {:?} free", generation.name(), generation.bytes, generation.free);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the memory lacks the collector's description of its heap.
    pub fn generations(self) -> MemoryResult<Generations> {
        let layout = HeapLayout::read(self.memory(), self.runtime())?;
        let generation = |number: u64| {
            let mut regions = layout.regions.iter().filter(|region| region.generation == number).peekable();
            regions.peek()?;
            let bytes = regions.map(|region| region.end.saturating_sub(region.start));
            let bytes = bytes.fold(0, u64::saturating_add);
            let parts = layout.free.iter().filter(|free| free.generation == number);
            let free =
                parts.map(|free| free.bytes).try_fold(0, |sum: u64, part| Some(sum.saturating_add(part?)));
            Some(Generation { number, bytes, free: free.map(|free| free.min(bytes)) })
        };
        let regions = layout.regions.iter().map(|region| (region.start, region.end, region.generation));
        Ok(Generations {
            generations: (0..layout.generations).filter_map(generation).collect(),
            server_heaps: layout.server_heaps,
            regions: regions.collect(),
        })
    }

    /// Counts the first `max` objects of the large object heap by type, those with the most bytes first. They are few:
    /// each has 85,000 bytes or more.
    ///
    /// # Errors
    /// If the memory lacks the collector's description of its heap.
    pub fn large_objects(self, max: usize) -> MemoryResult<Vec<(TypeHandle, Amount)>> {
        let (memory, runtime) = (self.memory(), self.runtime());
        let layout = HeapLayout::read(memory, runtime)?;
        let free = TypeHandle::new(runtime.variable(memory, runtime.layout.slots.free_type)?);
        let mut amounts: HashMap<TypeHandle, Amount> = HashMap::new();
        let mut left = max.min(MAX_TYPES);
        let mut walk = Walk::new(memory, runtime.layout.types.contains_pointers);
        for region in layout.regions.iter().filter(|region| region.generation == LARGE) {
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
