//! `dipc report FILE jit`.

use std::fmt::Write as _;
use std::path::Path;

use nettrace_export::NameForm;
use nettrace_export::report::{Jit, JitReport};

use crate::command::report::reading::{NamedReadingArgs, ReadPart};
use crate::exit::Outcome;
use crate::inspect::needs::Needs;
use crate::render::frame_name::named;
use crate::render::table::{Align, Columns};
use crate::render::{charts, units};

pub(super) const NEEDS: Needs = Needs {
    what: "events of compiled methods",
    command: "dipc trace -p PID --clrevents jit --clreventlevel verbose",
};

pub(super) fn run(file: &Path, args: &NamedReadingArgs) -> Outcome {
    let mut jit = Jit::default();
    let ReadPart { exit, .. } = args.reading.read_kinds(file, Jit::needs, |event| jit.add(event))?;
    let report = Some(jit.finish()).filter(|report| !report.is_empty());
    args.reading.show(
        (file, exit),
        &NEEDS,
        report,
        |report, rows| report.slowest.truncate(rows),
        |report| table(report, args.reading.rows(), args.names.form()),
    )
}

/// Formats a value, or the fact that it is unknown.
fn known<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

fn table(report: &JitReport, rows: usize, names: NameForm) -> String {
    use Align::{Left, Right};
    let mut columns = Columns::new([
        ("TOOK", Right),
        ("AT", Right),
        ("IL", Right),
        ("CODE", Right),
        ("TIER", Left),
        ("METHOD", Left),
    ]);
    for row in report.slowest.iter().take(rows) {
        columns.row([
            known(row.duration, units::time),
            units::moment(row.start.since_start()),
            known(row.il_bytes, |bytes| units::bytes(bytes.into())),
            units::bytes(row.native_bytes.into()),
            row.tier.clone(),
            named(names, &row.method, &row.csharp),
        ]);
    }
    let mut text = columns.fitted(&["IL", "AT", "CODE", "TIER"]);
    text.push('\n');
    let mut tiers = Columns::new([("METHODS", Right), ("TOOK", Right), ("CODE", Right), ("TIER", Left)]);
    for row in &report.tiers {
        tiers.row([
            units::count(row.methods),
            known(row.duration, units::time),
            units::bytes(row.native_bytes),
            row.tier.clone(),
        ]);
    }
    let _ = write!(text, "{}", tiers.fitted(&[]));
    let _ = write!(text, "\n{} compiled", units::counted(report.methods, "method", "methods"));
    if let Some((duration, bytes)) = report.duration.zip(report.il_bytes) {
        let _ = write!(text, " in {}: {} of IL", units::time(duration), units::bytes(bytes));
    }
    let _ = writeln!(text, " to {} of code", units::bytes(report.native_bytes));
    if report.duration.is_none() {
        let _ = writeln!(text, "How long it took is not recorded: {} records it", NEEDS.command);
    }
    text.push_str(&charts::over_time("Methods compiled", &report.timeline));
    text
}
