//! Requests to end a collection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum wait between two looks at a signal.
const TICK: Duration = Duration::from_millis(50);

/// A request to end a collection. Clones share one state.
///
/// # Examples
///
/// ```
/// let stop = dipc_collect::StopSignal::new();
/// let collection = stop.clone();
/// stop.stop();
/// assert!(collection.is_stopped() && !collection.is_cancelled());
/// stop.request();
/// assert!(collection.is_cancelled());
/// ```
#[derive(Debug, Clone, Default)]
pub struct StopSignal(Arc<AtomicU8>);

const RUNNING: u8 = 0;
const STOPPED: u8 = 1;
const CANCELLED: u8 = 2;

impl StopSignal {
    /// Creates a signal that has not been given.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks to end the collection with a complete artifact: a session sends its rundown.
    pub fn stop(&self) {
        self.0.fetch_max(STOPPED, Ordering::AcqRel);
    }

    /// Asks to end the collection at once, which leaves the artifact incomplete.
    pub fn cancel(&self) {
        self.0.store(CANCELLED, Ordering::Release);
    }

    /// Asks to end the collection as a user does: the first request [stops](Self::stop) it, the second
    /// [cancels](Self::cancel) it.
    pub fn request(&self) {
        let next = |level: u8| Some(level.saturating_add(1).min(CANCELLED));
        // The closure always returns a level.
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
    }

    /// Waits for this time, or until the collection is stopped or cancelled. Returns true if it was.
    pub fn wait(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if self.is_stopped() || left.is_zero() {
                return self.is_stopped();
            }
            thread::sleep(left.min(TICK));
        }
    }

    /// Returns true if the collection was stopped or cancelled.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Acquire) != RUNNING
    }

    /// Returns true if the collection was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire) == CANCELLED
    }
}
