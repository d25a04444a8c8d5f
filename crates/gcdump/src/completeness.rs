//! Completeness of a graph.

/// The known missing parts of a graph, and the faults of its source.
///
/// ```
/// # use gcdump::{MemoryGraphBuilder, MemoryType, RootKind};
/// # let mut builder = MemoryGraphBuilder::new(8, Some(4711));
/// # builder.add_module(1, "/app/shop.dll");
/// # for (id, name) in [(2, "Shop.Row"), (3, "Shop.Table")] {
/// #     builder.add_type(MemoryType { id, module_id: 1, name, whole_name: name, is_array: false });
/// # }
/// # builder.add_object(0x1000, 3, 32);
/// # builder.add_reference(0x1020);
/// # builder.add_object(0x1020, 2, 24);
/// # builder.add_root(RootKind::StrongHandle, 0x1000);
/// # let graph = builder.finish()?;
/// let completeness = graph.completeness();
/// if !completeness.is_complete() {
///     eprintln!("{} events were lost, cut: {}", completeness.lost_events, completeness.is_cut);
/// }
/// assert!(completeness.is_complete());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Completeness {
    /// Events that the runtime lost, in the whole recording.
    pub lost_events: u64,
    /// The recording ends before the collection does.
    pub is_cut: bool,
    /// Gaps and repetitions in the numbers of the events with objects.
    pub object_gaps: u64,
    /// Gaps and repetitions in the numbers of the events with references.
    pub reference_gaps: u64,
    /// Gaps and repetitions in the numbers of the events with roots.
    pub root_gaps: u64,
    /// Objects with unknown references: objects after a gap, and objects for which no more references
    /// arrived.
    pub objects_without_references: u64,
    /// References without an object.
    pub unused_references: u64,
    /// References to objects that are not in the dump.
    pub dangling_references: u64,
    /// Objects of types that are not described: another session that ran at the same time made the runtime
    /// describe them earlier.
    pub objects_of_unknown_types: u64,
    /// The number of those types.
    pub unknown_types: u64,
    /// Objects that were received a second time and left out.
    pub repeated_objects: u64,
    /// Addresses that no object can have, and addresses that exceed the graph's capacity.
    pub invalid_addresses: u64,
    /// Objects and references that exceed the graph's capacity: 4,294,967,294 of each.
    pub over_limit: u64,
    /// Events that end before their fields do.
    pub invalid_events: u64,
    /// Wrappers of COM objects, which are not in the graph.
    pub com_wrappers: u64,
    /// Other processes with dumps in the recording but not in the graph; at most a thousand are counted.
    pub other_processes: u64,
    /// Bytes of the heap that could not be read from memory.
    pub missing_bytes: u64,
    /// A collection was moving objects while memory was read or dumped: objects can be missing or counted
    /// twice.
    pub is_moving: bool,
    /// Objects that words of stacks point into. Not each of these words is a local variable that is in use:
    /// objects can seem to be alive that are not.
    pub conservative_roots: u64,
    /// Threads with unknown local variables: they ran managed code, and their registers could not be read.
    pub stacks_without_roots: u64,
    /// Threads with more references on their stacks than are read: local variables of outer frames are
    /// missing.
    pub truncated_stacks: u64,
    /// Kinds of roots that could not be read from memory.
    pub missing_roots: u64,
}

impl Completeness {
    /// Returns true if the graph has every object with its references and its type.
    ///
    /// References to objects that are not in the dump occur in complete dumps, too: objects of collectible
    /// types refer to theirs.
    pub const fn is_complete(&self) -> bool {
        !self.is_cut
            && self.lost_events == 0
            && self.object_gaps == 0
            && self.reference_gaps == 0
            && self.root_gaps == 0
            && self.objects_without_references == 0
            && self.unused_references == 0
            && self.objects_of_unknown_types == 0
            && self.repeated_objects == 0
            && self.invalid_addresses == 0
            && self.over_limit == 0
            && self.invalid_events == 0
            && self.missing_bytes == 0
            && !self.is_moving
            && self.missing_roots == 0
            && self.truncated_stacks == 0
    }
}
