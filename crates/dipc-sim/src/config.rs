//! The configuration of a simulated runtime.

use crate::fault::Fault;
use crate::identity::Identity;
use crate::scoped_fault::ScopedFault;
use crate::stream::StreamConfig;
use crate::version::Version;
use dipc_wire::CommandId;
use std::sync::atomic::{AtomicU32, Ordering};

/// The configuration of a simulated runtime.
#[derive(Debug)]
pub(crate) struct RuntimeConfig {
    pub(crate) version: Version,
    /// The process id in the socket's name.
    pub(crate) pid: u32,
    pub(crate) identity: Identity,
    pub(crate) stream: StreamConfig,
    /// True if the kernel has user_events.
    pub(crate) user_events: bool,
    /// True if commands are served serially.
    pub(crate) serial: bool,
    pub(crate) faults: Vec<CountedFault>,
}

/// A fault, and the number of requests of its command so far.
#[derive(Debug)]
pub(crate) struct CountedFault {
    scoped: ScopedFault,
    requests: AtomicU32,
}

impl CountedFault {
    pub(crate) fn new(scoped: ScopedFault) -> Self {
        Self { scoped, requests: AtomicU32::new(0) }
    }

    /// Counts a request, and returns whether the fault applies to it.
    fn applies(&self, command: CommandId) -> bool {
        if self.scoped.command.is_some_and(|only| only != command) {
            return false;
        }
        let earlier = self.requests.fetch_add(1, Ordering::Relaxed);
        self.scoped.number.is_none_or(|number| number.get() == earlier.wrapping_add(1))
    }
}

impl RuntimeConfig {
    /// Counts a request of a command, and returns the faults that apply to it.
    pub(crate) fn faults_on(&self, command: CommandId) -> Vec<Fault> {
        self.faults.iter().filter(|it| it.applies(command)).map(|it| it.scoped.fault()).collect()
    }

    /// Returns whether the runtime has this fault, for any command.
    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.faults.iter().any(|it| it.scoped.fault() == fault)
    }
}
