//! The thread pool in words.

use std::fmt::Write as _;

use clr_dump::PoolWorkers;

use super::Pool;
use crate::inspect::tick_clock::time_text;
use crate::render::table::{Align, Columns, heading};
use crate::render::{units, width};

/// The number of changes of hill climbing that a table shows.
const CHANGES: usize = 8;

/// The state of the pool in one sentence.
pub(super) fn answer(pool: &Pool) -> String {
    if pool.is_unused {
        return "No work was ever queued to the thread pool".to_owned();
    }
    let (existing, blocked) = (pool.existing(), pool.blocked());
    let waiting = match pool.waiting() {
        None => "The queues cannot be read".to_owned(),
        Some(0) => "No work waits".to_owned(),
        Some(count) => units::counted(count, "work item waits", "work items wait"),
    };
    let cause = pool.blocked.in_words();
    let cause = if cause.is_empty() { cause } else { format!(": {cause}") };
    let workers = units::counted(existing, "worker", "workers");
    if existing > 0 && blocked == existing {
        let all = if existing == 1 {
            "the only worker is blocked".to_owned()
        } else {
            format!("all {workers} are blocked")
        };
        return format!("{waiting}, {all}{cause}");
    }
    let is_at_limit = pool.workers.as_ref().is_some_and(|workers| existing >= workers.max && existing > 0);
    let limit = if is_at_limit { ", as many as may be" } else { "" };
    let active = units::count(pool.active());
    if blocked == 0 {
        return format!("{waiting}; {active} of {workers} run work{limit}");
    }
    let are_blocked = units::counted(blocked, "is blocked", "are blocked");
    format!("{waiting}; of {workers}{limit}, {active} run work and {are_blocked}{cause}")
}

/// The pool in words: the answer, the counts, the queued work, and the changes.
pub(super) fn table(pool: &Pool, most: usize, width: Option<usize>) -> String {
    use Align::{Left, Right};
    let mut text = answer(pool);
    if pool.is_starved() {
        text.push_str(" (starvation)");
    }
    text = width::wrapped(&(text + "\n"), width);
    if pool.is_unused {
        return text;
    }
    text.push('\n');
    match &pool.workers {
        Some(workers) => text.push_str(&width::wrapped(&counts(pool, workers), width)),
        None => text
            .push_str("The pool's counts are not in memory: it has not been used, or the dump lacks them\n"),
    }
    if let Some(queues) = pool.queues.as_ref().filter(|queues| queues.count > 0 || queues.is_incomplete) {
        text.push('\n');
        text.push_str(&heading("Queued work"));
        let mut columns = Columns::new([("ITEMS", Right), ("QUEUE", Left), ("WORK", Left)]);
        for row in pool.rows.iter().take(most) {
            let queue = match &row.threads[..] {
                [] => row.queue.to_owned(),
                [thread] => format!("{} of thread {thread}", row.queue),
                threads => format!("{} of {} threads", row.queue, threads.len()),
            };
            columns.row([units::count(row.count), queue, row.work.clone()]);
        }
        text.push_str(&columns.fitted(&[]));
        let left = pool.rows.len().saturating_sub(most);
        if left > 0 {
            let _ = writeln!(text, "({} more)", units::count(left as u64));
        }
        if queues.is_incomplete {
            text.push_str("A part of the queues cannot be read, or is more than is read\n");
        }
    }
    if !pool.changes.is_empty() {
        text.push('\n');
        text.push_str(&heading("Changes of the number of workers, newest first"));
        let mut columns =
            Columns::new([("WHEN", Right), ("WORKERS", Right), ("REASON", Left), ("ITEMS/S BEFORE", Right)]);
        for change in pool.changes.iter().take(CHANGES) {
            let when = match (change.age, change.time) {
                (Some(age), _) => format!("{} ago", units::time(age)),
                (None, Some(time)) => time_text(time),
                (None, None) => "unknown".to_owned(),
            };
            let throughput = format!("{:.1}", change.throughput);
            columns.row([when, units::count(change.workers), change.reason.clone(), throughput]);
        }
        text.push_str(&columns.fitted(&[]));
        let left = pool.changes.len().saturating_sub(CHANGES);
        if left > 0 {
            let _ = writeln!(text, "({left} more: --format json)");
        }
    }
    text
}

/// The pool's counts in words, a line each.
fn counts(pool: &Pool, workers: &PoolWorkers) -> String {
    let mut text = format!(
        "Workers    {}: {} run work, {} are blocked, {} are idle; at least {}, at most {}\n",
        units::count(pool.existing()),
        units::count(pool.active()),
        units::count(pool.blocked()),
        units::count(pool.existing().saturating_sub(workers.working)),
        units::count(workers.min),
        units::count(workers.max),
    );
    let _ = write!(text, "Goal       {} may work at the same time", units::count(workers.goal));
    if let Some(added) = workers.added_for_waits.filter(|added| *added > 0) {
        let waiting = units::count(workers.waiting_for_tasks.unwrap_or_default());
        let _ = write!(text, ", {} of them added because {waiting} wait for tasks", units::count(added));
    }
    let _ = writeln!(text, "\nProcessor  {} % when the pool measured it last", workers.cpu_percent);
    let last = match (pool.idle_for, pool.last_dispatch) {
        (Some(age), _) => format!("{} ago", units::time(age)),
        (None, Some(time)) => time_text(time),
        (None, None) => "at an unknown time".to_owned(),
    };
    let _ = writeln!(
        text,
        "Last work  taken {last}; the age of waiting items is unknown: the pool does not record it"
    );
    text
}
