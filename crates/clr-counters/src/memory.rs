//! The memory of a process by its counters.

use nettrace::Event;

use crate::{Aspect, Counters, Selection};

/// The provider of the runtime's own counters.
const PROVIDER: &str = "System.Runtime";
/// The counters of the sizes of generations.
const GENERATIONS: [&str; 5] = ["gen-0-size", "gen-1-size", "gen-2-size", "loh-size", "poh-size"];

/// The memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessMemory {
    /// The resident memory, in bytes.
    pub resident: u64,
    /// The memory that is committed for the managed heap, in bytes.
    pub heap: u64,
}

/// The counters of memory in a recording or a live session of one process.
#[derive(Debug)]
pub struct MemoryCounters {
    counters: Counters,
    resident: f64,
    committed: Option<f64>,
    used: f64,
    /// The sizes of generations after the last collection, including free space.
    generations: [Option<f64>; 5],
}

impl MemoryCounters {
    /// Adds an event. Events other than those of `System.Runtime` are ignored.
    pub fn add(&mut self, event: &Event<'_>) {
        let Self { counters, resident, committed, used, generations } = self;
        counters.add(event, |sample| {
            if let Some(value) = sample.number(Aspect::Value).filter(|_| sample.series.provider == PROVIDER) {
                match &*sample.series.name {
                    "working-set" => *resident = value * 1e6,
                    "gc-committed" => *committed = Some(value * 1e6),
                    "gc-heap-size" => *used = value * 1e6,
                    "dotnet.process.memory.working_set" => *resident = value,
                    "dotnet.gc.last_collection.memory.committed_size" => *committed = Some(value),
                    name => {
                        let place = GENERATIONS.iter().position(|generation| *generation == name);
                        if let Some(size) = place.and_then(|place| generations.get_mut(place)) {
                            *size = Some(value);
                        }
                    }
                }
            }
        });
    }

    /// Returns the memory according to the last values; `None` if it is unknown.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and saturates")]
    pub fn last(&self) -> Option<ProcessMemory> {
        // .NET Core 3.1 and .NET 5 report the sizes of generations, but not the committed memory. Before the
        // first collection both are 0.
        let generations = self.generations.iter().flatten().copied().reduce(|sum, size| sum + size);
        let heap = self.committed.or(generations)?.max(self.used);
        let is_known = self.resident > 0.0 && heap > 0.0;
        is_known.then_some(ProcessMemory { resident: self.resident as u64, heap: heap as u64 })
    }
}

impl Default for MemoryCounters {
    fn default() -> Self {
        Self {
            counters: Counters::new(Selection::default()),
            resident: 0.0,
            committed: None,
            used: 0.0,
            generations: [None; 5],
        }
    }
}
