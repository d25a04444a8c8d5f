//! Named pipes, with overlapped input and output: each step waits for its own completion, the deadline and
//! the canceller together.

mod acceptor;
mod connect;
mod event;
mod pipe;
mod processes;
mod security;
mod stream;
mod watcher;

use std::fs::File;
use std::io;
use std::path::Path;

use crate::ProcessState;
pub(crate) use crate::checked_folder::CheckedFolder as FolderBelow;
use crate::refusal::{is_device, refused};

pub(crate) use acceptor::Acceptor;
pub(crate) use connect::{connect, pipe_exists};
pub(crate) use processes::{Process, processes};
pub(crate) use stream::Stream;
pub(crate) use watcher::{ListeningSocket, Socket, Watcher};

/// Returns `None`: Windows does not number users.
pub(crate) fn effective_uid() -> Option<u32> {
    None
}

/// Opens a file, unless its name is a device name, and checks that it is a regular file.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    if is_device(&path.file_name().unwrap_or_default().to_string_lossy()) {
        return Err(refused("it has the name of a device"));
    }
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(refused("not a regular file"));
    }
    Ok(file)
}

/// Opens the file as [`open_regular`] does: Windows does not have automount points. The caller refuses paths
/// of other machines.
pub(crate) fn open_untrusted(path: &Path) -> io::Result<File> {
    open_regular(path)
}

/// Has a link at the end of a path opened itself, which is not a regular file.
pub(crate) fn refuse_links(options: &mut std::fs::OpenOptions) {
    const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
    std::os::windows::fs::OpenOptionsExt::custom_flags(options, FILE_FLAG_OPEN_REPARSE_POINT);
}

/// Closes a file. The error is not available.
pub(crate) fn close(file: File) -> io::Result<()> {
    drop(file);
    Ok(())
}

/// Returns false: the number of names is not known.
pub(crate) const fn has_other_names(_file: &std::fs::Metadata) -> bool {
    false
}

/// Returns whether the process exists; nothing else is known.
pub(crate) fn process_state(pid: u32) -> io::Result<ProcessState> {
    let lives = processes()?.iter().any(|process| process.pid == pid);
    Ok(if lives { ProcessState::Running } else { ProcessState::Gone })
}

/// Returns `None`: memory is exhausted before any limit is reached.
pub(crate) fn descriptor_limits() -> Option<(Option<u64>, Option<u64>)> {
    None
}

pub(crate) fn set_descriptor_limit(_current: u64, _maximum: Option<u64>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn limit_child_descriptors(
    _command: &mut std::process::Command,
    _current: u64,
    _maximum: Option<u64>,
) {
}
