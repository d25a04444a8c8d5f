//! Sources of a recording: a running process, one that connects to a port, or one that is started.

mod child;
mod others;

use std::time::Duration;

use dipc_client::{Deadline, PortEvent, PortRuntime, PortServer, Target};

use crate::args::TraceArgs;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::process::info::timeouts;
use crate::process::target::{self, Chosen};
use crate::render::report;

pub(crate) use child::Child;
pub(crate) use others::Others;

/// The longest wait between checks for the other reasons to end.
const TICK: Duration = Duration::from_millis(100);

/// A runtime that is to be recorded.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) target: Target,
    /// The name of the process, where it is known.
    pub(crate) name: Option<String>,
    pub(crate) pid: Option<u32>,
    /// The port on which others may still come.
    pub(crate) port: Option<PortServer>,
    /// The program that we started for it.
    pub(crate) child: Option<Child>,
}

impl Source {
    /// Finds the process, or waits for the first that comes.
    pub(crate) fn open(args: &TraceArgs, interrupts: &Interrupts) -> Result<Self, Failure> {
        let source = &args.source;
        if !source.command.is_empty() {
            let port = PortServer::private()?;
            let child = Child::start(&source.command, args.show_child_io, &port)?;
            child.end_with(interrupts);
            return Self::first(port, Some(child), args.timeout, interrupts);
        }
        match &source.diagnostic_port {
            None => Ok(Self::found(Chosen::new(&source.target(), args.timeout)?)),
            Some(port) => {
                let address = target::address(&port.address, source.reach)?;
                if !port.is_ours {
                    let target = Target::at(address).with_timeouts(timeouts(args.timeout));
                    return Ok(Self { target, name: None, pid: None, port: None, child: None });
                }
                let port = PortServer::bind(address)?;
                report::note(format_args!(
                    "Waiting at {0}; start a program with DOTNET_DiagnosticPorts={0}",
                    port.address()
                ));
                Self::first(port, None, args.timeout, interrupts)
            }
        }
    }

    fn found(chosen: Chosen) -> Self {
        let (name, pid) = match chosen.endpoint {
            Some(endpoint) => (Some(endpoint.name), Some(endpoint.pid)),
            None => (None, None),
        };
        Self { target: chosen.target, name, pid, port: None, child: None }
    }

    /// The first runtime that comes to the port.
    fn first(
        port: PortServer,
        mut child: Option<Child>,
        timeout: Duration,
        interrupts: &Interrupts,
    ) -> Result<Self, Failure> {
        loop {
            match port.next(Deadline::after(TICK)) {
                Ok(PortEvent::Connected(runtime)) => {
                    return Ok(Self { port: Some(port), child, ..Self::connected(&runtime, timeout) });
                }
                Ok(PortEvent::Error(error)) => report::warning(error),
                Ok(_) => {}
                Err(error) if error.is_deadline() => {}
                Err(error) => return Err(error.into()),
            }
            if let Some(child) = &mut child
                && let Some(code) = child.try_code()?
            {
                return Err(child.was_no_runtime(code));
            }
            if interrupts.count() > 0 {
                if let Some(mut child) = child {
                    child.kill();
                }
                return Err(Failure::new(
                    Exit::Failed,
                    "interrupted before a runtime came; nothing was recorded",
                ));
            }
        }
    }

    /// A runtime that has come to a port.
    pub(crate) fn connected(runtime: &PortRuntime, timeout: Duration) -> Self {
        let pid = runtime.pid();
        let name = pid.and_then(|pid| dipc_transport::process_name(pid).ok());
        let target = runtime.target().with_timeouts(timeouts(timeout));
        Self { target, name, pid, port: None, child: None }
    }
}
