//! The records of chosen processes, where the kernel's events are of more.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use linux_sampler::{Record, RecordKind};

use crate::kernel_samples::ProcessSelector;

/// The time after which a process is looked at again: it may have been moved, or be another program.
const LIFETIME: Duration = Duration::from_secs(1);

/// The number of known processes from which on those that have ended are looked for.
const MIN_SWEEP: usize = 1024;

/// A filter of records by process.
pub(super) struct ProcessFilter {
    select: ProcessSelector,
    known: HashMap<i32, Membership>,
    /// The number of known processes at which those that have ended are removed next.
    next_sweep: usize,
}

#[derive(Debug, Clone, Copy)]
struct Membership {
    is_in: bool,
    read: Instant,
}

impl ProcessFilter {
    pub(super) fn new(select: ProcessSelector) -> Self {
        Self { select, known: HashMap::new(), next_sweep: MIN_SWEEP }
    }

    /// Returns true if a record is of a chosen process.
    pub(super) fn takes(&mut self, record: &Record<'_>) -> bool {
        self.takes_kind(&record.kind, record.thread.pid)
    }

    fn takes_kind(&mut self, kind: &RecordKind<'_>, pid: i32) -> bool {
        match *kind {
            RecordKind::Started { thread, parent } if thread.pid != parent.pid => {
                let is_in = self.has(parent.pid);
                self.insert(thread.pid, is_in);
                is_in
            }
            RecordKind::Ended { thread } if thread.pid == thread.tid => {
                let is_in = self.has(thread.pid);
                self.known.remove(&thread.pid);
                is_in
            }
            // It is another program from now on. That the one before has ended is of interest if it was in.
            RecordKind::Name { exec: true, .. } => {
                let was_in = self.known.remove(&pid).is_some_and(|known| known.is_in);
                self.has(pid) || was_in
            }
            RecordKind::Lost { .. }
            | RecordKind::LostSamples { .. }
            | RecordKind::LostStacks { .. }
            | RecordKind::Throttled
            | RecordKind::Unthrottled => true,
            _ => self.has(pid),
        }
    }

    /// Returns true if a process is chosen.
    pub(super) fn has(&mut self, pid: i32) -> bool {
        if pid <= 0 {
            return false;
        }
        let known = self.known.get(&pid).copied();
        if let Some(known) = known.filter(|known| known.read.elapsed() < LIFETIME) {
            return known.is_in;
        }
        // A process that has ended is in or out as it was before.
        let is_in =
            (self.select)(pid.unsigned_abs()).unwrap_or_else(|| known.is_some_and(|known| known.is_in));
        self.insert(pid, is_in);
        is_in
    }

    fn insert(&mut self, pid: i32, is_in: bool) {
        if self.known.len() >= self.next_sweep {
            // Their ends were lost, or later records looked at them again.
            self.known.retain(|pid, _| linux_proc_stat::process_folder(pid.unsigned_abs()).exists());
            self.next_sweep = self.known.len().saturating_mul(2).max(MIN_SWEEP);
        }
        self.known.insert(pid, Membership { is_in, read: Instant::now() });
    }
}

impl std::fmt::Debug for ProcessFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessFilter").field("known", &self.known).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use linux_sampler::ThreadKey;

    use super::*;

    fn key(pid: i32) -> ThreadKey {
        ThreadKey { pid, tid: pid }
    }

    #[test]
    fn children_are_as_their_parents_until_they_are_another_program() {
        let mut filter = ProcessFilter::new(Box::new(|pid| Some(pid == 7)));
        for (parent, child, is_in) in [(7, 70, true), (8, 80, false)] {
            let started = RecordKind::Started { thread: key(child), parent: key(parent) };
            assert_eq!(filter.takes_kind(&started, child), is_in);
            assert!(filter.takes_kind(&RecordKind::Throttled, child));
            assert_eq!(filter.has(child), is_in);
        }
        let exec = RecordKind::Name { name: b"other", exec: true };
        // The first has been in, and is not any more.
        assert!(filter.takes_kind(&exec, 70) && !filter.has(70));
        assert!(!filter.takes_kind(&exec, 80));
        assert!(!filter.has(0) && !filter.has(-1));
    }

    #[test]
    fn processes_with_unseen_ends_are_forgotten() {
        let mut filter = ProcessFilter::new(Box::new(|pid| (pid < 5_000_000).then_some(true)));
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(filter.has(own));
        // Beyond the largest number of a process.
        for pid in 5_000_000..5_100_000 {
            let started = RecordKind::Started { thread: key(pid), parent: key(own) };
            assert!(filter.takes_kind(&started, pid) && filter.has(pid));
        }
        assert!(filter.known.len() <= MIN_SWEEP && filter.known.contains_key(&own));
    }

    #[test]
    fn a_process_that_cannot_be_read_is_as_it_was() {
        let is_there = Arc::new(AtomicBool::new(true));
        let of_filter = Arc::clone(&is_there);
        let mut filter =
            ProcessFilter::new(Box::new(move |_| of_filter.load(Ordering::Relaxed).then_some(true)));
        assert!(filter.has(7));
        is_there.store(false, Ordering::Relaxed);
        filter.known.get_mut(&7).unwrap().read -= 2 * LIFETIME;
        assert!(filter.has(7) && !filter.has(8));
    }
}
