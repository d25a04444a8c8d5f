//! The intervals that threads are off the processors, from the times of leaving and coming back.

use std::collections::HashMap;

use crate::record::{Record, RecordKind, ThreadKey};

/// Maximum number of threads to follow at once.
const MAX_THREADS: usize = 1 << 20;

/// An interval during which a thread was off the processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OffCpuInterval<T> {
    /// The thread.
    pub thread: ThreadKey,
    /// When it left, in nanoseconds.
    pub from_ns: u64,
    /// The time when it returned, or the end of sampling.
    pub to_ns: u64,
    /// True if it was runnable: it waited for a processor, not for an event.
    pub preempted: bool,
    /// The stack at the time of leaving, as the caller stored it; `None` if the caller stored none.
    pub stack: Option<T>,
}

/// Threads that are off the processors, each with its stack at the time of leaving.
///
/// ```no_run
/// use linux_sampler::{OffCpu, OffCpuTracker, Sampler, SamplerConfig};
/// use std::time::Duration;
///
/// let config = SamplerConfig::of_process(4711).with_off_cpu(OffCpu::Times);
/// let (mut sampler, mut tracker) = (Sampler::open(&config)?, OffCpuTracker::<()>::new());
/// while sampler.running() > 0 {
///     for record in sampler.read(Duration::from_millis(100))? {
///         if let Some(interval) = tracker.handle(&record) {
///             println!("{} was away for {} ns", interval.thread.tid, interval.to_ns - interval.from_ns);
///         }
///     }
/// }
/// # Ok::<(), linux_sampler::Error>(())
/// ```
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
    /// For a thread that left before the first record.
    from_start: Option<FromStart>,
}

/// The known facts about a thread before its first record.
#[derive(Debug, Clone, Copy)]
struct FromStart {
    /// The time at which it was looked at.
    seen_ns: u64,
    was_waiting: bool,
    /// True if records were lost since: it may have returned unseen.
    is_doubtful: bool,
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

    /// Adds a thread that existed when sampling began at `from_ns`, and was inspected later, at `seen_ns`: it
    /// waited, perhaps with a known stack, or it ran or waited for a processor.
    ///
    /// If its first record is a return to a processor, it was away from the beginning. If it was waiting and
    /// no record follows, it is away until the end. If other records are lost, the wait is doubtful: it ends
    /// in no interval unless it is [confirmed](Self::confirm).
    pub fn existing(&mut self, thread: ThreadKey, from_ns: u64, seen_ns: u64, wait: Option<Option<T>>) {
        if self.threads.len() >= MAX_THREADS {
            return;
        }
        let was_waiting = wait.is_some();
        let away = Away::new(thread, Some((from_ns, !was_waiting)), wait.flatten());
        let from_start = Some(FromStart { seen_ns, was_waiting, is_doubtful: false });
        self.threads.insert(thread.tid, Away { from_start, ..away });
    }

    /// Stores the stack of a thread that is about to leave, from a [`Switch`](crate::SampleEvent::Switch)
    /// sample.
    pub fn stack(&mut self, thread: ThreadKey, stack: T) {
        if self.threads.len() >= MAX_THREADS {
            return;
        }
        self.threads.insert(thread.tid, Away::new(thread, None, Some(stack)));
    }

