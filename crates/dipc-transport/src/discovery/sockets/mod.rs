//! The sockets of processes, each found by the only name that a process's socket can have.

mod directory;
mod locate;

use std::ffi::OsString;
use std::io;

use self::directory::{Directories, SocketDirectory};
use self::locate::Rejection;
use super::process_error;
use crate::sys::{self, NamespaceView, Process, SocketLocation};
use crate::{Address, Discovery, Endpoint, Error, Operation, SkipReason, SocketName};

pub(super) fn discover() -> Discovery {
    let mut discovery = Discovery::default();
    let pids = match sys::process_ids() {
        Ok(pids) => pids,
        Err(error) => {
            discovery.skip(None, "/proc".into(), SkipReason::Unreadable(error));
            return discovery;
        }
    };
    let viewpoint = NamespaceView::new();
    let mut directories = Directories::default();
    // The pid of a process may differ in its own namespace. Checking that takes a look at most processes of
    // the machine, but few directories have a socket of a process that is not found without the check.
    let is_foreign = |pid, directory: &SocketDirectory| {
        directory.has_unclaimed() && viewpoint.namespace_pid(pid).is_none()
    };
    let mut undecided = Vec::new();
    for pid in pids {
        let Some(location) = viewpoint.socket_location(pid) else { continue };
        let directory = directories.open(&location);
        if location.environment_error.is_some() || directory.may_hold(pid) {
            discovery.examine(pid, location, directory);
        } else if location.is_shared {
            undecided.push((pid, location));
        } else if is_foreign(pid, directory) {
            // Not later: its directory is an open descriptor.
            discovery.examine(pid, location, directory);
        }
    }
    for (pid, location) in undecided {
        let directory = directories.open(&location);
        if is_foreign(pid, directory) {
            discovery.examine(pid, location, directory);
        }
    }
    discovery.endpoints.sort_by_key(|endpoint| endpoint.pid);
    discovery.skipped.sort_by_key(|skipped| skipped.pid);
    for (path, error) in directories.take_unreadable() {
        discovery.skip(None, path, SkipReason::Unreadable(error));
    }
    for path in directories.unclaimed() {
        discovery.skip(None, path, SkipReason::Stale);
    }
    discovery
}

impl Discovery {
    fn examine(&mut self, pid: u32, location: SocketLocation, directory: &mut SocketDirectory) {
        // A process with an unreadable status is hidden on purpose, or has ended.
        let Ok(Some(process)) = Process::read(pid) else { return };
        if directory.may_hold(process.namespace_pid) {
            match locate::locate(&process, &location.directory) {
                Ok(Some(endpoint)) => {
                    directory.claim(SocketName { pid: endpoint.namespace_pid, key: endpoint.key });
                    self.endpoints.push(endpoint);
                    return;
                }
                Ok(None) => {}
                Err(Rejection { name, path, reason }) => {
                    if let Some(name) = name {
                        directory.claim(name);
                    }
                    self.skip(Some(process.pid), path, reason);
                    return;
                }
            }
        }
        if let Some(error) = location.environment_error {
            self.skip(Some(process.pid), location.directory, SkipReason::EnvironmentUnreadable(error));
        }
    }
}

pub(super) fn find(pid: u32) -> Result<Endpoint, Error> {
    let process = read(pid)?;
    let location = NamespaceView::new().socket_location(pid).ok_or(Error::NoSuchProcess { pid })?;
    let operation = Operation::Find;
    match locate::locate(&process, &location.directory) {
        Ok(Some(endpoint)) => Ok(endpoint),
        Ok(None) => match &location.environment_error {
            Some(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let file = location.unreadable_file();
                Err(Error::PermissionDenied { operation, path: format!("/proc/{pid}/{file}").into() })
            }
            _ => Err(Error::NoEndpoint { pid, name: process.name(), directory: location.directory }),
        },
        Err(rejection) => Err(match rejection.reason {
            SkipReason::ForeignOwner { owner, uid } => {
                Error::ForeignSocket { path: rejection.path, owner, pid, uid }
            }
            SkipReason::NotASocket => Error::NotASocket { operation, path: rejection.path },
            SkipReason::Unreadable(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Error::PermissionDenied { operation, path: rejection.path }
            }
            SkipReason::Unreadable(reason) | SkipReason::EnvironmentUnreadable(reason) => {
                Error::Io { operation, address: Address::Unix(rejection.path), reason }
            }
            SkipReason::Stale => Error::NoSuchProcess { pid },
        }),
    }
}

pub(super) fn process_name(pid: u32) -> Result<String, Error> {
    read(pid).map(|process| process.name())
}

pub(super) fn command_line(pid: u32) -> Result<Vec<OsString>, Error> {
    read(pid)?.command_line().map_err(|error| process_error(pid, "cmdline", error))
}

pub(super) fn start_key(pid: u32) -> Result<u64, Error> {
    read(pid)?.start_key().map_err(|error| process_error(pid, "stat", error))
}

fn read(pid: u32) -> Result<Process, Error> {
    Process::read(pid).map_err(|error| process_error(pid, "status", error))?.ok_or_else(|| {
        if Process::is_kernel_thread(pid) {
            Error::KernelThread { pid }
        } else {
            Error::NoSuchProcess { pid }
        }
    })
}
