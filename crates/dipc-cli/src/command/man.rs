//! `dipc man`: the man pages, made from the definition of the command line.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, ValueHint};

use crate::cli::Cli;
use crate::exit::{Exit, Failure, Outcome};

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder that receives dipc.1, dipc-trace.1 and the other pages
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
}

/// Writes a page for the program and for each command that help lists.
pub(crate) fn run(args: &ManArgs) -> Outcome {
    let folder = &args.folder;
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command().disable_help_subcommand(true), folder))
        .map_err(|error| Failure::new(Exit::Failed, format_args!("{}: {error}", folder.display())))?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_help_lists_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        run(&ManArgs { folder: folder.path().join("man1") }).unwrap();
        let page = |name: &str| fs::read_to_string(folder.path().join("man1").join(name));
        assert!(page("dipc.1").unwrap().contains("dipc\\-trace(1)"));
        for command in Cli::command().get_subcommands() {
            let page = page(&format!("dipc-{}.1", command.get_name()));
            assert_eq!(page.is_ok(), !command.is_hide_set(), "{}", command.get_name());
        }
        assert!(page("dipc-trace.1").unwrap().contains("\\-\\-duration"));
    }
}
