//! The intervals that threads are off the processors, from the times of leaving and coming back.

use std::collections::HashMap;

use crate::record::{Record, RecordKind, ThreadKey};

/// The most threads that are followed at once.
const MOST_THREADS: usize = 1 << 20;

/// An interval during which a thread was off the processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffCpuInterval<T> {
    /// The thread.
    pub thread: ThreadKey,
    /// When it left, in nanoseconds.
    pub from_ns: u64,
    /// When it came back, or the end of sampling.
    pub to_ns: u64,
    /// Whether it was runnable: it waited for a processor, not for an event.
    pub preempted: bool,
    /// The stack at the time of leaving, as the caller stored it; `None` if the caller stored none.
    pub stack: Option<T>,
}

/// Threads that are off the processors, each with its stack at the time of leaving.
#[derive(Debug)]
pub struct OffCpuTracker<T> {
    threads: HashMap<i32, Away<T>>,
    unmatched: u64,
}

#[derive(Debug)]
struct Away<T> {
    thread: ThreadKey,
    /// `None` between the sample of a switch and the switch.
    left: Option<(u64, bool)>,
    stack: Option<T>,
}

impl<T> Default for OffCpuTracker<T> {
    fn default() -> Self {
        Self { threads: HashMap::new(), unmatched: 0 }
    }
}

impl<T> OffCpuTracker<T> {
    /// Creates a tracker without threads.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores the stack of a thread that is about to leave, from a [`Switch`](crate::SampleEvent::Switch)
    /// sample.
    pub fn stack(&mut self, thread: ThreadKey, stack: T) {
        if self.threads.len() >= MOST_THREADS {
            return;
        }
        self.threads.insert(thread.tid, Away { thread, left: None, stack: Some(stack) });
    }

    /// Applies a record. Returns the interval that it ends.
    pub fn handle(&mut self, record: &Record<'_>) -> Option<OffCpuInterval<T>> {
        let thread = record.thread;
        match record.kind {
            RecordKind::SwitchOut { preempted } => {
                let left = Some((record.time_ns, preempted));
                let full = self.threads.len() >= MOST_THREADS;
                match self.threads.get_mut(&thread.tid) {
                    Some(away) if away.left.is_none() => away.left = left,
                    // The record of coming back was lost: the earlier interval is dropped here.
                    Some(away) => *away = Away { thread, left, stack: None },
                    None if full => {}
                    None => {
                        self.threads.insert(thread.tid, Away { thread, left, stack: None });
                    }
                }
                None
            }
            RecordKind::SwitchIn => {
                let away = self.threads.remove(&thread.tid);
                let interval = away.and_then(|away| away.until(record.time_ns));
                if interval.is_none() {
                    self.unmatched = self.unmatched.saturating_add(1);
                }
                interval
            }
            RecordKind::Ended { thread } => {
                self.threads.remove(&thread.tid);
                None
            }
            // Intervals with a lost end are unknown.
            RecordKind::Lost { .. } => {
                self.threads.clear();
                None
            }
            _ => None,
        }
    }

    /// Ends the intervals of all threads that are away.
    pub fn finish(&mut self, now_ns: u64) -> impl Iterator<Item = OffCpuInterval<T>> {
        std::mem::take(&mut self.threads).into_values().filter_map(move |away| away.until(now_ns))
    }

    /// Times of coming back without a known time of leaving: threads that were away from the beginning, and
    /// lost records.
    pub const fn unmatched(&self) -> u64 {
        self.unmatched
    }
}

impl<T> Away<T> {
    fn until(self, to_ns: u64) -> Option<OffCpuInterval<T>> {
        let (from_ns, preempted) = self.left?;
        let to_ns = to_ns.max(from_ns);
        Some(OffCpuInterval { thread: self.thread, from_ns, to_ns, preempted, stack: self.stack })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: ThreadKey = ThreadKey { pid: 1, tid: 2 };

    fn record(time_ns: u64, kind: RecordKind<'static>) -> Record<'static> {
        Record { thread: THREAD, time_ns, cpu: 0, kind }
    }

    #[test]
    fn an_interval_is_from_leaving_to_coming_back_with_the_stack_before() {
        let mut tracker = OffCpuTracker::new();
        tracker.stack(THREAD, "wait");
        assert_eq!(tracker.handle(&record(10, RecordKind::SwitchOut { preempted: false })), None);
        let interval = tracker.handle(&record(25, RecordKind::SwitchIn)).unwrap();
        assert_eq!((interval.from_ns, interval.to_ns, interval.stack), (10, 25, Some("wait")));
        assert_eq!(tracker.handle(&record(30, RecordKind::SwitchIn)), None);
        assert_eq!(tracker.unmatched(), 1);
    }

    #[test]
    fn a_lost_record_ends_what_is_known() {
        let mut tracker = OffCpuTracker::<()>::new();
        tracker.handle(&record(10, RecordKind::SwitchOut { preempted: true }));
        tracker.handle(&record(20, RecordKind::Lost { count: 3 }));
        assert_eq!(tracker.finish(100).count(), 0);
        tracker.handle(&record(30, RecordKind::SwitchOut { preempted: true }));
        let left: Vec<_> = tracker.finish(100).collect();
        assert_eq!((left[0].from_ns, left[0].to_ns, left[0].preempted), (30, 100, true));
    }
}