    /// Applies a record. Returns the interval that it ends.
    pub fn handle(&mut self, record: &Record<'_>) -> Option<OffCpuInterval<T>> {
        let thread = record.thread;
        match record.kind {
            RecordKind::SwitchOut { preempted } => {
                let left = Some((record.time_ns, preempted));
                let full = self.threads.len() >= MAX_THREADS;
                match self.threads.get_mut(&thread.tid) {
                    Some(away) if away.left.is_none() => away.left = left,
                    // The record of coming back was lost, or the thread ran when sampling began.
                    Some(away) => *away = Away::new(thread, left, None),
                    None if full => {}
                    None => {
                        self.threads.insert(thread.tid, Away::new(thread, left, None));
                    }
                }
                None
            }
            RecordKind::SwitchIn => {
                let away = self.threads.remove(&thread.tid).filter(|away| !away.is_doubtful());
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
            RecordKind::Lost { .. } => {
                self.lost();
                None
            }
            _ => None,
        }
    }

    /// Drops the intervals with perhaps a lost end. Waits from the beginning remain, as doubtful.
    fn lost(&mut self) {
        self.threads.retain(|_, away| {
            let Some(start) = away.from_start.as_mut().filter(|start| start.was_waiting) else {
                return false;
            };
            start.is_doubtful = true;
            true
        });
    }

    /// Asks about each thread that waited when sampling began, if records were lost since then: `since`
    /// returns the time from which the thread has certainly waited without a break, in nanoseconds, or
    /// `None`. Those waits [end](Self::finish) like others, from then on; the rest end in no interval.
    ///
    /// `/proc` knows: the context switches in a waiting thread's status stay the same while it waits.
    ///
    /// ```
    /// use linux_sampler::{OffCpuTracker, Record, ThreadKey};
    ///
    /// # fn example(lost: &Record) {
    /// let (parked, other) = (ThreadKey { pid: 1, tid: 2 }, ThreadKey { pid: 1, tid: 3 });
    /// let mut tracker = OffCpuTracker::<()>::new();
    /// tracker.existing(parked, 100, 110, Some(None));
    /// tracker.existing(other, 100, 110, Some(None));
    /// tracker.handle(lost);
    /// tracker.confirm(|thread| (thread == parked).then_some(105));
    /// let waits: Vec<_> = tracker.finish(200).collect();
    /// assert_eq!((waits.len(), waits[0].thread, waits[0].from_ns), (1, parked, 105));
    /// # }
    /// ```
    pub fn confirm(&mut self, mut since: impl FnMut(ThreadKey) -> Option<u64>) {
        for away in self.threads.values_mut().filter(|away| away.is_doubtful()) {
            let (Some(from_ns), Some((left_ns, _)), Some(start)) =
                (since(away.thread), &mut away.left, &mut away.from_start)
            else {
                continue;
            };
            *left_ns = from_ns.max(*left_ns);
            start.is_doubtful = false;
        }
    }

    /// Ends the intervals of all threads that are away.
    pub fn finish(&mut self, now_ns: u64) -> impl Iterator<Item = OffCpuInterval<T>> {
        let left = std::mem::take(&mut self.threads).into_values();
        // A thread without any record ran all the time, if it was not waiting.
        let is_away =
            |away: &Away<T>| away.from_start.is_none_or(|start| start.was_waiting && !start.is_doubtful);
        left.filter(is_away).filter_map(move |away| away.until(now_ns))
    }

    /// Times of coming back without a known time of leaving: new threads, threads that were away from the
    /// beginning and not [added](Self::existing), and lost records.
    pub const fn unmatched(&self) -> u64 {
        self.unmatched
    }
}

impl<T> Away<T> {
    const fn new(thread: ThreadKey, left: Option<(u64, bool)>, stack: Option<T>) -> Self {
        Self { thread, left, stack, from_start: None }
    }

    fn is_doubtful(&self) -> bool {
        self.from_start.is_some_and(|start| start.is_doubtful)
    }

