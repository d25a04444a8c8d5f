use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dipc_transport::{Address, Connector, Deadline, Endpoint, PeerCheck};
use dipc_wire::{Command, CommandId, HResult, Message, ServerError, decode_reply};

use crate::exchange::Exchange;
use crate::link::PortLink;
use crate::process_view::ProcessView;
use crate::route::{Route, RouteConnection};
use crate::{Error, Hazard, Startup, Timeouts};

/// Maximum stop of a process that does not yet count as stopped.
const BRIEF_STOP: Duration = Duration::from_millis(200);

/// A runtime that commands can be sent to. Each command has its own connection.
///
/// Commands that the runtime turns out not to know are remembered, by all clones of a target together, and
/// not sent again.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let simulated = dipc_sim::Runtime::builder().start_in(folder.path())?;
/// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
/// let path = simulated.endpoint_path();
/// // `Target::from_pid(4711)` finds the socket of a process on this machine.
/// let target = dipc_client::Target::from_path(path);
/// assert_eq!(target.info()?.process_id, u64::from(simulated.pid()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Target {
    address: Address,
    route: Route,
    pid: Option<u32>,
    timeouts: Timeouts,
    safeguards: bool,
    unknown: Arc<Mutex<BTreeSet<CommandId>>>,
}

impl Target {
    /// Returns the runtime in a process. Commands are sent to no other process.
    pub fn from_pid(pid: u32) -> Result<Self, Error> {
        Ok(Self::from_endpoint(&dipc_transport::find(pid)?))
    }

    /// Returns the runtime at a discovered endpoint. Commands are sent to no other process.
    ///
    /// ```
    /// use dipc_client::Target;
    ///
    /// for endpoint in dipc_client::dipc_transport::discover().endpoints {
    ///     match Target::from_endpoint(&endpoint).info() {
    ///         Ok(info) => println!("{} {:?}", endpoint.pid, info.clr_version),
    ///         Err(error) => eprintln!("{}: {error}", endpoint.pid),
    ///     }
    /// }
    /// ```
    pub fn from_endpoint(endpoint: &Endpoint) -> Self {
        Self::new(endpoint.address(), Route::Connect(endpoint.peer_check()), Some(endpoint.pid))
    }

    /// Returns the runtime that listens on the socket at `path`, of any process.
    pub fn from_path(path: impl Into<PathBuf>) -> Self {
        Self::at(path.into())
    }

