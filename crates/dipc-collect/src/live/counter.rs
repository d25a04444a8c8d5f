//! The runtime's own counters that an interval has.

use clr_counters::Series;

/// The provider of the runtime's own counters.
pub(super) const PROVIDER: &str = "System.Runtime";

/// A counter of `System.Runtime`, which .NET Core 3.0 and later have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Counter {
    /// The processor time of the process, in percent of all processors.
    Cpu,
    /// The size of the managed heap, in bytes.
    Heap,
    /// Bytes allocated per second.
    AllocationRate,
    /// The resident memory of the process, in bytes.
    WorkingSet,
    /// Threads of the thread pool.
    PoolThreads,
    /// Waiting work items of the thread pool.
    PoolQueue,
    /// Exceptions per second.
    Exceptions,
    /// Waits for locks per second.
    LockContentions,
}

/// The counters: each with the runtime's name, and the factor to multiply the runtime's value by.
const COUNTERS: [(Counter, &str, f64); 8] = [
    (Counter::Cpu, "cpu-usage", 1.0),
    (Counter::Heap, "gc-heap-size", 1e6),
    (Counter::AllocationRate, "alloc-rate", 1.0),
    (Counter::WorkingSet, "working-set", 1e6),
    (Counter::PoolThreads, "threadpool-thread-count", 1.0),
    (Counter::PoolQueue, "threadpool-queue-length", 1.0),
    (Counter::Exceptions, "exception-count", 1.0),
    (Counter::LockContentions, "monitor-lock-contention-count", 1.0),
];

impl Counter {
    /// The counter of a series; `None` for any other series.
    pub(super) fn of(series: &Series) -> Option<Self> {
        if series.provider != PROVIDER {
            return None;
        }
        COUNTERS.iter().find(|counter| counter.1 == series.name).map(|counter| counter.0)
    }

    /// Converts the runtime's value to the base unit.
    pub fn scaled(self, value: f64) -> f64 {
        let scale = COUNTERS.iter().find(|counter| counter.0 == self).map_or(1.0, |counter| counter.2);
        value * scale
    }
}
