//! `dipc memory`: the resident memory of a process, or the memory in a core dump, by its owners.

mod answer;
mod json;
mod names;
mod reading;
mod table;

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueHint};

use self::reading::Reading;
use crate::args::format::Format;
use crate::args::target::{TARGETS, TargetArgs};
use crate::exit::Outcome;
use crate::render::{output, width};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("measured").required(true).arg("core").args(TARGETS))]
pub(crate) struct MemoryArgs {
    /// A core dump instead of a process; - is standard input
    #[arg(value_name = "CORE", value_hint = ValueHint::FilePath)]
    core: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// List the parts of each owner below the table: threads, files, mappings
    #[arg(long)]
    parts: bool,
    /// Number of parts to list for each owner, the largest first
    #[arg(long = "rows", value_name = "N", default_value_t = 10)]
    rows: usize,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(args: &MemoryArgs) -> Outcome {
    let source = args.target.core_or_memory(args.core.as_deref())?;
    let reading = Reading::new(&source)?;
    match args.format {
        Format::Json => output::print_json(&json::Report::new(&reading))?,
        Format::Table => {
            let rows = args.parts.then_some(args.rows);
            output::print(table::text(&reading, rows, width::of_output()))?;
        }
    }
    Ok(source.exit())
}
