use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dipc_transport::{Connector, Deadline};
use dipc_wire::{SessionId, StopTracing};

use crate::exchange::Exchange;
use crate::route::RouteConnection;
use crate::{Error, Target};

/// Maximum wait for a connection for the stop. Reading continues between two attempts.
pub(super) const ATTEMPT: Duration = Duration::from_millis(50);
/// The time for which a stream may continue after its stop has failed, before the failure becomes an error of
/// the read.
const FAILURE_GRACE: Duration = Duration::from_secs(1);

/// A handle that stops a [`Session`](crate::Session) from any thread, over its own connection.
#[derive(Debug, Clone)]
pub struct Stopper {
    target: Target,
    id: SessionId,
    progress: Arc<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// The number of bytes of the stream that were read.
    received: AtomicU64,
    /// True if a stop was requested, and has not failed.
    stopping: AtomicBool,
    /// True if the stream has ended, so its id may already belong to another session.
    ended: AtomicBool,
    /// The stop that the reads of the stream advance.
    request: Mutex<Option<StopRequest>>,
}

/// A requested stop, with its progress.
#[derive(Debug)]
struct StopRequest {
    since: Instant,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// Not sent on any connection yet. A connection to an address takes several attempts if the round trip is
    /// long.
    Unsent(Option<Connector>),
    Sent(Exchange),
    Answered,
    Failed(Error),
}

impl Stopper {
    pub(super) fn new(target: Target, id: SessionId) -> Self {
        Self { target, id, progress: Arc::default() }
    }

    /// The runtime's id of the session.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Asks the runtime to stop the session, without waiting for its answer, as in
    /// [`Session::request_stop`](crate::Session).
    ///
    /// # Errors
    /// Errors of connecting. After an error the stop can be requested again.
    pub fn request_stop(&self) -> Result<(), Error> {
        if self.begin_request() { self.attempt() } else { Ok(()) }
    }

    /// Asks the runtime to stop the session and waits for its answer, while another thread reads the stream
    /// to its end. Does nothing if the stream has ended or a stop is in progress.
    ///
    /// # Errors
    /// A time-out if neither the answer nor any byte of the stream arrived within
    /// [`Timeouts::stop`](crate::Timeouts). After an error the stop can be tried again.
    pub fn stop(&self) -> Result<(), Error> {
        if self.has_ended() || self.begin() {
            return Ok(());
        }
        match self.send_and_wait() {
            Err(error) if !self.has_ended() => {
                self.abort();
                Err(error)
            }
            _ => Ok(()),
        }
    }

