//! Causes that memory shows.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use clr_dump::{DeathCause, WaitedFor};
use clr_events::escape_controls;
use nettrace_export::units::counted;

use crate::finding::{Confidence, Details, Finding, FindingKind, Number};
use crate::memory_facts::{MemoryFacts, ThreadFacts};
use crate::thresholds;

/// Returns the causes that all readings show. A single reading of a running process can be of a moment.
pub(crate) fn findings(readings: &[MemoryFacts]) -> Vec<Finding> {
    let Some((last, earlier)) = readings.split_last() else { return Vec::new() };
    let lasts = |is_in: &dyn Fn(&MemoryFacts) -> bool| earlier.iter().all(is_in);
    let mut findings: Vec<_> = death(last).into_iter().collect();
    findings.extend(
        last.deadlocks
            .iter()
            .filter(|cycle| {
                let tids: Vec<_> =
                    cycle.iter().filter_map(|index| last.thread(*index)).map(|thread| thread.tid).collect();
                lasts(&|memory| {
                    tids.iter().all(|tid| {
                        memory
                            .deadlocks
                            .iter()
                            .flatten()
                            .any(|index| memory.thread(*index).is_some_and(|thread| thread.tid == *tid))
                    })
                })
            })
            .map(|cycle| deadlock(last, cycle)),
    );
    let in_deadlock = |index: usize| last.deadlocks.iter().flatten().any(|other| *other == index);
    for (owner, waiters) in lock_waiters(last) {
        let tid = last.thread(owner).map(|thread| thread.tid);
        let is_there = |memory: &MemoryFacts| {
            lock_waiters(memory).iter().any(|(owner, waiters)| {
                waiters.len() >= thresholds::MIN_WAITERS
                    && memory.thread(*owner).map(|thread| thread.tid) == tid
            })
        };
        if waiters.len() >= thresholds::MIN_WAITERS && !in_deadlock(owner) && lasts(&is_there) {
            findings.extend(lock_holder(last, owner, &waiters));
        }
    }
    findings.extend(starvation(last).filter(|finding| {
        lasts(&|memory| starvation(memory).is_some_and(|earlier| earlier.method == finding.method))
    }));
    findings
}

/// The end of the process.
fn death(memory: &MemoryFacts) -> Option<Finding> {
    let death = memory.death.as_ref()?;
    let thread = memory.threads.iter().find(|thread| thread.tid == death.tid);
    let exception =
        thread.and_then(|thread| thread.exception.as_ref()).map(|(name, message)| match message {
            Some(message) => format!("{}: {}", escape_controls(name), escape_controls(message)),
            None => escape_controls(name).into_owned(),
        });
    let method = thread.and_then(|thread| thread.method.clone());
    let what = match (&death.cause, &exception) {
        (DeathCause::UnhandledException, Some(exception)) => {
            format!("died of an unhandled exception: {exception}")
        }
        (DeathCause::UnhandledException, None) => "died of an unhandled exception".to_owned(),
        (DeathCause::OnlyException, Some(exception)) => format!("died, and one thread threw {exception}"),
        (DeathCause::FailFast(Some(message)), _) => {
            format!("ended itself by Environment.FailFast: {}", escape_controls(message))
        }
        (DeathCause::FailFast(None), _) => "ended itself by Environment.FailFast".to_owned(),
        (DeathCause::StackOverflow(frames), _) => {
            format!("died of a stack overflow of {}", counted(*frames as u64, "frame", "frames"))
        }
        (DeathCause::Signal(signal), _) => format!("died of signal {signal}"),
        _ => "died".to_owned(),
    };
    let place = method.as_deref().map_or_else(String::new, |method| format!(", in {method}"));
    let confidence =
        if death.cause == DeathCause::OnlyException { Confidence::Likely } else { Confidence::Certain };
    Some(
        Finding::new(FindingKind::Death, f64::MAX, format!("The process {what}{place}"), Details::Exceptions)
            .with_method(method)
            .with_object(exception)
            .with_evidence(thread.map(|thread| format!("on {}", thread.label())))
            .with_confidence(confidence),
    )
}

