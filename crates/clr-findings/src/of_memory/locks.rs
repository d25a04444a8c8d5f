//! Locks and other waits of threads for threads.

use std::collections::{BTreeMap, BTreeSet};

use clr_dump::WaitedFor;
use clr_events::escape_controls;
use nettrace_export::units::counted;

use super::most_frequent;
use crate::finding::{Confidence, Details, Finding, FindingKind, Number, in_method};
use crate::memory_facts::{MemoryFacts, ThreadFacts, WaitFacts};
use crate::thresholds;

/// A thread or a suspended method of a deadlock.
struct Waiter<'m> {
    label: String,
    /// The thread; `None` of a suspended method.
    tid: Option<u64>,
    method: Option<&'m str>,
    wait: Option<&'m WaitFacts>,
}

impl<'m> Waiter<'m> {
    fn of(memory: &'m MemoryFacts, index: usize) -> Option<Self> {
        let of_thread = |thread: &'m ThreadFacts| Self {
            label: thread.label(),
            tid: Some(thread.tid),
            method: thread.method.as_deref(),
            wait: thread.wait.as_ref(),
        };
        let suspended = || {
            let of = memory.suspended.get(index.checked_sub(memory.threads.len())?)?;
            let label = format!("async {}", of.method);
            Some(Self { label, tid: None, method: Some(&of.method), wait: of.wait.as_ref() })
        };
        memory.thread(index).map(of_thread).or_else(suspended)
    }

    /// The method in which a thread waits, in words; that of a suspended method is its label.
    fn place(&self) -> String {
        in_method(self.method.filter(|_| self.tid.is_some()))
    }

    /// Returns true for the same thread, or a call of the same method, in another reading.
    fn is_same(&self, other: &Self) -> bool {
        self.tid == other.tid && (self.tid.is_some() || self.method == other.method)
    }
}

/// Threads and suspended methods that wait for each other in all readings.
pub(super) fn deadlocks(last: &MemoryFacts, earlier: &[MemoryFacts]) -> Vec<Finding> {
    let waiters = |memory, cycle: &[usize]| -> Vec<Waiter<'_>> {
        cycle.iter().filter_map(|index| Waiter::of(memory, *index)).collect()
    };
    let lasts = |cycle: &[usize]| {
        let cycle = waiters(last, cycle);
        earlier.iter().all(|memory| {
            let others: Vec<_> = memory.deadlocks.iter().flat_map(|other| waiters(memory, other)).collect();
            cycle.iter().all(|waiter| others.iter().any(|other| waiter.is_same(other)))
        })
    };
    last.deadlocks.iter().filter(|cycle| lasts(cycle)).map(|cycle| deadlock(last, cycle)).collect()
}

/// Locks that a thread holds while others wait, in all readings.
pub(super) fn held_locks(last: &MemoryFacts, earlier: &[MemoryFacts]) -> Vec<Finding> {
    let is_in_deadlock = |index: usize| last.deadlocks.iter().flatten().any(|other| *other == index);
    let lasts = |owner: usize| {
        let tid = last.thread(owner).map(|thread| thread.tid);
        let is_owner =
            |memory: &MemoryFacts, owner: usize| memory.thread(owner).map(|thread| thread.tid) == tid;
        earlier.iter().all(|memory| {
            lock_waiters(memory)
                .iter()
                .any(|(owner, waiters)| waiters.len() >= thresholds::MIN_WAITERS && is_owner(memory, *owner))
        })
    };
    lock_waiters(last)
        .into_iter()
        .filter(|(owner, waiters)| {
            waiters.len() >= thresholds::MIN_WAITERS && !is_in_deadlock(*owner) && lasts(*owner)
        })
        .filter_map(|(owner, waiters)| lock_holder(last, owner, &waiters))
        .collect()
}

