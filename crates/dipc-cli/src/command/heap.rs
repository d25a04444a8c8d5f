//! `dipc heap`: the heap of a running process, read from its memory.

use clap::{ArgGroup, Args};

use crate::args::heap_view::{HeapViewArgs, MemoryFormat};
use crate::args::target::{TARGETS, TargetArgs};
use crate::exit::Outcome;
use crate::inspect::heap::Heap;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("process").required(true).args(TARGETS))]
pub(crate) struct HeapArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    view: HeapViewArgs,
    /// Format of the report
    #[arg(id = "memory_format", long = "format", value_name = "FORMAT", value_enum, default_value_t)]
    format: MemoryFormat,
}

pub(crate) fn run(args: &HeapArgs) -> Outcome {
    show(args).inspect_err(|failure| args.format.print_failure(failure))
}

fn show(args: &HeapArgs) -> Outcome {
    let source = args.target.memory()?;
    let read = Heap::of_memory(&source, args.view.stop)?;
    args.view.show(&read, "memory of a process", args.format)?;
    Ok(read.exit)
}
