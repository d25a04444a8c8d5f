//! Requests to end something that runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

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
