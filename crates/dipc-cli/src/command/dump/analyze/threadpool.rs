//! `dipc dump analyze CORE threadpool`: the workers of the thread pool, and the work that waits for them.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use clr_dump::{PoolQueues, PoolWorkers, QueuedWork, ThreadWaits, Work, WorkQueue};
use clr_events::csharp::async_method;
use clr_findings::thresholds::BLOCKED_WORKERS;
use clr_findings::{AwaitSearch, BlockedWorkers, MemoryFacts};

mod json;
mod text;

use crate::args::format::Format;
use crate::exit::{Exit, Failure};
use crate::inspect::core_dump::Analysis;
use crate::inspect::core_text::{method_text, type_text};
use crate::inspect::tick_clock::TickClock;
use crate::render::{output, units, width};

/// The default number of rows that are shown.
const ROWS: usize = 30;

#[derive(Debug, Args)]
pub(super) struct ThreadPoolArgs {
    /// Number of rows of queued work to show [default: 30 in a table, else all]
    #[arg(short = 'n', long = "rows", alias = "head", value_name = "N")]
    head: Option<usize>,
}

pub(super) fn print(analysis: &Analysis<'_>, args: &ThreadPoolArgs, format: Format) -> Result<Exit, Failure> {
    let pool = Pool::read(analysis);
    match format {
        Format::Table => output::print(text::table(&pool, args.head.unwrap_or(ROWS), width::of_output()))?,
        Format::Json => output::print_json(&json::Report::new(&pool, args.head.unwrap_or(usize::MAX)))?,
    }
    Ok(if pool.is_complete() { Exit::Done } else { Exit::Incomplete })
}

/// The thread pool of a process.
struct Pool {
    /// True if the memory is whole, and has no queues: no work was ever queued.
    is_unused: bool,
    /// The pool's own counts; `None` if the memory lacks them.
    workers: Option<PoolWorkers>,
    blocked: BlockedWorkers,
    /// The work that waits; `None` if the memory lacks the queues.
    queues: Option<PoolQueues>,
    rows: Vec<Row>,
    changes: Vec<Change>,
    /// The time since a worker took work last; `None` if unknown.
    idle_for: Option<Duration>,
    /// The time in UTC of that; `None` if unknown.
    last_dispatch: Option<jiff::Timestamp>,
}

/// Equal work in a kind of queue.
struct Row {
    queue: &'static str,
    /// The threads with the queues, if they are local.
    threads: Vec<u64>,
    /// The method that is called, or the type of the object that runs itself.
    work: String,
    /// The type of the work items.
    type_name: String,
    count: u64,
}

/// A change of the number of workers.
struct Change {
    age: Option<Duration>,
    time: Option<jiff::Timestamp>,
    reason: String,
    workers: u64,
    throughput: f32,
}

impl Pool {
    fn read(analysis: &Analysis<'_>) -> Self {
        let dump = &analysis.dump;
        let clock = TickClock::new(analysis.source, dump);
        let pool = dump.thread_pool();
        let threads: Vec<_> = analysis.threads.iter().map(|thread| thread.thread.clone()).collect();
        // A process has all its memory: without queues, no managed code has queued work.
        let is_whole = analysis.source.pid().is_some() && dump.statics().has_places();
        let read = pool.queues(&threads);
        let queues = read.clone().or_else(|| is_whole.then(PoolQueues::default));
        let workers = pool.workers();
        let last = workers.as_ref().and_then(|workers| workers.last_dispatch);
        let changes = pool.changes().into_iter().rev().map(|change| Change {
            age: clock.age(change.tick),
            time: clock.time_of_low(change.tick),
            reason: reason(change.reason),
            workers: change.workers,
            throughput: change.throughput,
        });
        Self {
            is_unused: is_whole && read.is_none() && workers.is_none(),
            blocked: blocked(analysis),
            rows: queues.as_ref().map(|queues| rows(analysis, queues)).unwrap_or_default(),
            queues,
            changes: changes.collect(),
            idle_for: last.and_then(|tick| clock.age(tick)),
            last_dispatch: last.and_then(|tick| clock.time_of_low(tick)),
            workers,
        }
    }

