//! The threads of an interval.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use clr_events::ThreadState;
use nettrace_export::{FrameId, Profile, Thread, ThreadUse};

/// Maximum number of distinct threads in an interval.
const MAX_THREADS: usize = 4096;

/// The activity of a thread in an interval, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by views, for sums and for tests")]
pub struct ThreadRow {
    /// The operating system's id.
    pub id: u64,
    /// The name of the thread; empty if unknown.
    pub name: String,
    /// The thread's role in the runtime; empty if unknown.
    pub role: String,
    /// The time of work.
    pub working: u64,
    /// Runnable time without a processor.
    pub runnable: u64,
    /// Waits during work, judged by stacks.
    pub blocked: u64,
    /// Waits for work, judged by stacks.
    pub idle: u64,
    /// Waits of either kind: the kernel's account does not distinguish them.
    pub waited: u64,
    /// The leaf frame with most of the thread's time, as an index of the profile's frames.
    pub leaf: Option<FrameId>,
}

/// Sums up the time of each thread, in descending order of work. `uses` is the kernel's account of threads,
/// with their names: it counts instead of samples, and has threads that wait.
pub(super) fn rows(profile: &Profile, uses: &[(ThreadUse, String)]) -> Vec<ThreadRow> {
    let row = |thread: &Thread| ThreadRow {
        id: thread.id,
        name: thread.name.clone().unwrap_or_default(),
        role: thread.role.map(|role| role.to_string()).unwrap_or_default(),
        ..ThreadRow::default()
    };
    let mut rows: Vec<_> = profile.threads.iter().take(MAX_THREADS).map(row).collect();
    let mut leaves = vec![BTreeMap::<_, u64>::new(); rows.len()];
    for total in &profile.stack_totals {
        let thread = total.thread.index();
        let (Some(row), Some(leaves)) = (rows.get_mut(thread), leaves.get_mut(thread)) else { continue };
        let time = match total.state {
            ThreadState::Idle => &mut row.idle,
            ThreadState::Blocked => &mut row.blocked,
            ThreadState::Ready => &mut row.runnable,
            ThreadState::Working => &mut row.working,
        };
        *time = time.saturating_add(total.weight);
        if let Some(leaf) = total.stack.and_then(|stack| profile.stacks.leaf(stack)) {
            let weight = leaves.entry(leaf).or_default();
            *weight = weight.saturating_add(total.weight);
        }
    }
    for (row, leaves) in rows.iter_mut().zip(leaves) {
        row.leaf = leaves.into_iter().max_by_key(|(_, weight)| *weight).map(|(leaf, _)| leaf);
    }
    add_uses(&mut rows, uses);
    rows.sort_by_key(|row| (Reverse((row.working, row.blocked, row.runnable)), row.id));
    rows
}

fn add_uses(rows: &mut Vec<ThreadRow>, uses: &[(ThreadUse, String)]) {
    let mut known: HashMap<u64, usize> = rows.iter().enumerate().map(|(at, row)| (row.id, at)).collect();
    for (used, name) in uses {
        let at = *known.entry(used.thread).or_insert(rows.len());
        if at == rows.len() {
            if at >= MAX_THREADS {
                continue;
            }
            rows.push(ThreadRow { id: used.thread, name: name.clone(), ..ThreadRow::default() });
        }
        let Some(row) = rows.get_mut(at) else { continue };
        (row.working, row.runnable, row.waited) = (used.ran, used.queued, used.waited);
    }
}
