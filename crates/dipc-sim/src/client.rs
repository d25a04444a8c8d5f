//! One client's conversation: a request, its reply, and what follows.

use crate::Version;
use crate::fault::Fault;
use crate::server::Server;
use crate::session::Session;
use dipc_transport::{Connection, Deadline, Error};
use dipc_wire::{
    CommandId, CommandSet, DecodeError, Encode, Feed, Format, HEADER_LEN, HResult, Message, MessageReader,
    ProviderConfig, Request, StopTracing, encode_error, encode_ok,
};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How long a client may take to send its request: longer than any that is only slow.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a client may leave a write waiting before it counts as vanished.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a stream that has nothing to send looks whether its session was stopped.
const STOP_POLL: Duration = Duration::from_millis(10);
/// The most that is written at once.
const CHUNK: usize = 64 * 1024;
/// The most providers that runtimes take.
const MAX_PROVIDERS: usize = 1000;
/// The greatest level that runtimes take.
const MAX_LEVEL: u32 = 5;

/// How a conversation goes on: `Break` ends it. An error is the client's going, or the end of the runtime.
type Step<T = ()> = Result<ControlFlow<(), T>, Error>;

pub(crate) struct Client<'s> {
    server: &'s Server,
    connection: Connection,
    /// The faults that concern the request, once it is known.
    faults: Vec<Fault>,
}

impl<'s> Client<'s> {
    pub(crate) fn new(server: &'s Server, connection: Connection) -> Self {
        Self { server, connection, faults: Vec::new() }
    }

    /// Serves the client to its end. What goes wrong with the connection only ends it: there is nobody to tell.
    pub(crate) fn serve(mut self) {
        let _ = self.converse();
    }

    fn converse(&mut self) -> Step {
        let message = match self.receive()? {
            ControlFlow::Continue(Ok(message)) => message,
            ControlFlow::Continue(Err(DecodeError::WrongMagic { .. })) => {
                return self.reply(encode_error(HResult::UNKNOWN_MAGIC));
            }
            ControlFlow::Continue(Err(_)) => return self.reply(encode_error(HResult::BAD_ENCODING)),
            ControlFlow::Break(()) => return Ok(ControlFlow::Break(())),
        };
        let command = message.header.command;
        let faults = &self.server.behaviour.faults;
        self.faults = faults
            .iter()
            .filter(|(only, _)| only.is_none_or(|only| only == command))
            .map(|(_, fault)| *fault)
            .collect();
        let request = Request::decode(&message);
        self.server.note(request.as_ref().ok().cloned().unwrap_or(Request::Unknown(message)));
        if self.misbehave_before_answering(command)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if !self.server.behaviour.version.knows(command) {
            return self.reply(encode_error(HResult::UNKNOWN_COMMAND));
        }
        match request {
            Ok(request) => self.answer(&request),
            Err(_) => self.refuse_bad(command),
        }
    }

    /// Reads one message; `Break` if the client leaves before it is whole.
    fn receive(&mut self) -> Step<Result<Message, DecodeError>> {
        let deadline = Deadline::after(REQUEST_TIMEOUT);
        let mut reader = MessageReader::new();
        let mut buffer = [0; 4096];
        loop {
            let count = self.connection.read(&mut buffer, deadline)?;
            if count == 0 {
                return Ok(ControlFlow::Break(()));
            }
            match reader.feed(buffer.get(..count).unwrap_or_default()) {
                Ok(Feed::NeedMore(_)) => {}
                Ok(Feed::Message { message, .. }) => return Ok(ControlFlow::Continue(Ok(message))),
                Err(error) => return Ok(ControlFlow::Continue(Err(error))),
            }
        }
    }

