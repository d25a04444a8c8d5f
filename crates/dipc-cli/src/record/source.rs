//! Sources of a recording: a running process, a process that connects to a port, or a program that dipc
//! starts.

mod child;
mod finder;
mod port_watcher;

use std::ffi::OsString;
use std::io;
use std::process::{self, Command};
use std::time::{Duration, Instant};

use dipc_client::{Address, Deadline, PortEvent, PortRuntime, PortServer, Target};
use dipc_transport::Endpoint;

use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::process::candidates::application_name;
use crate::process::info::timeouts;
use crate::process::target::{FoundTarget, TargetSelector};
use crate::render::messages;

pub(crate) use child::{Child, ChildEnd, EndStatus};
pub(crate) use finder::{SourceFinder, SourcesSelector};
pub(crate) use port_watcher::PortWatcher;

/// Maximum wait between checks for the other reasons to end.
const TICK: Duration = Duration::from_millis(100);
/// The time for which a program may listen without connecting: the runtime of .NET Core 3 never connects, and
/// later ones do so at the same time.
const CONNECTS_WITHIN: Duration = Duration::from_millis(500);

/// The source that the user named.
#[derive(Debug, Clone)]
pub(crate) enum SourceSelector {
    /// A process that runs.
    Process(TargetSelector),
    /// A runtime that listens at the address.
    Runtime(Address),
    /// The first runtime that connects to a port at the address.
    Port(Address),
    /// A program that is started with these variables; `show_io` lets it use the terminal.
    Program { command: Vec<OsString>, show_io: bool, variables: Vec<(String, OsString)> },
}

/// A runtime to record.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) target: Target,
    /// The name of the process, or for `dotnet` that of its assembly, if known.
    pub(crate) name: Option<String>,
    pub(crate) pid: Option<u32>,
    /// The port to which other runtimes may still connect.
    pub(crate) port: Option<PortServer>,
    /// The program that dipc started for it.
    pub(crate) child: Option<Child>,
}

/// The outcome of waiting for a runtime.
#[derive(Debug)]
pub(crate) enum Start {
    Connected(Box<Source>),
    NoRuntime(NoRuntime),
}

/// The end of a wait for a runtime in which none connected.
#[derive(Debug)]
pub(crate) enum NoRuntime {
    /// The program has ended with a code.
    Ended { code: u8, failure: Failure },
    /// The user has ended the wait, and with it the program.
    Interrupted,
    /// The time was over. The program runs on, and its runtimes may still connect.
    TimedOut { child: Option<Child>, port: PortServer },
}

impl Start {
    /// Returns the runtime.
    ///
    /// # Errors
    /// If none has connected.
    fn connected(self) -> Result<Source, Failure> {
        match self {
            Self::Connected(source) => Ok(*source),
            Self::NoRuntime(end) => Err(end.into()),
        }
    }
}

impl From<NoRuntime> for Failure {
    fn from(end: NoRuntime) -> Self {
        let message = match end {
            NoRuntime::Ended { failure, .. } => return failure,
            NoRuntime::Interrupted => "interrupted before a runtime connected; nothing was recorded",
            NoRuntime::TimedOut { .. } => "no runtime connected in time; nothing was recorded",
        };
        Self::new(Exit::Failed, message)
    }
}

impl Source {
    /// Finds the process, or waits for the first runtime that connects.
    pub(crate) fn open(
        selector: &SourceSelector,
        timeout: Duration,
        interrupts: &Interrupts,
    ) -> Result<Self, Failure> {
        match selector {
            SourceSelector::Process(target) => Ok(Self::from_target(FoundTarget::find(target, timeout)?)),
            SourceSelector::Runtime(address) => {
                Ok(Self::at(Target::at(address.clone()).with_timeouts(timeouts(timeout))))
            }
            SourceSelector::Port(address) => {
                let port = PortServer::bind(address.clone())?;
                messages::note(format_args!(
                    "Waiting at {0}; start a program with DOTNET_DiagnosticPorts={0}",
                    port.address()
                ));
                Self::wait_for_runtime(port, None, timeout, interrupts, || false)?.connected()
            }
            SourceSelector::Program { command, show_io, variables } => {
                let spawn = |mut command: Command| command.envs(variables.iter().cloned()).spawn();
                Self::start(command, *show_io, timeout, interrupts, spawn, || false)?.connected()
            }
        }
    }

