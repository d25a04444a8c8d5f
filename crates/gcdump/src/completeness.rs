//! Whether a graph is all of the heap.

/// The parts that are known to be missing in a graph, and the faults of its source.
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
    /// Objects whose references are unknown: those behind a gap, and those for which no more came.
    pub objects_without_references: u64,
    /// References for which there was no object.
    pub unused_references: u64,
    /// References to objects that are not in the dump.
    pub dangling_references: u64,
    /// Objects of types that are not described: a session that runs beside the dump's made the runtime describe them before.
    pub objects_of_unknown_types: u64,
    /// The number of those types.
    pub unknown_types: u64,
    /// Objects that came a second time, and were left out.
    pub repeated_objects: u64,
    /// Addresses that no object can have, and those beyond what a graph can hold.
    pub invalid_addresses: u64,
    /// Objects and references beyond what a graph can hold: 4,294,967,294 of each.
    pub over_limit: u64,
    /// Events that end before their fields do.
    pub invalid_events: u64,
    /// Wrappers of COM objects, which the graph does not have.
    pub com_wrappers: u64,
    /// Other processes whose dumps the recording has, which the graph does not have; at most a thousand are counted.
    pub other_processes: u64,
}

impl Completeness {
    /// Whether the graph has every object with its references and its type.
    ///
    /// References to objects that are not in the dump occur in whole ones, too: objects of collectible types refer to theirs.
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
    }
}
