//! Named pipes, with overlapped input and output: each step waits for its own completion, the deadline and the
//! canceller at once.

mod acceptor;
mod connect;
mod event;
mod pipe;
mod processes;
mod security;
mod stream;
mod watcher;

use std::io;

use crate::ProcessState;

pub(crate) use acceptor::Acceptor;
pub(crate) use connect::{connect, pipe_exists};
pub(crate) use processes::{Process, processes};
pub(crate) use stream::Stream;
pub(crate) use watcher::{ListeningSocket, Socket, Watcher};

/// Users have no numbers here.
pub(crate) fn effective_uid() -> Option<u32> {
    None
}

/// Only whether there is such a process.
pub(crate) fn process_state(pid: u32) -> io::Result<ProcessState> {
    let lives = processes()?.iter().any(|process| process.pid == pid);
    Ok(if lives { ProcessState::Running } else { ProcessState::Gone })
}

/// There is no limit that a process could reach before its memory is full.
pub(crate) fn descriptor_limits() -> Option<(Option<u64>, Option<u64>)> {
    None
}

pub(crate) fn set_descriptor_limit(_current: u64, _maximum: Option<u64>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
