//! The counters that are shown in a line.

use clr_counters::Series;

use crate::render::units;

/// A counter of `System.Runtime`, which .NET Core 3.0 and later have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Counter {
    Cpu,
    Heap,
    AllocationRate,
    WorkingSet,
    PoolThreads,
    PoolQueue,
    Exceptions,
    LockContentions,
}

/// The counters: each with the runtime's name, the label in text lines, the JSON name, the unit, and the
/// factor to multiply the runtime's value by.
const COUNTERS: [(Counter, &str, &str, &str, &str, f64); 8] = [
    (Counter::Cpu, "cpu-usage", "cpu", "cpu_percent", "% of all processors", 1.0),
    (Counter::Heap, "gc-heap-size", "heap", "heap_bytes", "B", 1e6),
    (Counter::AllocationRate, "alloc-rate", "allocates", "allocated_bytes_per_s", "B/s", 1.0),
    (Counter::WorkingSet, "working-set", "resident", "resident_bytes", "B", 1e6),
    (Counter::PoolThreads, "threadpool-thread-count", "pool", "pool_threads", "", 1.0),
    (Counter::PoolQueue, "threadpool-queue-length", "queued", "pool_queue", "", 1.0),
    (Counter::Exceptions, "exception-count", "exceptions", "exceptions_per_s", "/s", 1.0),
    (Counter::LockContentions, "monitor-lock-contention-count", "lock waits", "lock_waits_per_s", "/s", 1.0),
];

impl Counter {
    /// The counter of a series; `None` for any other series.
    pub(super) fn of(series: &Series) -> Option<Self> {
        if series.provider != "System.Runtime" {
            return None;
        }
        COUNTERS.iter().find(|counter| counter.1 == series.name).map(|counter| counter.0)
    }

    /// The number in the base unit.
    pub(super) fn scaled(self, value: f64) -> f64 {
        let scale = COUNTERS.iter().find(|counter| counter.0 == self).map_or(1.0, |counter| counter.5);
        value * scale
    }

    /// Name and value for people.
    pub(super) fn text(self, value: f64) -> String {
        let (name, unit) = COUNTERS
            .iter()
            .find(|counter| counter.0 == self)
            .map_or(("", ""), |counter| (counter.2, counter.4));
        let scaled = self.scaled(value);
        let shown = if scaled.abs() < 1e3 { (scaled * 10.0).round() / 10.0 } else { scaled };
        format!("{name} {}", units::quantity(shown, unit))
    }

    /// The name in JSON.
    pub(super) fn key(self) -> &'static str {
        COUNTERS.iter().find(|counter| counter.0 == self).map_or("", |counter| counter.3)
    }
}
