//! `dipc env`: the environment of a .NET process, as its runtime has it.

use std::collections::BTreeMap;

use clap::Args;

use crate::args::format::Format;
use crate::args::target::RequestArgs;
use crate::exit::{Exit, Outcome};
use crate::render::escape::escape_controls;
use crate::render::output;

#[derive(Debug, Args)]
pub(crate) struct EnvArgs {
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

pub(crate) fn run(args: &EnvArgs) -> Outcome {
    let found = args.request.find()?;
    let environment = found.target.environment()?;
    match args.format {
        Format::Json => {
            let variables: BTreeMap<_, _> =
                environment.iter().map(|line| line.split_once('=').unwrap_or((line, ""))).collect();
            output::print_json(&variables)?;
        }
        Format::Table => {
            let lines: String = environment.iter().map(|line| escape_controls(line) + "\n").collect();
            output::print(lines)?;
        }
    }
    Ok(Exit::Done)
}
