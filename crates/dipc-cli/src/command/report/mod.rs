//! `dipc report`: what a recording says, as tables, a file each.

mod alloc;
mod contention;
mod events;
mod exceptions;
mod gc;
mod jit;
mod reading;
mod stacks;
mod startup;
mod threadpool;
mod topn;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::exit::Outcome;
use reading::ReadingArgs;

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
    /// Who called whom, as a tree
    Stacks(stacks::StacksArgs),
    /// Garbage collections: why, how long, sizes before and after
    Gc(ReadingArgs),
    /// Allocated types
    Alloc(ReadingArgs),
    /// Exceptions by type
    Exceptions(ReadingArgs),
    /// Waits for locks
    Contention(ReadingArgs),
    /// The thread pool: its threads, and how long work waited
    Threadpool(ReadingArgs),
    /// What happened at the program's start
    Startup(ReadingArgs),
    /// Methods that were compiled
    Jit(ReadingArgs),
    /// Kinds of events over time
    Events(ReadingArgs),
}

pub(crate) fn run(args: &ReportArgs) -> Outcome {
    let file = &args.file;
    match &args.report {
        Report::TopN(report) => topn::run(file, report),
        Report::Stacks(report) => stacks::run(file, report),
        Report::Gc(reading) => gc::run(file, reading),
        Report::Alloc(reading) => alloc::run(file, reading),
        Report::Exceptions(reading) => exceptions::run(file, reading),
        Report::Contention(reading) => contention::run(file, reading),
        Report::Threadpool(reading) => threadpool::run(file, reading),
        Report::Startup(reading) => startup::run(file, reading),
        Report::Jit(reading) => jit::run(file, reading),
        Report::Events(reading) => events::run(file, reading),
    }
}
