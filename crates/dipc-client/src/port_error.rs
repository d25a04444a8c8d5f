use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use dipc_transport::Address;
use uuid::Uuid;

/// The error of a port, or of a runtime that connected to one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// The system cannot start a thread for it.
    #[error("listen: {address}: no thread: {error}")]
    Thread {
        /// The port.
        address: Address,
        /// The system's error.
        error: io::Error,
    },
    /// The folder for a private port cannot be created.
    #[error("listen: {parent}: no folder can be made there: {error}", parent = .parent.display())]
    Folder {
        /// The folder that should contain it.
        parent: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Nothing happened at the port until the deadline.
    #[error("wait at the port: {address}: nothing happened within {:.1} s", .after.as_secs_f64())]
    NothingHappened {
        /// The port.
        address: Address,
        /// The duration of the wait.
        after: Duration,
    },
    /// A canceller was used.
    #[error("wait at the port: {address}: cancelled")]
    Cancelled {
        /// The port.
        address: Address,
    },
    /// A process connected with the cookie of a runtime of another process. Its connection was closed.
    #[error("advertise: {address}: {} has the cookie {cookie} of {}: not accepted", OfProcess(*.found), OfProcess(*.pid))]
    ForeignCookie {
        /// The cookie.
        cookie: Uuid,
        /// The port.
        address: Address,
        /// The process that advertised it first, if it is visible.
        pid: Option<u32>,
        /// The process that connected, if it is visible.
        found: Option<u32>,
    },
    /// A process has too many simultaneous connections. One was closed.
    #[error("accept: {address}: process {pid} has {limit} connections, and may have no more")]
    ProcessFull {
        /// The port.
        address: Address,
        /// The process.
        pid: u32,
        /// Maximum number of connections of one process.
        limit: usize,
    },
    /// The port has reached its limit of connections. Others wait until a connection is closed.
    #[error("accept: {address}: there are {limit} connections; others have to wait")]
    Full {
        /// The port.
        address: Address,
        /// Maximum number of connections.
        limit: usize,
    },
    /// The runtime exists, but did not connect again after its last command.
    #[error("wait for runtime {cookie}: {address}: it did not connect within {:.1} s", .after.as_secs_f64())]
    NotConnected {
        /// The runtime.
        cookie: Uuid,
        /// The port.
        address: Address,
        /// The duration of the wait.
        after: Duration,
    },
    /// The runtime has ended, or its port was closed.
    #[error("wait for runtime {cookie}: {address}: it has ended")]
    Exited {
        /// The runtime.
        cookie: Uuid,
        /// The port.
        address: Address,
    },
}

struct OfProcess(Option<u32>);

impl fmt::Display for OfProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(pid) => write!(f, "process {pid}"),
            None => f.write_str("a process that is not visible from here"),
        }
    }
}

impl PortError {
    pub(crate) fn is_timeout(&self) -> bool {
        matches!(self, Self::NothingHappened { .. } | Self::NotConnected { .. })
    }
}
