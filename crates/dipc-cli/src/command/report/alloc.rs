//! `dipc report FILE alloc`.

use std::fmt::Write as _;
use std::path::Path;

use nettrace_export::report::{Allocations, AllocationsReport};
use nettrace_export::{Metric, NameForm};

use crate::command::report::callers::caller_cell;
use crate::command::report::reading::{NamedReadingArgs, ReadPart, WithUserCode};
use crate::exit::Outcome;
use crate::inspect::needs;
use crate::render::frame_name::named;
use crate::render::table::{Align, Columns};
use crate::render::{charts, units};

pub(super) fn run(file: &Path, with: &WithUserCode<NamedReadingArgs>) -> Outcome {
    let args = &with.args;
    let mut allocations = Allocations::default();
    let (ReadPart { exit, .. }, callers) =
        with.read_kinds(file, &args.reading, (Allocations::needs, Metric::Alloc), |event| {
            allocations.add(event);
        })?;
    let mut report = allocations.finish();
    report.types.iter_mut().for_each(|row| row.from = callers.of_subject(&row.name));
    let report = Some(report).filter(|report| !report.is_empty());
    args.reading.show(
        (file, exit),
        &needs::ALLOCATIONS,
        report,
        |report, rows| report.types.truncate(rows),
        |report| table(report, args.reading.rows(), args.names.form()),
    )
}

fn table(report: &AllocationsReport, rows: usize, names: NameForm) -> String {
    use Align::{Left, Right};
    let mut columns = Columns::new([
        ("ALLOCATED", Right),
        ("%", Right),
        ("SAMPLES", Right),
        ("LARGE OBJECTS", Right),
        ("LARGEST", Right),
        ("FROM", Left),
        ("TYPE", Left),
    ]);
    for row in report.types.iter().take(rows) {
        let dash = |bytes: u64| if bytes == 0 { "-".to_owned() } else { units::bytes(bytes) };
        columns.row([
            units::bytes(row.bytes),
            units::percent(units::share(row.bytes, report.bytes)),
            units::count(row.samples),
            dash(row.large_bytes),
            dash(row.largest_object_bytes),
            caller_cell(row.from.as_ref()),
            named(names, &row.name, &row.csharp),
        ]);
    }
    let mut text = columns.fitted(&["LARGE OBJECTS", "LARGEST", "SAMPLES", "FROM"]);
    let left = report.types.len().saturating_sub(rows);
    if left > 0 {
        let _ = writeln!(text, "({left} more types)");
    }
    let _ = writeln!(
        text,
        "\n{} allocated, by {}; where: dipc convert FILE -f flamegraph --by alloc",
        units::bytes(report.bytes),
        units::counted(report.samples, "sample", "samples")
    );
    text.push_str(&charts::over_time("Allocated over time", &report.timeline));
    text
}
