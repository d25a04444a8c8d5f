//! `dipc report`: what a recording says, as tables, a file each.

mod topn;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::exit::Outcome;

#[derive(Debug, Args)]
#[command(subcommand_value_name = "REPORT", subcommand_help_heading = "Reports")]
pub(crate) struct ReportArgs {
    /// The recording; '-' is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    #[command(subcommand)]
    pub(crate) report: Report,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Report {
    /// The methods that were on stacks the longest
    #[command(name = "topN", alias = "topn", alias = "top")]
    TopN(topn::TopNArgs),
}

pub(crate) fn run(args: &ReportArgs) -> Outcome {
    match &args.report {
        Report::TopN(report) => topn::run(&args.file, report),
    }
}
