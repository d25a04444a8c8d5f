//! The place of a block in the available bytes.

use super::BlockKind;

/// A block in the available bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: BlockKind,
    /// Start of its content.
    pub(crate) start: usize,
    /// End of its content. In a cut recording it can lie past the last byte.
    pub(crate) end: usize,
    /// Start of the next block.
    pub(crate) next: usize,
}

/// The outcome of parsing bytes that may not all be there yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanResult<T> {
    Found(T),
    /// At least this many more bytes are needed.
    NeedMore(usize),
    /// The bytes do not belong to the format, and why.
    Invalid(&'static str),
}

/// Maximum size of a block, in bytes. Runtimes write blocks of a few hundred kilobytes. A larger size is
/// damage: a stream must not make its reader hold arbitrary amounts of memory.
pub(crate) const MAX_BLOCK_SIZE: usize = 256 << 20;
