//! The processes that were there when the events of this user's processes were opened, and their children.

use std::collections::HashMap;

use dipc_client::dipc_transport::start_key;
use linux_sampler::RecordKind;

/// The known processes, each by its number and its start.
#[derive(Debug)]
pub(super) struct OwnProcesses {
    /// The start of each; `None` for a child since its birth, until the next [look](Self::miss).
    started: HashMap<i32, Option<u64>>,
}

impl OwnProcesses {
    pub(super) fn new(pids: &[u32]) -> Self {
        let known = pids.iter().filter_map(|pid| Some((i32::try_from(*pid).ok()?, start_key(*pid).ok())));
        Self { started: known.collect() }
    }

    /// Notes that the children of sampled processes are sampled, too.
    pub(super) fn note(&mut self, kind: &RecordKind<'_>) {
        match *kind {
            RecordKind::Started { thread, parent } if thread.pid != parent.pid => {
                self.started.insert(thread.pid, None);
            }
            RecordKind::Ended { thread } if thread.pid == thread.tid => {
                self.started.remove(&thread.pid);
            }
            _ => {}
        }
    }

    /// Returns true if one of the processes that exist is not known, and may be sampled. Those that may not
    /// are known from then on, and those that do not exist any more are not: the end of a process without
    /// events is not in the records, and its number can become another's.
    pub(super) fn miss(&mut self, existing: &[u32], may_be_sampled: impl Fn(i32) -> bool) -> bool {
        let mut before = std::mem::take(&mut self.started);
        let mut misses = false;
        for pid in existing {
            let (Ok(number), Ok(start)) = (i32::try_from(*pid), start_key(*pid)) else { continue };
            let is_known =
                before.remove(&number).is_some_and(|known| known.is_none_or(|known| known == start));
            if !is_known && may_be_sampled(number) {
                misses = true;
            } else {
                self.started.insert(number, Some(start));
            }
        }
        misses
    }
}

#[cfg(test)]
mod tests {
    use linux_sampler::ThreadKey;

    use super::*;

    fn key(pid: i32) -> ThreadKey {
        ThreadKey { pid, tid: pid }
    }

    #[test]
    fn processes_are_forgotten_with_their_ends_seen_or_not() {
        let own = std::process::id();
        let number = i32::try_from(own).unwrap();
        let mut processes = OwnProcesses::new(&[own]);
        // Beyond the largest number of a process: as many as end, and one whose end is not seen.
        for child in 5_000_000..5_010_000 {
            processes.note(&RecordKind::Started { thread: key(child), parent: key(number) });
            if child != 5_000_007 {
                processes.note(&RecordKind::Ended { thread: key(child) });
            }
        }
        assert_eq!(processes.started.len(), 2);
        assert!(!processes.miss(&[own], |_| true));
        assert_eq!(processes.started.len(), 1);
    }

    #[test]
    fn a_process_with_the_number_of_another_is_missed() {
        let own = std::process::id();
        let number = i32::try_from(own).unwrap();
        let mut processes = OwnProcesses::new(&[own]);
        let start = processes.started[&number].unwrap();
        // The one before ended without a record.
        processes.started.insert(number, Some(start.wrapping_sub(1)));
        assert!(processes.miss(&[own], |_| true));
        // It is another user's: it is not looked at again.
        assert!(!processes.miss(&[own], |_| false));
        assert!(!processes.miss(&[own], |_| true));
        // A child has the number.
        processes.note(&RecordKind::Started { thread: key(number), parent: key(1) });
        assert!(!processes.miss(&[own], |_| true));
        assert_eq!(processes.started[&number], Some(start));
    }
}
