use std::time::Duration;

use dipc_transport::{Address, PeerState, ProcessState};
use dipc_wire::{DecodeError, EncodeError, ServerError};

use crate::{Hazard, OptionalFeature, PortError};

/// The error of a command, a session or a port.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The runtime was not found or not reached, or stopped answering.
    #[error(transparent)]
    Transport(#[from] dipc_transport::Error),
    /// The runtime answered with an error.
    #[error("{command}: {address}: the runtime refused: {reason}")]
    Refused {
        /// The command.
        command: &'static str,
        /// The runtime.
        address: Address,
        /// The runtime's HRESULT and message.
        reason: ServerError,
    },
    /// The runtime is too old for every form of the command. .NET Core 3.1 knows none of the Process
    /// commands.
    #[error("{command}: {address}: this runtime does not know the command")]
    UnknownCommand {
        /// The command, without its version.
        command: &'static str,
        /// The runtime.
        address: Address,
    },
    /// Only a newer form of the command, unknown to the runtime, has the option.
    #[error("{command}: {address}: this runtime does not know the command, and {feature} needs it")]
    UnsupportedOption {
        /// The oldest form that supports the option.
        command: &'static str,
        /// The runtime.
        address: Address,
        /// The option.
        feature: OptionalFeature,
    },
    /// The received bytes are not a reply.
    #[error("{command}: {address}: bad reply: {error}")]
    Protocol {
        /// The command.
        command: &'static str,
        /// The runtime.
        address: Address,
        /// The fault in the bytes, with its offset.
        error: DecodeError,
    },
    /// The announced environment is larger than any system allows.
    #[error("ProcessEnvironment: {address}: {announced} bytes announced, more than {limit}")]
    EnvironmentTooLarge {
        /// The runtime.
        address: Address,
        /// The announced size in bytes.
        announced: u32,
        /// Maximum size to read, in bytes.
        limit: u32,
    },
    /// The connection ended within the answer.
    #[error("{command}: {address}: the connection ended after {received} bytes of the answer")]
    Incomplete {
        /// The command.
        command: &'static str,
        /// The runtime.
        address: Address,
        /// The number of bytes received.
        received: usize,
    },
    /// The session was started, but no byte of its stream arrived.
    #[error("{command}: {address}: the session began, but nothing of its stream came within {:.1} s{}", .after.as_secs_f64(), PeerState::new(*.peer, .peer_state.as_ref()))]
    NoStream {
        /// The command that started it.
        command: &'static str,
        /// The runtime.
        address: Address,
        /// The duration of the wait.
        after: Duration,
        /// The process, if known.
        peer: Option<u32>,
        /// The state of the process, if it explains the silence.
        peer_state: Option<ProcessState>,
    },
    /// No bytes of a running session's stream arrived within the reader's limit. The read can be repeated:
    /// nothing is lost.
    #[error("{command}: {address}: the session is silent: nothing came within {:.1} s{}", .after.as_secs_f64(), PeerState::new(*.peer, .peer_state.as_ref()))]
    Silent {
        /// The command that started it.
        command: &'static str,
        /// The runtime.
        address: Address,
        /// The duration of the wait.
        after: Duration,
        /// The process, if known.
        peer: Option<u32>,
        /// The state of the process, if it explains the silence.
        peer_state: Option<ProcessState>,
    },
    /// The session was asked to stop, and since then neither an answer nor a byte of its stream arrived.
    #[error("StopTracing: {address}: the session did not stop: nothing came within {:.1} s", .after.as_secs_f64())]
    NotStopped {
        /// The runtime.
        address: Address,
        /// The duration of the wait.
        after: Duration,
    },
    /// A signal has stopped the process, so it would not answer. The command was not sent.
    #[error("{command}: {address}: not sent: process {pid} {}", ProcessState::Stopped)]
    Stopped {
        /// The command.
        command: &'static str,
        /// The runtime.
        address: Address,
        /// The process.
        pid: u32,
    },
    /// The runtime has not begun its program yet, and its command line is not known.
    #[error("{command}: {address}: the program had not begun after {:.1} s", .after.as_secs_f64())]
    NotStarted {
        /// The command that was answered.
        command: &'static str,
        /// The runtime.
        address: Address,
        /// The duration of the wait.
        after: Duration,
    },
    /// The command is known to end such a runtime, or to make it unreachable. It was not sent.
    #[error("{command}: {address}: not sent: {hazard}")]
    Blocked {
        /// The command.
        command: &'static str,
        /// The runtime.
        address: Address,
        /// The reason.
        hazard: Hazard,
    },
    /// No runtime accepts the request, and some end because of it: .NET 9 with a segmentation fault if a
    /// session has a buffer size of 0, an unknown format or more than 1000 providers. It was not sent.
    #[error("{command}: {what}")]
    OutOfRange {
        /// The command, without its version.
        command: &'static str,
        /// The value and its limit.
        what: String,
    },
    /// The error of a port, or of a runtime that connected to one.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The request does not fit into a message.
    #[error("{command}: cannot be sent: {error}")]
    Encode {
        /// The command.
        command: &'static str,
        /// The reason.
        error: EncodeError,
    },
}

/// The kind of an [`Error`], by what a caller can do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No connection is possible: no process, no endpoint, no permission, or the wrong peer.
    Unreachable,
    /// The runtime answered with an error.
    Refused,
    /// The runtime is too old for the command or an option of it.
    Unsupported,
    /// A deadline passed, or is certain to pass: the process is stopped.
    TimedOut,
    /// A canceller was used.
    Cancelled,
    /// The connection ended too early.
    Disconnected,
    /// The received bytes do not follow the protocol.
    Protocol,
    /// The request itself is invalid, and was not sent.
    Invalid,
    /// The request would harm the process, and was not sent.
    Blocked,
    /// Anything else.
    Other,
}

