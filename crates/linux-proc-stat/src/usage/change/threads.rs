//! The processor time of a process and its threads between two readings.

use std::collections::BTreeMap;

use super::Rates;
use crate::usage::{ProcessUsage, ThreadUsage};

/// The processor time of a process between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct ProcessCpu {
    /// Processor time, in cores: 1 is a whole processor.
    pub cores: Option<f64>,
    /// Processor time in user mode, in cores.
    pub user_cores: Option<f64>,
    /// Processor time in kernel mode, in cores.
    pub system_cores: Option<f64>,
    /// The part of the processors that the process could have used, from 0 to 1.
    pub share_of_usable: Option<f64>,
    /// The mean number of threads that were runnable and had no processor, of the threads that still run.
    pub run_queue: Option<f64>,
    /// The share of their runnable time, from 0 to 1, in which these threads had no processor; `None` if none
    /// was runnable.
    pub run_queue_share: Option<f64>,
    /// The mean number of threads that waited for block devices, of the threads that still run.
    pub io_delay: Option<f64>,
    /// Switches per second because threads began to wait, of the threads that still run.
    pub voluntary_switches_per_second: Option<f64>,
    /// Switches per second because other threads were to run, of the threads that still run.
    pub involuntary_switches_per_second: Option<f64>,
}

/// A thread between two readings.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ThreadChange {
    /// The thread, in the reader's pid namespace.
    pub tid: u32,
    /// The name of the second reading.
    pub name: String,
    /// The kernel's letter for the state at the second reading.
    pub state: Option<char>,
    /// True if it is not in the first reading.
    pub is_new: bool,
    /// Processor time, from 0 to 1.
    pub cores: Option<f64>,
    /// Processor time in user mode, from 0 to 1.
    pub user_cores: Option<f64>,
    /// Processor time in kernel mode, from 0 to 1.
    pub system_cores: Option<f64>,
    /// The share of time, from 0 to 1, in which it was runnable and did not run.
    pub run_queue: Option<f64>,
    /// The share of time, from 0 to 1, in which it waited for block devices.
    pub io_delay: Option<f64>,
    /// Switches per second because it began to wait.
    pub voluntary_switches_per_second: Option<f64>,
    /// Switches per second because another thread was to run.
    pub involuntary_switches_per_second: Option<f64>,
}

/// The threads of the second reading, and their sums.
pub(super) struct Threads {
    pub(super) list: Vec<ThreadChange>,
    pub(super) started: u64,
    pub(super) ended: u64,
    pub(super) run_queue: Option<f64>,
    /// Of the threads that have a run queue's time.
    pub(super) cores: f64,
    pub(super) io_delay: Option<f64>,
    pub(super) voluntary: Option<f64>,
    pub(super) involuntary: Option<f64>,
}

impl Threads {
    pub(super) fn between(first: &ProcessUsage, second: &ProcessUsage, rates: Rates) -> Self {
        let before: BTreeMap<_, _> =
            first.threads.iter().map(|thread| ((thread.tid, thread.start_ticks), thread)).collect();
        let mut matched = 0_usize;
        let list: Vec<_> = second
            .threads
            .iter()
            .filter_map(|thread| {
                let earlier = before.get(&(thread.tid, thread.start_ticks)).copied();
                matched = matched.saturating_add(usize::from(earlier.is_some()));
                // It may be older than the first reading, and have been left out there.
                let is_known = earlier.is_some() || first.has_all_threads;
                is_known.then(|| ThreadChange::between(earlier, thread, rates))
            })
            .collect();
        let is_complete = first.has_all_threads && second.has_all_threads;
        let unmatched = |all: &[ThreadUsage]| {
            let number = if is_complete { all.len().saturating_sub(matched) } else { 0 };
            u64::try_from(number).unwrap_or(u64::MAX)
        };
        let sum = |of: fn(&ThreadChange) -> Option<f64>| {
            list.iter().filter_map(of).reduce(|one, other| one + other)
        };
        Self {
            started: unmatched(&second.threads),
            ended: unmatched(&first.threads),
            run_queue: sum(|thread| thread.run_queue),
            cores: sum(|thread| thread.run_queue.and(thread.cores)).unwrap_or(0.0),
            io_delay: sum(|thread| thread.io_delay),
            voluntary: sum(|thread| thread.voluntary_switches_per_second),
            involuntary: sum(|thread| thread.involuntary_switches_per_second),
            list,
        }
    }
}

impl ThreadChange {
    pub(super) fn between(first: Option<&ThreadUsage>, second: &ThreadUsage, rates: Rates) -> Self {
        let pair = |of: fn(&ThreadUsage) -> Option<u64>| (first.map_or(Some(0), of), of(second));
        let share = |of: fn(&ThreadUsage) -> Option<u64>| {
            let (first, second) = pair(of);
            // The files of many threads are read over some time, not at the moments of the readings.
            Some(rates.share(first, second)?.min(1.0))
        };
        let per_second = |of: fn(&ThreadUsage) -> Option<u64>| {
            let (first, second) = pair(of);
            rates.per_second(first, second)
        };
        Self {
            tid: second.tid,
            name: second.name.clone(),
            state: second.state,
            is_new: first.is_none(),
            cores: share(|thread| thread.cpu_ns),
            user_cores: share(|thread| thread.user_ns),
            system_cores: share(|thread| thread.system_ns),
            run_queue: share(|thread| thread.run_queue_ns),
            io_delay: share(|thread| thread.io_delay_ns),
            voluntary_switches_per_second: per_second(|thread| thread.voluntary_switches),
            involuntary_switches_per_second: per_second(|thread| thread.involuntary_switches),
        }
    }
}

impl ProcessCpu {
    pub(super) fn between(
        first: &ProcessUsage,
        second: &ProcessUsage,
        threads: &Threads,
        rates: Rates,
    ) -> Self {
        let user_cores = rates.share(first.user_ns, second.user_ns);
        let system_cores = rates.share(first.system_ns, second.system_ns);
        let cores = user_cores.zip(system_cores).map(|(user, system)| user + system);
        let usable = second.usable_processors().filter(|&usable| usable > 0.0);
        let runnable =
            threads.run_queue.map(|queue| queue + threads.cores).filter(|&runnable| runnable > 0.0);
        Self {
            cores,
            user_cores,
            system_cores,
            share_of_usable: cores.zip(usable).map(|(cores, usable)| (cores / usable).min(1.0)),
            run_queue: threads.run_queue,
            run_queue_share: threads.run_queue.zip(runnable).map(|(queue, runnable)| queue / runnable),
            io_delay: threads.io_delay,
            voluntary_switches_per_second: threads.voluntary,
            involuntary_switches_per_second: threads.involuntary,
        }
    }
}
