use std::time::Instant;

use dipc_transport::{Address, Connection, Deadline};
use dipc_wire::{Command, DecodeError, Feed, Message, MessageReader, ServerError, decode_reply};

use crate::Error;
use crate::link::PortLease;
use crate::route::RouteConnection;

/// One command and its answer, on their own connection.
#[derive(Debug)]
pub(crate) struct Exchange {
    connection: Connection,
    lease: Option<PortLease>,
    command: &'static str,
    started: Instant,
    reader: MessageReader,
    received: usize,
    /// The bytes after the message: the beginning of a stream or of an environment.
    rest: Vec<u8>,
}

impl Exchange {
    /// Sends `command`, waiting at most for space in the connection's buffer.
    pub(crate) fn send<C: Command>(
        command: &C,
        connect: impl FnOnce() -> Result<RouteConnection, Error>,
        deadline: Deadline,
    ) -> Result<Self, Error> {
        let bytes = command.to_bytes().map_err(|error| Error::Encode { command: C::NAME, error })?;
        let started = Instant::now();
        let of_all = |error: dipc_transport::Error| error.with_elapsed(started.elapsed());
        let RouteConnection { mut connection, lease } = connect().map_err(|error| match error {
            Error::Transport(error) => of_all(error).into(),
            other => other,
        })?;
        connection.write_all(&bytes, deadline).map_err(of_all)?;
        let reader = MessageReader::new();
        Ok(Self { connection, lease, command: C::NAME, started, reader, received: 0, rest: Vec::new() })
    }

    /// Passes an open file to the runtime, after the command and before its answer.
    #[cfg(unix)]
    pub(crate) fn hand_over(
        &mut self,
        file: std::os::fd::BorrowedFd<'_>,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let sent = self.connection.send_with_descriptors(&[0], &[file], deadline);
        Ok(sent.map_err(|error| error.with_elapsed(self.started.elapsed()))?)
    }

    /// Receives the answer to the sent `C`. After a deadline it can be called again.
    pub(crate) fn receive<C: Command>(
        &mut self,
        deadline: Deadline,
    ) -> Result<Result<C::Reply, ServerError>, Error> {
        let message = self.receive_message(deadline)?;
        decode_reply::<C>(&message).map_err(|error| self.bad_reply(error))
    }

    /// Receives the answer as [`receive`](Self::receive) does, but returns `None` at the deadline: for
    /// callers that ask again and again. The state of the process is not read.
    pub(crate) fn poll_receive<C: Command>(
        &mut self,
        deadline: Deadline,
    ) -> Result<Option<Result<C::Reply, ServerError>>, Error> {
        let Some(message) = self.poll_message(deadline)? else { return Ok(None) };
        decode_reply::<C>(&message).map(Some).map_err(|error| self.bad_reply(error))
    }

    pub(crate) fn receive_message(&mut self, deadline: Deadline) -> Result<Message, Error> {
        self.poll_message(deadline)?.ok_or_else(|| self.timed_out())
    }

    /// Receives the answer; `None` at the deadline.
    pub(crate) fn poll_message(&mut self, deadline: Deadline) -> Result<Option<Message>, Error> {
        let mut buffer = [0; 4096];
        loop {
            let Some(bytes) = self.poll_read(&mut buffer, deadline)? else { return Ok(None) };
            match self.reader.feed(bytes).map_err(|error| self.bad_reply(error))? {
                Feed::NeedMore(_) => {}
                Feed::Message { message, used } => {
                    self.rest = bytes.get(used..).unwrap_or_default().to_vec();
                    return Ok(Some(message));
                }
            }
        }
    }

    /// Receives `length` bytes that follow the answer.
    pub(crate) fn receive_rest(&mut self, length: usize, deadline: Deadline) -> Result<Vec<u8>, Error> {
        let mut bytes = std::mem::take(&mut self.rest);
        let mut buffer = [0; 4096];
        while bytes.len() < length {
            let more = self.poll_read(&mut buffer, deadline)?;
            // The length is untrusted: memory is allocated as the bytes arrive.
            bytes.extend_from_slice(more.ok_or_else(|| self.timed_out())?);
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Reads some bytes; `None` at the deadline.
    fn poll_read<'b>(&mut self, buffer: &'b mut [u8], deadline: Deadline) -> Result<Option<&'b [u8]>, Error> {
        let Some(count) = self.connection.poll_read(buffer, deadline)? else { return Ok(None) };
        if count == 0 {
            let (command, address) = (self.command, self.address().clone());
            return Err(Error::Incomplete { command, address, received: self.received });
        }
        self.received += count;
        Ok(Some(buffer.get(..count).unwrap_or_default()))
    }

    /// Returns the time-out error of the whole exchange, which may have ended between two reads.
    fn timed_out(&self) -> Error {
        self.connection.read_timed_out(self.started.elapsed()).into()
    }

    pub(crate) fn address(&self) -> &Address {
        self.connection.address()
    }

    pub(crate) fn bad_reply(&self, error: DecodeError) -> Error {
        Error::Protocol { command: self.command, address: self.address().clone(), error }
    }

    pub(crate) fn refused(&self, reason: ServerError) -> Error {
        Error::Refused { command: self.command, address: self.address().clone(), reason }
    }

    /// Returns the connection, and the bytes after the answer.
    pub(crate) fn into_stream(self) -> (RouteConnection, Vec<u8>) {
        (RouteConnection { connection: self.connection, lease: self.lease }, self.rest)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::time::Duration;

    use dipc_transport::PeerCheck;
    use dipc_wire::ProcessInfo1;

    use super::*;

    /// A deadline that has passed when a read begins, as between two bytes of an answer.
    #[test]
    fn the_time_of_a_time_out_is_that_of_the_whole_exchange() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address: Address = listener.local_addr().unwrap().to_string().parse().unwrap();
        let server = std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            stream.read_exact(&mut [0; 20]).unwrap();
            stream.write_all(b"DOTNET").unwrap();
            stream
        });
        let later = Deadline::after(Duration::from_secs(60));
        let connect = || {
            let connection = Connection::connect(&address, PeerCheck::Any, later)?;
            Ok(RouteConnection { connection, lease: None })
        };
        let mut exchange = Exchange::send(&ProcessInfo1, connect, later).unwrap();
        let sent = Instant::now();
        let _stream = server.join().unwrap();
        let waited = sent.elapsed();
        let over = Deadline::at(sent);
        assert!(exchange.poll_message(over).unwrap().is_none());
        for error in
            [exchange.receive_message(over).unwrap_err(), exchange.receive_rest(1, over).unwrap_err()]
        {
            let Error::Transport(dipc_transport::Error::TimedOut { after, .. }) = error else {
                panic!("{error:?}");
            };
            assert!(after >= waited, "{after:?} of {waited:?}");
        }
    }
}
