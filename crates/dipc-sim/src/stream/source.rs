//! A source of stream bytes.

use std::time::Duration;

/// The approximate number of bytes that a source adds in one call.
pub(super) const CHUNK_LEN: usize = 64 * 1024;

/// The bytes of one session's stream, in chunks.
pub(crate) trait Source {
    /// Adds the bytes due after `elapsed` to `out`, at most about [`CHUNK_LEN`]. `stopped` means that the
    /// session was stopped.
    fn next_chunk(&mut self, elapsed: Duration, stopped: bool, out: &mut Vec<u8>) -> Progress;
}

/// The state of a stream after a call of [`Source::next_chunk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Bytes were added.
    Written,
    /// More bytes follow, but none are due yet.
    Pending,
    /// More bytes follow once the session is stopped.
    AwaitingStop,
    /// The stream has ended.
    Ended,
}
