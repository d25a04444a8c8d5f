//! The configuration of a simulated runtime.

use crate::fault::Fault;
use crate::identity::Identity;
use crate::stream::StreamConfig;
use crate::version::Version;
use dipc_wire::CommandId;

/// The configuration of a simulated runtime.
#[derive(Debug)]
pub(crate) struct RuntimeConfig {
    pub(crate) version: Version,
    /// The process id in the socket's name.
    pub(crate) pid: u32,
    pub(crate) identity: Identity,
    pub(crate) stream: StreamConfig,
    /// Whether the kernel has user_events.
    pub(crate) user_events: bool,
    /// Whether commands are served one after the other.
    pub(crate) serial: bool,
    pub(crate) faults: Vec<ScopedFault>,
}

/// A fault, with the only command that it applies to if there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScopedFault {
    pub(crate) command: Option<CommandId>,
    pub(crate) fault: Fault,
}

impl RuntimeConfig {
    /// Returns the faults that apply to a command.
    pub(crate) fn faults_on(&self, command: CommandId) -> impl Iterator<Item = Fault> {
        let applies = move |scoped: &&ScopedFault| scoped.command.is_none_or(|only| only == command);
        self.faults.iter().filter(applies).map(|scoped| scoped.fault)
    }

    /// Returns whether the runtime has this fault, whatever the command.
    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.faults.iter().any(|scoped| scoped.fault == fault)
    }
}
