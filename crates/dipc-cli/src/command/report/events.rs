//! `dipc report FILE events`.

use std::fmt::Write as _;
use std::path::Path;

use nettrace_export::report::{EventCounts, EventCountsReport};

use crate::command::report::reading::{ReadPart, ReadingArgs};
use crate::exit::Outcome;
use crate::inspect::needs::Needs;
use crate::render::table::{Align, Columns};
use crate::render::{charts, units};

const NEEDS: Needs = Needs { what: "events", command: "dipc trace -p PID" };

pub(super) fn run(file: &Path, args: &ReadingArgs) -> Outcome {
    let mut counts = EventCounts::default();
    let ReadPart { exit, .. } = args.read(file, |event| counts.add(event))?;
    let report = Some(counts.finish()).filter(|report| report.count > 0);
    args.show(
        (file, exit),
        &NEEDS,
        report,
        |report, rows| report.events.truncate(rows),
        |report| table(report, args.rows()),
    )
}

fn table(report: &EventCountsReport, rows: usize) -> String {
    use Align::{Left, Right};
    let mut columns = Columns::new([
        ("EVENTS", Right),
        ("FIRST", Right),
        ("LAST", Right),
        ("PROVIDER", Left),
        ("ID", Right),
        ("VERSION", Right),
        ("NAME", Left),
    ]);
    for row in report.events.iter().take(rows) {
        columns.row([
            units::count(row.count),
            units::moment(row.first.since_start()),
            units::moment(row.last.since_start()),
            row.provider.clone(),
            row.id.to_string(),
            row.version.to_string(),
            row.name.clone(),
        ]);
    }
    let mut text = columns.fitted(&["VERSION", "ID", "LAST", "FIRST"]);
    let left = report.events.len().saturating_sub(rows);
    if left > 0 {
        let _ = writeln!(text, "({left} more kinds)");
    }
    let _ = writeln!(text, "\n{} events", units::count(report.count));
    text.push_str(&charts::over_time("Events over time", &report.timeline));
    text
}
