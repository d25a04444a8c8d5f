//! `dipc report FILE threadpool`.

use std::fmt::Write as _;
use std::path::Path;

use nettrace::{Event, Interest, Reader};
use nettrace_export::report::{Starvation, ThreadPool, ThreadPoolReport, starvation};
use nettrace_export::{Metric, NameForm, Options, ProfileReader};

use crate::command::report::reading::ReadingArgs;
use crate::exit::{Failure, Outcome};
use crate::inspect::names::code_beside;
use crate::inspect::needs::Needs;
use crate::inspect::recording::{Input, Origin, Recording};
use crate::inspect::thread_times::kernel_times_beside;
use crate::render::table::{Align, Columns};
use crate::render::{charts, units};

pub(super) const NEEDS: Needs =
    Needs { what: "events of the thread pool", command: "dipc trace -p PID --clrevents threading" };

pub(super) fn run(file: &Path, args: &ReadingArgs) -> Outcome {
    let mut pool = ThreadPool::default();
    let (exit, starvation) = if args.selects_all(file) && file.is_file() {
        let (starvation, origin, events) = read_starvation(file, args, |event| pool.add(event))?;
        (origin.report_damage(&events), starvation)
    } else {
        let part = args.read_kinds(file, ThreadPool::needs, |event| pool.add(event))?;
        // An input that is not a file has been consumed and cannot be read again.
        let starvation = if file.is_file() { read_starvation(file, args, |_| {})?.0 } else { None };
        (part.exit, starvation)
    };
    let mut report = pool.finish();
    if starvation.is_some() {
        report.get_or_insert_default().starvation = starvation;
    }
    args.show(
        (file, exit),
        &NEEDS,
        report,
        |report, rows| report.adjustments.truncate(rows),
        |report| table(report, args.rows()),
    )
}

/// Reads the time for which all workers of the pool were blocked, from the samples of threads; `None` if they
/// were not, or without samples. `each` is called with the events that the thread pool needs, and possibly
/// others.
fn read_starvation(
    file: &Path,
    args: &ReadingArgs,
    each: impl FnMut(&Event<'_>),
) -> Result<(Option<Starvation>, Origin, Reader<Input>), Failure> {
    let (events, origin) = Recording::open(file)?.into_parts();
    let processors = events.info().and_then(|info| info.processors);
    let mut add_code = code_beside(file);
    let options = Options::new(Metric::Wall)
        .with_kinds(false)
        .with_idle(false)
        .with_names(NameForm::CSharp)
        .with_selection(args.selection(file)?);
    let reader = ProfileReader::new(options)
        .with_code(&mut add_code)
        .with_kernel_times(kernel_times_beside(file))
        .with_interest(|kind| Interest::all_if(ThreadPool::needs(kind)));
    let read = reader.read(events, each).map_err(|error| origin.failed(&error))?;
    Ok((starvation(&read.profile, processors), origin, read.events))
}

fn table(report: &ThreadPoolReport, rows: usize) -> String {
    use Align::{Left, Right};
    let mut text = format!(
        "Worker threads: {} at most, {} at last; {} started, {} stopped\n",
        report.most_workers, report.last_workers, report.started, report.stopped
    );
    if let Some(starvation) = &report.starvation {
        let _ = writeln!(text, "{starvation}");
    }
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
            "\nHow long work waited is not recorded. .NET Core 3.1 records it with --clrevents threading --clreventlevel verbose; .NET 8 and later record it for requests: --profile aspnet and dipc report FILE requests\n",
        );
    }
    if report.started > 0 {
        text.push_str(&charts::over_time("Threads that started", &report.timeline));
    }
    text
}
