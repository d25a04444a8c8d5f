//! Discovery of endpoints by process.
//!
//! A runtime listens on `dotnet-diagnostic-{pid}-{key}-socket` in its `TMPDIR`. The search goes from the
//! process to the only name that its socket can have, instead of from the names in a directory to processes.
//! So stale and planted sockets are never found.

mod endpoint;
#[cfg(windows)]
mod pipes;
mod socket_name;
#[cfg(unix)]
mod sockets;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;

#[cfg(windows)]
use self::pipes as platform;
#[cfg(unix)]
use self::sockets as platform;
use crate::{Error, Operation, ProcessState, sys};

pub use endpoint::Endpoint;
pub use socket_name::SocketName;

/// The result of [`discover`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Discovery {
    /// The endpoints, by rising pid.
    pub endpoints: Vec<Endpoint>,
    /// Processes, directories and sockets that were left out. Few of them matter to a user who finds the
    /// right process among the endpoints.
    pub skipped: Vec<Skipped>,
}

/// A process, a directory or a socket that [`discover`] left out.
#[derive(Debug)]
#[non_exhaustive]
pub struct Skipped {
    /// The process, if the item belongs to one.
    pub pid: Option<u32>,
    /// The file or directory.
    pub path: PathBuf,
    /// The reason.
    pub reason: SkipReason,
}

/// A reason why an item was left out of a [`Discovery`].
#[derive(Debug)]
#[non_exhaustive]
pub enum SkipReason {
    /// The file or directory cannot be read.
    Unreadable(io::Error),
    /// The environment of the process cannot be read, and its socket is not in the default directory.
    EnvironmentUnreadable(io::Error),
    /// No process that is visible from here has the pid and start time of this socket, which outlived its
    /// process.
    Stale,
    /// The file belongs to another user than the process.
    ForeignOwner {
        /// The owner of the file.
        owner: u32,
        /// The user of the process.
        uid: u32,
    },
    /// The file has the right name, but is not a socket.
    NotASocket,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Self::EnvironmentUnreadable(error) => write!(f, "its TMPDIR is not known: {error}"),
            Self::Stale => f.write_str("no process with this pid and start time is visible"),
            Self::ForeignOwner { owner, uid } => {
                write!(f, "the file belongs to user {owner}, the process to user {uid}")
            }
            Self::NotASocket => f.write_str("not a socket"),
        }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pid) = self.pid {
            write!(f, "process {pid}: ")?;
        }
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

/// Finds the endpoints of all processes.
///
/// The `TMPDIR`, the namespaces and the start time of each process are read; each directory is listed once.
/// Processes may start and exit meanwhile. No connections are made. On Windows the pipes of the machine are
/// listed.
///
/// ```
/// let discovery = dipc_transport::discover();
/// for endpoint in &discovery.endpoints {
///     println!("{} {}", endpoint.pid, endpoint.name);
/// }
/// for skipped in &discovery.skipped {
///     eprintln!("{skipped}");
/// }
/// assert!(discovery.endpoints.is_sorted_by_key(|endpoint| endpoint.pid));
/// ```
pub fn discover() -> Discovery {
    platform::discover()
}

impl Discovery {
    fn skip(&mut self, pid: Option<u32>, path: PathBuf, reason: SkipReason) {
        self.skipped.push(Skipped { pid, path, reason });
    }
}

/// Finds the endpoint of one process.
///
/// ```
/// use dipc_transport::Error;
///
/// // This test is a process without a diagnostic port.
/// match dipc_transport::find(std::process::id()) {
///     Ok(endpoint) => println!("{}", endpoint.path.display()),
///     Err(error @ Error::NoEndpoint { .. }) => eprintln!("{error}"),
///     Err(error) => return Err(error),
/// }
/// # Ok::<(), dipc_transport::Error>(())
/// ```
///
/// # Errors
/// [`Error::NoSuchProcess`], [`Error::KernelThread`], [`Error::NoEndpoint`] (with the directory),
/// [`Error::PermissionDenied`], [`Error::ForeignSocket`] or [`Error::NotASocket`].
pub fn find(pid: u32) -> Result<Endpoint, Error> {
    platform::find(pid)
}

/// Returns the name of a process, as in the existing tools: the program's file name if the kernel has
/// truncated it, and on Windows without `.exe`.
///
/// ```
/// // The kernel cuts names after 15 bytes; this one is whole.
/// let name = dipc_transport::process_name(std::process::id())?;
/// assert!(!name.is_empty());
/// # Ok::<(), dipc_transport::Error>(())
/// ```
pub fn process_name(pid: u32) -> Result<String, Error> {
    platform::process_name(pid)
}

/// Returns the arguments with which a process was started, its program first. Linux only.
pub fn command_line(pid: u32) -> Result<Vec<OsString>, Error> {
    platform::command_line(pid)
}

/// Returns the start time of a process as in the name of its socket ([`SocketName::key`]); 0 on Windows.
pub fn start_key(pid: u32) -> Result<u64, Error> {
    platform::start_key(pid)
}

/// Reads the state of a process. On systems without `/proc` only [`ProcessState::Running`] and
/// [`ProcessState::Gone`] are distinguished.
///
/// ```
/// use dipc_transport::ProcessState;
///
/// let state = dipc_transport::process_state(std::process::id())?;
/// if state.is_unresponsive() {
///     eprintln!("it cannot answer; {}", state.help().unwrap_or_default());
/// }
/// assert_eq!(state, ProcessState::Running);
/// # Ok::<(), dipc_transport::Error>(())
/// ```
///
/// # Errors
/// [`Error::PermissionDenied`] or [`Error::Io`] if the system does not show the process.
pub fn process_state(pid: u32) -> Result<ProcessState, Error> {
    sys::process_state(pid).map_err(|error| process_error(pid, "stat", error))
}

fn process_error(pid: u32, file: &str, reason: io::Error) -> Error {
    let (operation, path) = (Operation::Find, PathBuf::from(format!("/proc/{pid}/{file}")));
    match reason.kind() {
        io::ErrorKind::NotFound => Error::NoSuchProcess { pid },
        io::ErrorKind::PermissionDenied => Error::PermissionDenied { operation, path },
        _ => Error::Io { operation, address: path.into(), reason },
    }
}
