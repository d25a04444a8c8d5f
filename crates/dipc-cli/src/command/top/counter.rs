//! The words for counters that are shown in a line.

use dipc_collect::live::Counter;

use crate::render::units;

/// The counters: each with the label in text lines, the JSON name, and the unit.
const COUNTERS: [(Counter, &str, &str, &str); 8] = [
    (Counter::Cpu, "cpu", "cpu_percent", "% of all processors"),
    (Counter::Heap, "heap", "heap_bytes", "B"),
    (Counter::AllocationRate, "allocates", "allocated_bytes_per_s", "B/s"),
    (Counter::WorkingSet, "resident", "resident_bytes", "B"),
    (Counter::PoolThreads, "pool", "pool_threads", ""),
    (Counter::PoolQueue, "queued", "pool_queue", ""),
    (Counter::Exceptions, "exceptions", "exceptions_per_s", "/s"),
    (Counter::LockContentions, "lock waits", "lock_waits_per_s", "/s"),
];

/// Name and value for people.
pub(super) fn text(counter: Counter, value: f64) -> String {
    let words = COUNTERS.iter().find(|words| words.0 == counter);
    let (name, unit) = words.map_or(("", ""), |words| (words.1, words.3));
    let scaled = counter.scaled(value);
    let shown = if scaled.abs() < 1e3 { (scaled * 10.0).round() / 10.0 } else { scaled };
    format!("{name} {}", units::quantity(shown, unit))
}

/// The name in JSON.
pub(super) fn key(counter: Counter) -> &'static str {
    COUNTERS.iter().find(|words| words.0 == counter).map_or("", |words| words.2)
}
