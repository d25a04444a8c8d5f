//! The error type of reading.

use alloc::vec::Vec;
use core::fmt;

/// The bytes are not a readable recording, or reading them failed.
///
/// A cut or damaged recording is not an error: see [`Damage`](crate::Damage) and `truncated_at()`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input is empty.
    #[error("the recording is empty")]
    Empty,
    /// The first bytes belong to no format that this crate reads.
    #[error("not a nettrace or netperf recording: it begins with {}", Bytes(begins))]
    NotATrace {
        /// The first bytes, at most 8.
        begins: Vec<u8>,
    },
    /// Only newer readers can read the recording.
    #[error(
        "nettrace version {major}.{minor} at offset {offset} is newer than this reader, which reads up to version 6"
    )]
    UnsupportedVersion {
        /// Major version of the recording.
        major: u32,
        /// Minor version of the recording.
        minor: u32,
        /// Offset of the version in the recording.
        offset: u64,
    },
    /// The header, without which no event can be read, is damaged.
    #[error("bad trace header at offset {offset}: {what}")]
    BadHeader {
        /// Offset of the damage in the recording.
        offset: u64,
        /// The fault.
        what: &'static str,
    },
    /// Reading failed. The message includes that of `error`.
    #[cfg(feature = "std")]
    #[error("reading failed at offset {offset}: {error}")]
    Io {
        /// Bytes read before the failure.
        offset: u64,
        /// The reader's error.
        error: std::io::Error,
    },
}

impl Error {
    /// Returns whether the input had nothing to read in time
    /// ([`ErrorKind::TimedOut`](std::io::ErrorKind::TimedOut)). Nothing is lost: the call can be repeated.
    #[cfg(feature = "std")]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Io { error, .. } if error.kind() == std::io::ErrorKind::TimedOut)
    }

    #[cfg(not(feature = "std"))]
    #[allow(clippy::unused_self, reason = "the same call as with the standard library")]
    pub(crate) const fn is_timeout(&self) -> bool {
        false
    }
}

/// Bytes as text where they are text, else as hexadecimal numbers.
struct Bytes<'a>(&'a [u8]);

impl fmt::Display for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n');
        if self.0.iter().all(is_text) {
            return write!(f, "the text \"{}\"", self.0.escape_ascii());
        }
        f.write_str("the bytes")?;
        self.0.iter().try_for_each(|byte| write!(f, " {byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    #[cfg(feature = "std")]
    #[test]
    fn the_message_of_a_failed_read_has_the_cause_and_no_source_repeats_it() {
        let error = Error::Io { offset: 7, error: std::io::Error::other("the disk is gone") };
        assert_eq!(error.to_string(), "reading failed at offset 7: the disk is gone");
        assert!(core::error::Error::source(&error).is_none());
    }

    #[test]
    fn the_first_bytes_are_shown_escaped() {
        let says = |begins: &[u8]| Error::NotATrace { begins: begins.to_vec() }.to_string();
        let says = |begins| says(begins).rsplit_once("it begins with ").unwrap().1.to_string();
        assert_eq!(says(b"hello\n"), r#"the text "hello\n""#);
        assert_eq!(says(b"{\"a\": 1"), r#"the text "{\"a\": 1""#);
        assert_eq!(says(&[0x1f, 0x8b, 8, 0]), "the bytes 1f 8b 08 00");
        assert_eq!(says(b"\x1b[2J"), "the bytes 1b 5b 32 4a");
    }
}