    /// Starts a program through `spawn`, and waits for its runtime until `is_over` returns true.
    pub(crate) fn start(
        command: &[OsString],
        show_io: bool,
        timeout: Duration,
        interrupts: &Interrupts,
        spawn: impl FnOnce(Command) -> io::Result<process::Child>,
        is_over: impl Fn() -> bool,
    ) -> Result<Start, Failure> {
        let port = PortServer::private()?;
        let child = Child::start(command, show_io, &port, spawn)?;
        child.kill_on_exit(interrupts);
        Self::wait_for_runtime(port, Some(child), timeout, interrupts, is_over)
    }

    pub(crate) fn from_target(found: FoundTarget) -> Self {
        let (name, pid) = match found.endpoint {
            Some(endpoint) => (Some(application_name(endpoint.pid, &endpoint.name)), Some(endpoint.pid)),
            None => (None, None),
        };
        Self { target: found.target, name, pid, port: None, child: None }
    }

    /// Waits for the first runtime at the port, or for the program to listen by itself, as .NET Core 3 does.
    fn wait_for_runtime(
        port: PortServer,
        mut child: Option<Child>,
        timeout: Duration,
        interrupts: &Interrupts,
        is_over: impl Fn() -> bool,
    ) -> Result<Start, Failure> {
        let mut listens_since = None;
        loop {
            match port.next(Deadline::after(TICK)) {
                Ok(PortEvent::Connected(runtime)) => {
                    let source = Self::from_runtime(&runtime, timeout);
                    return Ok(Start::Connected(Box::new(Self { port: Some(port), child, ..source })));
                }
                Ok(PortEvent::Error(error)) => messages::warning(error),
                Ok(_) => {}
                Err(error) if error.is_deadline() => {}
                Err(error) => return Err(error.into()),
            }
            if let Some(child) = &mut child
                && let Some(code) = child.try_code()?
            {
                let failure = child.ended_without_runtime(code);
                return Ok(Start::NoRuntime(NoRuntime::Ended { code, failure }));
            }
            if let Some(endpoint) = child.as_ref().and_then(|child| dipc_transport::find(child.pid()).ok())
                && listens_since.get_or_insert_with(Instant::now).elapsed() > CONNECTS_WITHIN
            {
                let source = Self::from_endpoint(&endpoint, timeout);
                return Ok(Start::Connected(Box::new(Self { port: Some(port), child, ..source })));
            }
            if interrupts.count() > 0 {
                if let Some(mut child) = child {
                    child.kill();
                }
                return Ok(Start::NoRuntime(NoRuntime::Interrupted));
            }
            if is_over() {
                return Ok(Start::NoRuntime(NoRuntime::TimedOut { child, port }));
            }
        }
    }

    /// The runtime that listens at an address.
    const fn at(target: Target) -> Self {
        Self { target, name: None, pid: None, port: None, child: None }
    }

    /// The runtime of an endpoint that was found.
    pub(crate) fn from_endpoint(endpoint: &Endpoint, timeout: Duration) -> Self {
        let target = Target::from_endpoint(endpoint).with_timeouts(timeouts(timeout));
        let name = application_name(endpoint.pid, &endpoint.name);
        Self { name: Some(name), pid: Some(endpoint.pid), ..Self::at(target) }
    }

    /// Prints the name of the process, if known.
    pub(crate) fn announce(&self) {
        if let (Some(name), Some(pid)) = (&self.name, self.pid) {
            messages::note(format_args!("Process        : {name} ({pid})"));
        }
    }

    /// A runtime that has connected to a port.
    pub(crate) fn from_runtime(runtime: &PortRuntime, timeout: Duration) -> Self {
        let pid = runtime.pid();
        let name_of = |pid| Some(application_name(pid, &dipc_transport::process_name(pid).ok()?));
        let name = pid.and_then(name_of);
        let target = runtime.target().with_timeouts(timeouts(timeout));
        Self { name, pid, ..Self::at(target) }
    }
}
