//! Errors.

/// The reason why a graph cannot be built, read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No collection in the events has a heap dump.
    #[error(
        "the recording has no heap dump: no collection that was forced for one (keywords GC, Type, GCHeapDump, GCHeapCollect)"
    )]
    NoDump,
    /// The heap dump does not contain objects.
    #[error("the heap dump has no objects: its events were lost, or the recording was cut")]
    NoObjects,
    /// The bytes are not a `.gcdump` file.
    #[error("not a .gcdump file: {0}")]
    NotGcDump(&'static str),
    /// The file contradicts itself.
    #[error("damaged .gcdump file: at byte {offset}: {problem}")]
    Damaged {
        /// The offset in bytes from the file's start.
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
