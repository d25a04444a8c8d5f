//! Waits, from the request of a thread until it is met.

use hashbrown::HashMap;

use clr_events::ClrEvent;
use nettrace::RelativeTime;

use crate::profile::metrics::{PendingSample, Sample, SampleContext};

/// Waits of threads, for locks or for handles. An unfinished wait lasts until the end of the recording.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// By thread.
    open: HashMap<u32, PendingSample>,
    /// The start of the interval: the part of a wait before it is in the profile of an earlier one.
    from: RelativeTime,
    /// True if waits end in a frame for the lock.
    has_locks: bool,
}

impl Waits {
    /// Lets waits end in a frame for the lock.
    pub(super) fn show_locks(&mut self) {
        self.has_locks = true;
    }

    /// Begins an interval of a live session.
    pub(super) fn begin(&mut self, start: RelativeTime) {
        self.open.clear();
        self.from = start;
    }

    /// Adds a wait of the previous interval that continues.
    pub(super) fn resume(&mut self, thread: u32, wait: PendingSample) {
        self.open.insert(thread, PendingSample { start: self.from, ..wait });
    }

    /// Returns the waits that have not ended, by thread.
    pub(super) fn open(&self) -> impl Iterator<Item = (u32, PendingSample)> {
        self.open.iter().map(|(thread, wait)| (*thread, *wait))
    }

    pub(super) fn add(&mut self, sample_context: &mut SampleContext<'_, '_>) -> Option<Sample> {
        let measured = match sample_context.view? {
            ClrEvent::ContentionStart(start) => {
                let name = || format!("lock {:#x}", start.lock_id.unwrap_or(0));
                let leaf = self.has_locks.then(|| sample_context.leaves.intern(&name()));
                let mark = sample_context.pending(leaf);
                self.open.insert(sample_context.thread, mark);
                return None;
            }
            ClrEvent::WaitHandleWaitStart(wait) => {
                let leaf = wait.wait_source.to_string();
                let leaf = sample_context.leaves.intern(&leaf);
                let mark = sample_context.pending(Some(leaf));
                self.open.insert(sample_context.thread, mark);
                return None;
            }
            ClrEvent::ContentionStop(stop) => stop.duration(),
            ClrEvent::WaitHandleWaitStop(_) => None,
            _ => return None,
        };
        let begin = self.open.remove(&sample_context.thread);
        let now = sample_context.now();
        let Some(lasted) = measured else { return begin.map(|mark| mark.until(now, sample_context.thread)) };
        // A wait that began before the recording has the stack of its end.
        let mark = match begin {
            Some(mark) => mark,
            None if !lasted.is_zero() => sample_context.pending(None),
            None => return None,
        };
        let start = RelativeTime::after_start(now.since_start().saturating_sub(lasted)).max(self.from);
        Some(PendingSample { start, ..mark }.until(now, sample_context.thread))
    }

    pub(super) fn finish(&mut self, end: RelativeTime) -> impl Iterator<Item = Sample> {
        let mut open: Vec<_> = self.open.drain().collect();
        open.sort_unstable_by_key(|(thread, _)| *thread);
        open.into_iter().map(move |(thread, mark)| mark.until(end, thread))
    }
}
