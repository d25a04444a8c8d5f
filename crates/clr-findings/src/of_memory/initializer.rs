//! Static constructors that wait.

use clr_events::escape_controls;

use super::{Readings, is_waiting};
use crate::finding::{Confidence, Details, Finding, FindingKind, Number, waiting_constructor};
use crate::memory_facts::ThreadFacts;

/// Static constructors in which a thread waits in all readings. All threads that use the type wait for them.
pub(super) fn static_constructors(readings: &Readings<'_>) -> Vec<Finding> {
    let lasts = |thread: &&ThreadFacts| {
        readings.earlier.iter().all(|earlier| {
            earlier.same_thread(thread).is_some_and(|before| {
                before.initialized_type == thread.initialized_type && waits_in_constructor(before)
            })
        })
    };
    let waiting = readings.last.threads.iter().filter(|thread| waits_in_constructor(thread));
    waiting.filter(lasts).filter_map(|thread| static_constructor(readings, thread)).collect()
}

fn waits_in_constructor(thread: &ThreadFacts) -> bool {
    thread.initialized_type.is_some() && is_waiting(thread)
}

fn static_constructor(readings: &Readings<'_>, thread: &ThreadFacts) -> Option<Finding> {
    let initialized = escape_controls(thread.initialized_type.as_deref()?);
    let method = thread.method.as_deref()?;
    let called = thread.called.as_deref().map_or_else(String::new, |called| format!(", in {called}"));
    let cause = waiting_constructor(&initialized, &format!("{method}{called}"));
    let is_observed = !readings.earlier.is_empty();
    Some(
        Finding::new(FindingKind::StaticConstructor, 1.0, cause, Details::Stacks)
            .with_method(Some(method.to_owned()))
            .with_object(Some(initialized.into_owned()))
            .with_confidence(if is_observed { Confidence::Certain } else { Confidence::Likely })
            .with_evidence([format!("on {}", thread.label())])
            .with_numbers([Number::new("threads", 1.0)]),
    )
}
