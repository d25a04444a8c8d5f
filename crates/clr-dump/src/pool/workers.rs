//! The workers of the pool, as the pool counts them, and the limits of their number.
//!
//! # Source
//! dotnet/runtime `System.Private.CoreLib/src/System/Threading/PortableThreadPool.cs`,
//! `PortableThreadPool.ThreadCounts.cs`; for 3.1 dotnet/coreclr `src/vm/win32threadpool.h` (`ThreadCounter`),
//! `src/inc/dacvars.h`. Measured on 9.0.1 and 3.1.23.

use crate::heap::object::ObjectContent;
use crate::memory::address::Address;
use crate::memory::{MemoryResult, offset};
use crate::pool::{ThreadPool, number, value_of};

const TYPE: &str = "System.Threading.PortableThreadPool";
const INSTANCE: &str = "ThreadPoolInstance";
/// The offset of the counts in a `ThreadCounter`, after a cache line.
const COUNTS: u64 = 64;
/// The variables of the pool of .NET Core 3.1, in the order of the runtime's table.
const CPU: usize = 0;
const COUNTER: usize = 1;
const MIN: usize = 2;
const MAX: usize = 3;

/// The workers of the thread pool, as it counts them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolWorkers {
    /// The smallest number of workers that are made without delay.
    pub min: u64,
    /// The largest number of workers.
    pub max: u64,
    /// The number of workers.
    pub existing: u64,
    /// The number of workers that run work, or look for it.
    pub working: u64,
    /// The number of workers that may work at the same time, which hill climbing sets.
    pub goal: u64,
    /// The number of workers that wait for tasks; `None` before .NET 6, which does not count them.
    pub waiting_for_tasks: Option<u64>,
    /// The number of workers that were added because others wait for tasks; `None` before .NET 6.
    pub added_for_waits: Option<u64>,
    /// The processor time of the machine in percent, as the pool measured it last.
    pub cpu_percent: u64,
    /// The time at which a worker took work from the queues last: the lowest 32 bits of the milliseconds that
    /// `Environment.TickCount` counts. `None` if unknown.
    pub last_dispatch: Option<u32>,
}

impl ThreadPool<'_> {
    /// Reads the pool's own counts of its workers; `None` if the memory lacks them, or no work was queued
    /// yet.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// if let Some(workers) = dump.thread_pool().workers() {
    ///     println!("{} of {} workers run work, at most {}", workers.working, workers.existing, workers.max);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn workers(self) -> Option<PoolWorkers> {
        if let Some((pool, _)) = self.dump.statics().core_library_field(TYPE, INSTANCE) {
            return self.managed_workers(pool);
        }
        self.native_workers().ok().flatten()
    }

    /// The address of a variable of the pool, which is native code in .NET Core 3.1, counted from the first
    /// one; `None` in other versions.
    pub(super) fn native_variable(self, index: usize) -> Option<u64> {
        let layout = &self.runtime().layout;
        let first = (layout.major == 3).then(|| layout.slots.thread_store.checked_add(1))??;
        Some(self.runtime().slot(first.checked_add(index)?)).filter(|address| *address != 0)
    }

    fn native_workers(self) -> MemoryResult<Option<PoolWorkers>> {
        let variables = [CPU, COUNTER, MIN, MAX].map(|index| self.native_variable(index));
        let [Some(cpu), Some(counter), Some(min), Some(max)] = variables else { return Ok(None) };
        let memory = self.memory();
        let counts = memory.u64(offset(counter, COUNTS))?;
        let existing = part(counts, 1).saturating_add(part(counts, 3));
        Ok(Some(PoolWorkers {
            min: memory.u32(min)?.into(),
            max: memory.u32(max)?.into(),
            existing,
            working: part(counts, 2),
            goal: part(counts, 0),
            waiting_for_tasks: None,
            added_for_waits: None,
            cpu_percent: memory.u32(cpu)?.into(),
            last_dispatch: None,
        }))
    }

    fn managed_workers(self, pool: Address) -> Option<PoolWorkers> {
        let heap = self.dump.heap();
        let ObjectContent::Fields(fields) = heap.content(&heap.object_at(pool)?, 0).ok()? else {
            return None;
        };
        let field = |names: &[&str]| value_of(&fields, names).and_then(number);
        let count = |name: &str| field(&[name]).map(|count| u64::try_from(count).unwrap_or_default());
        let counts = field(&["_separated", "counts", "_data"])?.cast_unsigned();
        // Its name differs between versions.
        let last =
            ["lastDequeueTime", "lastDispatchTime"].iter().find_map(|name| field(&["_separated", name]));
        Some(PoolWorkers {
            min: count("_minThreads")?,
            max: count("_maxThreads")?,
            existing: part(counts, 1),
            working: part(counts, 0),
            goal: part(counts, 2),
            waiting_for_tasks: count("_numBlockedThreads"),
            added_for_waits: count("_numThreadsAddedDueToBlocking"),
            cpu_percent: count("_cpuUtilization")?,
            // Zero before the first work.
            last_dispatch: last.filter(|last| *last != 0).and_then(low_bits),
        })
    }
}

/// A number of 16 bits in a word; zero if it is negative.
fn part(word: u64, index: u32) -> u64 {
    let bits = word >> index.wrapping_mul(16) & 0xffff;
    if bits > 0x7fff { 0 } else { bits }
}

/// The lowest 32 bits of a number.
pub(super) fn low_bits(number: i64) -> Option<u32> {
    u32::try_from(number.cast_unsigned() & 0xffff_ffff).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::Dump;
    use crate::memory::tests::TestMemory;
    use crate::runtime::Runtime;
    use crate::runtime::layout::NET_3_1;

    #[test]
    fn reads_the_counts_of_the_native_pool() {
        let first = NET_3_1.slots.thread_store + 1;
        let slots: Vec<_> = (first..).zip([0x1000, 0x2000, 0x3000, 0x4000]).collect();
        let runtime = Runtime::of_slots(&NET_3_1, &slots);
        let mut memory = TestMemory::default();
        memory.put_words(0x1000, &[7]).put_words(0x3000, &[2]).put_words(0x4000, &[0x7fff]);
        memory.put_words(0x2000 + COUNTS, &[0x0001_0003_0004_0005]);
        let workers = Dump::new(&memory, &runtime).thread_pool().workers();
        let expected = PoolWorkers {
            min: 2,
            max: 0x7fff,
            existing: 5,
            working: 3,
            goal: 5,
            cpu_percent: 7,
            ..PoolWorkers::default()
        };
        assert_eq!(workers, Some(expected));
    }

    #[test]
    fn a_pool_that_is_not_in_memory_has_no_counts() {
        let runtime = Runtime::of_slots(&NET_3_1, &[]);
        assert_eq!(Dump::new(&TestMemory::default(), &runtime).thread_pool().workers(), None);
    }

    #[test]
    fn counts_below_zero_are_zero() {
        assert_eq!([0, 1, 2, 3].map(|index| part(0x7fff_8000_0001_ffff, index)), [0, 1, 0, 0x7fff]);
        assert_eq!(low_bits(-1), Some(u32::MAX));
    }
}
