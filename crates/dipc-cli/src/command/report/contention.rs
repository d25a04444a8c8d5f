//! `dipc report FILE contention`.

use std::fmt::Write as _;
use std::path::Path;

use nettrace_export::Metric;
use nettrace_export::report::{Contention, ContentionReport};

use crate::command::report::callers::caller_cell;
use crate::command::report::reading::{ReadPart, ReadingArgs, WithUserCode};
use crate::exit::Outcome;
use crate::inspect::needs::Needs;
use crate::inspect::thread_times::kernel_times_beside;
use crate::render::table::{Align, Columns};
use crate::render::{charts, units};

pub(super) const NEEDS: Needs =
    Needs { what: "waits for locks", command: "dipc trace -p PID --clrevents contention" };

/// The events have the addresses of the lock and of its object, and no type.
const TYPES_OF_LOCKS: &str =
    "Recordings lack the types of locks: dipc locks shows them, for a process or a core dump.";

pub(super) fn run(file: &Path, with: &WithUserCode<ReadingArgs>) -> Outcome {
    let args = &with.args;
    let mut contention = Contention::default();
    let (ReadPart { exit, .. }, callers) =
        with.read_kinds(file, args, (Contention::needs, Metric::Contention), |event| contention.add(event))?;
    let mut report = contention.finish();
    if report.unfinished > 0
        && let Some(kernel) = kernel_times_beside(file)
    {
        report.name_threads(|_, tid| kernel.name(tid).map(str::to_owned));
    }
    report.locks.iter_mut().for_each(|row| row.from = callers.of_lock(row.lock));
    report.unfinished_waits.iter_mut().for_each(|wait| wait.from = callers.of_lock(wait.lock));
    let report = Some(report).filter(|report| !report.is_empty());
    args.show(
        (file, exit),
        &NEEDS,
        report,
        |report, rows| report.locks.truncate(rows),
        |report| table(report, args.rows()),
    )
}

/// Formats the unfinished waits.
fn unfinished(report: &ContentionReport, rows: usize) -> String {
    use Align::{Left, Right};
    let mut columns = Columns::new([
        ("SINCE", Right),
        ("THREAD", Right),
        ("OWNER", Right),
        ("LOCK", Right),
        ("WAITED IN", Left),
    ]);
    for wait in report.unfinished_waits.iter().take(rows) {
        columns.row([
            units::time(wait.since.since_start()),
            wait.thread().to_string(),
            wait.owner().map_or("-".to_owned(), |owner| owner.to_string()),
            format!("{:#x}", wait.lock),
            caller_cell(wait.from.as_ref()),
        ]);
    }
    columns.fitted(&["LOCK"])
}

fn table(report: &ContentionReport, rows: usize) -> String {
    use Align::{Left, Right};
    let mut columns = Columns::new([
        ("WAITED", Right),
        ("WAITS", Right),
        ("LONGEST", Right),
        ("THREADS", Right),
        ("LOCK", Right),
        ("OBJECT", Right),
        ("WAITED IN", Left),
    ]);
    for row in report.locks.iter().take(rows) {
        let address = |number: u64| if number == 0 { "-".to_owned() } else { format!("{number:#x}") };
        columns.row([
            units::time(row.total),
            units::count(row.waits),
            units::time(row.max),
            units::count(row.threads),
            address(row.lock),
            address(row.object),
            caller_cell(row.from.as_ref()),
        ]);
    }
    let mut text = columns.fitted(&["OBJECT", "LONGEST"]);
    let left = report.locks.len().saturating_sub(rows);
    if left > 0 {
        let _ = writeln!(text, "({left} more locks)");
    }
    text.push('\n');
    if report.waits.count > 0 {
        let _ = writeln!(text, "Waits: {}", charts::summary(&report.waits));
    }
    if report.unfinished > 0 {
        let _ = writeln!(text, "Waits still open at the end of the recording: {}", report.unfinished);
        text.push_str(&unfinished(report, rows));
    }
    if report.locks.iter().any(|row| row.lock != 0) || !report.unfinished_waits.is_empty() {
        let _ = writeln!(text, "{TYPES_OF_LOCKS}");
    }
    for deadlock in &report.deadlocks {
        let _ = writeln!(text, "Deadlock: {deadlock}");
    }
    text.push_str("Where: dipc report FILE stacks --by contention\n");
    if report.waits.count > 0 {
        text.push_str(&charts::histogram("Waits by length", &report.waits));
        text.push_str(&charts::over_time("Waited over time", &report.timeline));
    }
    text
}
