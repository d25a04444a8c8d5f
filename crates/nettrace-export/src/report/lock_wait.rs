//! Waits for locks that have not ended, and the threads that wait for one another.

use std::fmt;

use hashbrown::HashMap;
use nettrace::RelativeTime;
use serde::Serialize;

use crate::report::nanoseconds;
use crate::report::user_caller::UserCallerName;
use clr_events::escape_controls;

/// A wait for a lock that had not ended when the recording did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LockWait {
    /// The process, where it is known.
    pub pid: Option<u64>,
    /// The thread that waits.
    pub tid: u64,
    /// Thread name, if known.
    pub name: Option<String>,
    /// The runtime's number for the lock; 0 where it does not say (before .NET 7).
    pub lock: u64,
    /// The address that the object had that is locked.
    pub object: u64,
    /// The thread that had the lock when the wait began, where the runtime says it.
    pub owner_tid: Option<u64>,
    /// The name of that thread, where it is known.
    pub owner_name: Option<String>,
    /// The beginning of the wait.
    #[serde(rename = "since_ns", serialize_with = "nanoseconds::serialize")]
    pub since: RelativeTime,
    /// The user's method that waited the longest for the lock, if it was looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<UserCallerName>,
}

/// A deadlock: each thread waits for a lock of the next, and the last waits for a lock of the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Deadlock {
    /// The process, where it is known.
    pub pid: Option<u64>,
    /// The threads, the lowest number first.
    pub tids: Vec<u64>,
    /// The name of each of them, where it is known.
    pub names: Vec<Option<String>>,
}

/// A thread in a sentence: its name, if it has one, and its number.
pub(super) struct ThreadLabel<'t>(pub(super) u64, pub(super) Option<&'t str>);

impl fmt::Display for ThreadLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Some(name) => write!(f, "{} ({})", escape_controls(name), self.0),
            None => self.0.fmt(f),
        }
    }
}

impl LockWait {
    /// Returns the thread that waits: `NAME (TID)`, or its number alone. Controls in the name are escaped.
    pub fn thread(&self) -> impl fmt::Display {
        ThreadLabel(self.tid, self.name.as_deref())
    }

    /// Returns the owner of the lock in the same form.
    pub fn owner(&self) -> Option<impl fmt::Display> {
        self.owner_tid.map(|owner| ThreadLabel(owner, self.owner_name.as_deref()))
    }
}

impl fmt::Display for Deadlock {
    /// Formats the threads as a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names.iter().map(Option::as_deref).chain(std::iter::repeat(None));
        let mut threads = self.tids.iter().zip(names).map(|(tid, name)| ThreadLabel(*tid, name));
        let Some(first) = threads.next() else { return Ok(()) };
        write!(f, "thread {first}")?;
        for thread in threads {
            write!(f, " waits for a lock of {thread}, which")?;
        }
        write!(f, " waits for a lock of {first}")
    }
}

/// Returns the deadlocks among waits, each once.
///
/// The owners are the owners at the beginnings of the waits. If a lock changed owners while a thread waited
/// for it, the second owner is unknown.
pub(super) fn deadlocks(waits: &[LockWait]) -> Vec<Deadlock> {
    let owners: HashMap<_, _> =
        waits.iter().filter_map(|wait| Some(((wait.pid, wait.tid), wait.owner_tid?))).collect();
    let names: HashMap<_, _> =
        waits.iter().map(|wait| ((wait.pid, wait.tid), wait.name.as_deref())).collect();
    let mut found: Vec<Deadlock> = Vec::new();
    // By thread, the number of the last walk that visited it.
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
                let names =
                    tids.iter().map(|tid| names.get(&(wait.pid, *tid)).copied().flatten().map(str::to_owned));
                found.push(Deadlock { pid: wait.pid, names: names.collect(), tids });
            }
        }
    }
    found.sort_by(|a, b| (a.pid, &a.tids).cmp(&(b.pid, &b.tids)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ContentionReport;

    fn waits(of: &[(u64, Option<u64>)]) -> Vec<LockWait> {
        let wait = |(tid, owner_tid)| LockWait {
            pid: None,
            tid,
            lock: 0,
            object: 0,
            owner_tid,
            name: None,
            owner_name: None,
            since: RelativeTime::START,
            from: None,
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
            // Two wait for members of the circle.
            (&[(9, Some(8)), (8, Some(3)), (3, Some(2)), (1, Some(3)), (2, Some(1))], &[&[1, 3, 2]]),
            (&[(1, Some(2)), (2, Some(1)), (5, Some(4)), (4, Some(5)), (6, Some(1))], &[&[1, 2], &[4, 5]]),
            (&[(1, Some(2)), (2, Some(3)), (3, Some(4))], &[]),
        ];
        for (of, expected) in rows {
            let found = deadlocks(&waits(of));
            let found: Vec<_> = found.iter().map(|deadlock| &*deadlock.tids).collect();
            assert_eq!(found, expected, "{of:?}");
        }
    }

    #[test]
    fn a_deadlock_is_a_sentence() {
        let mut deadlock = Deadlock { pid: None, tids: vec![1, 2, 3], names: Vec::new() };
        assert_eq!(
            deadlock.to_string(),
            "thread 1 waits for a lock of 2, which waits for a lock of 3, which waits for a lock of 1"
        );
        deadlock.names = vec![Some("orders".into()), None, Some("\u{1b}[2J".into())];
        assert_eq!(
            deadlock.to_string(),
            "thread orders (1) waits for a lock of 2, which waits for a lock of \\u001b[2J (3), which waits for a lock of orders (1)"
        );
    }

    #[test]
    fn waiting_threads_have_their_names() {
        let mut report = ContentionReport {
            unfinished_waits: waits(&[(1, Some(2)), (2, Some(1)), (3, Some(9))]),
            ..ContentionReport::default()
        };
        // A name of the recording stays.
        report.unfinished_waits[0].name = Some("orders".into());
        report.name_threads(|_, tid| (tid != 2).then(|| format!("kernel-{tid}")));
        let names: Vec<_> =
            report.unfinished_waits.iter().map(|it| (it.name.as_deref(), it.owner_name.as_deref())).collect();
        assert_eq!(
            names,
            [(Some("orders"), None), (None, Some("orders")), (Some("kernel-3"), Some("kernel-9"))]
        );
        assert_eq!(report.deadlocks[0].names, [Some("orders".to_owned()), None]);
        assert_eq!(report.unfinished_waits[2].thread().to_string(), "kernel-3 (3)");
    }

    #[test]
    fn threads_of_other_processes_are_others() {
        let mut waits = waits(&[(1, Some(2)), (2, Some(1))]);
        waits[1].pid = Some(7);
        assert_eq!(deadlocks(&waits), []);
    }
}
