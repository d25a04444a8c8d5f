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

/// A thread pool of which the workers are blocked in the user's code.
fn in_reading(memory: &MemoryFacts) -> Option<Finding> {
    let workers: Vec<_> = memory.threads.iter().filter(|thread| thread.is_pool_worker).collect();
    // Idle workers wait in the pool. Of others, the user's method can be missing.
    let is_blocked =
        |thread: &&&ThreadFacts| is_waiting(thread) && (thread.method.is_some() || thread.wait.is_some());
    let blocked: Vec<_> = workers.iter().filter(is_blocked).collect();
    if blocked.len() < thresholds::MIN_BLOCKED_WORKERS
        || share(blocked.len() as u64, workers.len() as u64) < thresholds::BLOCKED_WORKERS
    {
        return None;
    }
    let methods: Vec<_> = blocked.iter().filter_map(|thread| thread.method.clone()).collect();
    let (method, times) = most_frequent(&methods)?;
    let of_tasks =
        blocked.iter().filter(|thread| thread.wait.as_ref().is_some_and(|wait| wait.kind == WaitedFor::Task));
    let reason = if of_tasks.count().saturating_mul(2) >= blocked.len() {
        ", waiting for tasks: synchronous code over asynchronous"
    } else {
        ""
    };
    let all = if blocked.len() == workers.len() { "all" } else { "almost all" };
    let cause = format!(
        "The thread pool is starved: {all} {} workers are blocked, {times} of them in {method}{reason}",
        workers.len(),
    );
    let number = workers.len() as f64;
    Some(
        Finding::new(FindingKind::Starvation, number, cause, Details::Stacks)
            .with_method(Some(method.to_owned()))
            .with_numbers([Number::new("workers", number), Number::new("in_method", times as f64)]),
    )
}
