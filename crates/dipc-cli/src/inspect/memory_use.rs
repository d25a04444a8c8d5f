//! The memory of a process, and the part of it that is the managed heap.

use clr_counters::ProcessMemory;
use serde::{Serialize, Serializer};

use crate::inspect::core_source::Source;
use crate::render::units;

/// Minimum memory outside the managed heap that is mentioned, in bytes: the runtime and its libraries take up
/// to this much in small programs.
const MIN_OTHER_BYTES: u64 = 100_000_000;

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

impl From<ProcessMemory> for MemoryUse {
    fn from(memory: ProcessMemory) -> Self {
        Self::resident(memory.resident, memory.heap)
    }
}

impl MemoryUse {
    /// Resident memory with the committed bytes of the heap.
    pub(crate) const fn resident(all: u64, heap: u64) -> Self {
        Self { all, heap, is_dump: false }
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