fn deadlock(memory: &MemoryFacts, cycle: &[usize]) -> Finding {
    let threads: Vec<_> = cycle.iter().filter_map(|index| memory.thread(*index)).collect();
    let method = threads.iter().find_map(|thread| thread.method.clone());
    let object = threads.iter().find_map(|thread| thread.wait.as_ref()?.type_name.clone());
    let who = match threads.as_slice() {
        [one] => format!("{} waits for itself", one.label()),
        many => {
            let labels: Vec<_> = many.iter().map(|thread| thread.label()).collect();
            format!("{} wait for each other", labels.join(" and "))
        }
    };
    let place = method.as_deref().map_or_else(String::new, |method| format!(" in {method}"));
    let waits = threads
        .iter()
        .filter_map(|thread| Some(wait_in_words(memory, thread, *thread.wait.as_ref()?.owners.first()?)));
    let number = threads.len() as f64;
    Finding::new(FindingKind::Deadlock, number, format!("Deadlock: {who}{place}"), Details::Locks)
        .with_method(method)
        .with_object(object)
        .with_evidence(waits.collect::<Vec<_>>())
        .with_numbers([Number::new("threads", number)])
}

/// A wait of a thread for another one.
fn wait_in_words(memory: &MemoryFacts, thread: &ThreadFacts, owner: usize) -> String {
    let method = thread.method.as_deref().map_or_else(String::new, |method| format!(" in {method}"));
    let what =
        thread.wait.as_ref().map_or_else(String::new, |wait| what(wait.kind, wait.type_name.as_deref()));
    let owner = memory.thread(owner).map_or_else(String::new, |owner| format!(" of {}", owner.label()));
    format!("{}{method} waits for {what}{owner}", thread.label())
}

fn what(kind: WaitedFor, type_name: Option<&str>) -> String {
    match (kind, type_name) {
        (WaitedFor::Thread, _) => "the end".to_owned(),
        (WaitedFor::Task | WaitedFor::TaskInContext, _) => "a task".to_owned(),
        (_, Some(name)) => format!("a lock ({})", escape_controls(name)),
        (_, None) => "a lock".to_owned(),
    }
}

/// The threads that wait for a lock, by the thread that holds it, directly or behind others that wait.
fn lock_waiters(memory: &MemoryFacts) -> BTreeMap<usize, Vec<usize>> {
    let mut waiters: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let owner_of = |index: usize| {
        let wait = memory.thread(index)?.wait.as_ref().filter(|wait| wait.kind.is_lock())?;
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
    let waits_in = most_frequent(&waits_in)
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
            .with_evidence(waits_in)
            .with_numbers([Number::new("threads", number)]),
    )
}

/// A thread pool of which all workers are blocked in the user's code.
fn starvation(memory: &MemoryFacts) -> Option<Finding> {
    let workers: Vec<_> = memory.threads.iter().filter(|thread| thread.is_pool_worker).collect();
    let is_blocked = |thread: &&&ThreadFacts| {
        let waits = thread.wait.is_some() || thread.called.as_deref().is_some_and(waits);
        thread.method.is_some() && waits
    };
    let blocked: Vec<_> = workers.iter().filter(is_blocked).collect();
    if blocked.len() < thresholds::MIN_BLOCKED_WORKERS || blocked.len() < workers.len() {
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
    let cause = format!(
        "The thread pool is starved: all {} workers are blocked, {times} of them in {method}{reason}",
        workers.len(),
    );
    let number = workers.len() as f64;
    Some(
        Finding::new(FindingKind::Starvation, number, cause, Details::Stacks)
            .with_method(Some(method.to_owned()))
            .with_numbers([Number::new("workers", number), Number::new("in_method", times as f64)]),
    )
}

/// Returns true for a method of the framework that waits.
fn waits(method: &str) -> bool {
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
    WAITS.iter().any(|name| method.starts_with(name)) || method.contains(".Wait")
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
