//! The thread pool as JSON.

use clr_dump::PoolWorkers;
use serde::Serialize;

use super::{Change, Pool, Row, text};

#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The state of the pool in one sentence.
    answer: String,
    /// True if work waits, and almost all workers are blocked.
    starved: bool,
    /// The number of work items that wait; null if the memory lacks the queues.
    waiting: Option<u64>,
    /// True if the queues were read to their ends.
    complete: bool,
    workers: WorkersReport,
    hill_climbing: HillClimbingReport,
    /// Milliseconds since a worker took work from the queues; null if unknown, as in a core dump.
    last_dispatch_ms: Option<u64>,
    last_dispatch: Option<String>,
    /// Equal work in a kind of queue, the most frequent first. The pool does not record its age.
    queued: Vec<QueuedReport>,
}

/// The workers; null for what the memory lacks.
#[derive(Debug, Serialize)]
struct WorkersReport {
    existing: u64,
    /// Those that run work and are not blocked.
    active: u64,
    blocked: u64,
    idle: Option<u64>,
    min: Option<u64>,
    max: Option<u64>,
    /// Those that wait for tasks, by the pool's own count, from .NET 6 on.
    waiting_for_tasks: Option<u64>,
    /// The method in which most of them are blocked, with their number.
    blocked_in: Option<String>,
    blocked_in_count: u64,
    cpu_percent: Option<u64>,
}

#[derive(Debug, Serialize)]
struct HillClimbingReport {
    /// The number of workers that may work at the same time.
    goal: Option<u64>,
    /// Those of them that were added because others wait for tasks.
    added_for_waits: Option<u64>,
    /// The newest first.
    changes: Vec<ChangeReport>,
}

#[derive(Debug, Serialize)]
struct ChangeReport {
    age_ms: Option<u64>,
    time: Option<String>,
    reason: String,
    workers: u64,
    items_per_second: f32,
}

#[derive(Debug, Serialize)]
struct QueuedReport {
    /// `high priority`, `local`, `global` or `low priority`.
    queue: &'static str,
    /// The threads with local queues that have it.
    tids: Vec<u64>,
    /// The method that is called, or the type of an object that runs itself.
    work: String,
    r#type: String,
    items: u64,
}

impl Report {
    pub(super) fn new(pool: &Pool, most: usize) -> Self {
        let of = pool.workers.as_ref();
        let number = |field: fn(&PoolWorkers) -> u64| of.map(field);
        let (blocked_in, blocked_in_count) = pool.blocked.method.clone().unzip();
        Self {
            answer: text::answer(pool),
            starved: pool.is_starved(),
            waiting: pool.waiting(),
            complete: pool.is_complete(),
            workers: WorkersReport {
                existing: pool.existing(),
                active: pool.active(),
                blocked: pool.blocked(),
                idle: of.map(|workers| pool.existing().saturating_sub(workers.working)),
                min: number(|workers| workers.min),
                max: number(|workers| workers.max),
                waiting_for_tasks: of.and_then(|workers| workers.waiting_for_tasks),
                blocked_in,
                blocked_in_count: blocked_in_count.unwrap_or_default(),
                cpu_percent: number(|workers| workers.cpu_percent),
            },
            hill_climbing: HillClimbingReport {
                goal: number(|workers| workers.goal),
                added_for_waits: of.and_then(|workers| workers.added_for_waits),
                changes: pool.changes.iter().map(ChangeReport::new).collect(),
            },
            last_dispatch_ms: pool.idle_for.and_then(|age| u64::try_from(age.as_millis()).ok()),
            last_dispatch: pool.last_dispatch.map(|time| time.to_string()),
            queued: pool.rows.iter().take(most).map(QueuedReport::new).collect(),
        }
    }
}

impl ChangeReport {
    fn new(change: &Change) -> Self {
        Self {
            age_ms: change.age.and_then(|age| u64::try_from(age.as_millis()).ok()),
            time: change.time.map(|time| time.to_string()),
            reason: change.reason.clone(),
            workers: change.workers,
            items_per_second: change.throughput,
        }
    }
}

impl QueuedReport {
    fn new(row: &Row) -> Self {
        Self {
            queue: row.queue,
            tids: row.threads.clone(),
            work: row.work.clone(),
            r#type: row.type_name.clone(),
            items: row.count,
        }
    }
}
