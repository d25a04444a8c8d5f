//! The report of a heap as JSON.

use clr_dump::HeapContents;
use gcdump::{Completeness, HeapReport, ReportRow};
use serde::Serialize;

use super::GroupingArg;
use crate::args::heap_paths::is_zero;
use crate::inspect::heap::Heap;
use crate::inspect::heap_generations::{GenerationRow, generation_key};
use crate::inspect::memory_use::MemoryUse;

/// A report as JSON.
#[derive(Serialize)]
pub(super) struct JsonReport<'a> {
    by: &'static str,
    /// The memory of the process or the core dump; null if the heap is not of its memory.
    memory: Option<MemoryUse>,
    /// The only generation that the objects are of; null for the whole heap.
    generation: Option<&'static str>,
    objects: u64,
    bytes: u64,
    references: u64,
    unreachable_objects: Option<u64>,
    unreachable_bytes: Option<u64>,
    complete: bool,
    missing: JsonMissing,
    /// All generations; null if they are not known.
    generations: Option<Vec<GenerationRow>>,
    rows: Vec<JsonRow<'a>>,
}

/// The missing parts of a heap, as JSON.
#[derive(Serialize)]
struct JsonMissing {
    cut: bool,
    lost_events: u64,
    object_events: u64,
    reference_events: u64,
    root_events: u64,
    objects_without_references: u64,
    unused_references: u64,
    dangling_references: u64,
    objects_of_unknown_types: u64,
    /// Threads with more references on their stacks than are read.
    #[serde(skip_serializing_if = "is_zero")]
    truncated_stacks: u64,
}

#[derive(Serialize)]
struct JsonRow<'a> {
    name: &'a str,
    csharp: &'a str,
    module: &'a str,
    objects: u64,
    bytes: u64,
    first_object_bytes: u64,
    retained_bytes: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    retains_more: bool,
}

impl<'a> JsonReport<'a> {
    pub(super) fn new(
        report: &'a HeapReport,
        heap: &Heap,
        by: GroupingArg,
        generation: Option<u64>,
        rows: usize,
    ) -> Self {
        let missing: &Completeness = heap.graph.completeness();
        let generations =
            |contents: &HeapContents| contents.sums().iter().map(GenerationRow::of_sum).collect();
        let row = |row: &'a ReportRow| JsonRow {
            name: &row.name,
            csharp: &row.csharp,
            module: &row.module,
            objects: row.objects,
            bytes: row.bytes,
            first_object_bytes: row.first_bytes,
            retained_bytes: row.retained_bytes,
            retains_more: row.retains_more,
        };
        Self {
            by: by.key(),
            memory: heap.memory,
            generation: generation.map(generation_key),
            objects: report.objects,
            bytes: report.bytes,
            references: report.references,
            unreachable_objects: report.unreachable.map(|unreachable| unreachable.objects),
            unreachable_bytes: report.unreachable.map(|unreachable| unreachable.bytes),
            complete: missing.is_complete(),
            missing: JsonMissing {
                cut: missing.is_cut,
                lost_events: missing.lost_events,
                object_events: missing.object_gaps,
                reference_events: missing.reference_gaps,
                root_events: missing.root_gaps,
                objects_without_references: missing.objects_without_references,
                unused_references: missing.unused_references,
                dangling_references: missing.dangling_references,
                objects_of_unknown_types: missing.objects_of_unknown_types,
                truncated_stacks: missing.truncated_stacks,
            },
            generations: heap.contents.as_ref().map(generations),
            rows: report.rows.iter().take(rows).map(row).collect(),
        }
    }
}
