//! The pipes of processes: `\\.\pipe\dotnet-diagnostic-{pid}`.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;

use super::process_error;
use crate::sys::{self, Process};
use crate::{Discovery, Endpoint, Error, Operation, SkipReason};

const PIPES: &str = r"\\.\pipe\";

fn pipe_name(pid: u32) -> String {
    format!("dotnet-diagnostic-{pid}")
}

pub(super) fn discover() -> Discovery {
    let mut discovery = Discovery::default();
    match sys::processes() {
        Ok(processes) => {
            let existing = existing_pipes();
            let with_pipe = processes.iter().filter(|process| existing.contain(process.pid));
            discovery.endpoints.extend(with_pipe.map(endpoint));
        }
        Err(error) => discovery.skip(None, "the list of processes".into(), SkipReason::Unreadable(error)),
    }
    discovery
}

/// The names of all pipes. If the system does not list them (Wine), each name is tried.
enum ExistingPipes {
    Listed(HashSet<OsString>),
    Unlisted,
}

fn existing_pipes() -> ExistingPipes {
    let Ok(entries) = fs::read_dir(PIPES) else { return ExistingPipes::Unlisted };
    let names: HashSet<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    // An empty list means that the machine does not show its pipes.
    if names.is_empty() { ExistingPipes::Unlisted } else { ExistingPipes::Listed(names) }
}

impl ExistingPipes {
    fn contain(&self, pid: u32) -> bool {
        let name = pipe_name(pid);
        match self {
            Self::Listed(names) => names.contains(std::ffi::OsStr::new(&name)),
            Self::Unlisted => sys::pipe_exists(&name),
        }
    }
}

fn endpoint(process: &Process) -> Endpoint {
    Endpoint {
        pid: process.pid,
        namespace_pid: process.pid,
        key: 0,
        path: format!("{PIPES}{}", pipe_name(process.pid)).into(),
        uid: None,
        name: name(process),
    }
}

/// Returns the name as in the existing tools.
fn name(process: &Process) -> String {
    let program = &process.program;
    match program.split_at_checked(program.len().saturating_sub(4)) {
        Some((name, suffix)) if suffix.eq_ignore_ascii_case(".exe") => name.to_owned(),
        _ => program.clone(),
    }
}

pub(super) fn find(pid: u32) -> Result<Endpoint, Error> {
    let process = read(pid)?;
    if sys::pipe_exists(&pipe_name(pid)) {
        return Ok(endpoint(&process));
    }
    Err(Error::NoEndpoint { pid, name: name(&process), directory: PIPES.into() })
}

pub(super) fn process_name(pid: u32) -> Result<String, Error> {
    read(pid).map(|process| name(&process))
}

pub(super) fn command_line(pid: u32) -> Result<Vec<OsString>, Error> {
    read(pid)?;
    let address = crate::Address::Pipe(pipe_name(pid));
    Err(Error::Unsupported { operation: Operation::Find, address })
}

/// Returns 0: the names of pipes do not contain a start time.
pub(super) fn start_key(pid: u32) -> Result<u64, Error> {
    read(pid).map(|_| 0)
}

fn read(pid: u32) -> Result<Process, Error> {
    let processes = sys::processes().map_err(|error: io::Error| process_error(pid, "", error))?;
    processes.into_iter().find(|process| process.pid == pid).ok_or(Error::NoSuchProcess { pid })
}
