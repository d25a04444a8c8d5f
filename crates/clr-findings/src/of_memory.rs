//! Causes that memory shows.

mod awaits;
mod death;
mod events;
mod finalizer;
mod initializer;
mod locks;
pub(crate) mod pool;
mod semaphores;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use linux_proc_stat::{ProcessUsage, ThreadUsage};

use crate::finding::Finding;
use crate::memory_facts::{MemoryFacts, ThreadFacts};

/// Readings of memory.
#[derive(Debug, Clone)]
struct Readings<'r> {
    last: &'r MemoryFacts,
    /// The others, the oldest first.
    earlier: &'r [MemoryFacts],
    /// The number of times that threads began to run between the first reading and the last, keyed by thread
    /// id; `None` if unknown.
    runs: Option<BTreeMap<u64, u64>>,
    /// The time between the first reading and the last; zero if unknown.
    seconds: f64,
}

/// Returns the causes that all readings show. A single reading of a running process can be of a moment.
/// `usage` is the kernel's account of the same time.
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
        let (runs, seconds) = match usage {
            [first, .., last] => {
                (runs(first, last), last.at.saturating_duration_since(first.at).as_secs_f64())
            }
            _ => (None, 0.0),
        };
        Self { last, earlier, runs, seconds }
    }

    /// Returns true if a thread did not run between the readings; `None` if unknown.
    fn is_motionless(&self, thread: &ThreadFacts) -> Option<bool> {
        self.runs_at_most(thread, 0.0)
    }

    /// Returns true if a thread ran at most this often per second between the readings; `None` if unknown.
    fn runs_at_most(&self, thread: &ThreadFacts, per_second: f64) -> Option<bool> {
        // A process of a container has other ids there.
        let runs = *self.runs.as_ref()?.get(&thread.tid)?;
        Some(runs as f64 <= per_second * self.seconds)
    }

    /// Returns true if `waits` holds for a thread in all readings, and it ran at most this often per second
    /// meanwhile, as far as is known.
    fn stays(&self, thread: &ThreadFacts, per_second: f64, waits: impl Fn(&ThreadFacts) -> bool) -> bool {
        let waited = |earlier: &MemoryFacts| {
            earlier.same_thread(thread).is_some_and(|before| before.method == thread.method && waits(before))
        };
        waits(thread)
            && self.earlier.iter().all(waited)
            && self.runs_at_most(thread, per_second) != Some(false)
    }

    /// The sentence that no thread moved, if that is known of all of them.
    fn motionless(&self, threads: &[&ThreadFacts]) -> Option<String> {
        let are_motionless = threads.iter().all(|thread| self.is_motionless(thread) == Some(true));
        are_motionless.then(|| format!("none of the threads ran for {:.1} s", self.seconds))
    }

    /// The time between the readings in a sentence.
    fn seconds_before(&self) -> String {
        if self.seconds > 0.0 { format!("{:.1} s before", self.seconds) } else { "before".to_owned() }
    }
}

/// The number of times that threads left a processor, and so had begun to run; `None` if the kernel does not
/// count.
fn runs(first: &ProcessUsage, last: &ProcessUsage) -> Option<BTreeMap<u64, u64>> {
    let switches =
        |thread: &ThreadUsage| Some(thread.voluntary_switches?.saturating_add(thread.involuntary_switches?));
    let before: BTreeMap<_, _> =
        first.threads.iter().filter_map(|thread| Some((thread.tid, switches(thread)?))).collect();
    let runs = |thread: &ThreadUsage| {
        let since = switches(thread)?.saturating_sub(*before.get(&thread.tid)?);
        Some((u64::from(thread.tid), since))
    };
    (!before.is_empty()).then(|| last.threads.iter().filter_map(runs).collect())
}

/// Returns true if a thread waits in a method of the framework or of the runtime: code that is inlined has no
/// frame.
pub(crate) fn is_waiting(thread: &ThreadFacts) -> bool {
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
