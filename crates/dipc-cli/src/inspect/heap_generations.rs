//! The generations of a heap, as a table and as JSON.

use clr_dump::GenerationContents;
use serde::Serialize;

use crate::render::table::{Align, Columns};
use crate::render::units;

/// Returns the name of a generation by its number in the runtime: that of options and of JSON.
pub(crate) const fn generation_key(number: u64) -> &'static str {
    match number {
        0 => "0",
        1 => "1",
        2 => "2",
        3 => "loh",
        4 => "poh",
        5 => "frozen",
        _ => "unknown",
    }
}

/// Returns the name of a generation in a table.
pub(crate) const fn generation_text(number: u64) -> &'static str {
    match number {
        3 => "LOH",
        4 => "POH",
        _ => generation_key(number),
    }
}

/// A generation as JSON.
#[derive(Debug, Serialize)]
#[allow(clippy::struct_field_names, reason = "the fields of the JSON object")]
pub(crate) struct GenerationRow {
    generation: &'static str,
    /// The number of the heap of a server's collector; missing of sums.
    #[serde(skip_serializing_if = "Option::is_none")]
    heap: Option<u32>,
    objects: u64,
    /// Bytes of the objects.
    bytes: u64,
    /// The number of free blocks between objects.
    free_blocks: u64,
    free_bytes: u64,
    /// Bytes up to the last objects of the regions.
    region_bytes: u64,
    committed_bytes: u64,
    regions: u64,
}

impl GenerationRow {
    /// The sum of the generation of all heaps.
    pub(crate) const fn of_sum(of: &GenerationContents) -> Self {
        Self {
            generation: generation_key(of.generation),
            heap: None,
            objects: of.objects.objects,
            bytes: of.objects.bytes,
            free_blocks: of.free.objects,
            free_bytes: of.free.bytes,
            region_bytes: of.bytes,
            committed_bytes: of.committed_bytes,
            regions: of.regions,
        }
    }

    /// The generation of a heap of a server's collector.
    pub(crate) const fn of_heap(of: &GenerationContents) -> Self {
        Self { heap: Some(of.heap), ..Self::of_sum(of) }
    }
}

/// The table of generations. A column has the number of the heap, if `has_heaps`.
pub(crate) fn table(generations: &[GenerationContents], has_heaps: bool) -> String {
    use Align::{Left, Right};
    let heap = has_heaps.then_some(("HEAP", Right));
    let columns = [
        ("GENERATION", Left),
        ("BYTES", Right),
        ("OBJECTS", Right),
        ("FREE", Right),
        ("FREE %", Right),
        ("COMMITTED", Right),
        ("REGIONS", Right),
    ];
    let columns: Vec<_> = heap.into_iter().chain(columns).collect();
    let mut table = Columns::new(columns);
    for of in generations {
        let cells = [
            generation_text(of.generation).to_owned(),
            units::bytes(of.objects.bytes),
            units::count(of.objects.objects),
            units::bytes(of.free.bytes),
            format!("{:.0}%", units::share(of.free.bytes, of.bytes)),
            units::bytes(of.committed_bytes),
            units::count(of.regions),
        ];
        table.row(has_heaps.then(|| of.heap.to_string()).into_iter().chain(cells));
    }
    table.fitted(&["REGIONS", "FREE %", "COMMITTED"])
}
