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
use crate::exit::{Failure, Outcome};
use crate::inspect::core_source::Source;
use crate::render::{output, width};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("measured").required(true).arg("core").args(TARGETS))]
pub(crate) struct MemoryArgs {
    /// A core dump instead of a process; - is standard input
    #[arg(value_name = "CORE", value_hint = ValueHint::FilePath)]
    core: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    parts: PartsArgs,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The parts of owners in the output.
#[derive(Debug, Args)]
pub(crate) struct PartsArgs {
    /// List the parts of each owner below the table: threads, files, mappings
    #[arg(long)]
    parts: bool,
    /// Number of parts to list for each owner, the largest first
    #[arg(long = "rows", value_name = "N", default_value_t = 10)]
    rows: usize,
}

pub(crate) fn run(args: &MemoryArgs) -> Outcome {
    let source = args.target.core_or_memory(args.core.as_deref())?;
    print(&source, &args.parts, args.format)?;
    Ok(source.exit())
}

/// Prints the memory of a process or a core dump by its owners.
pub(crate) fn print(source: &Source, parts: &PartsArgs, format: Format) -> Result<(), Failure> {
    let reading = Reading::new(source)?;
    match format {
        Format::Json => output::print_json(&json::Report::new(&reading)),
        Format::Table => {
            let rows = parts.parts.then_some(parts.rows);
            output::print(table::text(&reading, rows, width::of_output()))
        }
    }
}
