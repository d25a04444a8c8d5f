use std::io;
use std::path::PathBuf;

/// Why a simulated runtime could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The socket could not be made, or the process's own start time not be read.
    #[error(transparent)]
    Transport(#[from] dipc_transport::Error),
    /// A string is too long to be sent, or has NUL in it.
    #[error("the reply to {command} cannot be sent: {source}")]
    Reply {
        /// Whose reply.
        command: &'static str,
        /// Why.
        source: dipc_wire::EncodeError,
    },
    /// The recording cannot be played as it should be.
    #[error("the recording cannot be replayed in this way: {reason}")]
    Recording {
        /// Why.
        reason: String,
    },
    /// The socket cannot be made another user's, as a fault has it.
    #[error("{}: cannot give the socket to another user: {source}", .path.display())]
    Owner {
        /// The socket.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The system does not give another thread.
    #[error("{}: cannot start a thread: {source}", .path.display())]
    Thread {
        /// The socket.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}
