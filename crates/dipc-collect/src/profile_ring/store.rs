//! Segments on their way into a ring: those that cannot be written wait in memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::folder::ProfileRing;
use super::segment::Segment;
use crate::retention::Retention;
use crate::retry_wait::RetryWait;

/// Maximum number of bytes of segments that wait.
const MAX_WAITING_BYTES: usize = 16 << 20;
/// The wait after the first attempt that failed, which doubles.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Maximum wait.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Counts of segments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RingTotals {
    /// The number of segments that were written.
    pub stored: u64,
    /// The number of segments that wait for a file system that takes them.
    pub waiting: usize,
    /// The bytes of the segments that wait.
    pub waiting_bytes: u64,
    /// The number of segments that were dropped because too many waited.
    pub dropped: u64,
    /// The reason for which segments wait.
    pub error: Option<String>,
}

/// A change of a ring that its user should know of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreEvent {
    /// A segment could not be written; it waits in memory.
    Failed(String),
    /// All that waited are written.
    Recovered {
        /// Their number.
        segments: usize,
    },
    /// The oldest segment that waited was dropped.
    Dropped,
}

/// The writer of a ring.
pub struct SegmentStore {
    ring: ProfileRing,
    waiting: VecDeque<(Segment, Vec<u8>)>,
    next_attempt: Instant,
    wait: RetryWait,
    totals: Arc<Mutex<RingTotals>>,
    report: Box<dyn Fn(&StoreEvent) + Send>,
}

impl SegmentStore {
    /// Creates the writer of a ring. `report` receives changes.
    pub fn new(ring: ProfileRing, report: Box<dyn Fn(&StoreEvent) + Send>) -> Self {
        Self {
            ring,
            waiting: VecDeque::new(),
            next_attempt: Instant::now(),
            wait: RetryWait::new(FIRST_WAIT, MAX_WAIT),
            totals: Arc::default(),
            report,
        }
    }

    /// The counts, which stay up to date.
    pub fn totals(&self) -> Arc<Mutex<RingTotals>> {
        Arc::clone(&self.totals)
    }

    /// Applies other limits to the ring.
    pub fn set_limits(&mut self, limits: Retention) {
        // What cannot be removed now is with the next segment.
        let _ = self.ring.set_limits(limits);
    }

    /// Writes a segment, after those that wait.
    pub fn add(&mut self, segment: Segment, bytes: Vec<u8>) {
        self.waiting.push_back((segment, bytes));
        if self.waiting.len() == 1 {
            self.attempt();
        }
        let mut size = self.waiting_size();
        while size > MAX_WAITING_BYTES
            && self.waiting.len() > 1
            && let Some((_, dropped)) = self.waiting.pop_front()
        {
            size = size.saturating_sub(dropped.len());
            lock(&self.totals).dropped += 1;
            (self.report)(&StoreEvent::Dropped);
        }
        self.count_waiting();
    }

    /// Tries again to write the segments that wait, if it is time to.
    pub fn retry(&mut self) {
        if !self.waiting.is_empty() && Instant::now() >= self.next_attempt {
            self.attempt();
            self.count_waiting();
        }
    }

    /// Tries a last time to write the segments that wait. Returns the number of segments that are lost.
    pub fn finish(mut self) -> usize {
        if !self.waiting.is_empty() {
            self.attempt();
            self.count_waiting();
        }
        self.waiting.len()
    }

    fn attempt(&mut self) {
        let mut written = 0;
        while let Some((segment, bytes)) = self.waiting.front() {
            if let Err(error) = self.ring.store(*segment, bytes) {
                let error = error.to_string();
                let is_new = lock(&self.totals).error.replace(error.clone()).as_ref() != Some(&error);
                if is_new {
                    (self.report)(&StoreEvent::Failed(error));
                }
                self.next_attempt = Instant::now() + self.wait.next_wait();
                return;
            }
            self.waiting.pop_front();
            written += 1;
            lock(&self.totals).stored += 1;
        }
        self.wait.reset();
        if lock(&self.totals).error.take().is_some() {
            (self.report)(&StoreEvent::Recovered { segments: written });
        }
    }

    fn waiting_size(&self) -> usize {
        self.waiting.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    fn count_waiting(&self) {
        let mut totals = lock(&self.totals);
        totals.waiting = self.waiting.len();
        totals.waiting_bytes = self.waiting_size() as u64;
    }
}

impl std::fmt::Debug for SegmentStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SegmentStore").field("ring", &self.ring).finish_non_exhaustive()
    }
}

fn lock(totals: &Mutex<RingTotals>) -> MutexGuard<'_, RingTotals> {
    totals.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc;

    use super::super::folder::stored_segments;
    use super::*;
    use crate::retention::Retention;

    fn segment(number: u64) -> Segment {
        Segment { start_ms: number * 1000, end_ms: (number + 1) * 1000 }
    }

    #[test]
    fn segments_wait_until_they_can_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("ring");
        let ring = ProfileRing::open(&directory, Retention::default()).unwrap();
        let (events, seen) = mpsc::channel();
        let mut store = SegmentStore::new(ring, Box::new(move |event| events.send(event.clone()).unwrap()));
        let totals = store.totals();
        store.add(segment(0), vec![1]);
        assert_eq!(stored_segments(&directory).unwrap().len(), 1);
        // A file in its place: nothing can be created.
        fs::remove_dir_all(&directory).unwrap();
        fs::write(&directory, "").unwrap();
        for number in 1..4 {
            store.add(segment(number), vec![1]);
        }
        assert!(matches!(&seen.try_iter().collect::<Vec<_>>()[..], [StoreEvent::Failed(_)]));
        let counts = lock(&totals).clone();
        assert_eq!((counts.waiting, counts.stored), (3, 1));
        fs::remove_file(&directory).unwrap();
        store.next_attempt = Instant::now();
        store.retry();
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), [StoreEvent::Recovered { segments: 3 }]);
        let stored: Vec<_> = stored_segments(&directory).unwrap().iter().map(|it| it.segment).collect();
        assert_eq!(stored, [segment(1), segment(2), segment(3)]);
        let expected = RingTotals { stored: 4, ..RingTotals::default() };
        assert_eq!(*lock(&totals), expected);
        assert_eq!(store.finish(), 0);
    }

    #[test]
    fn the_oldest_that_wait_are_dropped_beyond_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("ring");
        let ring = ProfileRing::open(&directory, Retention::default()).unwrap();
        fs::remove_dir_all(&directory).unwrap();
        fs::write(&directory, "").unwrap();
        let mut store = SegmentStore::new(ring, Box::new(|_| ()));
        let totals = store.totals();
        for number in 0..5 {
            store.add(segment(number), vec![1; MAX_WAITING_BYTES / 3]);
        }
        let counts = lock(&totals).clone();
        assert_eq!((counts.waiting, counts.dropped), (3, 2));
        // One that is larger than the limit waits alone.
        store.add(segment(5), vec![1; MAX_WAITING_BYTES + 1]);
        let counts = lock(&totals).clone();
        assert_eq!((counts.waiting, counts.dropped), (1, 5));
        fs::remove_file(&directory).unwrap();
        assert_eq!(store.finish(), 0);
        let stored: Vec<_> = stored_segments(&directory).unwrap().iter().map(|it| it.segment).collect();
        assert_eq!(stored, [segment(5)]);
    }
}
