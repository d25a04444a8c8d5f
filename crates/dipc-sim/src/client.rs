//! One client's conversation: a request, its reply, and what follows.

mod reply;

use crate::fault::Fault;
use crate::identity::Identity;
use crate::server::{Behaviour, Server};
use crate::state::State;
use crate::version::Quirk;
use dipc_transport::{Connection, Deadline, Error};
use dipc_wire::{
    CommandId, CommandSet, DecodeError, Feed, HEADER_LEN, HResult, Message, MessageReader, Request,
    SessionId, encode_error,
};
use std::ops::ControlFlow;
use std::sync::MutexGuard;
use std::time::Duration;

/// How long a client may take to send its request: longer than any that is only slow.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// How a conversation goes on: `Break` ends it. An error is the client's going, or the end of the runtime.
pub(crate) type Step<T = ()> = Result<ControlFlow<(), T>, Error>;

/// A request, or why it is none.
type Received = Result<Message, DecodeError>;

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

    /// Serves a client that has connected, to its end. What goes wrong with the connection only ends it: there is nobody to tell.
    pub(crate) fn serve(mut self) {
        if let Ok(ControlFlow::Continue(request)) = self.receive(Deadline::after(REQUEST_TIMEOUT)) {
            self.converse(request);
        }
    }

    /// Answers a request, and serves the client to its end.
    pub(crate) fn converse(&mut self, request: Received) {
        // As above.
        let _ = match request {
            Ok(message) => self.answer_message(&message),
            Err(DecodeError::WrongMagic { .. }) => self.refuse(HResult::UNKNOWN_MAGIC, false),
            Err(_) => self.refuse(HResult::BAD_ENCODING, false),
        };
    }

    /// Reads one message; `Break` if the client leaves before it is whole.
    pub(crate) fn receive(&mut self, deadline: Deadline) -> Step<Received> {
        let mut reader = MessageReader::new();
        let mut buffer = [0; 4096];
        // What follows the message is not read with it: a descriptor may come along.
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

    fn answer_message(&mut self, message: &Message) -> Step {
        let command = message.header.command;
        self.faults = self.server.behaviour.faults_of(command).collect();
        let request = Request::decode(message);
        self.server.note(request.as_ref().ok().cloned().unwrap_or(Request::Unknown(message.clone())));
        if self.misbehave_before_answering(command)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if let Some(refusal) = self.behaviour().version.refusal(command) {
            let stays_open = refusal == HResult::UNKNOWN_COMMAND
                && command.set == CommandSet::PROFILER
                && self.has(Quirk::StaysOpenAfterError);
            return self.refuse(refusal, stays_open);
        }
        match request {
            Ok(request) => self.answer(&request),
            Err(_) => self.answer_bad(message),
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
        let command = request.command();
        match request {
            Request::ProcessInfo1(_) => self.info(Identity::reply_1),
            Request::ProcessInfo2(_) => self.info(Identity::reply_2),
            Request::ProcessInfo3(_) => self.info(Identity::reply_3),
            Request::ProcessEnvironment(_) => self.environment(),
            Request::SetEnvironmentVariable(request) => self.set_variable(request),
            Request::EnablePerfMap(request) => self.enable_perf_map(request.kind),
            Request::DisablePerfMap(_) => self.disable_perf_map(),
            Request::ApplyStartupHook(request) => self.apply_startup_hook(request),
            Request::ResumeRuntime(_) => self.resume(),
            Request::AttachProfiler(request) => self.attach_profiler(request),
            Request::StartupProfiler(request) => self.startup_profiler(request),
            Request::GenerateCoreDump1(c) => self.dump(command, &c.path, c.dump_type, c.flags),
            Request::GenerateCoreDump2(c) => self.dump(command, &c.path, c.dump_type, c.flags),
            Request::GenerateCoreDump3(c) => self.dump(command, &c.path, c.dump_type, c.flags),
            Request::StopTracing(request) => {
                self.stop(request.session, self.faults.contains(&Fault::StopReplyBeforeStreamEnd))
            }
            Request::CollectTracing1(_)
            | Request::CollectTracing2(_)
            | Request::CollectTracing3(_)
            | Request::CollectTracing4(_)
            | Request::CollectTracing5(_)
            | Request::CollectTracing6(_) => self.collect(request),
            _ => self.refuse(HResult::UNKNOWN_COMMAND, false),
        }
    }

    /// Answers a payload that cannot be read.
    fn answer_bad(&mut self, message: &Message) -> Step {
        match message.header.command {
            CommandId::STOP_TRACING => {
                // Runtimes do not look how long the payload is.
                let mut id = [0; 8];
                id.iter_mut().zip(&message.payload).for_each(|(to, from)| *to = *from);
                self.reply_ok(&SessionId(u64::from_le_bytes(id)))
            }
            CommandId::STARTUP_PROFILER => self.reply_result(HResult::OK),
            CommandId { set: CommandSet::EVENT_PIPE, .. } => self.refuse_bad_session(),
            CommandId { set: CommandSet::DUMP | CommandSet::PROCESS, .. }
                if self.has(Quirk::DiesOfBadPayload) =>
            {
                Ok(self.die())
            }
            _ => self.refuse(HResult::BAD_ENCODING, false),
        }
    }

    pub(crate) fn server(&self) -> &'s Server {
        self.server
    }

    pub(crate) fn behaviour(&self) -> &'s Behaviour {
        &self.server.behaviour
    }

    pub(crate) fn state(&self) -> MutexGuard<'s, State> {
        self.server.state()
    }

    pub(crate) fn has(&self, quirk: Quirk) -> bool {
        self.behaviour().version.has(quirk)
    }

    pub(crate) fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The connection, for what is no message.
    #[cfg(unix)]
    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Ends the process, as a crash does.
    pub(crate) fn die(&mut self) -> ControlFlow<()> {
        self.server.die();
        ControlFlow::Break(())
    }
}
