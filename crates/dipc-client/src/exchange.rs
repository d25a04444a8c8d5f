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
        let RouteConnection { mut connection, lease } = connect()?;
        let written = connection.write_all(&bytes, deadline);
        written.map_err(|error| error.with_elapsed(started.elapsed()))?;
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
        Ok(self.connection.send_with_descriptors(&[0], &[file], deadline)?)
    }

    /// Receives the answer to the sent `C`. After a deadline it can be called again.
    pub(crate) fn receive<C: Command>(
        &mut self,
        deadline: Deadline,
    ) -> Result<Result<C::Reply, ServerError>, Error> {
        let message = self.receive_message(deadline)?;
        decode_reply::<C>(&message).map_err(|error| self.bad_reply(error))
    }

    pub(crate) fn receive_message(&mut self, deadline: Deadline) -> Result<Message, Error> {
        let mut buffer = [0; 4096];
        loop {
            let bytes = self.read(&mut buffer, deadline)?;
            match self.reader.feed(bytes).map_err(|error| self.bad_reply(error))? {
                Feed::NeedMore(_) => {}
                Feed::Message { message, used } => {
                    self.rest = bytes.get(used..).unwrap_or_default().to_vec();
                    return Ok(message);
                }
            }
        }
    }

    /// Receives `length` bytes that follow the answer.
    pub(crate) fn receive_rest(&mut self, length: usize, deadline: Deadline) -> Result<Vec<u8>, Error> {
        let mut bytes = std::mem::take(&mut self.rest);
        let mut buffer = [0; 4096];
        while bytes.len() < length {
            // The length is untrusted: memory is allocated as the bytes arrive.
            bytes.extend_from_slice(self.read(&mut buffer, deadline)?);
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    fn read<'b>(&mut self, buffer: &'b mut [u8], deadline: Deadline) -> Result<&'b [u8], Error> {
        // A caller that only polls for the answer does so at a high rate, and does not need the state of the
        // process.
        let waits = !deadline.is_over();
        let count = self
            .connection
            .read(buffer, deadline)
            .map_err(|error| if waits { error.with_elapsed(self.started.elapsed()) } else { error })?;
        if count == 0 {
            let (command, address) = (self.command, self.address().clone());
            return Err(Error::Incomplete { command, address, received: self.received });
        }
        self.received += count;
        Ok(buffer.get(..count).unwrap_or_default())
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
