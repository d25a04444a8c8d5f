use std::io;
use std::sync::Arc;
use std::time::Instant;

use mio::event::Source;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::Deadline;
use crate::cancel::{Canceller, Interruption, Wake};

const STREAM: Token = Token(0);
const CANCEL: Token = Token(1);

impl Wake for Waker {
    fn wake(&self) {
        // The flag is set even if waking fails, and a waker fails only when the system is out of memory.
        let _ = Self::wake(self);
    }
}

/// A wait for one non-blocking source, until it is ready, a deadline passes, or a canceller is used.
#[derive(Debug)]
pub(crate) struct Readiness {
    poll: Poll,
    events: Events,
    canceller: Canceller,
}

impl Readiness {
    pub(crate) fn new(source: &mut impl Source, interest: Interest) -> io::Result<Self> {
        let poll = Poll::new()?;
        poll.registry().register(source, STREAM, interest)?;
        let waker: Arc<dyn Wake> = Arc::new(Waker::new(poll.registry(), CANCEL)?);
        Ok(Self { poll, events: Events::with_capacity(4), canceller: Canceller::new(waker) })
    }

    pub(crate) fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    pub(crate) fn renew_canceller(&mut self) {
        self.canceller = self.canceller.renewed();
    }

    /// Repeats `attempt` until it no longer returns "would block". It is tried before the first wait, since
    /// readiness is reported only once, when it begins.
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

    /// Waits, or returns early on a signal or a cancel: the caller tries again in any case.
    fn wait(&mut self, deadline: Deadline) -> Result<(), Interruption> {
        match self.poll.poll(&mut self.events, deadline.remaining()) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(Interruption::Failed(error)),
            _ => Ok(()),
        }
    }
}
