//! The layouts of blocks and rows.

/// The layout of blocks and rows, which is the same for several versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// Versions 1 to 3: events are not numbered, and their stacks follow them.
    Netperf,
    /// Versions 4 and 5: stacks by id, activities in the rows.
    V4,
    /// Version 6: threads, stacks and labels by id.
    V6,
}
