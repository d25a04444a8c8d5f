//! The memory of a process, and the part of it that is the managed heap.

use clr_counters::{Aspect, Counters, Selection};
use nettrace::Event;
use serde::{Serialize, Serializer};

use crate::inspect::core_source::Source;
use crate::render::units;

/// Minimum memory outside the managed heap that is mentioned, in bytes: the runtime and its libraries take up
/// to this much in small programs.
const MIN_OTHER_BYTES: u64 = 100_000_000;

/// The runtime's own counters.
const PROVIDER: &str = "System.Runtime";

/// The memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryUse {
    /// Bytes of all memory.
    all: u64,
    /// Bytes that are committed for the managed heap.
    heap: u64,
    /// True if `all` is the memory in a core dump rather than the resident memory.
    is_dump: bool,
}

impl Serialize for MemoryUse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[allow(clippy::struct_field_names, reason = "the fields of the JSON object")]
        struct Json {
            /// Null of a core dump.
            resident_bytes: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            dump_bytes: Option<u64>,
            heap_bytes: u64,
        }
        let of = |is_wanted: bool| is_wanted.then_some(self.all);
        let (resident_bytes, dump_bytes) = (of(!self.is_dump), of(self.is_dump));
        Json { resident_bytes, dump_bytes, heap_bytes: self.heap }.serialize(serializer)
    }
}

impl MemoryUse {
    /// Resident memory with the committed bytes of the heap.
    pub(crate) const fn resident(all: u64, heap: u64) -> Self {
        Self { all, heap, is_dump: false }
    }

    /// Returns the memory use computed from counters; `None` if one of the values is missing.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and saturates")]
    pub(crate) fn of_counters(resident: f64, heap: f64) -> Option<Self> {
        (resident > 0.0 && heap > 0.0).then_some(Self::resident(resident as u64, heap as u64))
    }

    /// Returns the memory of the analyzed process or dump; `None` if it is unknown.
    pub(crate) fn of_source(source: &Source, heap: u64) -> Option<Self> {
        match (source.core(), source.pid()) {
            (Some(core), _) => Some(Self { all: core.memory_bytes(), heap, is_dump: true }),
            (None, Some(pid)) => resident_bytes(pid).map(|all| Self::resident(all, heap)),
            (None, None) => None,
        }
    }

    /// Returns a sentence if most of the memory is not the managed heap.
    pub(crate) fn mostly_other(&self) -> Option<String> {
        let other = self.all.saturating_sub(self.heap);
        (other > self.heap && other >= MIN_OTHER_BYTES).then(|| {
            format!(
                "{} {}, {} of it managed heap: most of it is not managed",
                units::bytes(self.all),
                if self.is_dump { "in the dump" } else { "resident" },
                units::bytes(self.heap)
            )
        })
    }
}

/// The counters of memory in a recording of one process.
#[derive(Debug)]
pub(crate) struct MemoryCounters {
    counters: Counters,
    resident: f64,
    committed: Option<f64>,
    used: f64,
    /// The sizes of generations after the last collection, including free space.
    generations: [Option<f64>; 5],
}

/// The counters of the sizes of generations.
const GENERATIONS: [&str; 5] = ["gen-0-size", "gen-1-size", "gen-2-size", "loh-size", "poh-size"];

impl MemoryCounters {
    pub(crate) fn add(&mut self, event: &Event<'_>) {
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
    pub(crate) fn last(&self) -> Option<MemoryUse> {
        // .NET Core 3.1 and .NET 5 report the sizes of generations, but not the committed memory. Before the
        // first collection both are 0.
        let generations = self.generations.iter().flatten().copied().reduce(|sum, size| sum + size);
        MemoryUse::of_counters(self.resident, self.committed.or(generations)?.max(self.used))
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

/// Returns the resident memory of a process by the kernel.
#[cfg(not(unix))]
fn resident_bytes(_: u32) -> Option<u64> {
    None
}

/// Returns the resident memory of a process by the kernel.
#[cfg(unix)]
fn resident_bytes(pid: u32) -> Option<u64> {
    let status = linux_proc_stat::read(&linux_proc_stat::process_folder(pid).join("status")).ok()?;
    linux_proc_stat::Status::new(&status).resident_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_large_mostly_unmanaged_memory() {
        let leak = MemoryUse::resident(1_200_000_000, 48_000_000);
        let expected = "1.20 GB resident, 48.0 MB of it managed heap: most of it is not managed";
        assert_eq!(leak.mostly_other().as_deref(), Some(expected));
        let dump = MemoryUse { is_dump: true, ..leak };
        assert!(dump.mostly_other().unwrap().starts_with("1.20 GB in the dump, 48.0 MB of it managed heap"));
        let json = |of: MemoryUse| serde_json::to_string(&of).unwrap();
        assert_eq!(json(leak), r#"{"resident_bytes":1200000000,"heap_bytes":48000000}"#);
        let expected = r#"{"resident_bytes":null,"dump_bytes":1200000000,"heap_bytes":48000000}"#;
        assert_eq!(json(dump), expected);
        for (all, heap) in [(1_200_000_000, 700_000_000), (90_000_000, 5_000_000), (5_000_000, 90_000_000)] {
            assert_eq!(MemoryUse::resident(all, heap).mostly_other(), None, "{all}, {heap}");
        }
    }
}
