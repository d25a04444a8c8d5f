//! Waits for locks that have not ended, and the threads that wait for one another.

use std::fmt;

use hashbrown::HashMap;
use nettrace::RelativeTime;
use serde::Serialize;

use crate::report::nanoseconds;

/// A wait for a lock that had not ended when the recording did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LockWait {
    /// The process, where it is known.
    pub pid: Option<u64>,
    /// The thread that waits.
    pub tid: u64,
    /// The runtime's number for the lock; 0 where it does not say (before .NET 7).
    pub lock: u64,
    /// The address that the object had that is locked.
    pub object: u64,
    /// The thread that had the lock when the wait began, where the runtime says it.
    pub owner_tid: Option<u64>,
    /// The beginning of the wait.
    #[serde(rename = "since_ns", serialize_with = "nanoseconds::serialize")]
    pub since: RelativeTime,
}

/// A dead lock: threads each of which waits for a lock of the next, and the last for one of the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeadLock {
    /// The process, where it is known.
    pub pid: Option<u64>,
    /// The threads, the lowest number first.
    pub tids: Vec<u64>,
}

impl fmt::Display for DeadLock {
    /// Formats the threads as a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.tids.first() else { return Ok(()) };
        write!(f, "thread {first}")?;
        for tid in self.tids.iter().skip(1) {
            write!(f, " waits for a lock of {tid}, which")?;
        }
        write!(f, " waits for a lock of {first}")
    }
}

/// Returns the dead locks among waits, each once.
///
/// The owners are those of the beginnings of the waits. Where a lock went from one owner to another while a thread waited for it, the
/// second is not known.
pub(super) fn dead_locks(waits: &[LockWait]) -> Vec<DeadLock> {
    let owners: HashMap<_, _> =
        waits.iter().filter_map(|wait| Some(((wait.pid, wait.tid), wait.owner_tid?))).collect();
    let mut found: Vec<DeadLock> = Vec::new();
    // By thread, the number of the walk that came by.
    let mut walks = HashMap::new();
    for (number, wait) in waits.iter().enumerate() {
        let mut tid = wait.tid;
        let on_cycle = loop {
            match walks.insert((wait.pid, tid), number) {
                Some(walk) if walk == number => break true,
                Some(_) => break false,
                None => match owners.get(&(wait.pid, tid)) {
                    Some(owner) => tid = *owner,
                    None => break false,
                },
            }
        };
        if on_cycle {
            let next = |tid: &u64| owners.get(&(wait.pid, *tid)).copied();
            let mut tids = vec![tid];
            while let Some(next) = tids.last().and_then(next).filter(|next| *next != tid) {
                tids.push(next);
            }
            // A thread can have a lock of its own as often as it likes.
            if tids.len() > 1 {
                let first = tids.iter().enumerate().min_by_key(|(_, tid)| **tid).map_or(0, |(at, _)| at);
                tids.rotate_left(first);
                found.push(DeadLock { pid: wait.pid, tids });
            }
        }
    }
    found.sort_by(|a, b| (a.pid, &a.tids).cmp(&(b.pid, &b.tids)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(of: &[(u64, Option<u64>)]) -> Vec<LockWait> {
        let wait = |(tid, owner_tid)| LockWait {
            pid: None,
            tid,
            lock: 0,
            object: 0,
            owner_tid,
            since: RelativeTime::START,
        };
        of.iter().copied().map(wait).collect()
    }

    /// Threads with owners, and the circles of threads among them.
    type Row<'r> = (&'r [(u64, Option<u64>)], &'r [&'r [u64]]);

    #[test]
    fn circles_are_found_once_from_wherever_a_walk_begins() {
        let rows: [Row<'_>; 8] = [
            (&[], &[]),
            (&[(1, None)], &[]),
            (&[(1, Some(2)), (2, None)], &[]),
            (&[(1, Some(1))], &[]),
            (&[(2, Some(1)), (1, Some(2))], &[&[1, 2]]),
            // Two wait for those in the circle.
            (&[(9, Some(8)), (8, Some(3)), (3, Some(2)), (1, Some(3)), (2, Some(1))], &[&[1, 3, 2]]),
            (&[(1, Some(2)), (2, Some(1)), (5, Some(4)), (4, Some(5)), (6, Some(1))], &[&[1, 2], &[4, 5]]),
            (&[(1, Some(2)), (2, Some(3)), (3, Some(4))], &[]),
        ];
        for (of, expected) in rows {
            let found = dead_locks(&waits(of));
            let found: Vec<_> = found.iter().map(|dead_lock| &*dead_lock.tids).collect();
            assert_eq!(found, expected, "{of:?}");
        }
    }

    #[test]
    fn a_dead_lock_is_a_sentence() {
        let dead_lock = DeadLock { pid: None, tids: vec![1, 2, 3] };
        assert_eq!(
            dead_lock.to_string(),
            "thread 1 waits for a lock of 2, which waits for a lock of 3, which waits for a lock of 1"
        );
    }

    #[test]
    fn threads_of_other_processes_are_others() {
        let mut waits = waits(&[(1, Some(2)), (2, Some(1))]);
        waits[1].pid = Some(7);
        assert_eq!(dead_locks(&waits), []);
    }
}
