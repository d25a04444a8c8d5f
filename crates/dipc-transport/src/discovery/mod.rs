//! From processes to endpoints.
//!
//! A runtime listens on `dotnet-diagnostic-{pid}-{key}-socket` in its `TMPDIR`. Going from the process to the one name
//! that its socket must have, instead of from the names in a directory to processes, leaves no room for sockets that
//! were left behind or planted.

mod directory;
mod endpoint;
mod socket_name;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;

use self::directory::Directories;
use crate::sys::{self, Process, Viewpoint};
use crate::{Address, Error, Operation};

pub use endpoint::Endpoint;
pub use socket_name::SocketName;

/// What [`discover`] found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Discovery {
    /// The endpoints, by rising pid.
    pub endpoints: Vec<Endpoint>,
    /// What was not looked into, or not trusted, and why. Most of it is of no interest to a user who finds the process
    /// that he looks for.
    pub skipped: Vec<Skipped>,
}

/// A process, a directory or a socket that [`discover`] left out.
#[derive(Debug)]
#[non_exhaustive]
pub struct Skipped {
    /// The process, if one is concerned.
    pub pid: Option<u32>,
    /// The file or directory.
    pub path: PathBuf,
    /// Why.
    pub reason: SkipReason,
}

/// Why something was left out of a [`Discovery`].
#[derive(Debug)]
#[non_exhaustive]
pub enum SkipReason {
    /// The file or directory cannot be read.
    Unreadable(io::Error),
    /// The environment of the process cannot be read, and there is no socket of it in the default directory.
    EnvironmentUnreadable(io::Error),
    /// No process that is visible from here has the pid and start time of this socket: it was left behind.
    Stale,
    /// The file belongs to another user than the process.
    ForeignOwner {
        /// Who owns the file.
        owner: u32,
        /// The user of the process.
        uid: u32,
    },
    /// The file has the right name and is no socket.
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

/// Looks for the endpoints of all processes.
///
/// Each process is asked for its own `TMPDIR`, namespaces and start time; each directory is listed once. Processes may
/// come and go meanwhile. Nothing is connected to.
pub fn discover() -> Discovery {
    let mut discovery = Discovery::default();
    let pids = match sys::process_ids() {
        Ok(pids) => pids,
        Err(error) => {
            discovery.skip(None, "/proc".into(), SkipReason::Unreadable(error));
            return discovery;
        }
    };
    let viewpoint = Viewpoint::new();
    let mut directories = Directories::default();
    for pid in pids {
        // A process whose status is not readable is hidden from us on purpose, or has ended.
        if let Ok(Some(process)) = Process::read(pid) {
            discovery.examine(&viewpoint, &process, &mut directories);
        }
    }
    for (path, error) in directories.take_unreadable() {
        discovery.skip(None, path, SkipReason::Unreadable(error));
    }
    for path in directories.unclaimed() {
        discovery.skip(None, path, SkipReason::Stale);
    }
    discovery
}

impl Discovery {
    fn examine(&mut self, viewpoint: &Viewpoint, process: &Process, directories: &mut Directories) {
        let place = viewpoint.socket_place(process);
        let directory = directories.open(&place.directory);
        let missing = if directory.may_hold(process.namespace_pid) {
            match endpoint::locate(process, &place.directory) {
                Ok(Some(endpoint)) => {
                    directory.claim(SocketName { pid: endpoint.namespace_pid, key: endpoint.key });
                    self.endpoints.push(endpoint);
                    return;
                }
                Ok(None) => None,
                Err(miss) => Some(miss),
            }
        } else {
            None
        };
        match (missing, place.environment) {
            (Some(miss), _) => {
                if let Some(name) = miss.name {
                    directory.claim(name);
                }
                self.skip(Some(process.pid), miss.path, miss.reason);
            }
            (None, Some(error)) => {
                let path = place.directory;
                self.skip(Some(process.pid), path, SkipReason::EnvironmentUnreadable(error));
            }
            (None, None) => {}
        }
    }

    fn skip(&mut self, pid: Option<u32>, path: PathBuf, reason: SkipReason) {
        self.skipped.push(Skipped { pid, path, reason });
    }
}

/// The endpoint of one process.
///
/// # Errors
/// [`Error::NoSuchProcess`], [`Error::NotDotNet`] (which says where it looked), [`Error::PermissionDenied`],
/// [`Error::ForeignSocket`] or [`Error::NotASocket`].
pub fn find(pid: u32) -> Result<Endpoint, Error> {
    let process = read(pid)?;
    let place = Viewpoint::new().socket_place(&process);
    let operation = Operation::Find;
    match endpoint::locate(&process, &place.directory) {
        Ok(Some(endpoint)) => Ok(endpoint),
        Ok(None) => match place.environment {
            Some(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(Error::PermissionDenied { operation, path: format!("/proc/{pid}/environ").into() })
            }
            _ => Err(Error::NotDotNet { pid, name: process.name(), looked_in: place.directory }),
        },
        Err(miss) => Err(match miss.reason {
            SkipReason::ForeignOwner { owner, uid } => {
                Error::ForeignSocket { path: miss.path, owner, pid, uid }
            }
            SkipReason::NotASocket => Error::NotASocket { operation, path: miss.path },
            SkipReason::Unreadable(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Error::PermissionDenied { operation, path: miss.path }
            }
            SkipReason::Unreadable(source) | SkipReason::EnvironmentUnreadable(source) => {
                Error::Io { operation, address: Address::Unix(miss.path), source }
            }
            SkipReason::Stale => Error::NoSuchProcess { pid },
        }),
    }
}

/// The name of a process, as the existing tools show it: the program's file name where the kernel has cut it short.
pub fn process_name(pid: u32) -> Result<String, Error> {
    read(pid).map(|process| process.name())
}

/// The arguments with which a process was started, its program first.
pub fn command_line(pid: u32) -> Result<Vec<OsString>, Error> {
    read(pid)?.command_line().map_err(|error| process_error(pid, "cmdline", error))
}

/// The start time of a process as the name of its socket has it ([`SocketName::key`]).
pub fn start_key(pid: u32) -> Result<u64, Error> {
    read(pid)?.start_key().map_err(|error| process_error(pid, "stat", error))
}

fn read(pid: u32) -> Result<Process, Error> {
    Process::read(pid)
        .map_err(|error| process_error(pid, "status", error))?
        .ok_or(Error::NoSuchProcess { pid })
}

fn process_error(pid: u32, file: &str, source: io::Error) -> Error {
    let (operation, path) = (Operation::Find, PathBuf::from(format!("/proc/{pid}/{file}")));
    match source.kind() {
        io::ErrorKind::NotFound => Error::NoSuchProcess { pid },
        io::ErrorKind::PermissionDenied => Error::PermissionDenied { operation, path },
        _ => Error::Io { operation, address: Address::Unix(path), source },
    }
}
