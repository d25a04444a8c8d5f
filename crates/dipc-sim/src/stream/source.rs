//! A source of stream bytes.

use std::time::Duration;

/// Bytes that a source adds in one call, about.
pub(super) const CHUNK_LEN: usize = 64 * 1024;

/// The bytes of one session's stream, in chunks.
pub(crate) trait Source {
    /// Adds the bytes due after `elapsed` to `out`, about [`CHUNK_LEN`] at most. `stopped` says that the session was stopped.
    fn next_chunk(&mut self, elapsed: Duration, stopped: bool, out: &mut Vec<u8>) -> Progress;
}

/// The state of a stream after a call of [`Source::next_chunk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Bytes were added.
    Written,
    /// More bytes follow, and none is due yet.
    Pending,
    /// More bytes follow once the session is stopped.
    AwaitingStop,
    /// The stream has ended.
    Ended,
}
