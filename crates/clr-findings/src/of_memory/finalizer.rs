//! The thread that runs finalizers.

use nettrace_export::units::{count, counted};

use super::locks::what;
use super::{Readings, is_waiting};
use crate::finding::{Confidence, Details, Finding, FindingKind, Number};
use crate::memory_facts::{MemoryFacts, ThreadFacts};
use crate::thresholds;

/// A thread of finalizers that is in the same method of the user's code in all readings, and is blocked
/// there, or does not keep up.
pub(super) fn finalizer(readings: &Readings<'_>) -> Option<Finding> {
    let thread = of(readings.last)?;
    let method = thread.method.as_deref()?;
    let is_same = |earlier| of(earlier).is_some_and(|before| before.method == thread.method);
    readings.earlier.iter().all(is_same).then_some(())?;
    let queue = readings.last.finalizable.unwrap_or_default();
    let first = readings.earlier.first().and_then(|earlier| earlier.finalizable);
    let grown = queue.saturating_sub(first.unwrap_or(queue));
    let is_behind = queue >= thresholds::MIN_FINALIZABLE && first.is_none_or(|first| queue >= first);
    let is_blocked = match readings.is_motionless(thread) {
        Some(is_motionless) => is_motionless && is_waiting(thread),
        None => is_waiting(thread) && thread.wait.is_some() && queue > 0,
    };
    (is_blocked || is_behind).then_some(())?;
    let waiting = counted(queue, "object waits", "objects wait");
    let called = thread.called.as_deref().map_or_else(String::new, |called| format!(", in {called}"));
    let cause = if is_blocked {
        let waits_for = wait_in_words(readings.last, thread).unwrap_or(called);
        format!("The finalizer thread is blocked in {method}{waits_for}: {waiting} for it")
    } else {
        format!("The finalizer thread is slow: it is in {method}{called}, while {waiting} for it")
    };
    let more = (grown > 0).then(|| format!("{} more than {}", count(grown), readings.seconds_before()));
    let details = if thread.wait.is_some() { Details::Locks } else { Details::Stacks };
    let is_observed = !readings.earlier.is_empty() && (is_blocked || grown > 0);
    Some(
        Finding::new(FindingKind::Finalizer, 1.0, cause, details)
            .with_method(Some(method.to_owned()))
            .with_object(thread.wait.as_ref().and_then(|wait| wait.type_name.clone()))
            .with_confidence(if is_observed { Confidence::Certain } else { Confidence::Likely })
            .with_evidence(more)
            .with_numbers([Number::new("objects", queue as f64), Number::new("growth", grown as f64)]),
    )
}

fn of(memory: &MemoryFacts) -> Option<&ThreadFacts> {
    memory.threads.iter().find(|thread| thread.is_finalizer && thread.method.is_some())
}

/// The lock that a thread waits for, with its holder.
fn wait_in_words(memory: &MemoryFacts, thread: &ThreadFacts) -> Option<String> {
    let wait = thread.wait.as_ref()?;
    let holder = wait.owners.first().and_then(|owner| memory.thread(*owner));
    let held = holder.map(|holder| {
        let place = holder.method.as_deref().map_or_else(String::new, |method| format!(" in {method}"));
        format!(" that {} holds{place}", holder.label())
    });
    let what = what(wait.kind, wait.type_name.as_deref());
    Some(format!(", waiting for {what}{}", held.unwrap_or_default()))
}
