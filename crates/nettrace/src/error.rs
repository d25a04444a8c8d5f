//! What makes reading impossible.

use alloc::vec::Vec;

/// The bytes are no recording that can be read, or could not be had.
///
/// A cut or damaged recording is not an error: see [`Damage`](crate::Damage) and `truncated_at()`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is not one byte.
    #[error("the recording is empty")]
    Empty,
    /// The first bytes belong to no format that this crate reads.
    #[error("not a nettrace or netperf recording: it begins with {begins:02x?}")]
    NotATrace {
        /// The first bytes, at most 8.
        begins: Vec<u8>,
    },
    /// The recording says that only newer readers can read it.
    #[error(
        "nettrace version {major}.{minor} at offset {offset} is newer than this reader, which reads up to version 6"
    )]
    UnsupportedVersion {
        /// Major version of the recording.
        major: u32,
        /// Minor version of the recording.
        minor: u32,
        /// Where the version stands.
        offset: u64,
    },
    /// The header, without which no event can be read, makes no sense.
    #[error("bad trace header at offset {offset}: {what}")]
    BadHeader {
        /// Where it goes wrong.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// Reading failed. The message includes `error`, so [`source`](core::error::Error::source) does not return it.
    #[cfg(feature = "std")]
    #[error("reading failed at offset {offset}: {error}")]
    Io {
        /// Bytes read before the failure.
        offset: u64,
        /// The reader's error.
        error: std::io::Error,
    },
}