    fn send_and_wait(&self) -> Result<(), Error> {
        let mut exchange = self.send(self.target.request_deadline())?;
        loop {
            let received = self.received();
            let deadline = Deadline::after(self.target.timeouts().stop);
            match exchange.receive::<StopTracing>(deadline) {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(reason)) => return Err(exchange.refused(reason)),
                // A long rundown on its way to a slow disk does not mean that the stop has failed.
                Err(error) if error.is_deadline() && self.received() != received => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn send(&self, deadline: Deadline) -> Result<Exchange, Error> {
        self.target.send(&StopTracing { session: self.id }, deadline)
    }

    /// Sends the stop if a connection is available within [`ATTEMPT`].
    fn attempt_send(&self, connector: Option<&mut Connector>) -> Result<Exchange, Error> {
        let deadline = Deadline::after(ATTEMPT);
        match connector {
            Some(connector) => {
                let connect =
                    || Ok(RouteConnection { connection: connector.connect(deadline)?, lease: None });
                Exchange::send(&StopTracing { session: self.id }, connect, deadline)
            }
            None => self.send(deadline),
        }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// The number of bytes of the stream that were read.
    pub(super) fn received(&self) -> u64 {
        self.progress.received.load(Ordering::Relaxed)
    }

    pub(super) fn count_received(&self, bytes: usize) {
        self.progress.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.progress.ended.load(Ordering::Acquire)
    }

    pub(super) fn end(&self) {
        self.progress.ended.store(true, Ordering::Release);
    }

    /// Returns true if a stop was requested, and has not failed.
    pub(super) fn is_stopping(&self) -> bool {
        self.progress.stopping.load(Ordering::Acquire)
    }

    /// Marks the session as being stopped. Returns true if it was already.
    pub(super) fn begin(&self) -> bool {
        self.progress.stopping.swap(true, Ordering::AcqRel)
    }

    fn abort(&self) {
        self.progress.stopping.store(false, Ordering::Release);
    }

    fn request(&self) -> MutexGuard<'_, Option<StopRequest>> {
        self.progress.request.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a stop for the next [`advance`](Self::advance) to send. Returns false if none is needed.
    pub(super) fn begin_request(&self) -> bool {
        if self.has_ended() || self.begin() {
            return false;
        }
        let phase = Phase::Unsent(self.target.connector());
        *self.request() = Some(StopRequest { since: Instant::now(), phase });
        true
    }

    /// Sends the requested stop if a connection is free within [`ATTEMPT`].
    fn attempt(&self) -> Result<(), Error> {
        let mut slot = self.request();
        let Some(request) = slot.as_mut() else { return Ok(()) };
        request.advance(self);
        if matches!(request.phase, Phase::Failed(_))
            && let Some(StopRequest { phase: Phase::Failed(error), .. }) = slot.take()
            && !self.has_ended()
        {
            self.abort();
            return Err(error);
        }
        Ok(())
    }

    /// Sends a requested stop that was not sent yet, and checks for its answer, without waiting. `last_byte`
    /// is the time at which the stream last had bytes; `quiet` is true if it just had nothing to read.
    pub(super) fn advance(&self, last_byte: Option<Instant>, quiet: bool) -> Result<(), Error> {
        let mut slot = self.request();
        let Some(request) = slot.as_mut() else { return Ok(()) };
        // The stream of an ended process may still have bytes: they are returned before the error.
        let failed_before = matches!(request.phase, Phase::Failed(_));
        let failure = if failed_before && (quiet || request.since.elapsed() > FAILURE_GRACE) {
            slot.take().and_then(StopRequest::into_failure)
        } else {
            request.advance(self);
            let silent = last_byte.map_or(request.since, |last| last.max(request.since)).elapsed();
            let over = quiet && silent >= self.target.timeouts().stop;
            over.then(|| slot.take()).flatten().map(|request| {
                let address = self.target.address().clone();
                request.into_failure().unwrap_or(Error::NotStopped { address, after: silent })
            })
        };
        match failure {
            Some(error) => {
                self.abort();
                Err(error)
            }
            None => Ok(()),
        }
    }

    /// Waits for the answer to a requested stop after the end of the stream: then the session is gone.
    pub(super) fn collect_answer(&self, deadline: Deadline) {
        let mut slot = self.request();
        if let Some(StopRequest { phase: Phase::Sent(exchange), .. }) = slot.as_mut()
            && matches!(exchange.poll_message(deadline), Ok(None))
        {
            return;
        }
        *slot = None;
    }

    /// Withdraws a requested stop that was not sent, or has failed.
    pub(super) fn withdraw_unsent(&self) {
        let mut slot = self.request();
        if let Some(StopRequest { phase: Phase::Unsent(_) | Phase::Failed(_), .. }) = slot.as_ref() {
            *slot = None;
            self.abort();
        }
    }
}

impl StopRequest {
    fn advance(&mut self, stopper: &Stopper) {
        let next = match &mut self.phase {
            Phase::Unsent(connector) => match stopper.attempt_send(connector.as_mut()) {
                Ok(exchange) => Phase::Sent(exchange),
                Err(error) if error.is_deadline() => return,
                Err(error) => Phase::Failed(error),
            },
            Phase::Sent(exchange) => match exchange.poll_receive::<StopTracing>(Deadline::at(Instant::now()))
            {
                Ok(None) => return,
                Ok(Some(Ok(_))) => Phase::Answered,
                Ok(Some(Err(reason))) => Phase::Failed(exchange.refused(reason)),
                Err(error) => Phase::Failed(error),
            },
            Phase::Answered | Phase::Failed(_) => return,
        };
        if matches!(next, Phase::Failed(_)) {
            self.since = Instant::now();
        }
        self.phase = next;
    }

    fn into_failure(self) -> Option<Error> {
        match self.phase {
            Phase::Failed(error) => Some(error),
            _ => None,
        }
    }
}
