//! `dipc stat`: what is in a recording.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::format::Format;
use crate::exit::Outcome;
use crate::inspect::stat::Stat;
use crate::render::{output, width};

#[derive(Debug, Args)]
pub(crate) struct StatArgs {
    /// The recording; '-' is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

pub(crate) fn run(args: &StatArgs) -> Outcome {
    let (stat, exit) = Stat::read(&args.file)?;
    match args.format {
        Format::Table => output::print(stat.table(width::of_output()))?,
        Format::Json => output::print_json(&stat)?,
    }
    Ok(exit)
}
