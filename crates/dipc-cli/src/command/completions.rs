//! `dipc completions`: completion in a shell. The shell runs this program for each completion, so profiles
//! and processes are always current.

use clap::Args;
use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::exit::{Exit, Failure, Outcome};
use crate::render::output;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// The environment variable that a shell sets to ask for candidates instead of running a command.
pub(crate) const VARIABLE: &str = "DIPC_COMPLETE";

/// Prints the script that makes a shell ask this program.
pub(crate) fn run(args: &CompletionsArgs) -> Outcome {
    let shell = args.shell;
    let failed =
        |why: &dyn std::fmt::Display| Failure::new(Exit::Failed, format_args!("completions: {shell}: {why}"));
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string()).ok_or_else(|| failed(&"no such shell"))?;
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, "dipc", "dipc", "dipc", &mut script)
        .map_err(|error| failed(&error))?;
    output::print(String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
