//! Causes that memory shows.

mod awaits;
mod death;
mod events;
mod finalizer;
mod initializer;
mod locks;
mod pool;
mod semaphores;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use linux_proc_stat::{ProcessUsage, ThreadUsage};

use crate::finding::Finding;
use crate::memory_facts::{MemoryFacts, ThreadFacts};

/// Readings of memory.
#[derive(Debug, Clone)]
struct Readings<'r> {
    last: &'r MemoryFacts,
    /// The others, the oldest first.
    earlier: &'r [MemoryFacts],
    /// The threads that did not run between the first reading and the last; `None` if unknown.
    motionless: Option<BTreeSet<u64>>,
    /// The time between the first reading and the last; zero if unknown.
    seconds: f64,
}

/// Returns the causes that all readings show. A single reading of a running process can be of a moment. `usage` is the
/// kernel's account of the same time.
pub(crate) fn findings(readings: &[MemoryFacts], usage: &[ProcessUsage]) -> Vec<Finding> {
    let Some((last, earlier)) = readings.split_last() else { return Vec::new() };
    let readings = Readings::new(last, earlier, usage);
    let mut findings: Vec<_> = death::death(last).into_iter().collect();
    findings.extend(locks::deadlocks(last, earlier));
    findings.extend(locks::held_locks(last, earlier));
    findings.extend(pool::starvation(last, earlier));
    findings.extend(semaphores::stuck_waits(&readings));
    findings.extend(events::stuck_events(&readings));
    findings.extend(awaits::stuck_calls(&readings));
    findings.extend(finalizer::finalizer(&readings));
    findings.extend(initializer::static_constructors(&readings));
    findings
}

impl<'r> Readings<'r> {
    fn new(last: &'r MemoryFacts, earlier: &'r [MemoryFacts], usage: &[ProcessUsage]) -> Self {
        let (motionless, seconds) = match usage {
            [first, .., last] => {
                (motionless(first, last), last.at.saturating_duration_since(first.at).as_secs_f64())
            }
            _ => (None, 0.0),
        };
        Self { last, earlier, motionless, seconds }
    }

    /// Returns true if a thread did not run between the readings; `None` if unknown.
    fn is_motionless(&self, thread: &ThreadFacts) -> Option<bool> {
        Some(self.motionless.as_ref()?.contains(&thread.tid))
    }

    /// The same thread in an earlier reading.
    fn thread_before<'e>(&self, earlier: &'e MemoryFacts, thread: &ThreadFacts) -> Option<&'e ThreadFacts> {
        earlier.threads.iter().find(|other| other.tid == thread.tid)
    }

    /// The time between the readings in a sentence.
    fn seconds_before(&self) -> String {
        if self.seconds > 0.0 { format!("{:.1} s before", self.seconds) } else { "before".to_owned() }
    }
}

/// The threads that left a processor as often before as after, and have not run meanwhile; `None` if the kernel does
/// not count.
fn motionless(first: &ProcessUsage, last: &ProcessUsage) -> Option<BTreeSet<u64>> {
    let switches = |thread: &ThreadUsage| Some((thread.voluntary_switches?, thread.involuntary_switches?));
    let before: BTreeMap<_, _> =
        first.threads.iter().filter_map(|thread| Some((thread.tid, switches(thread)?))).collect();
    let is_motionless =
        |thread: &&ThreadUsage| switches(thread).is_some_and(|after| before.get(&thread.tid) == Some(&after));
    let of_last = last.threads.iter().filter(is_motionless).map(|thread| u64::from(thread.tid));
    (!before.is_empty()).then(|| of_last.collect())
}

/// Returns true if a thread waits in a method of the framework or of the runtime: code that is inlined has no frame.
fn is_waiting(thread: &ThreadFacts) -> bool {
    const WAITS: [&str; 8] = [
        "Task.Wait",
        "Task<",
        "TaskAwaiter",
        "Thread.Sleep",
        "Thread.Join",
        "WaitHandle.",
        "Monitor.",
        "ManualResetEventSlim.",
    ];
    let waits = |method: &str| WAITS.iter().any(|name| method.starts_with(name)) || method.contains(".Wait");
    thread.is_waiting || thread.wait.is_some() || thread.called.as_deref().is_some_and(waits)
}

/// The most frequent of some names, with its number.
pub(crate) fn most_frequent(names: &[String]) -> Option<(&str, u64)> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for name in names {
        let count = counts.entry(name).or_default();
        *count = count.saturating_add(1);
    }
    counts.into_iter().max_by_key(|(name, count)| (*count, std::cmp::Reverse(*name)))
}
