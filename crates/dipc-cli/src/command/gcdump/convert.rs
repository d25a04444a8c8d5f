//! `dipc gcdump convert`: the heap dump of a recording as a file of its own.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::command::gcdump::args;
use crate::exit::{Failure, Outcome};
use crate::inspect::heap::Heap;
use crate::render::destination::Destination;
use crate::render::output;

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The recording; '-' is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Path of the result, to which .gcdump is added if it does not end so; '-' is standard output [default: the recording's name with .gcdump]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &ConvertArgs) -> Outcome {
    let is_input = args.file.as_os_str() == "-";
    let path = match &args.output {
        Some(path) => args::with_extension(path),
        None if is_input => "-".into(),
        None => args.file.with_extension("gcdump"),
    };
    if path == args.file && !is_input {
        return Err(Failure::usage(format_args!("{}: it would be overwritten", path.display()))
            .with_help("name another file with -o"));
    }
    let out = if path.as_os_str() == "-" { None } else { Some(&*path) };
    if out.is_none() {
        output::refuse_terminal("a heap")?;
    }
    let heap = Heap::open(&args.file)?;
    args::write(&heap.graph, Destination::open(out)?)?;
    Ok(heap.exit)
}
