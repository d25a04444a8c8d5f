//! `dipc gcdump`: the contents of a process's heap, and the references that keep them alive.

mod args;
mod collect;
mod convert;
mod diff;
mod growth;
mod paths;
mod report;
mod suspects;

use std::path::Path;

use clap::Subcommand;

use crate::args::names::NameArgs;
use crate::exit::Outcome;
pub(crate) use diff::HeapDiffFormat;

/// The commands about heaps.
#[derive(Debug, Subcommand)]
pub(crate) enum GcDumpCommand {
    /// Write the heap of a process to a .gcdump file
    ///
    /// The runtime collects all generations and then sends every object, which pauses the process for 0.1 s
    /// per million objects. The file has dotnet-gcdump's format; PerfView and Visual Studio open it.
    Collect(collect::CollectArgs),
    /// Show the contents of a heap by type, module or namespace, with retained sizes
    Report(report::ReportArgs),
    /// Show what grew between two heaps
    Diff(diff::DiffArgs),
    /// Show what keeps the objects of a type alive: the shortest paths from roots
    Paths(paths::PathsArgs),
    /// Turn a heap into a page for browsers (treemap, dominators, paths), a .gcdump file or a profile
    Convert(convert::ConvertArgs),
}

pub(crate) fn run(command: &GcDumpCommand) -> Outcome {
    match command {
        GcDumpCommand::Collect(args) => collect::run(args),
        GcDumpCommand::Report(args) => match args.watch {
            Some(interval) => growth::run(args, interval),
            None => report::run(args),
        },
        GcDumpCommand::Diff(args) => diff::run(args),
        GcDumpCommand::Paths(args) => paths::run(args),
        GcDumpCommand::Convert(args) => convert::run(args),
    }
}

/// Compares the heaps of two files, with the usual settings of `gcdump diff`.
pub(crate) fn diff_files(
    before: &Path,
    after: &Path,
    format: HeapDiffFormat,
    names: NameArgs,
    output: Option<&Path>,
) -> Outcome {
    diff::run(&diff::DiffArgs::of_files(before, after, format, names, output))
}
