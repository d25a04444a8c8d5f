//! Readings of the memory of processes, at intervals.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Shared;
use crate::process::Watched;

/// The part of the time for which processes are read: readings of many, or of large ones, are further apart.
const PART: u32 = 50;
/// Maximum wait between two searches for a process that is due.
const TICK: Duration = Duration::from_secs(1);

impl Shared {
    /// Reads the processes of which readings are wanted, one after the other, until the end.
    pub(super) fn read_memory(&self, interval: Duration) {
        let mut rest = Instant::now();
        while !self.is_over() {
            let now = Instant::now();
            let next = if now >= rest { self.next_due(interval, now) } else { None };
            let Some((process, pid)) = next else {
                let wait = rest.saturating_duration_since(now).clamp(Duration::from_millis(1), TICK);
                let wait = if now >= rest { TICK } else { wait };
                drop(self.changed.wait_timeout(self.state(), wait));
                continue;
            };
            // One that the kernel holds up takes no processor, and the others do not wait for it.
            if process.owner_memory.update(pid) {
                rest = now.checked_add(now.elapsed().saturating_mul(PART)).unwrap_or(now);
            }
        }
    }

    /// The process that has waited longest for its reading, if one is due.
    fn next_due(&self, interval: Duration, now: Instant) -> Option<(Arc<Watched>, u32)> {
        let state = self.state();
        let wanted = state.processes.values().filter(|process| process.owner_memory.is_wanted());
        let due = wanted.map(|process| (process.owner_memory.due(interval), process));
        let (due, process) = due.min_by_key(|(due, _)| *due)?;
        let process = Arc::clone(process);
        drop(state);
        if due.is_some_and(|due| due > now) {
            return None;
        }
        let pid = process.system_pid();
        if pid.is_none() {
            // Of another machine, or ended.
            process.owner_memory.skip();
        }
        pid.map(|pid| (process, pid))
    }
}
