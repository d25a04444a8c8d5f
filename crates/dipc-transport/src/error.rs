use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::cancel::Interruption;
use crate::{Address, PeerCredentials, ProcessState, sys};

/// A reason why an endpoint was not found, not reached, or stopped answering.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The process does not exist, or no longer exists.
    #[error("process {pid}: no such process")]
    NoSuchProcess {
        /// The requested pid.
        pid: u32,
    },
    /// The process is a thread of the kernel, which runs no program.
    #[error("process {pid}: a thread of the kernel, which runs no program")]
    KernelThread {
        /// The requested pid.
        pid: u32,
    },
    /// The directory where a runtime creates its socket does not contain a socket of the process.
    #[error("process {pid} ({name}): no diagnostic socket of it in {}", .directory.display())]
    NoEndpoint {
        /// The requested pid.
        pid: u32,
        /// The name of the process.
        name: String,
        /// The directory that its `TMPDIR` (or the default) names, as reached from here.
        directory: PathBuf,
    },
    /// The user of this process lacks the permission.
    #[error("{operation}: {}: permission denied", .path.display())]
    PermissionDenied {
        /// The step that failed.
        operation: Operation,
        /// The file.
        path: PathBuf,
    },
    /// A file with the right name that another user made.
    #[error("find: {}: the file belongs to user {owner}, process {pid} to user {uid}", .path.display())]
    ForeignSocket {
        /// The file.
        path: PathBuf,
        /// The owner of the file.
        owner: u32,
        /// The process that its name claims.
        pid: u32,
        /// The user of that process.
        uid: u32,
    },
    /// The file is not a socket.
    #[error("{operation}: {}: not a socket", .path.display())]
    NotASocket {
        /// The step that failed.
        operation: Operation,
        /// The file.
        path: PathBuf,
    },
    /// The address names a file that does not exist.
    #[error("connect: {address}: no such socket")]
    NoSocket {
        /// The address.
        address: Address,
    },
    /// No process listens on the socket: its owner has ended.
    #[error("connect: {address}: no process listens on this socket")]
    Stale {
        /// The address.
        address: Address,
    },
    /// The listener is not the expected process. Nothing was sent to it.
    #[error("connect: {address}: expected process {pid}{} to listen there, found {found}", OfUser(*.uid))]
    PeerMismatch {
        /// The address.
        address: Address,
        /// The expected process.
        pid: u32,
        /// The user of the process, on systems where the kernel reports a peer's user.
        uid: Option<u32>,
        /// The credentials of the listener.
        found: PeerCredentials,
    },
    /// The path is too long for a socket address and cannot be shortened.
    #[error("{operation}: {}: a socket's path has at most {limit} bytes", .path.display())]
    PathTooLong {
        /// The step that failed.
        operation: Operation,
        /// The path.
        path: PathBuf,
        /// Maximum length of a path, in bytes.
        limit: usize,
    },
    /// A TCP address beyond this machine.
    #[error("{address}: not an address of the loopback interface")]
    NotLoopback {
        /// The address.
        address: SocketAddr,
    },
    /// This system does not have addresses of this kind, or the connection does not have the operation.
    #[error("{operation}: {address}: not supported here")]
    Unsupported {
        /// The step that failed.
        operation: Operation,
        /// The address.
        address: Address,
    },
    /// Another process already listens there.
    #[error("listen: {address}: already in use")]
    InUse {
        /// The address.
        address: Address,
    },
    /// The deadline passed first.
    #[error("{operation}: {address}: no answer after {}{}", Waited(*.after), PeerState::new(*.peer, .peer_state.as_ref()))]
    TimedOut {
        /// The step that timed out.
        operation: Operation,
        /// The address.
        address: Address,
        /// The time that this step waited.
        after: Duration,
        /// The process that did not answer, if it is known.
        peer: Option<u32>,
        /// The state of that process at the deadline, if it explains the time-out. Set only after a wait of
        /// at least a quarter of a second, by one step or by several together.
        peer_state: Option<ProcessState>,
    },
    /// A [`Canceller`](crate::Canceller) ended it.
    #[error("{operation}: {address}: cancelled")]
    Cancelled {
        /// The step that was ended.
        operation: Operation,
        /// The address.
        address: Address,
    },
    /// The peer closed the connection without having read everything.
    #[error("{operation}: {address}: the other side closed the connection")]
    Disconnected {
        /// The step that failed.
        operation: Operation,
        /// The address.
        address: Address,
    },
    /// Another error of the system.
    #[error("{operation}: {address}: {reason}")]
    Io {
        /// The step that failed.
        operation: Operation,
        /// The address.
        address: Address,
        /// The error of the system.
        reason: io::Error,
    },
}

/// Minimum wait after which the state of the peer is read: callers poll with shorter waits, many times a
/// second.
const MIN_PROBED_WAIT: Duration = Duration::from_millis(250);

/// A time in seconds, or in milliseconds if less than a tenth of a second would be zero.
struct Waited(Duration);

impl fmt::Display for Waited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            milliseconds @ 0..50 => write!(f, "{milliseconds} ms"),
            _ => write!(f, "{:.1} s", self.0.as_secs_f64()),
        }
    }
}

struct OfUser(Option<u32>);

impl fmt::Display for OfUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |uid| write!(f, " of user {uid}"))
    }
}

/// The state of a silent peer as the end of an error message: `; process 4711 is stopped`, or empty if pid or
/// state are not known.
#[derive(Debug, Clone, Copy)]
pub struct PeerState<'a> {
    pid: Option<u32>,
    state: Option<&'a ProcessState>,
}

