//! `dipc report FILE exceptions`.

use std::fmt::Write as _;
use std::path::Path;

use nettrace_export::report::{Exceptions, ExceptionsReport};
use nettrace_export::{Metric, NameForm};

use crate::command::report::callers::caller_cell;
use crate::command::report::reading::{NamedReadingArgs, ReadPart, WithUserCode};
use crate::exit::Outcome;
use crate::inspect::crash_note::CrashNote;
use crate::inspect::needs;
use crate::render::frame_name::named;
use crate::render::table::{Align, Columns};
use crate::render::{charts, messages, units};

pub(super) fn run(file: &Path, with: &WithUserCode<NamedReadingArgs>) -> Outcome {
    let args = &with.args;
    if let Some(note) = CrashNote::beside(file) {
        messages::note(format_args!("Crash          : {}", note.summary()));
    }
    let mut exceptions = Exceptions::default();
    let (ReadPart { exit, .. }, callers) =
        with.read_kinds(file, &args.reading, (Exceptions::needs, Metric::Exception), |event| {
            exceptions.add(event);
        })?;
    let mut report = exceptions.finish();
    report.types.iter_mut().for_each(|row| row.from = callers.of_subject(&row.name));
    let report = Some(report).filter(|report| !report.is_empty());
    args.reading.show(
        (file, exit),
        &needs::EXCEPTIONS,
        report,
        |report, rows| report.types.truncate(rows),
        |report| table(report, args.reading.rows(), args.names.form()),
    )
}

fn table(report: &ExceptionsReport, rows: usize, names: NameForm) -> String {
    use Align::{Left, Right};
    let mut columns = Columns::new([
        ("THROWN", Right),
        ("FIRST", Right),
        ("LAST", Right),
        ("TYPE", Left),
        ("FROM", Left),
        ("FIRST MESSAGE", Left),
    ]);
    for row in report.types.iter().take(rows) {
        columns.row([
            units::count(row.count),
            units::moment(row.first.since_start()),
            units::moment(row.last.since_start()),
            named(names, &row.name, &row.csharp),
            caller_cell(row.from.as_ref()),
            row.first_message.chars().take(80).collect(),
        ]);
    }
    let mut text = columns.fitted(&["LAST", "FIRST", "FIRST MESSAGE", "FROM"]);
    let left = report.types.len().saturating_sub(rows);
    if left > 0 {
        let _ = writeln!(text, "({left} more types)");
    }
    let _ = writeln!(
        text,
        "\n{}; where: dipc report FILE stacks --by exception",
        units::counted(report.count, "exception", "exceptions")
    );
    text.push_str(&charts::over_time("Thrown over time", &report.timeline));
    text
}