impl Error {
    /// Returns the kind of the error.
    ///
    /// ```
    /// use dipc_client::{ErrorKind, Target};
    ///
    /// let error = Target::from_path("/nowhere/socket").info().expect_err("no socket");
    /// assert_eq!(error.kind(), ErrorKind::Unreachable);
    /// eprintln!("error: {error}, help: {:?}", error.help());
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Transport(error) if error.is_unreachable() => ErrorKind::Unreachable,
            Self::Transport(error) if error.is_timeout() => ErrorKind::TimedOut,
            Self::Transport(error) if error.is_cancelled() => ErrorKind::Cancelled,
            Self::Transport(error) if error.is_disconnected() => ErrorKind::Disconnected,
            Self::Port(PortError::Cancelled { .. }) => ErrorKind::Cancelled,
            Self::Refused { .. } => ErrorKind::Refused,
            Self::UnknownCommand { .. } | Self::UnsupportedOption { .. } => ErrorKind::Unsupported,
            Self::Protocol { .. } | Self::EnvironmentTooLarge { .. } => ErrorKind::Protocol,
            Self::Incomplete { .. } | Self::Port(PortError::Exited { .. }) => ErrorKind::Disconnected,
            Self::NoStream { .. }
            | Self::Silent { .. }
            | Self::NotStopped { .. }
            | Self::Stopped { .. }
            | Self::NotStarted { .. } => ErrorKind::TimedOut,
            Self::Blocked { .. } => ErrorKind::Blocked,
            Self::Port(error) if error.is_timeout() => ErrorKind::TimedOut,
            Self::OutOfRange { .. } | Self::Encode { .. } => ErrorKind::Invalid,
            Self::Transport(_) | Self::Port(_) => ErrorKind::Other,
        }
    }

    /// Returns true if the runtime has answered: that it does not know the command, or with an error of its
    /// own. The process lives, and takes other commands.
    pub fn is_answer(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::UnknownCommand { .. })
    }

    /// Returns true if the only error is that the deadline of a read has passed, or its [silence
    /// limit](Self::Silent): the read can be repeated.
    pub fn is_deadline(&self) -> bool {
        match self {
            Self::Transport(error) => error.is_timeout(),
            Self::Port(error) => error.is_timeout(),
            Self::Silent { .. } => true,
            _ => false,
        }
    }

    /// Returns advice for the user, if there is any.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Transport(error) => error.help(),
            Self::NoStream { peer_state: Some(state), .. } | Self::Silent { peer_state: Some(state), .. } => {
                state.help()
            }
            Self::Silent { .. } => {
                Some("a program with nothing to report sends nothing: a longer limit may do")
            }
            Self::Stopped { .. } => ProcessState::Stopped.help(),
            Self::NotStarted { .. } | Self::NoStream { .. } => {
                Some("a runtime that was started suspended has to be resumed first")
            }
            Self::Protocol { .. } => Some("is it a .NET diagnostic port?"),
            Self::Incomplete { .. } => Some("the process may have ended"),
            Self::Port(PortError::Full { .. }) => Some("raise the limit on open files (ulimit -n)"),
            Self::Blocked { hazard, .. } => hazard.help(),
            Self::Refused { reason, .. } => attach_help(reason),
            Self::UnknownCommand { .. }
            | Self::UnsupportedOption { .. }
            | Self::EnvironmentTooLarge { .. }
            | Self::OutOfRange { .. }
            | Self::NotStopped { .. }
            | Self::Port(_)
            | Self::Encode { .. } => None,
        }
    }
}

/// Returns advice if createdump could not attach to a thread of its process.
fn attach_help(reason: &ServerError) -> Option<&'static str> {
    let mut lines = reason.detail.iter().flat_map(|text| text.lines());
    let line = lines.find(|line| line.contains("ptrace(ATTACH"))?;
    Some(if line.contains("No such process") {
        "a thread of the process ended while createdump attached to it: try again"
    } else {
        "createdump may not attach to the process: a debugger or another tracer has it (TracerPid in /proc/PID/status), \
         or seccomp, kernel.yama.ptrace_scope or a missing SYS_PTRACE forbids it"
    })
}

#[cfg(test)]
mod tests {
    use dipc_wire::HResult;

    use super::*;

    #[test]
    fn a_createdump_that_could_not_attach_is_explained() {
        let help = |detail: &str| {
            let reason = ServerError::new(HResult::FAIL).with_detail(detail);
            let address = Address::Unix("/tmp/socket".into());
            Error::Refused { command: "GenerateCoreDump", address, reason }.help()
        };
        let text = "[createdump] Problem suspending thread: ptrace(ATTACH, 4711) FAILED No such process (3)";
        assert!(help(text).unwrap().ends_with("try again"));
        // Those of 3.1.
        assert!(help("ptrace(ATTACH, 4711) FAILED No such process\n").is_some());
        let traced =
            "[createdump] Problem suspending thread: ptrace(ATTACH, 4711) FAILED Operation not permitted (1)";
        assert!(help(traced).unwrap().contains("another tracer"));
        assert_eq!(help("Could not create output file '/nowhere/core': No such file or directory (2)"), None);
    }
}
