//! What makes reading impossible.

use alloc::vec::Vec;

/// The bytes are no recording that can be read, or could not be had.
///
/// A cut or damaged recording is not an error: see [`Damage`](crate::Damage) and `truncated()`.
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
    /// Reading failed.
    #[cfg(feature = "std")]
    #[error("reading failed at offset {offset}: {source}")]
    Io {
        /// How many bytes had been read.
        offset: u64,
        /// Why.
        source: std::io::Error,
    },
}
