use std::path::PathBuf;

use crate::{Address, Connection, Deadline, Error, PeerCheck};

/// A process with a diagnostic socket or pipe.
///
/// ```no_run
/// use std::time::Duration;
/// use dipc_transport::Deadline;
///
/// let endpoint = dipc_transport::find(4711)?;
/// println!("{} listens at {}", endpoint.name, endpoint.path.display());
/// let connection = endpoint.connect(Deadline::after(Duration::from_secs(5)))?;
/// assert_eq!(connection.peer().pid, Some(4711));
/// # Ok::<(), dipc_transport::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endpoint {
    /// The pid as seen from here.
    pub pid: u32,
    /// The pid that the process itself sees; it differs in a container.
    pub namespace_pid: u32,
    /// The start time in the socket's name ([`SocketName::key`](crate::SocketName)); 0 for pipes: their names
    /// do not contain it.
    pub key: u64,
    /// The socket, as reached from here: below `/proc/{pid}/root` if the process has its own mounts. On
    /// Windows the pipe.
    pub path: PathBuf,
    /// The effective user of the process; `None` on Windows.
    pub uid: Option<u32>,
    /// The name of the process.
    pub name: String,
}

impl Endpoint {
    /// Returns the address to connect to.
    pub fn address(&self) -> Address {
        Address::from(&self.path)
    }

    /// Returns a check that this process listens there.
    pub fn peer_check(&self) -> PeerCheck {
        match self.uid {
            Some(uid) => PeerCheck::Process { pid: self.pid, uid },
            None => PeerCheck::Server { pid: self.pid },
        }
    }

    /// Connects, and checks that this process is the listener.
    pub fn connect(&self, deadline: Deadline) -> Result<Connection, Error> {
        Connection::connect(&self.address(), self.peer_check(), deadline)
    }
}
