//! `dipc dump analyze`: a core dump, or the memory of a process, read without .NET.

mod stacks;
mod threads;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueHint};

use crate::args::format::Format;
use crate::args::target::{TARGETS, TargetArgs};
use crate::exit::{Failure, Outcome};
use crate::inspect::core_dump::Source;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("analyzed").required(true).arg("core").args(TARGETS), disable_help_subcommand = true)]
pub(crate) struct AnalyzeArgs {
    /// The core dump
    #[arg(value_name = "CORE", value_hint = ValueHint::FilePath)]
    core: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// Format of the output
    #[arg(long, value_enum, default_value_t, global = true)]
    format: Format,
    #[command(subcommand)]
    view: Option<View>,
}

/// A part of what a core dump has.
#[derive(Debug, Subcommand)]
enum View {
    /// List the managed threads
    #[command(alias = "clrthreads")]
    Threads,
    /// Show the managed stacks of all threads, each stack once
    #[command(alias = "clrstack", alias = "parallelstacks", alias = "pstacks")]
    Stacks,
}

pub(crate) fn run(args: &AnalyzeArgs) -> Outcome {
    let source = args.source()?;
    let runtime = source.runtime()?;
    match args.view {
        Some(View::Threads) => threads::print(&source, &runtime, args.format)?,
        None | Some(View::Stacks) => stacks::print(&source, &runtime, args.format)?,
    }
    Ok(source.exit())
}

impl AnalyzeArgs {
    fn source(&self) -> Result<Source, Failure> {
        if let Some(core) = &self.core {
            return Source::open(core);
        }
        let pid = match self.target.process_id {
            Some(pid) => Some(pid),
            None => self.target.find(super::REQUEST_TIMEOUT)?.target.pid(),
        };
        match pid {
            Some(pid) => Source::attach(pid),
            None => Err(Failure::usage("dump analyze: the process at this address has no process id here")),
        }
    }
}