fn deadlock(memory: &MemoryFacts, cycle: &[usize]) -> Finding {
    let waiters: Vec<_> = cycle.iter().filter_map(|index| Waiter::of(memory, *index)).collect();
    let method = waiters.iter().find_map(|waiter| waiter.method);
    let object = waiters.iter().find_map(|waiter| waiter.wait?.type_name.clone());
    let who = match waiters.as_slice() {
        [one] => format!("{} waits for itself", one.label),
        many => {
            let labels: Vec<_> = many.iter().map(|waiter| &*waiter.label).collect();
            format!("{} wait for each other", labels.join(" and "))
        }
    };
    let place = waiters.iter().map(Waiter::place).find(|place| !place.is_empty()).unwrap_or_default();
    let waits = waiters.iter().filter_map(|waiter| {
        Some(wait_in_words(waiter, &Waiter::of(memory, *waiter.wait?.owners.first()?)?))
    });
    let number = waiters.len() as f64;
    let is_likely = waiters.iter().any(|waiter| waiter.wait.is_some_and(|wait| wait.is_any));
    Finding::new(FindingKind::Deadlock, number, format!("Deadlock: {who}{place}"), Details::Locks)
        .with_confidence(if is_likely { Confidence::Likely } else { Confidence::Certain })
        .with_method(method.map(str::to_owned))
        .with_object(object)
        .with_evidence(waits.collect::<Vec<_>>())
        .with_numbers([Number::new("threads", number)])
}

/// The wait of a thread or a method for another one.
fn wait_in_words(waiter: &Waiter<'_>, owner: &Waiter<'_>) -> String {
    let what = waiter.wait.map_or_else(String::new, |wait| what(wait.kind, wait.type_name.as_deref()));
    format!("{}{} waits for {what} of {}", waiter.label, waiter.place(), owner.label)
}

pub(super) fn what(kind: WaitedFor, type_name: Option<&str>) -> String {
    match (kind, type_name) {
        (WaitedFor::Thread, _) => "the end".to_owned(),
        (WaitedFor::Task | WaitedFor::TaskInContext, _) => "a task".to_owned(),
        (kind, Some(name)) if !kind.is_lock() => escape_controls(name).into_owned(),
        (_, Some(name)) => format!("a lock ({})", escape_controls(name)),
        (_, None) => "a lock".to_owned(),
    }
}

/// The threads that wait for a lock, by the thread that holds it, directly or behind others that wait.
fn lock_waiters(memory: &MemoryFacts) -> BTreeMap<usize, Vec<usize>> {
    let mut waiters: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let owner_of = |index: usize| {
        let wait = memory.thread(index)?.wait.as_ref();
        let wait = wait.filter(|wait| wait.kind.is_lock() && !wait.kind.has_unknown_holder())?;
        wait.owners.first().copied()
    };
    for index in 0..memory.threads.len() {
        let Some(mut owner) = owner_of(index) else { continue };
        // A chain ends at the thread that does not wait; the length ends a cycle.
        for _ in 0..memory.threads.len() {
            match owner_of(owner) {
                Some(next) => owner = next,
                None => break,
            }
        }
        waiters.entry(owner).or_default().push(index);
    }
    waiters
}

/// The thread that holds a lock which others wait for.
fn lock_holder(memory: &MemoryFacts, owner: usize, waiters: &[usize]) -> Option<Finding> {
    let holder = memory.thread(owner)?;
    let first = memory.thread(*waiters.first()?)?;
    let lock = first.wait.as_ref().map(|wait| what(wait.kind, wait.type_name.as_deref()))?;
    let method = holder.method.clone().or_else(|| first.method.clone());
    let holds = match (&holder.method, &holder.called) {
        (Some(method), Some(called)) => format!(" in {method}, which is in {called}"),
        (Some(method), None) => format!(" in {method}"),
        (None, Some(called)) => format!(" in {called}"),
        (None, None) => String::new(),
    };
    let number = waiters.len() as f64;
    let waits_in: Vec<_> = waiters.iter().filter_map(|index| memory.thread(*index)?.method.clone()).collect();
    let evidence = most_frequent(&waits_in)
        .map(|(method, times)| format!("{} in {method}", counted(times, "thread waits", "threads wait")));
    let cause = format!(
        "{} for {lock} that {} holds{holds}",
        counted(waiters.len() as u64, "thread waits", "threads wait"),
        holder.label(),
    );
    Some(
        Finding::new(FindingKind::LockConvoy, number, cause, Details::Locks)
            .with_method(method)
            .with_object(first.wait.as_ref().and_then(|wait| wait.type_name.clone()))
            .with_waiting_methods(waits_in.into_iter().collect::<BTreeSet<_>>().into_iter().collect())
            .with_evidence(evidence)
            .with_numbers([Number::new("threads", number)]),
    )
}