impl<'a> PeerState<'a> {
    /// Returns the state of a process.
    pub fn new(pid: Option<u32>, state: Option<&'a ProcessState>) -> Self {
        Self { pid, state }
    }
}

impl fmt::Display for PeerState<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { pid: Some(pid), state: Some(state) } => write!(f, "; process {pid} {state}"),
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

/// Returns the state of a process that has been silent for `after`, if the state explains the silence.
fn state_after(peer: Option<u32>, after: Duration) -> Option<ProcessState> {
    let pid = peer.filter(|_| after >= MIN_PROBED_WAIT)?;
    sys::process_state(pid).ok().filter(ProcessState::is_unresponsive)
}

/// Returns advice for a missing permission. Root has the permission, unless it runs without capabilities.
fn permission_help(user: Option<u32>) -> &'static str {
    match user {
        Some(0) => {
            "root lacks a capability for this: add SYS_PTRACE (to look into processes) and DAC_OVERRIDE (to open their sockets) \
             to the container that this runs in (--cap-add), or run this on the host, or as the user of the process"
        }
        Some(_) => "run this as the user of the process, or as root",
        None => "run this as the user of the process, or as administrator",
    }
}

impl Error {
    pub(crate) fn timed_out(
        operation: Operation,
        address: Address,
        after: Duration,
        peer: Option<u32>,
    ) -> Self {
        let peer_state = state_after(peer, after);
        Self::TimedOut { operation, address, after, peer, peer_state }
    }

    /// Returns the error of the last of several steps that together took `elapsed`. A time-out gets that
    /// time, and the peer's state for it. Other errors stay as they are.
    #[must_use]
    pub fn with_elapsed(mut self, elapsed: Duration) -> Self {
        if let Self::TimedOut { after, peer, peer_state, .. } = &mut self {
            *after = elapsed;
            if peer_state.is_none() {
                *peer_state = state_after(*peer, elapsed);
            }
        }
        self
    }

    /// Returns whether a deadline passed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use dipc_transport::{Address, Deadline, Listener};
    ///
    /// let mut listener = Listener::bind("127.0.0.1:0".parse::<Address>()?)?;
    /// let error = listener.accept(Deadline::after(Duration::ZERO)).expect_err("no client connects");
    /// assert!(error.is_timeout() && !error.is_disconnected());
    /// # Ok::<(), dipc_transport::Error>(())
    /// ```
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }

    /// Returns whether a [`Canceller`](crate::Canceller) was used.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled { .. })
    }

    /// Returns whether the peer closed the connection too early.
    pub fn is_disconnected(&self) -> bool {
        matches!(self, Self::Disconnected { .. })
    }

    /// Returns whether the endpoint cannot be reached: no process, no endpoint, no permission, or the wrong
    /// peer.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::NoSuchProcess { .. }
            | Self::KernelThread { .. }
            | Self::NoEndpoint { .. }
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

    /// Returns advice for the user, if there is any.
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoEndpoint { .. } => {
                "the process is not .NET Core 3.0 or later, runs with DOTNET_EnableDiagnostics=0, or was started with \
                 another TMPDIR than its environment shows; the socket's path can be given instead of the pid"
            }
            Self::PermissionDenied { .. } => permission_help(sys::effective_uid()),
            Self::ForeignSocket { .. } | Self::PeerMismatch { .. } => {
                "someone may have planted this socket; nothing was sent to it"
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
            Self::TimedOut { peer_state: Some(state), .. } => return state.help(),
            Self::TimedOut { .. } => {
                "a runtime serves one client at a time, and none while it is stopped in a debugger or writes a dump"
            }
            Self::Disconnected { .. } => "the process may have ended",
            Self::NoSuchProcess { .. }
            | Self::KernelThread { .. }
            | Self::Unsupported { .. }
            | Self::Cancelled { .. }
            | Self::Io { .. } => return None,
        })
    }
}

impl Interruption {
    /// Converts to an error. For a time-out, the state of `peer` is read now.
    pub(crate) fn into_error(self, operation: Operation, address: &Address, peer: Option<u32>) -> Error {
        let address = address.clone();
        match self {
            Self::Cancelled => Error::Cancelled { operation, address },
            Self::TimedOut(after) => Error::timed_out(operation, address, after, peer),
            Self::Failed(reason)
                if matches!(reason.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) =>
            {
                Error::Disconnected { operation, address }
            }
            Self::Failed(reason) => Error::Io { operation, address, reason },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_out_has_the_time_that_was_waited() {
        let waited = |milliseconds| {
            let after = Duration::from_millis(milliseconds);
            let address = Address::Unix("/tmp/s".into());
            Error::timed_out(Operation::Read, address, after, None).to_string()
        };
        assert_eq!(waited(1_004), "read: /tmp/s: no answer after 1.0 s");
        assert_eq!(waited(50), "read: /tmp/s: no answer after 0.1 s");
        assert_eq!(waited(49), "read: /tmp/s: no answer after 49 ms");
    }

    #[test]
    fn root_gets_no_advice_to_become_root() {
        assert!(permission_help(Some(1000)).contains("or as root"));
        // There is no root user on Windows.
        assert!(permission_help(None).ends_with("or as administrator"));
        let root = permission_help(Some(0));
        assert!(
            root.contains("SYS_PTRACE") && root.contains("DAC_OVERRIDE") && !root.contains("as root"),
            "{root}"
        );
    }
}
