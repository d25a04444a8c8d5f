//! Requests to end something that runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The time for sessions of processes that cannot answer: their requests to end are sent by then, and wait in the
/// sockets of the processes.
const UNANSWERED: Duration = Duration::from_secs(2);
/// The time between looks for what still runs.
const LOOK: Duration = Duration::from_millis(10);

/// A request to end an artifact's collection. Clones are of one request.
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
