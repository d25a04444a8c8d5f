//! Errors.

/// The reason why there is no graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The events have no collection with a heap dump.
    #[error(
        "the recording has no heap dump: no collection that was forced for one (keywords GC, Type, GCHeapDump, GCHeapCollect)"
    )]
    NoDump,
    /// The events of the dump have no objects.
    #[error("the heap dump has no objects: its events were lost, or the recording was cut")]
    NoObjects,
    /// The bytes are no `.gcdump` file.
    #[error("no .gcdump file: {0}")]
    NotGcDump(&'static str),
    /// The file does not fit its own description.
    #[error("damaged .gcdump file: at byte {offset}: {problem}")]
    Damaged {
        /// The place, in bytes from the file's start.
        offset: u64,
        /// The fault there.
        problem: &'static str,
    },
    /// The file has a version or a layout that is not supported.
    #[error("unsupported .gcdump file: {0}")]
    Unsupported(&'static str),
    /// The graph is too large for a `.gcdump` file.
    #[error("the graph is too large for a .gcdump file, which can have 2 GB of objects' records: {0}")]
    TooLarge(&'static str),
}
