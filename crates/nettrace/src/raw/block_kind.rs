//! The kinds of blocks.

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BlockKind {
    /// Events; in netperf also the definitions of their kinds.
    Event,
    /// Definitions of kinds of events.
    Metadata,
    /// A point that divides older events from newer ones.
    SequencePoint,
    /// Call stacks.
    Stack,
    /// V6: descriptions of threads.
    Thread,
    /// V6: threads that no later event refers to.
    RemoveThread,
    /// V6: lists of labels.
    LabelList,
    /// A kind that this crate does not know, or of a version that only newer readers can read.
    Unknown,
}
