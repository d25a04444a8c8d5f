//! Threads that wait for semaphores which no thread releases.

use std::collections::BTreeMap;

use clr_dump::{Address, WaitedFor};
use nettrace_export::units::counted;

use super::{Readings, most_frequent};
use crate::finding::{Confidence, Details, Finding, FindingKind, Number};
use crate::memory_facts::{SemaphoreFacts, ThreadFacts};
use crate::thresholds;

/// The method by which threads enter a semaphore.
const WAIT: &str = "SemaphoreSlim.Wait";

/// Semaphores with all permits taken, for which the same threads wait in all readings. A semaphore without a
/// maximum that another method releases can count work: those who wait for it are idle.
pub(super) fn stuck_waits(readings: &Readings<'_>) -> Vec<Finding> {
    let mut waiters: BTreeMap<Address, Vec<&ThreadFacts>> = BTreeMap::new();
    for (object, thread) in
        readings.last.threads.iter().filter_map(|thread| Some((waits_for(thread)?, thread)))
    {
        if readings.stays(thread, 0.0, |thread| waits_for(thread).is_some()) {
            waiters.entry(object).or_default().push(thread);
        }
    }
    waiters.into_values().filter_map(|waiters| stuck_wait(readings, &waiters)).collect()
}

/// The semaphore that a thread of the user's code waits for, if it is used up.
fn waits_for(thread: &ThreadFacts) -> Option<Address> {
    let calls_wait = thread.method.is_some() && thread.called.as_deref()?.starts_with(WAIT);
    let wait = thread.wait.as_ref().filter(|wait| calls_wait && wait.kind == WaitedFor::Semaphore)?;
    wait.semaphore.as_ref().is_some_and(SemaphoreFacts::is_used_up).then_some(wait.object)
}

fn stuck_wait(readings: &Readings<'_>, waiters: &[&ThreadFacts]) -> Option<Finding> {
    let wait = waiters.first()?.wait.as_ref()?;
    let semaphore = wait.semaphore?;
    let methods: Vec<_> = waiters.iter().filter_map(|thread| thread.method.clone()).collect();
    let (method, _) = most_frequent(&methods)?;
    // A thread in one of these methods can have entered.
    let can_hold = |thread: &&ThreadFacts| {
        let is_waiter = waits_for(thread) == Some(wait.object);
        !is_waiter && thread.methods.iter().any(|of| methods.contains(of))
    };
    let holder = readings.last.threads.iter().find(can_hold);
    let motionless = readings.motionless(waiters);
    if waiters.len() < thresholds::MIN_WAITERS || (holder.is_some() && motionless.is_none()) {
        return None;
    }
    let released = holder.map_or_else(
        || "is not released".to_owned(),
        |holder| format!("{} may hold, past its wait", holder.label()),
    );
    let number = waiters.len() as f64;
    let cause = format!(
        "{} in {method} for {} that {released}",
        counted(waiters.len() as u64, "thread waits", "threads wait"),
        semaphore.in_words(),
    );
    let nobody = holder.is_none().then(|| format!("none of them is taken by a thread in {method}"));
    Some(
        Finding::new(FindingKind::StuckWait, number, cause, Details::Locks)
            .with_method(Some(method.to_owned()))
            .with_object(wait.type_name.clone())
            .with_confidence(Confidence::Likely)
            .with_evidence(motionless.into_iter().chain(nobody))
            .with_numbers(
                [Number::new("threads", number)]
                    .into_iter()
                    .chain(semaphore.maximum.map(|permits| Number::new("permits", permits as f64)))
                    .collect::<Vec<_>>(),
            ),
    )
}