    fn until(self, to_ns: u64) -> Option<OffCpuInterval<T>> {
        let (from_ns, preempted) = self.left?;
        let to_ns = to_ns.max(from_ns);
        // A wait seen after the return is another wait.
        let is_later = self.from_start.is_some_and(|start| start.seen_ns > to_ns);
        let stack = self.stack.filter(|_| !is_later);
        Some(OffCpuInterval { thread: self.thread, from_ns, to_ns, preempted, stack })
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
    fn a_thread_that_was_away_from_the_beginning_has_an_interval() {
        let ends = |wait, records: &[(u64, RecordKind<'static>)]| {
            let mut tracker = OffCpuTracker::new();
            tracker.existing(THREAD, 100, 110, wait);
            let came = records.iter().filter_map(|&(time, kind)| tracker.handle(&record(time, kind)));
            let mut all: Vec<_> = came.collect();
            all.extend(tracker.finish(200));
            let row = |interval: &OffCpuInterval<&'static str>| {
                (interval.from_ns, interval.to_ns, interval.preempted, interval.stack)
            };
            all.iter().map(row).collect::<Vec<_>>()
        };
        let (back, left) = (RecordKind::SwitchIn, RecordKind::SwitchOut { preempted: false });
        let lock = Some(Some("lock"));
        assert_eq!(ends(lock, &[]), [(100, 200, false, Some("lock"))]);
        assert_eq!(ends(lock, &[(150, back)]), [(100, 150, false, Some("lock"))]);
        // The thread returned before it was looked at, and the stack belongs to its next wait.
        assert_eq!(
            ends(lock, &[(105, back), (107, left)]),
            [(100, 105, false, None), (107, 200, false, None)]
        );
        assert_eq!(ends(Some(None), &[]), [(100, 200, false, None)], "a stack that could not be read");
        // The thread ran when sampling began.
        assert_eq!(ends(lock, &[(103, left), (150, back)]), [(103, 150, false, None)]);
        // The thread ran all the time, or waited for a processor first.
        assert_eq!(ends(None, &[]), []);
        assert_eq!(ends(None, &[(150, back)]), [(100, 150, true, None)]);
    }

    #[test]
    fn a_wait_from_the_beginning_is_confirmed_after_a_loss() {
        let (back, left) = (RecordKind::SwitchIn, RecordKind::SwitchOut { preempted: false });
        let ends = |records: &[(u64, RecordKind<'static>)], since: Option<u64>| {
            let mut tracker = OffCpuTracker::new();
            tracker.existing(THREAD, 100, 110, Some(Some("lock")));
            tracker.existing(ThreadKey { pid: 1, tid: 3 }, 100, 110, None);
            tracker.handle(&record(120, RecordKind::Lost { count: 1 }));
            for &(time, kind) in records {
                assert_eq!(tracker.handle(&record(time, kind)), None, "its return may be lost");
            }
            tracker.confirm(|thread| since.filter(|_| thread == THREAD));
            let all = tracker.finish(200);
            all.map(|interval| (interval.from_ns, interval.to_ns, interval.stack)).collect::<Vec<_>>()
        };
        assert_eq!(ends(&[], Some(104)), [(104, 200, Some("lock"))]);
        assert_eq!(ends(&[], Some(90)), [(100, 200, Some("lock"))], "not before sampling began");
        assert_eq!(ends(&[(130, RecordKind::Lost { count: 1 })], Some(104)), [(104, 200, Some("lock"))]);
        assert_eq!(ends(&[], None), [], "it is not claimed");
        assert_eq!(ends(&[(150, back)], Some(104)), []);
        // The later records are whole.
        assert_eq!(ends(&[(150, back), (160, left)], None), [(160, 200, None)]);
        assert_eq!(ends(&[(160, left)], Some(104)), [(160, 200, None)]);
    }

    #[test]
    fn a_lost_record_resets_the_known_state() {
        let mut tracker = OffCpuTracker::<()>::new();
        tracker.handle(&record(10, RecordKind::SwitchOut { preempted: true }));
        tracker.handle(&record(20, RecordKind::Lost { count: 3 }));
        assert_eq!(tracker.finish(100).count(), 0);
        tracker.handle(&record(30, RecordKind::SwitchOut { preempted: true }));
        let left: Vec<_> = tracker.finish(100).collect();
        assert_eq!((left[0].from_ns, left[0].to_ns, left[0].preempted), (30, 100, true));
    }
}
