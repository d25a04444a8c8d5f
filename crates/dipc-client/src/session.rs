use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use dipc_transport::{Canceller, Connection, Deadline};
use dipc_wire::{SessionId, StopTracing};

use crate::exchange::Exchange;
use crate::{Error, OptionalFeature, Target};

/// A running EventPipe session and its stream.
///
/// Read the stream until it ends. To end it, use a [`Stopper`] from another thread *and keep reading*: the runtime
/// answers the stop only after it has written what it still holds and the rundown.
///
/// A session that is dropped before its stream has ended is stopped, within [`Timeouts::abandon`](crate::Timeouts).
#[derive(Debug)]
pub struct Session {
    stream: Connection,
    /// What came with the reply, and how much of it was read.
    beginning: Vec<u8>,
    beginning_read: usize,
    first_read: Option<Instant>,
    stopper: Stopper,
    command: &'static str,
    dropped_features: Vec<OptionalFeature>,
}

/// Stops a [`Session`] from any thread, over a connection of its own.
#[derive(Debug, Clone)]
pub struct Stopper {
    target: Target,
    id: SessionId,
    progress: Arc<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// How many bytes of the stream were read.
    received: AtomicU64,
    /// A stop was asked for, and has not failed.
    stopping: AtomicBool,
    /// The stream has ended, and its id may already be another session's.
    ended: AtomicBool,
}

impl Session {
    pub(crate) fn new(
        target: Target,
        id: SessionId,
        command: &'static str,
        dropped_features: Vec<OptionalFeature>,
        exchange: Exchange,
    ) -> Self {
        let (stream, beginning) = exchange.into_stream();
        let stopper = Stopper { target, id, progress: Arc::default() };
        Self { stream, beginning, beginning_read: 0, first_read: None, stopper, command, dropped_features }
    }

    /// The id by which the runtime knows the session. It looks like an address, and the next session may have the same.
    pub fn id(&self) -> SessionId {
        self.stopper.id
    }

    /// The form of CollectTracing that the runtime accepted.
    pub fn command(&self) -> &'static str {
        self.command
    }

    /// What the runtime is too old for, and was given up as [`SessionConfig::optional`](crate::SessionConfig) allowed.
    pub fn dropped_features(&self) -> &[OptionalFeature] {
        &self.dropped_features
    }

    /// Reads the next bytes of the stream; 0 is its end (or an empty `buffer`).
    ///
    /// # Errors
    /// With [`Error::is_deadline`] the session goes on and the read can be repeated. [`Error::NoStream`] if nothing at
    /// all came in [`Timeouts::first_bytes`](crate::Timeouts) after the first call.
    pub fn read(&mut self, buffer: &mut [u8], deadline: Deadline) -> Result<usize, Error> {
        let waiting = self.beginning.get(self.beginning_read..).unwrap_or_default();
        if !waiting.is_empty() {
            let count = waiting.len().min(buffer.len());
            buffer[..count].copy_from_slice(&waiting[..count]);
            self.beginning_read += count;
            self.stopper.progress.received.fetch_add(count as u64, Ordering::Relaxed);
            return Ok(count);
        }
        if self.bytes_read() > 0 {
            return Ok(self.read_stream(buffer, deadline)?);
        }
        let started = *self.first_read.get_or_insert_with(Instant::now);
        let limit = started.checked_add(self.stopper.target.timeouts().first_bytes);
        let limit = limit.map_or(Deadline::never(), Deadline::at);
        self.read_stream(buffer, deadline.min(limit)).map_err(|error| {
            if error.is_timeout() && limit.is_over() {
                let address = self.stream.address().clone();
                let peer = self.stream.peer().pid;
                let peer_state = peer.and_then(|pid| dipc_transport::process_state(pid).ok());
                let peer_state = peer_state.filter(dipc_transport::ProcessState::is_unresponsive);
                let after = started.elapsed();
                return Error::NoStream { command: self.command, address, after, peer, peer_state };
            }
            error.into()
        })
    }

    fn read_stream(&mut self, buffer: &mut [u8], deadline: Deadline) -> Result<usize, dipc_transport::Error> {
        let result = self.stream.read(buffer, deadline);
        let progress = &self.stopper.progress;
        match &result {
            Ok(0) if !buffer.is_empty() => progress.ended.store(true, Ordering::Release),
            Ok(count) => {
                progress.received.fetch_add(*count as u64, Ordering::Relaxed);
            }
            Err(error) if error.is_disconnected() => progress.ended.store(true, Ordering::Release),
            Err(_) => {}
        }
        result
    }

    /// How many bytes of the stream were read.
    pub fn bytes_read(&self) -> u64 {
        self.stopper.progress.received.load(Ordering::Relaxed)
    }

    /// What stops this session.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Ends a pending read, and every later one, without regard to what the runtime still has to say.
    pub fn canceller(&self) -> Canceller {
        self.stream.canceller()
    }

    /// Reads to the end of the stream, to let the runtime finish.
    fn drain(&mut self, deadline: Deadline) {
        let mut buffer = vec![0; 64 << 10];
        while !self.stopper.has_ended() && !deadline.is_over() {
            if self.read_stream(&mut buffer, deadline).is_err() {
                return;
            }
        }
    }
}

