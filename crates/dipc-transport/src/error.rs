use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::{Address, PeerCredentials, ProcessState, sys};

/// Why an endpoint was not found, not reached, or stopped answering.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The process does not exist (any more).
    #[error("process {pid}: there is no such process")]
    NoSuchProcess {
        /// The pid that was asked for.
        pid: u32,
    },
    /// The process exists, and has no diagnostic socket where a runtime would put it.
    #[error("process {pid} ({name}): no diagnostic socket of it in {}", .looked_in.display())]
    NotDotNet {
        /// The pid that was asked for.
        pid: u32,
        /// The name of the process.
        name: String,
        /// The directory that its `TMPDIR` (or the default) names, as reached from here.
        looked_in: PathBuf,
    },
    /// The system does not let this user do it.
    #[error("{operation}: {}: permission denied", .path.display())]
    PermissionDenied {
        /// What was tried.
        operation: Operation,
        /// On which file.
        path: PathBuf,
    },
    /// A file with the right name that somebody else made.
    #[error("find: {}: the file belongs to user {owner}, process {pid} to user {uid}", .path.display())]
    ForeignSocket {
        /// The file.
        path: PathBuf,
        /// Who owns it.
        owner: u32,
        /// The process that its name claims.
        pid: u32,
        /// The user of that process.
        uid: u32,
    },
    /// The file is there and is no socket.
    #[error("{operation}: {}: not a socket", .path.display())]
    NotASocket {
        /// What was tried.
        operation: Operation,
        /// The file.
        path: PathBuf,
    },
    /// There is no file at the address.
    #[error("connect: {address}: there is no such socket")]
    NoSocket {
        /// The address.
        address: Address,
    },
    /// The socket is there and nobody listens: its process has ended.
    #[error("connect: {address}: nobody listens on this socket")]
    Stale {
        /// The address.
        address: Address,
    },
    /// Another process than the expected one listens. Nothing was sent to it.
    #[error("connect: {address}: expected process {pid}{} to listen there, found {found}", OfUser(*.uid))]
    PeerMismatch {
        /// The address.
        address: Address,
        /// The expected process.
        pid: u32,
        /// Its user, on systems where the kernel tells a peer's.
        uid: Option<u32>,
        /// Who listens.
        found: PeerCredentials,
    },
    /// The path is too long for a socket address and cannot be shortened.
    #[error("{operation}: {}: a socket's path has at most {limit} bytes", .path.display())]
    PathTooLong {
        /// What was tried.
        operation: Operation,
        /// The path.
        path: PathBuf,
        /// The longest possible one, in bytes.
        limit: usize,
    },
    /// A TCP address that other machines could be reached through, or reach.
    #[error("{address}: not an address of the loopback interface")]
    NotLoopback {
        /// The address.
        address: SocketAddr,
    },
    /// This system has no addresses of this kind, or the connection no such operation.
    #[error("{operation}: {address}: not supported here")]
    Unsupported {
        /// What was tried.
        operation: Operation,
        /// The address.
        address: Address,
    },
    /// Somebody already listens there.
    #[error("listen: {address}: already in use")]
    InUse {
        /// The address.
        address: Address,
    },
    /// The deadline passed first.
    #[error("{operation}: {address}: no answer after {:.1} s{}", .after.as_secs_f64(), Suspicion(*.peer, .looks))]
    TimedOut {
        /// What was waited for.
        operation: Operation,
        /// The address.
        address: Address,
        /// How long this step waited.
        after: Duration,
        /// The process that did not answer, where it is known.
        peer: Option<u32>,
        /// What that process looked like then, if it looked like something that explains it. Only for a step that waited
        /// at least a quarter of a second.
        looks: Option<ProcessState>,
    },
    /// A [`Canceller`](crate::Canceller) ended it.
    #[error("{operation}: {address}: cancelled")]
    Cancelled {
        /// What was ended.
        operation: Operation,
        /// The address.
        address: Address,
    },
    /// The other side closed the connection without having read everything.
    #[error("{operation}: {address}: the other side closed the connection")]
    Disconnected {
        /// What was tried.
        operation: Operation,
        /// The address.
        address: Address,
    },
    /// Anything else that the system reports.
    #[error("{operation}: {address}: {source}")]
    Io {
        /// What was tried.
        operation: Operation,
        /// The address.
        address: Address,
        /// The system's reason.
        source: io::Error,
    },
}

/// Who waits for less looks around between two steps of his own, perhaps many times a second: that has to be cheap.
const WORTH_A_LOOK: Duration = Duration::from_millis(250);

struct OfUser(Option<u32>);

