//! Threads that wait for events and tasks which no code signals, and for what is not given back.

use std::collections::BTreeMap;

use clr_dump::WaitedFor;
use nettrace_export::units::counted;

use super::{Readings, is_waiting};
use crate::finding::{Confidence, Details, Finding, FindingKind, Number};
use crate::memory_facts::ThreadFacts;
use crate::thresholds;

/// The type of a `Mutex` in C#.
const MUTEX: &str = "System.Threading.Mutex";

/// An event that threads signal for one another, or a resource that they give back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Barrier,
    Countdown,
    /// A task that no code of its own ends.
    Promise,
    /// A `Mutex`.
    Mutex,
    /// A place in a `BlockingCollection` with a bound.
    Place,
}

impl Event {
    /// The event that a thread of the user's code waits for. Events of other kinds can stand for work to
    /// come.
    fn of(thread: &ThreadFacts) -> Option<Self> {
        thread.method.as_ref()?;
        let called = thread.called.as_deref().unwrap_or_default();
        match &thread.wait {
            _ if called.starts_with("Barrier.SignalAndWait") => Some(Self::Barrier),
            _ if called.starts_with("CountdownEvent.Wait") => Some(Self::Countdown),
            _ if called.starts_with("BlockingCollection<") && called.contains("Add") => Some(Self::Place),
            Some(wait) if wait.kind == WaitedFor::Task && wait.is_promise => Some(Self::Promise),
            // Other objects can be waited for by the same method.
            Some(wait) if wait.kind == WaitedFor::Mutex && wait.type_name.as_deref() == Some(MUTEX) => {
                Some(Self::Mutex)
            }
            _ => None,
        }
    }

    const fn in_words(self) -> &'static str {
        match self {
            Self::Barrier => "a Barrier that the other participants do not reach",
            Self::Countdown => "a CountdownEvent that is not signaled often enough",
            Self::Promise => "a TaskCompletionSource that is not completed",
            Self::Mutex => "a Mutex that is not released",
            Self::Place => "a place in a BlockingCollection that is full",
        }
    }

    /// Maximum number of times per second that a thread which waits for it runs: at a barrier it polls, at
    /// growing intervals.
    const fn max_runs(self) -> f64 {
        match self {
            Self::Barrier => 10.0,
            Self::Countdown | Self::Promise | Self::Mutex | Self::Place => 0.0,
        }
    }

    /// Minimum number of threads: one that waits for a task can be the one that waits for the program's end.
    const fn min_waiters(self) -> usize {
        match self {
            Self::Barrier | Self::Countdown | Self::Place => 1,
            Self::Promise | Self::Mutex => thresholds::MIN_WAITERS,
        }
    }
}

/// Events for which the same threads wait in all readings while no thread is at work that could signal them.
pub(super) fn stuck_events(readings: &Readings<'_>) -> Vec<Finding> {
    let mut waiters: BTreeMap<(Event, &str), Vec<&ThreadFacts>> = BTreeMap::new();
    for thread in &readings.last.threads {
        let (Some(event), Some(method)) = (Event::of(thread), &thread.method) else { continue };
        if readings.stays(thread, event.max_runs(), |thread| Event::of(thread) == Some(event)) {
            waiters.entry((event, method)).or_default().push(thread);
        }
    }
    let stuck = |(event, _): &(Event, &str), waiters: &Vec<&ThreadFacts>| {
        // Operations that end can signal it.
        let pending = readings.last.pending_operations();
        let cannot_end = match event {
            Event::Promise => {
                !readings.earlier.is_empty() || waiters.len() as u64 >= pending.saturating_mul(2)
            }
            Event::Barrier => are_alone(readings, waiters),
            Event::Countdown => pending == 0 && are_alone(readings, waiters),
            // At a moment, its holder or consumer can be at work.
            Event::Mutex | Event::Place => !readings.earlier.is_empty(),
        };
        waiters.len() >= event.min_waiters() && cannot_end
    };
    waiters
        .into_iter()
        .filter(|(key, waiters)| stuck(key, waiters))
        .map(|((event, method), waiters)| stuck_event(readings, event, method, &waiters))
        .collect()
}

/// Returns true if all other threads of the user's code wait, too, and in other methods.
fn are_alone(readings: &Readings<'_>, waiters: &[&ThreadFacts]) -> bool {
    let is_other = |thread: &&ThreadFacts| !waiters.iter().any(|waiter| waiter.tid == thread.tid);
    let is_elsewhere = |thread: &ThreadFacts| {
        is_waiting(thread)
            && !waiters.iter().any(|waiter| thread.methods.iter().any(|of| waiter.methods.contains(of)))
    };
    let mut others = readings.last.threads.iter().filter(is_other).filter(|thread| thread.method.is_some());
    others.all(is_elsewhere)
}

fn stuck_event(readings: &Readings<'_>, event: Event, method: &str, waiters: &[&ThreadFacts]) -> Finding {
    let number = waiters.len() as f64;
    let threads = counted(waiters.len() as u64, "thread waits", "threads wait");
    let cause = format!("{threads} in {method} for {}", event.in_words());
    let others = matches!(event, Event::Barrier | Event::Countdown)
        .then(|| "all other threads of the program wait, too".to_owned());
    Finding::new(FindingKind::StuckWait, number, cause, Details::Stacks)
        .with_method(Some(method.to_owned()))
        .with_confidence(Confidence::Likely)
        .with_evidence(readings.motionless(waiters).into_iter().chain(others))
        .with_numbers([Number::new("threads", number)])
}
