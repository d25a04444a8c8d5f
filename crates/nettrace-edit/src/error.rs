//! Errors.

/// A reason why a recording could not be edited, or a stream not be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The recording could not be read.
    #[error("read: {0}")]
    Read(nettrace::Error),
    /// The new recording could not be encoded or written.
    #[error(transparent)]
    Write(nettrace_writer::Error),
    /// The recording ends before its header does.
    #[error("the recording has no header")]
    NoHeader,
    /// The requested version is older than the recording's, and cannot represent its content.
    #[error("the recording has version 6, and version 4 can hold only part of it")]
    OlderVersion,
}

impl From<nettrace::Error> for Error {
    fn from(error: nettrace::Error) -> Self {
        Self::Read(error)
    }
}

impl From<nettrace_writer::Error> for Error {
    fn from(error: nettrace_writer::Error) -> Self {
        match error {
            nettrace_writer::Error::Read(error) => Self::Read(error),
            error => Self::Write(error),
        }
    }
}
