//! The heap by type, and the types that retain the most, in the overview of a core dump.

use std::fmt::Write as _;

use clr_dump::{AwaitChains, HeapStatistics, TypeHandle};
use gcdump::{Dominators, Grouping, HeapReport, ReportRow};
use serde::Serialize;

use crate::exit::Failure;
use crate::inspect::core_dump::Analysis;
use crate::inspect::core_heap;
use crate::inspect::core_text::type_text;
use crate::render::table::{Align, Columns};
use crate::render::units;

/// Maximum number of objects of a heap to compute retained sizes of for an overview: about a second.
const MAX_OBJECTS: u64 = 2_000_000;
/// The number of types to show with their retained memory.
const HOLDERS: usize = 4;

/// Reads the heap; a failure if the dump does not have it.
pub(super) fn read(analysis: &Analysis<'_>) -> Result<HeapStatistics, Failure> {
    let lacks = |why: &str| core_heap::lacks(analysis.source, why);
    let heap = analysis.dump.heap().statistics().map_err(|missing| lacks(&missing.to_string()))?;
    if heap.walk.is_mostly_missing() && !heap.walk.is_moving {
        let missing = units::bytes(heap.walk.missing_bytes());
        return Err(lacks(&format!("{missing} of it cannot be read")));
    }
    Ok(heap)
}

/// Returns sentences about the parts of a heap that could not be read.
pub(super) fn damage(analysis: &Analysis<'_>, heap: &HeapStatistics) -> Vec<String> {
    let mut lines = Vec::new();
    let missing = heap.walk.missing_bytes();
    if heap.walk.is_moving {
        lines.push(core_heap::moving(analysis.source, missing));
    } else if !heap.walk.gaps.is_empty() {
        lines.push(format!("{} of the heap cannot be read", units::bytes(missing)));
    }
    lines
}

/// The sums of a heap.
pub(super) fn summary(heap: &HeapStatistics) -> String {
    format!(
        "{} objects, {}, of {} types; {} free between them\n",
        units::count(heap.walk.objects.objects),
        units::bytes(heap.walk.objects.bytes),
        units::count(heap.types.len() as u64),
        units::bytes(heap.walk.free.bytes)
    )
}

/// The types with the most bytes.
pub(super) fn table(analysis: &Analysis<'_>, heap: &HeapStatistics, rows: usize) -> String {
    use Align::{Left, Right};
    let mut columns = Columns::new([("BYTES", Right), ("OBJECTS", Right), ("MODULE", Left), ("TYPE", Left)]);
    for of in heap.types.iter().take(rows) {
        columns.row([
            units::bytes(of.amount.bytes),
            units::count(of.amount.objects),
            of.module.clone().unwrap_or_default(),
            match &of.name {
                Some(name) => type_text(Some(name), 0),
                None => dynamic_or_address(analysis, of.type_handle),
            },
        ]);
    }
    let mut text = columns.fitted(&["MODULE"]);
    let left = heap.types.len().saturating_sub(rows);
    if left > 0 {
        let _ = writeln!(text, "({left} more)");
    }
    text
}

/// The text for a type without a name.
fn dynamic_or_address(analysis: &Analysis<'_>, type_handle: TypeHandle) -> String {
    analysis.dump.types().dynamic_name(type_handle).unwrap_or_else(|| type_handle.to_string())
}

/// The types that retain the most bytes.
pub(super) enum Holders {
    Rows(Vec<ReportRow>),
    /// The heap has too many objects for an overview.
    TooMany,
}

/// Computes the memory that types retain; `None` for a process, which runs on, and if the heap cannot be
/// read.
pub(super) fn holders(analysis: &Analysis<'_>, heap: &HeapStatistics) -> Option<Holders> {
    analysis.source.core()?;
    if heap.walk.objects.objects > MAX_OBJECTS {
        return Some(Holders::TooMany);
    }
    let graph = core_heap::read(analysis.source, None).ok()?.graph;
    let dominators = Dominators::new(&graph);
    let mut rows = HeapReport::new(&graph, Grouping::Type, Some(&dominators)).rows;
    rows.sort_by_key(|row| std::cmp::Reverse(row.retained_bytes));
    rows.truncate(HOLDERS);
    Some(Holders::Rows(rows))
}

/// Reads the chains of awaits; `None` of a large heap, which is read again for them.
pub(super) fn await_chains(analysis: &Analysis<'_>, heap: &HeapStatistics) -> Option<AwaitChains> {
    if heap.walk.objects.objects > MAX_OBJECTS || analysis.dump.runtime().is_native_aot() {
        return None;
    }
    analysis.dump.awaits().chains().ok()
}

/// The types that retain the most bytes, with their numbers of objects.
pub(super) fn holders_text(holders: Option<&Holders>) -> String {
    use Align::{Left, Right};
    match holders {
        None => String::new(),
        Some(Holders::TooMany) => {
            "Retained sizes: dump analyze CORE heap --sort retained (not computed here for so many objects)\n"
                .to_owned()
        }
        Some(Holders::Rows(rows)) => {
            let mut columns = Columns::new([
                ("RETAINED", Right),
                ("OBJECTS", Right),
                ("MODULE", Left),
                ("TYPES THAT RETAIN THE MOST", Left),
            ]);
            for row in rows {
                columns.row([
                    units::bytes(row.retained_bytes.unwrap_or_default()),
                    units::count(row.objects),
                    row.module.clone(),
                    row.csharp.clone(),
                ]);
            }
            columns.fitted(&["MODULE"])
        }
    }
}

/// A heap as JSON.
#[derive(Debug, Serialize)]
pub(super) struct HeapRow {
    objects: u64,
    bytes: u64,
    free_bytes: u64,
    /// Bytes of the heap that could not be read.
    missing_bytes: u64,
    /// True if a collection was moving objects: some can be missing or counted twice.
    moving: bool,
    /// The types, by descending bytes.
    types: Vec<TypeRow>,
}

#[derive(Debug, Serialize)]
struct TypeRow {
    /// Null if the dump lacks it.
    name: Option<String>,
    module: Option<String>,
    type_handle: String,
    objects: u64,
    bytes: u64,
}

pub(super) fn heap_row(heap: &HeapStatistics) -> HeapRow {
    let row = |of: &clr_dump::TypeStatistics| TypeRow {
        name: of.name.as_deref().map(|name| type_text(Some(name), 0)),
        module: of.module.clone(),
        type_handle: of.type_handle.to_string(),
        objects: of.amount.objects,
        bytes: of.amount.bytes,
    };
    HeapRow {
        objects: heap.walk.objects.objects,
        bytes: heap.walk.objects.bytes,
        free_bytes: heap.walk.free.bytes,
        missing_bytes: heap.walk.missing_bytes(),
        moving: heap.walk.is_moving,
        types: heap.types.iter().map(row).collect(),
    }
}

/// A type with its retained memory, as JSON.
#[derive(Debug, Serialize)]
pub(super) struct HolderRow {
    name: String,
    module: String,
    objects: u64,
    bytes: u64,
    retained_bytes: Option<u64>,
}

/// The types that retain the most; empty if not computed.
pub(super) fn holder_rows(holders: &Holders) -> Option<Vec<HolderRow>> {
    let Holders::Rows(rows) = holders else { return None };
    let row = |row: &ReportRow| HolderRow {
        name: row.csharp.clone(),
        module: row.module.clone(),
        objects: row.objects,
        bytes: row.bytes,
        retained_bytes: row.retained_bytes,
    };
    Some(rows.iter().map(row).collect())
}
