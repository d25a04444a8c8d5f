//! `dipc report FILE threadpool`.

use std::fmt::Write as _;
use std::path::Path;

use nettrace_export::report::{ThreadPool, ThreadPoolReport};

use crate::command::report::reading::ReadingArgs;
use crate::exit::Outcome;
use crate::inspect::needs::Needs;
use crate::render::table::{Align, Columns};
use crate::render::{charts, units};

pub(super) const NEEDS: Needs =
    Needs { what: "events of the thread pool", command: "dipc trace -p PID --clrevents threading" };

pub(super) fn run(file: &Path, args: &ReadingArgs) -> Outcome {
    let mut pool = ThreadPool::default();
    let (exit, _) = args.read_kinds(file, ThreadPool::needs, |event| pool.add(event))?;
    args.show(
        (file, exit),
        &NEEDS,
        pool.finish(),
        |report, rows| report.adjustments.truncate(rows),
        |report| table(report, args.rows()),
    )
}

fn table(report: &ThreadPoolReport, rows: usize) -> String {
    use Align::{Left, Right};
    let mut text = format!(
        "Worker threads: {} at most, {} at last; {} started, {} stopped\n",
        report.most_workers, report.last_workers, report.started, report.stopped
    );
    if let Some((least, most)) = report.limits {
        let _ = writeln!(text, "Limits: {least} to {most}");
    }
    if !report.adjustments.is_empty() {
        let mut columns = Columns::new([("ADJUSTED", Right), ("UP TO", Right), ("REASON", Left)]);
        for row in report.adjustments.iter().take(rows) {
            columns.row([units::count(row.count), row.most_threads.to_string(), row.reason.clone()]);
        }
        let _ = write!(text, "\n{}", columns.fitted(&[]));
    }
    if report.queue.count > 0 {
        let _ = writeln!(text, "\nWork in the queue: {}", charts::summary(&report.queue));
        let _ = writeln!(text, "Still there at the end: {}", units::count(report.queued));
        text.push_str(&charts::histogram("Time in the queue", &report.queue));
    } else {
        text.push_str(
            "\nHow long work waited is not recorded. .NET Core 3.1 says it with --clrevents threading --clreventlevel verbose; \
             .NET 8 and later say it of requests: --profile aspnet and dipc report FILE requests\n",
        );
    }
    if report.started > 0 {
        text.push_str(&charts::over_time("Threads that started", &report.timeline));
    }
    text
}
