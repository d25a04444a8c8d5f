//! `dipc completions`: what a shell needs to complete our command line.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::{Exit, Outcome};
use crate::output;

pub(crate) fn run(shell: Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "dipc", &mut script);
    output::print(String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
