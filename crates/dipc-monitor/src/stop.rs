//! Requests to end something that runs.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The time for sessions of processes that cannot answer: their requests to end are sent by then, and wait in the
/// sockets of the processes.
const UNANSWERED: Duration = Duration::from_secs(2);
/// The time between looks for what still runs.
const LOOK: Duration = Duration::from_millis(10);

/// A request to end an artifact's collection. Clones are of one request.
///
/// ```
/// use dipc_monitor::StopSignal;
///
/// let stop = StopSignal::new();
/// let collecting = stop.clone();
/// stop.stop();
/// // The artifact becomes complete, and then ends.
/// assert!(collecting.is_stopped() && !collecting.is_cancelled());
/// ```
#[derive(Debug, Clone, Default)]
pub struct StopSignal(Arc<AtomicU8>);

const RUNNING: u8 = 0;
const STOPPED: u8 = 1;
const CANCELLED: u8 = 2;

impl StopSignal {
    /// Creates a signal that nobody has given.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks to end the collection so that the artifact is complete: a session sends its rundown.
    pub fn stop(&self) {
        self.0.fetch_max(STOPPED, Ordering::AcqRel);
    }

    /// Asks to end the collection at once. The artifact is not complete.
    pub fn cancel(&self) {
        self.0.store(CANCELLED, Ordering::Release);
    }

    /// Whether it was asked to end in any way.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Acquire) != RUNNING
    }

    /// Whether it was asked to end at once.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire) == CANCELLED
    }
}

/// The end of work that goes on until it is asked to end, and its pauses.
#[derive(Debug, Default)]
pub struct WorkEnd {
    is_over: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

impl WorkEnd {
    /// Asks to end the work, and ends its pauses.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed.notify_all();
    }

    /// Whether the work was asked to end.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Pauses for a time, or until the work is asked to end.
    pub fn pause(&self, time: Duration) {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_over() {
            drop(self.changed.wait_timeout(guard, time));
        }
    }
}

/// Waits until nothing of a list runs any more, `longest` at most, and less for what belongs to processes that the
/// system keeps from answering.
pub(crate) fn await_end<T>(
    list: &[T],
    can_answer: impl Fn(&T) -> bool,
    is_running: impl Fn(&T) -> bool,
    longest: Duration,
) {
    let start = Instant::now();
    let limit = |item: &T| if can_answer(item) { longest } else { UNANSWERED.min(longest) };
    let mut waiting: Vec<_> = list.iter().map(|item| (item, limit(item))).collect();
    loop {
        let elapsed = start.elapsed();
        waiting.retain(|(item, limit)| elapsed < *limit && is_running(item));
        if waiting.is_empty() {
            return;
        }
        thread::sleep(LOOK);
    }
}
