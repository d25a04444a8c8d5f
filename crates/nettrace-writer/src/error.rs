//! Errors of writing.

/// A reason why a recording could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A block, or a thing in it, that is larger than the format can say.
    #[error("{what} of {size} bytes, more than the format can say ({limit})")]
    TooLarge {
        /// The thing.
        what: &'static str,
        /// The size of the item in bytes.
        size: u64,
        /// Maximum size.
        limit: u64,
    },
    /// More items than their numbers can distinguish.
    #[error("more than {limit} {what}, which have numbers of 32 bits")]
    TooMany {
        /// The things.
        what: &'static str,
        /// Maximum number.
        limit: u64,
    },
    /// Recordings that cannot be in one file.
    #[error("recordings of processes with addresses of {} and of {} bytes cannot be in one file", sizes.0, sizes.1)]
    PointerSizes {
        /// The sizes of an address in two of the recordings.
        sizes: (u8, u8),
    },
    /// The recording could not be read.
    #[error("read: {0}")]
    Read(nettrace::Error),
    /// The output could not be written.
    #[cfg(feature = "std")]
    #[error("write at offset {offset}: {error}")]
    Io {
        /// Offset in the new recording, in bytes.
        offset: u64,
        /// The operating system's error.
        error: std::io::Error,
    },
}

impl From<nettrace::Error> for Error {
    fn from(error: nettrace::Error) -> Self {
        Self::Read(error)
    }
}
