//! All .NET processes at once, each in a line, the worst first.

use clr_findings::{DiagnosisReport, ProcessIdentity};
use dipc_transport::Endpoint;
use serde::Serialize;

use super::WhyArgs;
use super::live::{identity, watch};
use super::print::Answer;
use crate::args::format::Format;
use crate::args::source::{ManyProcesses, SourceArgs};
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupts;
use crate::process::query::run_concurrently;
use crate::render::output;
use crate::render::table::{Align, Columns};

/// Maximum number of processes to watch at the same time: each takes some 30 MB of this program's memory.
const AT_ONCE: usize = 8;

/// A process that was watched, or the reason why it could not be.
struct Row {
    process: ProcessIdentity,
    answer: Result<Answer, Failure>,
}

/// Watches all processes that can be reached, and prints the first cause of each.
pub(super) fn run(args: &WhyArgs) -> Outcome {
    let interrupts = Interrupts::watch()?;
    let mut endpoints = dipc_transport::discover().endpoints;
    endpoints.sort_by_key(|endpoint| endpoint.pid);
    endpoints.dedup_by_key(|endpoint| endpoint.pid);
    if endpoints.is_empty() {
        return Err(Failure::new(Exit::NotReachable, "why: --all: there is no .NET process")
            .with_help("dipc doctor -p PID says why a process is not seen"));
    }
    let mut rows = run_concurrently(&endpoints, AT_ONCE, |endpoint| Row::new(args, endpoint, &interrupts));
    rows.sort_by(|one, other| {
        one.severity().cmp(&other.severity()).then(other.cost().total_cmp(&one.cost()))
    });
    match args.format {
        Format::Json => output::print_json(&rows.iter().map(Row::report).collect::<Vec<_>>())?,
        Format::Table => {
            let mut columns =
                Columns::new([("PID", Align::Right), ("NAME", Align::Left), ("CAUSE", Align::Left)]);
            for row in &rows {
                columns.row(row.cells());
            }
            output::print(columns.fitted(&[]))?;
        }
    }
    let answers = rows.iter().filter_map(|row| row.answer.as_ref().ok());
    Ok(answers.fold(Exit::Done, |exit, answer| exit.join(args.exit_of(answer))))
}

impl Row {
    fn new(args: &WhyArgs, endpoint: &Endpoint, interrupts: &Interrupts) -> Self {
        let process = ManyProcesses { process_ids: vec![endpoint.pid] };
        let source = SourceArgs { process, ..args.source.clone() };
        let mut answer = None;
        let watched = watch(args, source, interrupts, |found, exit| {
            answer = Some(found);
            Ok(exit)
        });
        let missing = || Failure::new(Exit::Failed, "why: nothing was recorded");
        let answer = match watched {
            Ok(_) => answer.ok_or_else(missing),
            Err(failure) => Err(failure),
        };
        Self { process: identity(endpoint.pid), answer }
    }

    /// The place in the list: the lower, the worse.
    fn severity(&self) -> u8 {
        self.answer.as_ref().map_or(2, Answer::severity)
    }

    fn cost(&self) -> f64 {
        self.answer.as_ref().map_or(0.0, Answer::cost)
    }

    fn cells(&self) -> [String; 3] {
        let process = self.answer.as_ref().map_or(&self.process, |answer| answer.identity());
        let cause = match &self.answer {
            Ok(answer) => answer.first_line(),
            Err(failure) => format!("not watched: {failure}"),
        };
        let pid = process.process_id.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        [pid, process.name.clone().unwrap_or_else(|| "-".to_owned()), cause]
    }

    fn report(&self) -> RowReport<'_> {
        match &self.answer {
            Ok(answer) => RowReport::Watched(Box::new(answer.report())),
            Err(failure) => RowReport::Failed { process: &self.process, error: failure.to_string() },
        }
    }
}

/// The JSON form.
#[derive(Serialize)]
#[serde(untagged)]
enum RowReport<'r> {
    Watched(Box<DiagnosisReport<'r>>),
    Failed { process: &'r ProcessIdentity, error: String },
}
