//! `dipc report FILE contention`.

use std::fmt::Write as _;
use std::path::Path;

use nettrace_export::Metric;
use nettrace_export::report::{Contention, ContentionReport};

use crate::command::report::reading::{ReadPart, ReadingArgs, WithUserCode, from_cell};
use crate::exit::Outcome;
use crate::inspect::needs::Needs;
use crate::inspect::thread_times::kernel_times_beside;
use crate::render::table::{Align, Columns};
use crate::render::{charts, units};

pub(super) const NEEDS: Needs =
    Needs { what: "waits for locks", command: "dipc trace -p PID --clrevents contention" };

pub(super) fn run(file: &Path, with: &WithUserCode<ReadingArgs>) -> Outcome {
    let args = &with.args;
    let mut contention = Contention::default();
    let ReadPart { exit, .. } = args.read_kinds(file, Contention::needs, |event| contention.add(event))?;
    let mut report = contention.finish();
    if report.unfinished > 0
        && let Some(kernel) = kernel_times_beside(file)
    {
        report.name_threads(|_, tid| kernel.name(tid).map(str::to_owned));
    }
    if !report.is_empty() {
        let mut callers = with.user_callers(file, args, Metric::Contention)?;
        let name = |lock: u64| format!("lock {lock:#x}");
        let of_waits: Vec<_> =
            report.unfinished_waits.iter().map(|wait| callers.get(&name(wait.lock)).cloned()).collect();
        report.unfinished_waits.iter_mut().zip(of_waits).for_each(|(wait, from)| wait.from = from);
        report.locks.iter_mut().for_each(|row| row.from = callers.remove(&name(row.lock)));
    }
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
            from_cell(wait.from.as_ref()),
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
            from_cell(row.from.as_ref()),
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
        let _ = writeln!(text, "Waits that had not ended when the recording did: {}", report.unfinished);
        text.push_str(&unfinished(report, rows));
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
