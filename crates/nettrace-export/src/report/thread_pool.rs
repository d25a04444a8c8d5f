//! The thread pool: how many threads it had, why that changed, how long work waited.

use hashbrown::HashMap;
use std::collections::BTreeMap;

use clr_events::{ClrEvent, sets};
use nettrace::{Event, Metadata, RelativeTime};
use serde::Serialize;

use crate::decode::decode;
use crate::report::blocked::Starvation;
use crate::report::distribution::{Distribution, Durations};
use crate::report::timeline::Timeline;

/// The changes of the number of threads for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReasonRow {
    /// The runtime's name for it; `Starvation` means that work waited while all threads were busy or blocked.
    pub reason: String,
    /// The number of changes.
    pub count: u64,
    /// The highest number that was set for it.
    pub most_threads: u32,
}

/// The thread pool in a recording.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct ThreadPoolReport {
    /// Worker threads at most.
    pub most_workers: u32,
    /// Worker threads at last.
    pub last_workers: u32,
    /// Worker threads that started.
    pub started: u64,
    /// Worker threads that stopped.
    pub stopped: u64,
    /// Minimum and maximum number of threads of the pool, if the recording says so.
    pub limits: Option<(u16, u16)>,
    /// The changes of the number of threads by reason, most frequent first.
    pub adjustments: Vec<ReasonRow>,
    /// The time of work items in the queue, where the recording has the events of each.
    pub queue: Distribution,
    /// Work that was still waiting at the end.
    pub queued: u64,
    /// Threads that started, over time.
    pub timeline: Timeline,
    /// Stretches in which all workers were blocked, where the recording has samples of threads: see
    /// [`starvation`](fn@super::starvation).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starvation: Option<Starvation>,
}

/// Gathers the facts of the thread pool: runtime keyword `Threading` (0x10000) at level informational, with
/// level verbose each piece of work.
#[derive(Debug, Default)]
pub struct ThreadPool {
    report: ThreadPoolReport,
    reasons: BTreeMap<String, ReasonRow>,
    queue: Durations,
    waiting: HashMap<(Option<u64>, u64), RelativeTime>,
    has_any: bool,
}

/// Pieces of work that are waited for.
const MAX_PENDING: usize = 1 << 20;

impl ThreadPool {
    /// Returns true if [`add`](Self::add) looks at events of a kind.
    pub fn needs(kind: &Metadata) -> bool {
        sets::THREAD_POOL.contains(kind)
    }

    /// Adds an event. Looks at [`sets::THREAD_POOL`].
    pub fn add(&mut self, event: &Event<'_>) {
        if let Some(view) = decode(event, &sets::THREAD_POOL) {
            self.add_decoded(event, &view);
        }
    }

    /// Adds an event that was decoded already.
    pub fn add_decoded(&mut self, event: &Event<'_>, view: &ClrEvent<'_>) {
        let now = event.relative_time().max(RelativeTime::START);
        let report = &mut self.report;
        let mut workers = |count: u32| {
            report.most_workers = report.most_workers.max(count);
            report.last_workers = count;
        };
        match view {
            ClrEvent::ThreadPoolWorkerThreadStart(thread) => {
                workers(thread.active_worker_thread_count);
                report.started += 1;
                report.timeline.add(now, 1);
            }
            ClrEvent::ThreadPoolWorkerThreadStop(thread) => {
                workers(thread.active_worker_thread_count);
                report.stopped += 1;
            }
            ClrEvent::ThreadPoolWorkerThreadWait(thread) => workers(thread.active_worker_thread_count),
            ClrEvent::ThreadPoolMinMaxThreads(limits) => {
                report.limits = Some((limits.min_worker_threads, limits.max_worker_threads));
            }
            ClrEvent::ThreadPoolWorkerThreadAdjustmentAdjustment(adjustment) => {
                let reason = adjustment.reason.to_string();
                let row = self.reasons.entry(reason.clone()).or_insert(ReasonRow {
                    reason,
                    count: 0,
                    most_threads: 0,
                });
                row.count += 1;
                row.most_threads = row.most_threads.max(adjustment.new_worker_thread_count);
            }
            ClrEvent::ThreadPoolEnqueue(work) => {
                if self.waiting.len() < MAX_PENDING {
                    self.waiting.insert((event.process_id(), work.work_id), now);
                }
            }
            ClrEvent::ThreadPoolDequeue(work) => {
                if let Some(since) = self.waiting.remove(&(event.process_id(), work.work_id)) {
                    self.queue.add(now.abs_diff(since));
                }
            }
            _ => return,
        }
        self.has_any = true;
    }

    /// Returns the report; `None` if there was nothing.
    pub fn finish(self) -> Option<ThreadPoolReport> {
        let mut adjustments: Vec<_> = self.reasons.into_values().collect();
        adjustments.sort_by_key(|row| std::cmp::Reverse(row.count));
        self.has_any.then(|| ThreadPoolReport {
            adjustments,
            queue: self.queue.distribution(),
            queued: self.waiting.len() as u64,
            ..self.report
        })
    }
}
