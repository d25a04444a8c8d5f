//! The heap by type in the overview of a core dump.

use std::fmt::Write as _;

use clr_dump::HeapStatistics;

use crate::exit::{Exit, Failure};
use crate::inspect::core_dump::{Analysis, type_text};
use crate::render::table::{Align, Columns};
use crate::render::units;

/// Reads the heap; a failure if the dump does not have it.
pub(super) fn read(analysis: &Analysis<'_>) -> Result<HeapStatistics, Failure> {
    let lacks = |why: &str| {
        Failure::new(Exit::Incomplete, format_args!("dump analyze: the heap is not in the dump: {why}"))
            .with_help("dipc dump -p PID --type heap writes a dump that has it")
    };
    let heap = analysis.names.heap_statistics().map_err(|missing| lacks(&missing.to_string()))?;
    if bytes(&heap) < missing_bytes(&heap) {
        let missing = units::bytes(missing_bytes(&heap));
        return Err(lacks(&format!("{missing} of it cannot be read")));
    }
    Ok(heap)
}

fn bytes(heap: &HeapStatistics) -> u64 {
    heap.types.iter().map(|of| of.amount.bytes).fold(heap.free.bytes, u64::saturating_add)
}

fn missing_bytes(heap: &HeapStatistics) -> u64 {
    heap.gaps.iter().map(|gap| gap.bytes).fold(0, u64::saturating_add)
}

/// The sums of a heap, and what is missing of it.
pub(super) fn summary(heap: &HeapStatistics) -> String {
    let objects = heap.types.iter().map(|of| of.amount.objects).fold(0, u64::saturating_add);
    let mut text = format!(
        "{} objects, {}, of {} types; {} free between them\n",
        units::count(objects),
        units::bytes(bytes(heap).saturating_sub(heap.free.bytes)),
        units::count(heap.types.len() as u64),
        units::bytes(heap.free.bytes)
    );
    if !heap.gaps.is_empty() {
        let _ = writeln!(text, "{} of the heap cannot be read", units::bytes(missing_bytes(heap)));
    }
    if heap.is_moving {
        text.push_str("A collection was moving objects: some can be missing or counted twice\n");
    }
    text
}

/// The types with the most bytes.
pub(super) fn table(heap: &HeapStatistics, rows: usize) -> String {
    use Align::{Left, Right};
    let mut columns = Columns::new([("BYTES", Right), ("OBJECTS", Right), ("MODULE", Left), ("TYPE", Left)]);
    for of in heap.types.iter().take(rows) {
        columns.row([
            units::bytes(of.amount.bytes),
            units::count(of.amount.objects),
            of.module.clone().unwrap_or_default(),
            type_text(of.name.as_deref(), of.type_handle),
        ]);
    }
    let mut text = columns.fitted(&["MODULE"]);
    let left = heap.types.len().saturating_sub(rows);
    if left > 0 {
        let _ = writeln!(text, "({left} more)");
    }
    text
}
