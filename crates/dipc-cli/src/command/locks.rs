//! `dipc locks`: the view `locks` of `dump analyze`, by a short name.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueHint};

use crate::args::format::Format;
use crate::args::target::{TARGETS, TargetArgs};
use crate::command::dump::locks;
use crate::exit::Outcome;
use crate::inspect::core_dump::Analysis;
use crate::inspect::core_source::check_described;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("analyzed").required(true).arg("core").args(TARGETS))]
pub(crate) struct LocksArgs {
    /// A core dump instead of a process; - is standard input
    #[arg(value_name = "CORE", value_hint = ValueHint::FilePath)]
    core: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(args: &LocksArgs) -> Outcome {
    let source = args.target.core_or_memory(args.core.as_deref())?;
    let runtime = source.runtime()?;
    check_described(&runtime, "monitors")?;
    locks::print(&Analysis::new(&source, &runtime, &[])?, args.format)?;
    Ok(source.exit())
}