/// Closing the stream is not enough: a runtime with nothing to write does not notice, and keeps the session until the
/// next event. A stop alone is not enough either: with the stream full and nobody reading it, the runtime waits in the
/// middle of the stop and answers nobody. And closing the stream during a stop is worse: the runtime's writing thread then
/// stops the session a second time, by an id that may be another client's by now. So the stop is sent and the stream
/// drained, also after a cancel. It is closed early only when the deadline passes: what the runtime still writes fails,
/// and with it the session ends.
impl Drop for Session {
    fn drop(&mut self) {
        if self.stopper.has_ended() {
            return;
        }
        let deadline = Deadline::after(self.stopper.target.timeouts().abandon);
        self.stream.renew_canceller();
        if self.stopper.progress.stopping.swap(true, Ordering::AcqRel) {
            // Another thread is at it. It may yet fail, so that it is done again unless the stream ends.
            self.drain(deadline);
            if self.stopper.has_ended() {
                return;
            }
        }
        let stop = self.stopper.send(deadline);
        self.drain(deadline);
        if let Ok(mut exchange) = stop
            && self.stopper.has_ended()
        {
            // The session is gone when this comes.
            let _ = exchange.receive_message(deadline);
        }
    }
}

impl Stopper {
    /// The id by which the runtime knows the session.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Asks the runtime to stop the session and waits for its answer, while another thread reads the stream to its end.
    /// Does nothing if the stream has ended or a stop is under way.
    ///
    /// # Errors
    /// A time-out if neither the answer nor any byte of the stream came in [`Timeouts::stop`](crate::Timeouts). After an
    /// error it can be tried again.
    pub fn stop(&self) -> Result<(), Error> {
        if self.has_ended() || self.progress.stopping.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        match self.send_and_wait() {
            Err(error) if !self.has_ended() => {
                self.progress.stopping.store(false, Ordering::Release);
                Err(error)
            }
            _ => Ok(()),
        }
    }

    fn send_and_wait(&self) -> Result<(), Error> {
        let mut exchange = self.send(self.target.request_deadline())?;
        loop {
            let received = self.progress.received.load(Ordering::Relaxed);
            let deadline = Deadline::after(self.target.timeouts().stop);
            match exchange.receive::<StopTracing>(deadline) {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(reason)) => return Err(exchange.refused(reason)),
                // A long rundown on its way to a slow disk is no reason to give up.
                Err(error)
                    if error.is_deadline() && self.progress.received.load(Ordering::Relaxed) != received => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn send(&self, deadline: Deadline) -> Result<Exchange, Error> {
        self.target.send(&StopTracing { session: self.id }, deadline)
    }

    fn has_ended(&self) -> bool {
        self.progress.ended.load(Ordering::Acquire)
    }
}
