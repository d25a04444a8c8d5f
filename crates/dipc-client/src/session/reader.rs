use std::io::{self, Read};
use std::time::{Duration, Instant};

use dipc_transport::{Deadline, Error as TransportError};

use crate::{Error, ErrorKind, Session};

/// The stream of a [`Session`] as [`std::io::Read`], from [`Session::reader`] or [`Session::into_reader`].
///
/// Every read ends:
///
/// | the session | a read fails when |
/// |---|---|
/// | has sent nothing so far | nothing arrived within [`Timeouts::first_bytes`](crate::Timeouts) |
/// | is being stopped | there was no sign of life for [`Timeouts::stop`](crate::Timeouts) |
/// | is stopped later ([`Session::stop_after`]) | nothing arrived within [`Timeouts::silence`](crate::Timeouts), and its process is seen to be unable to answer |
/// | runs | nothing arrived within [`Timeouts::silence`](crate::Timeouts) |
/// | has a [silence limit](Session::limit_silence) | nothing arrived within that time |
///
/// The last three are [`Error::Silent`], after which the read can be repeated: nothing that was received is
/// lost. An [`io::Error`] carries the [`Error`] ([`io::Error::get_ref`]), and can be turned back into it with
/// `downcast`; its kind is [`TimedOut`](io::ErrorKind::TimedOut) for all of these.
#[derive(Debug)]
pub struct SessionReader<S> {
    session: S,
}

impl<S: AsMut<Session>> SessionReader<S> {
    pub(super) fn new(session: S) -> Self {
        Self { session }
    }
}

impl<S: AsMut<Session>> Read for SessionReader<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.session.as_mut().read_until_silent(buffer).map_err(io_error)
    }
}

impl Session {
    /// Limits the time that [`reader`](Self::reader) and `events` wait for the next byte of a running
    /// session, instead of [`Timeouts::silence`](crate::Timeouts): also while a stop is scheduled or in
    /// progress.
    ///
    /// Before the first byte [`Timeouts::first_bytes`](crate::Timeouts) applies.
    pub fn limit_silence(&mut self, limit: Duration) {
        self.silence_limit = Some(limit);
    }

    /// Reads the next bytes of the stream, until it has been silent for too long.
    fn read_until_silent(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let started = Instant::now();
        loop {
            let limit = self.silence_limit.filter(|_| self.bytes_read() > 0);
            let deadline = Deadline::after(limit.unwrap_or(self.stopper.target().timeouts().silence));
            match self.read(buffer, deadline) {
                Err(Error::Transport(TransportError::TimedOut { address, peer, peer_state, .. })) => {
                    // The caller or the stop has set the end of the wait.
                    let has_end = self.stop_at.is_some() || self.stopper.is_stopping();
                    if limit.is_none() && has_end && peer_state.is_none() {
                        continue;
                    }
                    let (command, after) = (self.command, started.elapsed());
                    return Err(Error::Silent { command, address, after, peer, peer_state });
                }
                other => return other,
            }
        }
    }
}

fn io_error(error: Error) -> io::Error {
    // `Interrupted` would be wrong for a cancelled read: callers of `Read` repeat such a read.
    let kind = match error.kind() {
        ErrorKind::TimedOut => io::ErrorKind::TimedOut,
        ErrorKind::Disconnected => io::ErrorKind::ConnectionReset,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

impl AsMut<Session> for Session {
    fn as_mut(&mut self) -> &mut Session {
        self
    }
}
