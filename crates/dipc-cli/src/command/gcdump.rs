//! `dipc gcdump`: the contents of a process's heap, and the references that keep them alive.

mod args;
mod collect;
mod convert;
mod diff;
mod growth;
mod paths;
mod report;

use clap::Subcommand;

use crate::exit::Outcome;

/// The commands about heaps.
#[derive(Debug, Subcommand)]
pub(crate) enum GcDumpCommand {
    /// Write the heap of a process to a .gcdump file
    ///
    /// The runtime collects all generations and then sends every object: the process is paused for that, 0.1
    /// s for a million objects. The file is that of dotnet-gcdump; PerfView and Visual Studio open it.
    Collect(collect::CollectArgs),
    /// Show what a heap consists of, by type, module or namespace, with what each retains
    Report(report::ReportArgs),
    /// Show what grew between two heaps
    Diff(diff::DiffArgs),
    /// Show what holds the objects of a type: the shortest paths from roots
    Paths(paths::PathsArgs),
    /// Turn a heap into a page for browsers (treemap, dominators, paths), a .gcdump file or a profile
    Convert(convert::ConvertArgs),
}

pub(crate) fn run(command: &GcDumpCommand) -> Outcome {
    match command {
        GcDumpCommand::Collect(args) => collect::run(args),
        GcDumpCommand::Report(args) => report::run(args),
        GcDumpCommand::Diff(args) => diff::run(args),
        GcDumpCommand::Paths(args) => paths::run(args),
        GcDumpCommand::Convert(args) => convert::run(args),
    }
}
