//! `dipc man`: man pages generated from the definition of the command line.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command, ValueHint};

use crate::exit::{Exit, Failure, Outcome};

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder that receives dipc.1, dipc-trace.1 and the other pages
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
}

/// Writes a page for `program`, the definition of the command line, and for each command that its help lists.
pub(crate) fn run(args: &ManArgs, program: Command) -> Outcome {
    let folder = &args.folder;
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(program.disable_help_subcommand(true), folder))
        .map_err(|error| Failure::new(Exit::Failed, format_args!("{}: {error}", folder.display())))?;
    Ok(Exit::Done)
}
