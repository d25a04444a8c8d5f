use std::io::{self, Read};

use dipc_transport::Deadline;

use crate::{Error, ErrorKind, Session};

/// The stream of a [`Session`] as [`std::io::Read`], from [`Session::reader`] or [`Session::into_reader`].
///
/// A read waits for the stream, for as long as the session's [`Timeouts`](crate::Timeouts) allow: `first_bytes` before the
/// first byte, `stop` between two signs of life of a session that is being stopped. An [`io::Error`] carries the
/// [`Error`] ([`io::Error::get_ref`]), and can be turned back into it with `downcast`.
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
        self.session.as_mut().read(buffer, Deadline::never()).map_err(io_error)
    }
}

fn io_error(error: Error) -> io::Error {
    // Not `Interrupted` for a cancelled read: callers of `Read` repeat such a read.
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
