//! How blocks lie in a recording: what the bytes begin with, and where each block begins and ends.

pub(crate) mod fast_serialization;
pub(crate) mod v6;

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Event,
    Metadata,
    SequencePoint,
    Stack,
    Thread,
    RemoveThread,
    LabelList,
    /// Whatever a later version writes: skipped by its size.
    Unknown,
}

/// A block in the bytes at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: BlockKind,
    /// Where its content begins.
    pub(crate) start: usize,
    /// Where its content ends. In a cut recording that can lie behind the last byte.
    pub(crate) end: usize,
    /// Where the next block begins.
    pub(crate) next: usize,
}

/// The outcome of looking for something in bytes that may not all be there yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanResult<T> {
    Found(T),
    /// At least this many more bytes are needed.
    NeedMore(usize),
    /// The bytes cannot be what was looked for, and why.
    Invalid(&'static str),
}

/// No runtime writes blocks of more than a few hundred kilobytes. Beyond this size the size itself is taken for damage, so
/// that a stream cannot make its reader hold any amount of memory.
pub(crate) const LARGEST_BLOCK: usize = 256 << 20;
