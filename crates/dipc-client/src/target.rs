use std::path::PathBuf;

use dipc_transport::{Address, Connection, Deadline, Endpoint, PeerCheck};
use dipc_wire::{
    Command, CommandId, Environment, HResult, ProcessEnvironment, ProcessInfo1, ProcessInfo2, ProcessInfo3,
    ResumeRuntime, ServerError,
};

use crate::exchange::Exchange;
use crate::{Collect, Error, ProcessInfo, Session, Timeouts};

/// The most that is read of an environment. Linux allows a process 6 MB of it, which UTF-16 doubles.
const ENVIRONMENT_LIMIT: u32 = 64 << 20;

/// A runtime that commands can be sent to. Each command has a connection of its own.
#[derive(Debug, Clone)]
pub struct Target {
    address: Address,
    peer: PeerCheck,
    pid: Option<u32>,
    timeouts: Timeouts,
}

impl Target {
    /// The runtime in a process. Only that process will be talked to.
    pub fn from_pid(pid: u32) -> Result<Self, Error> {
        Ok(Self::from_endpoint(&dipc_transport::find(pid)?))
    }

    /// The runtime at an endpoint that was found. Only its process will be talked to.
    pub fn from_endpoint(endpoint: &Endpoint) -> Self {
        Self {
            address: endpoint.address(),
            peer: endpoint.peer_check(),
            pid: Some(endpoint.pid),
            timeouts: Timeouts::default(),
        }
    }

    /// Whoever listens on the socket at `path`.
    pub fn from_path(path: impl Into<PathBuf>) -> Self {
        Self {
            address: Address::from(path.into()),
            peer: PeerCheck::Any,
            pid: None,
            timeouts: Timeouts::default(),
        }
    }

    /// The same target with other time-outs.
    #[must_use]
    pub fn with_timeouts(self, timeouts: Timeouts) -> Self {
        Self { timeouts, ..self }
    }

    /// Where it is reached.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Its pid as seen from here, unless it was given by path.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// The time-outs in force.
    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// What the process is: ProcessInfo3, or 2, or 1, whichever the runtime knows.
    ///
    /// # Errors
    /// [`Error::Unknown`] from .NET Core 3.1, which knows none of them.
    pub fn info(&self) -> Result<ProcessInfo, Error> {
        if let Some(reply) = self.ask_if_known(&ProcessInfo3)? {
            return Ok(ProcessInfo::from_3(reply, ProcessInfo3::NAME));
        }
        if let Some(reply) = self.ask_if_known(&ProcessInfo2)? {
            return Ok(ProcessInfo::from_2(reply, ProcessInfo2::NAME));
        }
        match self.ask_if_known(&ProcessInfo1)? {
            Some(reply) => Ok(ProcessInfo::from_1(reply, ProcessInfo1::NAME)),
            None => Err(self.unknown(ProcessInfo1::NAME)),
        }
    }

    /// The environment of the process, as `NAME=value` in its own order.
    pub fn environment(&self) -> Result<Vec<String>, Error> {
        let deadline = self.request_deadline();
        let mut exchange = self.send(&ProcessEnvironment, deadline)?;
        let reply = match exchange.receive::<ProcessEnvironment>(deadline)? {
            Ok(reply) => reply,
            Err(reason) => return Err(self.refusal(&exchange, ProcessEnvironment::NAME, reason)),
        };
        let announced = reply.incoming_bytes;
        if announced > ENVIRONMENT_LIMIT {
            let (address, limit) = (self.address.clone(), ENVIRONMENT_LIMIT);
            return Err(Error::EnvironmentTooLarge { address, announced, limit });
        }
        let bytes = exchange.receive_rest(announced as usize, deadline)?;
        let environment = Environment::decode(&bytes).map_err(|source| exchange.bad_reply(source))?;
        Ok(environment.0)
    }

    /// Lets a runtime run that was started suspended. One that runs already is not concerned.
    pub fn resume(&self) -> Result<(), Error> {
        let deadline = self.request_deadline();
        let mut exchange = self.send(&ResumeRuntime, deadline)?;
        let message = exchange.receive_message(deadline)?;
        // The protocol's text has no payload here; runtimes send an HRESULT.
        if message.header.command == CommandId::OK && message.payload.is_empty() {
            return Ok(());
        }
        match dipc_wire::decode_reply::<ResumeRuntime>(&message)
            .map_err(|source| exchange.bad_reply(source))?
        {
            Ok(hresult) if !hresult.is_failure() => Ok(()),
            Ok(hresult) => Err(exchange.refused(ServerError::new(hresult))),
            Err(reason) => Err(self.refusal(&exchange, ResumeRuntime::NAME, reason)),
        }
    }

    /// Starts a session with the newest form of CollectTracing that the runtime knows.
    ///
    /// # Errors
    /// [`Error::NotExpressible`] where that form cannot say what `collect` asks for.
    pub fn collect(&self, collect: &Collect) -> Result<Session, Error> {
        collect.start(self)
    }

    pub(crate) fn request_deadline(&self) -> Deadline {
        Deadline::after(self.timeouts.request)
    }

    fn connect(&self, deadline: Deadline) -> Result<Connection, Error> {
        let deadline = deadline.min(Deadline::after(self.timeouts.connect));
        Ok(Connection::connect(&self.address, self.peer, deadline)?)
    }

    pub(crate) fn send<C: Command>(&self, command: &C, deadline: Deadline) -> Result<Exchange, Error> {
        Exchange::send(command, || self.connect(deadline), deadline)
    }

    /// `None` if the runtime does not know the command.
    fn ask_if_known<C: Command>(&self, command: &C) -> Result<Option<C::Reply>, Error> {
        let deadline = self.request_deadline();
        let mut exchange = self.send(command, deadline)?;
        match exchange.receive::<C>(deadline)? {
            Ok(reply) => Ok(Some(reply)),
            Err(reason) if is_unknown(&reason) => Ok(None),
            Err(reason) => Err(exchange.refused(reason)),
        }
    }

    fn refusal(&self, exchange: &Exchange, command: &'static str, reason: ServerError) -> Error {
        if is_unknown(&reason) { self.unknown(command) } else { exchange.refused(reason) }
    }

    pub(crate) fn unknown(&self, command: &'static str) -> Error {
        Error::Unknown { command, address: self.address.clone() }
    }
}

pub(crate) fn is_unknown(reason: &ServerError) -> bool {
    reason.hresult == HResult::UNKNOWN_COMMAND
}
