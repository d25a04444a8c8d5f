//! The error of a runtime that cannot be started.

use dipc_wire::EncodeError;
use std::io;
use std::path::PathBuf;

/// A simulated runtime could not be started.
///
/// Messages contain the cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The socket cannot be created, or the start time of the process cannot be read.
    #[error(transparent)]
    Transport(#[from] dipc_transport::Error),
    /// A string of the identity is too long for a reply, or contains NUL.
    #[error("the reply to {command} cannot be sent: {reason}")]
    #[non_exhaustive]
    Reply {
        /// The command that is answered by the reply.
        command: &'static str,
        /// The encoder's error.
        reason: EncodeError,
    },
    /// The recording cannot be played as configured.
    #[error("the recording cannot be replayed in this way: {reason}")]
    #[non_exhaustive]
    Recording {
        /// The error of the recording's reader, or the property that the recording lacks.
        reason: String,
    },
    /// [`Fault::ForeignOwner`](crate::Fault::ForeignOwner) cannot give the socket to another user.
    #[error("{}: cannot give the socket to another user: {reason}", .path.display())]
    #[non_exhaustive]
    Owner {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// The system starts no more threads.
    #[error("{}: cannot start a thread: {reason}", .path.display())]
    #[non_exhaustive]
    Thread {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
}

/// The reason why a recording cannot be played as configured.
#[derive(Clone, Debug)]
pub(crate) struct UnsupportedRecording(pub(crate) String);

impl From<&UnsupportedRecording> for Error {
    fn from(unsupported: &UnsupportedRecording) -> Self {
        Self::Recording { reason: unsupported.0.clone() }
    }
}
