use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::{Address, Error, Operation};

/// Ends a pending `read`, `write_all`, `accept` or [`Hub::next`](crate::Hub::next) from another thread, and every later
/// one.
#[derive(Clone)]
pub struct Canceller(Arc<Cancel>);

struct Cancel {
    cancelled: AtomicBool,
    waker: Arc<dyn Wake>,
}

/// Makes a thread that waits look again at what it waits for.
pub(crate) trait Wake: Send + Sync {
    fn wake(&self);
}

impl Canceller {
    pub(crate) fn new(waker: Arc<dyn Wake>) -> Self {
        Self(Arc::new(Cancel { cancelled: AtomicBool::new(false), waker }))
    }

    /// One that was not used yet. It shares the waker of this one; being woken for nothing does no harm.
    pub(crate) fn renewed(&self) -> Self {
        Self::new(Arc::clone(&self.0.waker))
    }

    /// Whether [`Canceller::cancel`] was called since this was last asked.
    pub(crate) fn take(&self) -> bool {
        self.0.cancelled.swap(false, Ordering::AcqRel)
    }

    /// Makes what is pending, and everything that follows, fail with [`Error::Cancelled`].
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
        self.0.waker.wake();
    }

    /// Whether [`Canceller::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canceller").field("cancelled", &self.is_cancelled()).finish()
    }
}

/// Why an operation did not come to its end.
#[derive(Debug)]
pub(crate) enum Interruption {
    Cancelled,
    TimedOut(Duration),
    Failed(io::Error),
}

impl Interruption {
    /// `peer` is the process that is waited for, where it is known: what a time-out says of it is looked up now.
    pub(crate) fn into_error(self, operation: Operation, address: &Address, peer: Option<u32>) -> Error {
        let address = address.clone();
        match self {
            Self::Cancelled => Error::Cancelled { operation, address },
            Self::TimedOut(after) => Error::timed_out(operation, address, after, peer),
            Self::Failed(source)
                if matches!(source.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) =>
            {
                Error::Disconnected { operation, address }
            }
            Self::Failed(source) => Error::Io { operation, address, source },
        }
    }
}
