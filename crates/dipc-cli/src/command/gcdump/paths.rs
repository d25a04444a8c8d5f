//! `dipc gcdump paths`: the references that keep the objects of a type alive.

use clap::{ArgGroup, Args};

use crate::args::format::Format;
use crate::args::heap_paths::HeapPathsArgs;
use crate::args::source::SOURCES;
use crate::command::gcdump::args::HeapArgs;
use crate::exit::Outcome;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("heap").required(true).args(SOURCES).arg("file"))]
pub(crate) struct PathsArgs {
    #[command(flatten)]
    heap: HeapArgs,
    #[command(flatten)]
    paths: HeapPathsArgs,
    /// Format of the paths
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(args: &PathsArgs) -> Outcome {
    args.heap.with_heap(|heap| args.paths.show(&heap.graph, args.format))
}
