//! `dipc report`: the content of a recording as tables, one report per file.

mod alloc;
mod by_process;
mod callers;
mod contention;
mod events;
mod exceptions;
mod gc;
mod jit;
pub(crate) mod overview;
mod reading;
mod requests;
mod stacks;
mod startup;
mod threadpool;
mod topn;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use nettrace_export::report::EventGroup;

pub(crate) use self::overview::OverviewData;
use crate::args::format::Format;
use crate::args::user_code::UserCodeArgs;
use crate::exit::{Failure, Outcome};
use reading::{NamedReadingArgs, ReadingArgs, WithUserCode};

#[derive(Debug, Args)]
#[command(
    subcommand_value_name = "REPORT",
    subcommand_help_heading = "Reports",
    disable_help_subcommand = true,
    after_help = "Each report has options of its own: dipc report FILE topN --help lists -n, --by, --from and more.\nThe overview shows what the recording lacks, and with -v the commands to record it."
)]
pub(crate) struct ReportArgs {
    /// The recording; '-' is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Format of the overview; for a report, give the format after its name
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    #[command(flatten)]
    user_code: UserCodeArgs,
    #[command(subcommand)]
    pub(crate) report: Option<Report>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Report {
    /// The methods that spent the most time on stacks
    #[command(name = "topN", alias = "topn", alias = "top")]
    TopN(topn::TopNArgs),
    /// The call tree
    Stacks(stacks::StacksArgs),
    /// Requests and calls: their number, durations, and where their time went
    Requests(requests::RequestsArgs),
    /// Garbage collections: reason, duration, sizes before and after
    Gc(WithUserCode<ReadingArgs>),
    /// Allocated types
    Alloc(WithUserCode<NamedReadingArgs>),
    /// Exceptions by type
    Exceptions(WithUserCode<NamedReadingArgs>),
    /// Waits for locks
    Contention(WithUserCode<ReadingArgs>),
    /// The thread pool: its threads, and how long work waited
    Threadpool(ReadingArgs),
    /// The events of the program's start
    Startup(ReadingArgs),
    /// Compiled methods
    Jit(NamedReadingArgs),
    /// Kinds of events over time
    Events(ReadingArgs),
    /// An unknown report.
    #[command(external_subcommand)]
    Unknown(Vec<OsString>),
}

pub(crate) fn run(args: &ReportArgs) -> Outcome {
    let file = &args.file;
    let Some(report) = &args.report else {
        return overview::run(file, args.format.unwrap_or_default(), &args.user_code, &[]);
    };
    if !args.user_code.user_code.is_empty() {
        return Err(Failure::usage("--user-code: put it after the name of the report"));
    }
    if args.format.is_some() {
        return Err(Failure::usage("--format: put it after the name of the report"));
    }
    match report {
        Report::TopN(report) => topn::run(file, report),
        Report::Stacks(report) => stacks::run(file, report),
        Report::Requests(report) => requests::run(file, report),
        Report::Gc(reading) => gc::run(file, reading),
        Report::Alloc(reading) => alloc::run(file, reading),
        Report::Exceptions(reading) => exceptions::run(file, reading),
        Report::Contention(reading) => contention::run(file, reading),
        Report::Threadpool(reading) => threadpool::run(file, reading),
        Report::Startup(reading) => startup::run(file, reading),
        Report::Jit(reading) => jit::run(file, reading),
        Report::Events(reading) => events::run(file, reading),
        Report::Unknown(words) => Err(unknown(words)),
    }
}

/// Prints the overview of a recording as a table. The groups of events in `absent` were requested, and none
/// happened.
pub(crate) fn overview(file: &std::path::Path, absent: &[EventGroup]) -> Outcome {
    overview::run(file, Format::Table, &UserCodeArgs::default(), absent)
}

fn unknown(words: &[OsString]) -> Failure {
    let name = words.first().map_or_else(Default::default, |name| name.to_string_lossy());
    Failure::usage(format_args!("report: no report is called '{name}'"))
        .with_help(format_args!("the reports are {}", names().join(", ")))
}

/// The names of the reports, as help lists them.
fn names() -> Vec<String> {
    let command = Report::augment_subcommands(clap::Command::new("report"));
    let listed = command.get_subcommands().filter(|it| !it.is_hide_set());
    listed.map(|it| it.get_name().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::exit::Exit;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: ReportArgs,
    }

    #[test]
    fn an_unknown_report_lists_the_available_reports() {
        let line = Line::try_parse_from(["report", "a.nettrace", "nosuch", "-n", "3"]).unwrap();
        let failure = run(&line.args).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(failure.message, "report: no report is called 'nosuch'");
        let help = failure.help.unwrap();
        assert!(
            help.starts_with("the reports are topN, stacks, requests, gc, ") && help.ends_with(", events"),
            "{help}"
        );
    }
}
