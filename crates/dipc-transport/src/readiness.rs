use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::event::Source;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::{Address, Deadline, Error, Operation};

const STREAM: Token = Token(0);
const CANCEL: Token = Token(1);

/// Ends a pending `read`, `write_all` or `accept` from another thread, and every later one.
#[derive(Clone)]
pub struct Canceller(Arc<Cancel>);

struct Cancel {
    cancelled: AtomicBool,
    waker: Arc<Waker>,
}

impl Canceller {
    fn new(waker: Arc<Waker>) -> Self {
        Self(Arc::new(Cancel { cancelled: AtomicBool::new(false), waker }))
    }

    /// Makes what is pending, and everything that follows, fail with [`Error::Cancelled`].
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
        // The flag stands even where waking fails, and a waker fails only when the system is out of memory.
        let _ = self.0.waker.wake();
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

/// Waits until one non-blocking source can go on, a deadline passes, or a canceller is used.
#[derive(Debug)]
pub(crate) struct Readiness {
    poll: Poll,
    events: Events,
    canceller: Canceller,
}

/// Why an operation did not come to its end.
pub(crate) enum Interruption {
    Cancelled,
    TimedOut(Duration),
    Failed(io::Error),
}

impl Readiness {
    pub(crate) fn new(source: &mut impl Source, interest: Interest) -> io::Result<Self> {
        let poll = Poll::new()?;
        poll.registry().register(source, STREAM, interest)?;
        let canceller = Canceller::new(Arc::new(Waker::new(poll.registry(), CANCEL)?));
        Ok(Self { poll, events: Events::with_capacity(4), canceller })
    }

    pub(crate) fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// There is one waker for each `Poll`, so the new canceller shares it; being woken for nothing does no harm.
    pub(crate) fn renew_canceller(&mut self) {
        self.canceller = Canceller::new(Arc::clone(&self.canceller.0.waker));
    }

    /// Repeats `attempt` until it no longer says "would block". It is tried before anything is waited for, since
    /// readiness is reported once, when it begins.
    pub(crate) fn retry<T>(
        &mut self,
        deadline: Deadline,
        mut attempt: impl FnMut() -> io::Result<T>,
    ) -> Result<T, Interruption> {
        let started = Instant::now();
        loop {
            if self.canceller.is_cancelled() {
                return Err(Interruption::Cancelled);
            }
            match attempt() {
                Ok(done) => return Ok(done),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if deadline.is_over() {
                        return Err(Interruption::TimedOut(started.elapsed()));
                    }
                    self.wait(deadline)?;
                }
                Err(error) => return Err(Interruption::Failed(error)),
            }
        }
    }

    /// Returns early on a signal or when it is cancelled: the caller tries again in any case.
    fn wait(&mut self, deadline: Deadline) -> Result<(), Interruption> {
        match self.poll.poll(&mut self.events, deadline.remaining()) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(Interruption::Failed(error)),
            _ => Ok(()),
        }
    }
}

impl Interruption {
    pub(crate) fn into_error(self, operation: Operation, address: &Address) -> Error {
        let address = address.clone();
        match self {
            Self::Cancelled => Error::Cancelled { operation, address },
            Self::TimedOut(after) => Error::TimedOut { operation, address, after },
            Self::Failed(source)
                if matches!(source.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) =>
            {
                Error::Disconnected { operation, address }
            }
            Self::Failed(source) => Error::Io { operation, address, source },
        }
    }
}