impl fmt::Display for OfUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |uid| write!(f, " of user {uid}"))
    }
}

/// What the state of a process adds to an error about its silence: `; process 4711 is stopped`, or nothing where either is not
/// known.
#[derive(Debug, Clone, Copy)]
pub struct Suspicion<'a>(pub Option<u32>, pub &'a Option<ProcessState>);

impl fmt::Display for Suspicion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self(Some(pid), Some(state)) => write!(f, "; process {pid} {state}"),
            _ => Ok(()),
        }
    }
}

/// The step that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Looking for a process's endpoint.
    Find,
    /// Connecting, with the check of the peer.
    Connect,
    /// Reading from a connection.
    Read,
    /// Writing to a connection.
    Write,
    /// Creating a listening socket.
    Listen,
    /// Accepting a connection.
    Accept,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Find => "find",
            Self::Connect => "connect",
            Self::Read => "read",
            Self::Write => "write",
            Self::Listen => "listen",
            Self::Accept => "accept",
        })
    }
}

/// What gives the permission that is missing. Root has it, unless root lacks capabilities.
fn permission_help(user: Option<u32>) -> &'static str {
    match user {
        Some(0) => {
            "root lacks a capability for this: add SYS_PTRACE (to look into processes) and DAC_OVERRIDE (to open their sockets) \
             to the container that this runs in (--cap-add), or run this on the host, or as the user of the process"
        }
        _ => "run this as the user of the process, or as root",
    }
}

impl Error {
    pub(crate) fn timed_out(
        operation: Operation,
        address: Address,
        after: Duration,
        peer: Option<u32>,
    ) -> Self {
        let waited_for = peer.filter(|_| after >= WORTH_A_LOOK);
        let looks = waited_for.and_then(|pid| crate::process_state(pid).ok());
        let looks = looks.filter(ProcessState::is_unresponsive);
        Self::TimedOut { operation, address, after, peer, looks }
    }

    /// Whether a deadline passed.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }

    /// Whether a [`Canceller`](crate::Canceller) was used.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled { .. })
    }

    /// Whether the other side went away in the middle.
    pub fn is_disconnected(&self) -> bool {
        matches!(self, Self::Disconnected { .. })
    }

    /// Whether there is nothing to talk to: no process, no endpoint, no permission, or not the right peer.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::NoSuchProcess { .. }
            | Self::NotDotNet { .. }
            | Self::PermissionDenied { .. }
            | Self::ForeignSocket { .. }
            | Self::NotASocket { .. }
            | Self::NoSocket { .. }
            | Self::Stale { .. }
            | Self::PeerMismatch { .. }
            | Self::PathTooLong { .. }
            | Self::NotLoopback { .. }
            | Self::Unsupported { .. } => true,
            Self::InUse { .. }
            | Self::TimedOut { .. }
            | Self::Cancelled { .. }
            | Self::Disconnected { .. }
            | Self::Io { .. } => false,
        }
    }

    /// What the user can do about it, where something can be done.
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotDotNet { .. } => {
                "the process is not .NET Core 3.0 or later, runs with DOTNET_EnableDiagnostics=0, or was started with \
                 another TMPDIR than its environment shows; the socket's path can be given instead of the pid"
            }
            Self::PermissionDenied { .. } => permission_help(sys::effective_uid()),
            Self::ForeignSocket { .. } | Self::PeerMismatch { .. } => {
                "somebody may have planted this socket; nothing was sent to it"
            }
            Self::NotASocket { .. } | Self::NoSocket { .. } => {
                "check the address, and that the process is still running"
            }
            Self::Stale { .. } => "the process that made it has ended; the file can be removed",
            Self::PathTooLong { .. } => "use a shorter TMPDIR",
            Self::NotLoopback { .. } => {
                "the protocol has no passwords and no encryption: forward the port through a tunnel that has them"
            }
            Self::InUse { .. } => "choose another address, or end the process that listens there",
            Self::TimedOut { looks: Some(state), .. } => return state.help(),
            Self::TimedOut { .. } => {
                "a runtime serves one client at a time, and none while it is stopped in a debugger or writes a dump"
            }
            Self::Disconnected { .. } => "the process may have ended",
            Self::NoSuchProcess { .. }
            | Self::Unsupported { .. }
            | Self::Cancelled { .. }
            | Self::Io { .. } => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_not_told_to_become_root() {
        assert!(permission_help(Some(1000)).contains("or as root"));
        let root = permission_help(Some(0));
        assert!(
            root.contains("SYS_PTRACE") && root.contains("DAC_OVERRIDE") && !root.contains("as root"),
            "{root}"
        );
    }
}
