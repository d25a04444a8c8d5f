//! Requests to end something that runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The time for sessions of processes that cannot answer: their requests to end are sent by then, and wait in
/// the sockets of the processes.
const UNANSWERED: Duration = Duration::from_secs(2);
/// The time between looks for what still runs.
const LOOK: Duration = Duration::from_millis(10);

/// The end of work that goes on until it is asked to end, and its pauses.
#[derive(Debug, Default)]
pub(crate) struct WorkEnd {
    is_over: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

impl WorkEnd {
    /// Asks to end the work, and ends its pauses.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed.notify_all();
    }

    /// Returns true if the work was asked to end.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Pauses for a time, or until the work is asked to end.
    pub(crate) fn pause(&self, time: Duration) {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_over() {
            drop(self.changed.wait_timeout(guard, time));
        }
    }
}

/// Waits until all items of a list have ended, `longest` at most, and less for items of processes that the
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
