//! The thread pool.

use clr_dump::WaitedFor;
use nettrace_export::units::share;

use super::{is_waiting, most_frequent};
use crate::finding::{Details, Finding, FindingKind, Number};
use crate::memory_facts::{MemoryFacts, ThreadFacts};
use crate::thresholds;

/// A thread pool that is starved in the same method in all readings.
pub(super) fn starvation(last: &MemoryFacts, earlier: &[MemoryFacts]) -> Option<Finding> {
    let is_same = |memory: &MemoryFacts, method: &Option<String>| {
        in_reading(memory).is_some_and(|finding| finding.method == *method)
    };
    in_reading(last).filter(|finding| earlier.iter().all(|memory| is_same(memory, &finding.method)))
}

/// The workers of the thread pool that are blocked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockedWorkers {
    /// The number of the pool's threads.
    pub workers: u64,
    /// The number of those that wait in the user's code, or for an object of it.
    pub blocked: u64,
    /// The method of the user's code in which most of them wait, with their number.
    pub method: Option<(String, u64)>,
    /// True if at least half of them wait for tasks: synchronous code over asynchronous.
    pub wait_for_tasks: bool,
}

impl BlockedWorkers {
    /// Returns true if enough workers are blocked for the pool to be starved once work waits.
    pub fn are_most(&self) -> bool {
        self.blocked >= thresholds::MIN_BLOCKED_WORKERS as u64
            && share(self.blocked, self.workers) >= thresholds::BLOCKED_WORKERS
    }

    /// The method and the reason in words, for the end of a sentence.
    pub fn in_words(&self) -> String {
        let Some((method, times)) = &self.method else { return String::new() };
        let reason =
            if self.wait_for_tasks { ", waiting for tasks: synchronous code over asynchronous" } else { "" };
        format!("{times} of them in {method}{reason}")
    }
}

impl MemoryFacts {
    /// Returns the workers of the thread pool that are blocked.
    pub fn blocked_workers(&self) -> BlockedWorkers {
        let workers: Vec<_> = self.threads.iter().filter(|thread| thread.is_pool_worker).collect();
        // Idle workers wait in the pool. Of others, the user's method can be missing.
        let is_blocked =
            |thread: &&&ThreadFacts| is_waiting(thread) && (thread.method.is_some() || thread.wait.is_some());
        let blocked: Vec<_> = workers.iter().filter(is_blocked).collect();
        let methods: Vec<_> = blocked.iter().filter_map(|thread| thread.method.clone()).collect();
        let of_tasks = blocked
            .iter()
            .filter(|thread| thread.wait.as_ref().is_some_and(|wait| wait.kind == WaitedFor::Task))
            .count();
        BlockedWorkers {
            workers: workers.len() as u64,
            blocked: blocked.len() as u64,
            method: most_frequent(&methods).map(|(method, times)| (method.to_owned(), times)),
            wait_for_tasks: of_tasks > 0 && of_tasks.saturating_mul(2) >= blocked.len(),
        }
    }
}

/// A thread pool of which the workers are blocked in the user's code.
fn in_reading(memory: &MemoryFacts) -> Option<Finding> {
    let of = memory.blocked_workers();
    let (method, times) = of.method.as_ref().filter(|_| of.are_most())?;
    let all = if of.blocked == of.workers { "all" } else { "almost all" };
    let cause =
        format!("The thread pool is starved: {all} {} workers are blocked, {}", of.workers, of.in_words());
    let number = of.workers as f64;
    Some(
        Finding::new(FindingKind::Starvation, number, cause, Details::Stacks)
            .with_method(Some(method.clone()))
            .with_numbers([Number::new("workers", number), Number::new("in_method", *times as f64)]),
    )
}