    /// Returns the runtime that listens at the address: a socket, a pipe, a forwarded port.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let simulated = dipc_sim::Runtime::builder().start_in(folder.path())?;
    /// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
    /// use dipc_client::{Address, Target};
    ///
    /// // A forwarded port, a socket or a pipe, as a user writes it.
    /// let address: Address = "127.0.0.1:9000".parse()?;
    /// assert_eq!(Target::at(address).pid(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn at(address: impl Into<Address>) -> Self {
        Self::new(address.into(), Route::Connect(PeerCheck::Any), None)
    }

    pub(crate) fn from_port(link: &Arc<PortLink>) -> Self {
        Self::new(link.address.clone(), Route::Port(Arc::clone(link)), link.pid)
    }

    fn new(address: Address, route: Route, pid: Option<u32>) -> Self {
        Self { address, route, pid, timeouts: Timeouts::default(), safeguards: true, unknown: Arc::default() }
    }

    /// The same target with other time-outs.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let simulated = dipc_sim::Runtime::builder().start_in(folder.path())?;
    /// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
    /// use std::time::Duration;
    /// use dipc_client::Timeouts;
    ///
    /// let target = target.with_timeouts(Timeouts::default().with_request(Duration::from_secs(60)));
    /// assert!(target.info().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_timeouts(self, timeouts: Timeouts) -> Self {
        Self { timeouts, ..self }
    }

    /// The same target without safeguards: a command is sent even if the runtime is known to end or to become
    /// unreachable because of it ([`Hazard`]).
    #[must_use]
    pub fn without_safeguards(self) -> Self {
        Self { safeguards: false, ..self }
    }

    /// The address of the runtime.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The pid of the runtime in this process's namespace; `None` for a target by path.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// The time-outs in force.
    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Returns true if the runtime has reported that it does not know the command.
    pub fn is_unknown(&self, command: CommandId) -> bool {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner).contains(&command)
    }

    pub(crate) fn request_deadline(&self) -> Deadline {
        Deadline::after(self.timeouts.request)
    }

    pub(crate) fn connect(&self, deadline: Deadline) -> Result<RouteConnection, Error> {
        let deadline = deadline.min(Deadline::after(self.timeouts.connect));
        self.route.connect(&self.address, deadline)
    }

    /// Returns a connector for several steps; `None` for a runtime at a port, which connects itself.
    pub(crate) fn connector(&self) -> Option<Connector> {
        self.route.connector(&self.address)
    }

    pub(crate) fn send<C: Command>(&self, command: &C, deadline: Deadline) -> Result<Exchange, Error> {
        Exchange::send(command, || self.connect(deadline), deadline)
    }

    /// Sends a command unless the process is stopped. A stop of a session is sent anyway ([`Target::send`]),
    /// so that it is there when the process continues.
    fn send_if_running<C: Command>(&self, command: &C, deadline: Deadline) -> Result<Exchange, Error> {
        // The queue of a stopped process may be full, so it is checked before waiting there.
        self.pid.map_or(Ok(()), |pid| self.check_running(C::NAME, pid))?;
        let connect = || {
            let route = self.connect(deadline)?;
            let pid = route.connection.peer().pid.filter(|_| self.pid.is_none());
            pid.map_or(Ok(()), |pid| self.check_running(C::NAME, pid))?;
            Ok(route)
        };
        Exchange::send(command, connect, deadline)
    }

    fn check_running(&self, command: &'static str, pid: u32) -> Result<(), Error> {
        if ProcessView::of(pid).stays_stopped(BRIEF_STOP) {
            return Err(Error::Stopped { command, address: self.address.clone(), pid });
        }
        Ok(())
    }

    /// Sends a command and receives a reply other than an error; `None` if the runtime does not know the
    /// command.
    fn converse<C: Command>(
        &self,
        command: &C,
        deadline: Deadline,
    ) -> Result<Option<(Message, Exchange)>, Error> {
        if self.is_unknown(C::ID) {
            return Ok(None);
        }
        let mut exchange = self.send_if_running(command, deadline)?;
        let message = exchange.receive_message(deadline)?;
        if message.header.command != CommandId::ERROR {
            return Ok(Some((message, exchange)));
        }
        let reason: ServerError = message.decode().map_err(|error| exchange.bad_reply(error))?;
        if reason.hresult != HResult::UNKNOWN_COMMAND {
            return Err(exchange.refused(reason));
        }
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner).insert(C::ID);
        Ok(None)
    }

    /// Sends a command and receives its answer; `None` if the runtime does not know the command.
    pub(crate) fn try_request<C: Command>(
        &self,
        command: &C,
        deadline: Deadline,
    ) -> Result<Option<(C::Reply, Exchange)>, Error> {
        let Some((message, exchange)) = self.converse(command, deadline)? else { return Ok(None) };
        match decode_reply::<C>(&message).map_err(|error| exchange.bad_reply(error))? {
            Ok(reply) => Ok(Some((reply, exchange))),
            Err(reason) => Err(exchange.refused(reason)),
        }
    }

    /// Sends a command with only a result as its reply; `None` if the runtime does not know the command.
    pub(crate) fn try_command<C: Command<Reply = HResult>>(
        &self,
        command: &C,
        deadline: Deadline,
    ) -> Result<Option<()>, Error> {
        let Some((message, exchange)) = self.converse(command, deadline)? else { return Ok(None) };
        // In the protocol's text some replies have no payload; runtimes send an HRESULT.
        if message.header.command == CommandId::OK && message.payload.is_empty() {
            return Ok(Some(()));
        }
        match decode_reply::<C>(&message).map_err(|error| exchange.bad_reply(error))? {
            Ok(result) if result.is_failure() => Err(exchange.refused(ServerError::new(result))),
            Ok(_) => Ok(Some(())),
            Err(reason) => Err(exchange.refused(reason)),
        }
    }

    /// Sends such a command without an older form to fall back to.
    pub(crate) fn send_command<C: Command<Reply = HResult>>(
        &self,
        command: &C,
        deadline: Deadline,
    ) -> Result<(), Error> {
        self.try_command(command, deadline)?.ok_or_else(|| self.unknown_command(C::NAME))
    }

    /// Returns whether the runtime waits at its start to be resumed. No command reports it; on Linux its
    /// threads show it.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let simulated = dipc_sim::Runtime::builder().start_in(folder.path())?;
    /// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
    /// use dipc_client::Startup;
    ///
    /// match target.startup()? {
    ///     Startup::Suspended => target.resume()?,
    ///     Startup::Running => println!("it runs"),
    ///     Startup::Unknown => println!("not visible from here"),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Errors of connecting, which identifies the process of a target given by path.
    pub fn startup(&self) -> Result<Startup, Error> {
        Ok(self.view()?.map_or(Startup::Unknown, |view| view.startup()))
    }

    /// The process, if it is visible from here.
    pub(crate) fn view(&self) -> Result<Option<ProcessView>, Error> {
        let pid = match self.pid {
            Some(pid) => Some(pid),
            None => self.connect(self.request_deadline())?.connection.peer().pid,
        };
        Ok(pid.map(ProcessView::of))
    }

    pub(crate) fn blocked(&self, command: &'static str, hazard: Hazard) -> Error {
        Error::Blocked { command, address: self.address.clone(), hazard }
    }

    pub(crate) fn has_safeguards(&self) -> bool {
        self.safeguards
    }

    pub(crate) fn unknown_command(&self, command: &'static str) -> Error {
        Error::UnknownCommand { command, address: self.address.clone() }
    }
}
