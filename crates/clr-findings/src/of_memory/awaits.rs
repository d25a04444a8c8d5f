//! Calls of `async` methods that await what no code completes.

use std::collections::HashSet;

use clr_dump::Address;
use nettrace_export::units::{count, counted};

use super::Readings;
use crate::finding::{Confidence, Details, Finding, FindingKind, Number};
use crate::memory_facts::{AwaitFacts, AwaitedFor, MemoryFacts, SemaphoreFacts};
use crate::thresholds;

/// Many calls of a method that await a task which no code of its own ends, or a semaphore with all permits
/// taken; the same calls in all readings. A service has a few that are idle: loops that await work.
pub(super) fn stuck_calls(readings: &Readings<'_>) -> Vec<Finding> {
    readings.last.awaits.iter().filter_map(|facts| stuck_call(readings, facts)).collect()
}

fn stuck_call(readings: &Readings<'_>, facts: &AwaitFacts) -> Option<Finding> {
    let before: Vec<_> = readings.earlier.iter().map(|earlier| calls_before(earlier, facts)).collect();
    let lasting = facts.calls.iter().filter(|call| before.iter().all(|calls| calls.contains(call))).count();
    let first = before.first().map(HashSet::len);
    let grown = first.map_or(0, |first| facts.calls.len().saturating_sub(first));
    let awaited = match facts.awaited {
        AwaitedFor::Promise => {
            let is_piling_up =
                grown >= thresholds::MIN_WAITERS && first.is_some_and(|first| lasting >= first);
            let are_many = lasting >= thresholds::MIN_STUCK_CALLS;
            let are_enough = are_many || (is_piling_up && lasting >= thresholds::MIN_WAITERS);
            (are_enough && (first.is_some() || are_most(readings.last, facts))).then_some(())?;
            let result = facts.type_name.split_once('<').map_or("", |(_, result)| result);
            let open = if result.is_empty() { "" } else { "<" };
            format!("a TaskCompletionSource{open}{result} that is not completed")
        }
        AwaitedFor::Semaphore => {
            let semaphore = facts.semaphore.filter(SemaphoreFacts::is_used_up)?;
            (lasting >= thresholds::MIN_WAITERS && !can_be_held(readings.last, facts)).then_some(())?;
            format!("{} that is not released", semaphore.in_words())
        }
        AwaitedFor::Other => return None,
    };
    let number = lasting as f64;
    let cause = format!(
        "{} of {} {} {awaited}",
        counted(lasting as u64, "call", "calls"),
        facts.method,
        if lasting == 1 { "awaits" } else { "await" },
    );
    let callers = (!facts.callers.is_empty()).then(|| format!("called by {}", facts.callers.join(", by ")));
    let lasts = first.is_some().then(|| format!("they are the same as {}", readings.seconds_before()));
    let begun = (grown > 0).then(|| format!("{} more have begun to await since then", count(grown as u64)));
    Some(
        Finding::new(FindingKind::StuckWait, number, cause, Details::Awaits)
            .with_method(Some(facts.method.clone()))
            .with_object(Some(facts.type_name.clone()))
            .with_confidence(Confidence::Likely)
            .with_evidence(callers.into_iter().chain(lasts).chain(begun))
            .with_numbers([Number::new("calls", number), Number::new("growth", grown as f64)]),
    )
}

/// The calls that await the same in another reading.
fn calls_before(earlier: &MemoryFacts, facts: &AwaitFacts) -> HashSet<Address> {
    let is_same = |other: &&AwaitFacts| {
        other.method == facts.method
            && other.state == facts.state
            && other.awaited == facts.awaited
            && other.type_name == facts.type_name
    };
    earlier.awaits.iter().filter(is_same).flat_map(|other| other.calls.iter().copied()).collect()
}

/// Returns true if these calls are as many as those that await what ends of itself, and can complete a task.
fn are_most(memory: &MemoryFacts, facts: &AwaitFacts) -> bool {
    facts.calls.len() as u64 >= memory.pending_operations()
}

/// Returns true if another call or a thread is in the method: it can have entered the semaphore.
fn can_be_held(memory: &MemoryFacts, facts: &AwaitFacts) -> bool {
    let is_past = |other: &AwaitFacts| other.method == facts.method && other.awaited != facts.awaited;
    let runs = |methods: &[String]| methods.iter().any(|method| method.starts_with(&facts.method));
    memory.awaits.iter().any(is_past) || memory.threads.iter().any(|thread| runs(&thread.methods))
}
