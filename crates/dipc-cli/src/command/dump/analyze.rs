//! `dipc dump analyze`: a core dump, or the memory of a process, read without .NET.

mod exceptions;
mod heap;
mod locks;
mod modules;
mod overview;
mod stacks;
mod threads;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueHint};

use crate::args::format::Format;
use crate::args::target::{TARGETS, TargetArgs};
use crate::exit::{Failure, Outcome};
use crate::inspect::core_dump::{Analysis, Source};

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
    /// Show the exceptions of threads, with their causes
    #[command(alias = "pe", alias = "printexception")]
    Exceptions,
    /// Show the objects of the heap by type
    #[command(alias = "dumpheap")]
    Heap(HeapArgs),
    /// Show held monitors, the threads that wait for them, and deadlocks
    #[command(alias = "syncblk")]
    Locks,
    /// List the loaded assemblies that have code or objects
    #[command(alias = "clrmodules")]
    Modules,
}

#[derive(Debug, Args)]
struct HeapArgs {
    /// Number of types to show [default: 30 in a table, else all]
    #[arg(long, value_name = "N")]
    head: Option<usize>,
    /// For compatibility with the commands of dotnet-dump: -stat
    #[arg(hide = true, allow_hyphen_values = true, value_parser = ["-stat"])]
    statistics: Option<String>,
}

pub(crate) fn run(args: &AnalyzeArgs) -> Outcome {
    let source = args.source()?;
    let runtime = source.runtime()?;
    let analysis = Analysis::new(&source, &runtime)?;
    match &args.view {
        None => overview::print(&analysis, args.written(), args.format)?,
        Some(View::Threads) => threads::print(&analysis, args.format)?,
        Some(View::Stacks) => stacks::print(&analysis, args.format)?,
        Some(View::Exceptions) => exceptions::print(&analysis, args.format)?,
        Some(View::Heap(heap)) => heap::print(&analysis, heap.head, args.format)?,
        Some(View::Locks) => locks::print(&analysis, args.format)?,
        Some(View::Modules) => modules::print(&analysis, args.format)?,
    }
    Ok(source.exit())
}

impl AnalyzeArgs {
    /// The local time at which the core dump was written.
    fn written(&self) -> Option<String> {
        let modified = self.core.as_ref()?.metadata().ok()?.modified().ok()?;
        let time = jiff::Timestamp::try_from(modified).ok()?.to_zoned(jiff::tz::TimeZone::system());
        Some(time.strftime("%Y-%m-%d %H:%M:%S").to_string())
    }

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
