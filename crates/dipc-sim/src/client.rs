//! A connection to a client: requests in, replies and faults out.

use crate::config::RuntimeConfig;
use crate::fault::Fault;
use crate::server::Server;
use crate::state::State;
use crate::version::Quirk;
use dipc_transport::{Connection, Deadline, Error};
use dipc_wire::{
    CommandId, DecodeError, Encode, Feed, HEADER_LEN, HResult, MAX_MESSAGE_LEN, Message, MessageReader,
    encode_error, encode_ok,
};
use std::ops::ControlFlow;
use std::sync::MutexGuard;
use std::time::Duration;

/// The time after which a client that does not read counts as gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of bytes to write at once.
const CHUNK_LEN: usize = 64 * 1024;

/// The progress of a conversation: `Break` ends it. An error means that the client has gone, or the runtime
/// is ending.
pub(crate) type Step<T = ()> = Result<ControlFlow<(), T>, Error>;

pub(crate) struct Client<'s> {
    server: &'s Server,
    connection: Connection,
    /// The faults that apply to the request; none before it is known.
    faults: Vec<Fault>,
}

impl<'s> Client<'s> {
    pub(crate) fn new(server: &'s Server, connection: Connection) -> Self {
        Self { server, connection, faults: Vec::new() }
    }

    pub(crate) fn server(&self) -> &'s Server {
        self.server
    }

    pub(crate) fn config(&self) -> &'s RuntimeConfig {
        &self.server.config
    }

    /// Returns the state of the process, locked.
    pub(crate) fn state(&self) -> MutexGuard<'s, State> {
        self.server.state()
    }

    pub(crate) fn has(&self, quirk: Quirk) -> bool {
        self.config().version.has(quirk)
    }

    /// Selects the faults that apply to the request.
    pub(crate) fn select_faults(&mut self, command: CommandId) {
        self.faults = self.config().faults_on(command);
    }

    pub(crate) fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Returns the connection, for bytes that belong to no message.
    #[cfg(unix)]
    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Ends the process as a crash does.
    pub(crate) fn die(&mut self) -> ControlFlow<()> {
        self.server.die();
        ControlFlow::Break(())
    }

    /// Reads one message, or the error of bytes that are not a message; `Break` if the client leaves before
    /// it is complete.
    pub(crate) fn receive(&mut self, deadline: Deadline) -> Step<Result<Message, DecodeError>> {
        let mut reader = MessageReader::new();
        let mut buffer = [0; 4096];
        // Bytes after the message must not be read with it: they may carry a descriptor.
        let mut missing = HEADER_LEN;
        loop {
            let most = missing.min(buffer.len());
            let count = self.connection.read(buffer.get_mut(..most).unwrap_or_default(), deadline)?;
            if count == 0 {
                return Ok(ControlFlow::Break(()));
            }
            match reader.feed(buffer.get(..count).unwrap_or_default()) {
                Ok(Feed::NeedMore(more)) => missing = more,
                Ok(Feed::Message { message, .. }) => return Ok(ControlFlow::Continue(Ok(message))),
                Err(error) => return Ok(ControlFlow::Continue(Err(error))),
            }
        }
    }

    /// Answers with an error; `stays_open` leaves the connection open afterwards.
    pub(crate) fn refuse(&mut self, hresult: HResult, stays_open: bool) -> Step {
        let step = self.reply(encode_error(hresult))?;
        if step.is_continue() && stays_open {
            return self.wait(Deadline::never());
        }
        Ok(ControlFlow::Break(()))
    }

    /// Answers with a result code: an OK reply, or an error.
    pub(crate) fn reply_result(&mut self, result: HResult) -> Step {
        if result.is_failure() { self.reply(encode_error(result)) } else { self.reply_ok(&result) }
    }

    pub(crate) fn reply_ok(&mut self, payload: &impl Encode) -> Step {
        match encode_ok(payload) {
            Ok(bytes) => self.reply(bytes),
            // Such replies are numbers, which always fit.
            Err(_) => self.reply(encode_error(HResult::FAIL)),
        }
    }

    /// Sends a reply, changed by the faults; `Break` if a fault closes the connection after it.
    pub(crate) fn reply(&mut self, mut bytes: Vec<u8>) -> Step {
        let mut after = ControlFlow::Continue(());
        for fault in &self.faults {
            match fault {
                Fault::WrongMagic => overwrite(&mut bytes, 0, b"DOTNET_IPC_V9\0"),
                Fault::WrongSize => overwrite(&mut bytes, 14, &7_u16.to_le_bytes()),
                Fault::Oversize => {
                    let longest = u16::try_from(MAX_MESSAGE_LEN).unwrap_or(u16::MAX);
                    overwrite(&mut bytes, 14, &longest.to_le_bytes());
                }
                Fault::CloseAfterHeader => {
                    bytes.truncate(HEADER_LEN);
                    after = ControlFlow::Break(());
                }
                _ => {}
            }
        }
        self.send(&bytes)?;
        Ok(after)
    }

    /// Sends bytes in the pieces that the faults demand.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let piece = if self.faults.contains(&Fault::OneByteAtATime) { 1 } else { CHUNK_LEN };
        let mut pieces = bytes.chunks(piece);
        pieces.try_for_each(|piece| self.connection.write_all(piece, Deadline::after(WRITE_TIMEOUT)))
    }

    /// Waits until the deadline; `Break` if the client closes the connection first. Bytes that it sends are
    /// dropped: real runtimes do not read them either.
    pub(crate) fn wait(&mut self, deadline: Deadline) -> Step {
        let mut buffer = [0; 256];
        loop {
            match self.connection.read(&mut buffer, deadline) {
                Ok(0) => return Ok(ControlFlow::Break(())),
                Ok(_) if deadline.is_over() => return Ok(ControlFlow::Continue(())),
                Ok(_) => {}
                Err(error) if error.is_timeout() => return Ok(ControlFlow::Continue(())),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Overwrites the bytes at `offset`, as far as they exist.
fn overwrite(bytes: &mut [u8], offset: usize, others: &[u8]) {
    for (byte, other) in bytes.iter_mut().skip(offset).zip(others) {
        *byte = *other;
    }
}
