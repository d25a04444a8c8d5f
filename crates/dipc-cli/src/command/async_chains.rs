//! `dipc async`: the view `async` of `dump analyze`, by a short name.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueHint};

use crate::args::format::Format;
use crate::args::target::{TARGETS, TargetArgs};
use crate::command::dump::awaits::{self, AsyncArgs};
use crate::exit::Outcome;
use crate::inspect::core_dump::Analysis;
use crate::inspect::core_source::check_described;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("analyzed").required(true).arg("core").args(TARGETS))]
pub(crate) struct AsyncChainsArgs {
    /// A core dump instead of a process; - is standard input
    #[arg(value_name = "CORE", value_hint = ValueHint::FilePath)]
    core: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// Only chains with this text in the name of a method or type; '*' matches any text
    #[arg(long = "type", value_name = "TYPE")]
    of: Option<String>,
    /// Number of chains to show, counting equal chains once [default: 30 in a table, else all]
    #[arg(long = "rows", alias = "head", value_name = "N")]
    head: Option<usize>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(args: &AsyncChainsArgs) -> Outcome {
    let source = args.target.core_or_memory(args.core.as_deref())?;
    let runtime = source.runtime()?;
    check_described(&runtime, "the fields of async methods")?;
    let shown = AsyncArgs { of: args.of.clone(), head: args.head };
    let exit = awaits::print(&Analysis::new(&source, &runtime, &[])?, &shown, args.format)?;
    Ok(exit.join(source.exit()))
}
