use std::path::PathBuf;
use std::sync::Arc;

use dipc_transport::Error;

/// Evidence about the diagnostic socket of a process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SocketEvidence {
    /// The socket exists and belongs to the process.
    Found {
        /// The socket, as reached from here.
        path: PathBuf,
    },
    /// The expected folder does not contain a socket.
    Missing {
        /// The folder, as reached from here.
        folder: PathBuf,
        /// The first reason that explains it.
        reason: MissingSocketReason,
    },
    /// The file cannot be reached, is not a socket, or was not made by the process.
    Rejected(Arc<Error>),
    /// Processes listen that are not visible from here, such as those of another container with the same
    /// folder.
    ProcessNotVisible {
        /// The number of sockets.
        count: usize,
        /// One of the sockets.
        example: PathBuf,
    },
}

/// The reason why a diagnostic socket is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingSocketReason {
    /// The runtime listens, but the file was removed.
    Removed {
        /// The path that it listens on.
        path: PathBuf,
        /// True if a failed dump request may have removed it.
        may_be_dump: bool,
    },
    /// The path was too long: the runtime cut it, and listens on the rest.
    Cut {
        /// The path that it listens on.
        path: PathBuf,
        /// The length of the whole path, in bytes.
        length: usize,
        /// Maximum length of a path, in bytes.
        limit: usize,
    },
    /// The runtime listens in another folder than its environment names.
    Elsewhere {
        /// The path that it listens on.
        path: PathBuf,
    },
    /// A setting disables the diagnostic port.
    Disabled {
        /// The variable and its value, `NAME=value`.
        setting: String,
    },
    /// The path would be too long for a socket.
    PathTooLong {
        /// The length of the path, in bytes.
        length: usize,
        /// Maximum length of a path, in bytes.
        limit: usize,
    },
    /// The folder does not exist.
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The folder is in a read-only file system.
    ReadOnly {
        /// The folder.
        path: PathBuf,
        /// The mount point of the file system.
        mount: String,
    },
    /// The cause is unknown.
    Unknown,
}

/// Evidence about sockets that ended processes left.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StaleSocketsEvidence {
    /// Sockets with the pid of the examined process and another start time.
    SamePid {
        /// The number of them.
        count: usize,
        /// Their folder.
        folder: PathBuf,
    },
    /// Sockets of processes that no longer exist.
    Ended {
        /// The number of them.
        count: usize,
        /// One of the sockets.
        example: PathBuf,
    },
}
