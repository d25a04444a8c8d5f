//! `dipc env`: the environment of a .NET process, as its runtime has it.

use std::collections::BTreeMap;

use crate::args::{Format, InfoArgs};
use crate::exit::{Exit, Outcome};
use crate::process::target::Chosen;
use crate::render::escape::escape_controls;
use crate::render::output;

pub(crate) fn run(args: &InfoArgs) -> Outcome {
    let chosen = Chosen::new(&args.request.target, args.request.timeout)?;
    let environment = chosen.target.environment()?;
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
