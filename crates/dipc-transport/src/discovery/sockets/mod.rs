//! The sockets of processes, each found by the one name that the socket of a process must have.

mod directory;
mod locate;

use std::ffi::OsString;
use std::io;

use self::directory::Directories;
use super::process_error;
use crate::sys::{self, NamespaceView, Process};
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
    for pid in pids {
        discovery.examine(&viewpoint, pid, &mut directories);
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
    fn examine(&mut self, viewpoint: &NamespaceView, pid: u32, directories: &mut Directories) {
        let Some(location) = viewpoint.socket_location(pid) else { return };
        let directory = directories.open(&location.listing_path(), &location.directory);
        // The status takes longer than all other reads together, and most processes have no socket.
        let is_without = viewpoint.namespace_pid(pid).is_some_and(|it| !directory.may_hold(it));
        if is_without && location.environment_error.is_none() {
            return;
        }
        // A process whose status is unreadable is hidden on purpose, or has ended.
        let Ok(Some(process)) = Process::read(pid) else { return };
        let missing = if directory.may_hold(process.namespace_pid) {
            match locate::locate(&process, &location.directory) {
                Ok(Some(endpoint)) => {
                    directory.claim(SocketName { pid: endpoint.namespace_pid, key: endpoint.key });
                    self.endpoints.push(endpoint);
                    return;
                }
                Ok(None) => None,
                Err(rejection) => Some(rejection),
            }
        } else {
            None
        };
        match (missing, location.environment_error) {
            (Some(rejection), _) => {
                if let Some(name) = rejection.name {
                    directory.claim(name);
                }
                self.skip(Some(process.pid), rejection.path, rejection.reason);
            }
            (None, Some(error)) => {
                let path = location.directory;
                self.skip(Some(process.pid), path, SkipReason::EnvironmentUnreadable(error));
            }
            (None, None) => {}
        }
    }
}

pub(super) fn find(pid: u32) -> Result<Endpoint, Error> {
    let process = read(pid)?;
    let location = NamespaceView::new().socket_location(pid).ok_or(Error::NoSuchProcess { pid })?;
    let operation = Operation::Find;
    match locate::locate(&process, &location.directory) {
        Ok(Some(endpoint)) => Ok(endpoint),
        Ok(None) => match location.environment_error {
            Some(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(Error::PermissionDenied { operation, path: format!("/proc/{pid}/environ").into() })
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
    Process::read(pid)
        .map_err(|error| process_error(pid, "status", error))?
        .ok_or(Error::NoSuchProcess { pid })
}