    /// The faults that come before the answer, or in its place.
    fn misbehave_before_answering(&mut self, command: CommandId) -> Step {
        for fault in self.faults.clone() {
            let step = match fault {
                Fault::NeverAnswer => self.wait(Deadline::never())?,
                Fault::NeverStop if command == CommandId::STOP_TRACING => self.wait(Deadline::never())?,
                Fault::AnswerLate(delay) => self.wait(Deadline::after(delay))?,
                Fault::Error(hresult) => {
                    self.send(&encode_error(hresult))?;
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            };
            if step.is_break() {
                return Ok(step);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Answers a request that the version knows.
    fn answer(&mut self, request: &Request) -> Step {
        let replies = &self.server.behaviour.replies;
        match request {
            Request::ProcessInfo1(_) => self.reply(replies.info_1.clone()),
            Request::ProcessInfo2(_) => self.reply(replies.info_2.clone()),
            Request::ProcessInfo3(_) => self.reply(replies.info_3.clone()),
            Request::ProcessEnvironment(_) => {
                if self.reply(replies.environment.clone())?.is_continue() {
                    self.send(&replies.environment_block)?;
                }
                Ok(ControlFlow::Break(()))
            }
            Request::ResumeRuntime(_) => self.reply_ok(&HResult::OK),
            Request::StopTracing(StopTracing { session: id }) => {
                self.server.stop_session(*id);
                self.reply_ok(id)
            }
            Request::CollectTracing1(c) => self.collect(request, c.buffer_mb, c.format, &c.providers),
            Request::CollectTracing2(c) => self.collect(request, c.buffer_mb, c.format, &c.providers),
            Request::CollectTracing3(c) => self.collect(request, c.buffer_mb, c.format, &c.providers),
            Request::CollectTracing4(c) => self.collect(request, c.buffer_mb, c.format, &c.providers),
            _ => self.reply(encode_error(HResult::UNKNOWN_COMMAND)),
        }
    }

    /// Starts a session, if what is asked for is within a runtime's limits, and streams it.
    fn collect(
        &mut self,
        request: &Request,
        buffer_mb: u32,
        format: Format,
        providers: &[ProviderConfig],
    ) -> Step {
        let bad_buffer = buffer_mb == 0 || format.name().is_none();
        let bad_provider = |provider: &ProviderConfig| provider.name.is_empty() || provider.level > MAX_LEVEL;
        if providers.is_empty() || providers.len() > MAX_PROVIDERS || providers.iter().any(bad_provider) {
            return self.refuse_bad(request.command());
        }
        if bad_buffer && self.server.behaviour.version.dies_of_bad_buffer() {
            self.server.die();
            return Ok(ControlFlow::Break(()));
        }
        if bad_buffer {
            return self.refuse_bad(request.command());
        }
        let Some(session) = self.server.open_session() else {
            return self.reply(encode_error(HResult::FAIL));
        };
        if self.reply_ok(&session.id())?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.stream(&session)
    }

    /// Sends the recording until it ends or the session is stopped, and then what is left of it.
    fn stream(&mut self, session: &Session<'_>) -> Step {
        let behaviour = &self.server.behaviour;
        let recording: &[u8] = &behaviour.recording;
        let cut = self.faults.iter().find_map(|fault| match *fault {
            Fault::CloseInStream { after } | Fault::DieInTheMiddle { after } => Some((after, *fault)),
            _ => None,
        });
        let end = cut.map_or(recording.len(), |(after, _)| after.min(recording.len()));
        let started = Instant::now();
        let mut sent = 0_usize;
        loop {
            let stopped = session.is_stopped();
            let due = if stopped { end } else { behaviour.speed.due(recording.len(), started.elapsed()) };
            let until = due.min(end).min(sent.saturating_add(CHUNK));
            let chunk = recording.get(sent..until).unwrap_or_default();
            self.send(chunk)?;
            sent = sent.saturating_add(chunk.len());
            if sent == end {
                if let Some((_, fault)) = cut {
                    if matches!(fault, Fault::DieInTheMiddle { .. }) {
                        self.server.die();
                    }
                    return Ok(ControlFlow::Break(()));
                }
                if stopped || behaviour.ends_with_recording {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if chunk.is_empty() && self.wait(Deadline::after(STOP_POLL))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    /// Answers a payload that cannot be read, or asks for what is out of range.
    fn refuse_bad(&mut self, command: CommandId) -> Step {
        let step = self.reply(encode_error(HResult::BAD_ENCODING))?;
        if step.is_continue() && stays_open(self.server.behaviour.version, command) {
            return self.wait(Deadline::never());
        }
        Ok(ControlFlow::Break(()))
    }

    fn reply_ok(&mut self, payload: &impl Encode) -> Step {
        match encode_ok(payload) {
            Ok(bytes) => self.reply(bytes),
            // Only numbers are answered in this way, and they always fit.
            Err(_) => self.reply(encode_error(HResult::FAIL)),
        }
    }

    /// Sends a reply, spoilt by the faults; `Break` if the connection is to be closed behind it.
    fn reply(&mut self, mut bytes: Vec<u8>) -> Step {
        let mut after = ControlFlow::Continue(());
        for fault in &self.faults {
            match fault {
                Fault::WrongMagic => overwrite(&mut bytes, 0, b"DOTNET_IPC_V9\0"),
                Fault::WrongSize => overwrite(&mut bytes, 14, &7_u16.to_le_bytes()),
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

    fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let piece = if self.faults.contains(&Fault::OneByteAtATime) { 1 } else { CHUNK };
        let mut pieces = bytes.chunks(piece);
        pieces.try_for_each(|piece| self.connection.write_all(piece, Deadline::after(WRITE_TIMEOUT)))
    }

    /// Waits until the deadline; `Break` if the client closes the connection first. What it sends meanwhile is not read by
    /// runtimes either, and is dropped.
    fn wait(&mut self, deadline: Deadline) -> Step {
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

/// Whether the version leaves the connection open after it has refused a bad request of this kind.
fn stays_open(version: Version, command: CommandId) -> bool {
    version.keeps_open_after_bad_collect()
        && command.set == CommandSet::EVENT_PIPE
        && command != CommandId::STOP_TRACING
}

/// Puts other bytes in the place of those at `offset`, if there are so many.
fn overwrite(bytes: &mut [u8], offset: usize, others: &[u8]) {
    for (byte, other) in bytes.iter_mut().skip(offset).zip(others) {
        *byte = *other;
    }
}
