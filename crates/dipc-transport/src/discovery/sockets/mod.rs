//! The sockets of processes: from each process to the one name that its socket must have.

mod directory;
mod locate;

use std::ffi::OsString;
use std::io;

use self::directory::Directories;
use super::process_error;
use crate::sys::{self, Process, Viewpoint};
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
        let directory = directories.open(&place.listing_path(), &place.directory);
        let missing = if directory.may_hold(process.namespace_pid) {
            match locate::locate(process, &place.directory) {
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
}

pub(super) fn find(pid: u32) -> Result<Endpoint, Error> {
    let process = read(pid)?;
    let place = Viewpoint::new().socket_place(&process);
    let operation = Operation::Find;
    match locate::locate(&process, &place.directory) {
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