    /// The number of workers.
    fn existing(&self) -> u64 {
        self.workers.as_ref().map_or(self.blocked.workers, |workers| workers.existing)
    }

    /// The number of blocked workers, which is read from stacks at another time than the pool's counts.
    fn blocked(&self) -> u64 {
        self.blocked.blocked.min(self.existing())
    }

    /// The number of workers that run work and are not blocked.
    fn active(&self) -> u64 {
        let working = self.workers.as_ref().map_or(0, |workers| workers.working);
        working.min(self.existing()).saturating_sub(self.blocked())
    }

    fn waiting(&self) -> Option<u64> {
        self.queues.as_ref().map(|queues| queues.count)
    }

    /// Returns true if the queues were read to their ends.
    fn is_complete(&self) -> bool {
        self.is_unused || self.queues.as_ref().is_some_and(|queues| !queues.is_incomplete)
    }

    /// Returns true if work waits, and almost all workers are blocked.
    fn is_starved(&self) -> bool {
        let is_waiting = self.waiting().is_some_and(|waiting| waiting > 0);
        // The threads of the pool include one that is not a worker, which its own count leaves out.
        is_waiting && self.blocked() > 0 && units::share(self.blocked(), self.existing()) >= BLOCKED_WORKERS
    }
}

/// The workers that are blocked in the program's code.
fn blocked(analysis: &Analysis<'_>) -> BlockedWorkers {
    let monitors = analysis.dump.locks().monitors();
    let threads = analysis.snapshots();
    let waits = ThreadWaits::find(&analysis.dump, &threads, &monitors);
    // Awaits are not needed, which takes a read of the heap.
    let awaits = AwaitSearch::Within(Duration::ZERO);
    MemoryFacts::of_snapshots(analysis.source.core(), &analysis.dump, (&threads, waits), awaits)
        .blocked_workers()
}

/// Joins the work of all local queues, and of delegates with one name.
fn rows(analysis: &Analysis<'_>, queues: &PoolQueues) -> Vec<Row> {
    let mut rows: BTreeMap<(WorkKind, String, String), Row> = BTreeMap::new();
    for of in &queues.work {
        let type_name = analysis.dump.types().name(of.type_handle);
        let type_name = type_text(type_name.as_deref(), of.type_handle.get());
        let work = work_text(analysis, of).unwrap_or_else(|| type_name.clone());
        let (kind, thread) = WorkKind::of(of.queue);
        let row = rows.entry((kind, work.clone(), type_name.clone())).or_insert_with(|| Row {
            queue: kind.text(),
            threads: Vec::new(),
            work,
            type_name,
            count: 0,
        });
        row.count = row.count.saturating_add(of.count);
        row.threads.extend(thread.filter(|thread| !row.threads.contains(thread)));
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    rows
}

/// The method that a work item calls.
fn work_text(analysis: &Analysis<'_>, of: &QueuedWork) -> Option<String> {
    match of.work {
        Work::Method { state_machine } => async_method(&analysis.dump.types().name(state_machine)?),
        Work::Delegate(delegate) => method_text(&analysis.dump.heap().delegate_method(delegate)?),
        _ => None,
    }
}

/// A kind of queue, in the order in which workers take from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WorkKind {
    HighPriority,
    Local,
    Global,
    LowPriority,
}

impl WorkKind {
    /// The kind of a queue, and the thread that has it.
    const fn of(queue: WorkQueue) -> (Self, Option<u64>) {
        match queue {
            WorkQueue::HighPriority => (Self::HighPriority, None),
            WorkQueue::LowPriority => (Self::LowPriority, None),
            WorkQueue::Local { thread } => (Self::Local, thread),
            _ => (Self::Global, None),
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::HighPriority => "high priority",
            Self::Local => "local",
            Self::Global => "global",
            Self::LowPriority => "low priority",
        }
    }
}

/// The cause of a change of the number of workers.
fn reason(number: u32) -> String {
    clr_events::enums::ThreadAdjustmentReason(number).to_string()
}

#[cfg(test)]
mod tests;
