//! `dipc info`: the facts that a runtime reports about itself.

use clap::Args;

use crate::args::format::Format;
use crate::args::target::RequestArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::process::info::Process;
use crate::render::escape::escape_controls;
use crate::render::{command_line, messages, output};

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

pub(crate) fn run(args: &InfoArgs) -> Outcome {
    let found = args.request.find()?;
    let mut process = {
        let pid = found.endpoint.as_ref().map(|endpoint| endpoint.pid).or_else(|| found.target.pid());
        Process::ask_target(&found.target, pid).map_err(Failure::from)?
    };
    if let Some(error) = &process.error {
        messages::warning(format_args!("info: {error}"));
        messages::note(
            "The command line is longer than a message: this information is from the system. Other commands work.",
        );
    }
    if let Some(endpoint) = found.endpoint {
        process.pid = Some(endpoint.pid);
        process.namespace_pid = Some(endpoint.namespace_pid);
        process.uid = endpoint.uid;
        process.name = Some(endpoint.name);
    }
    match args.format {
        Format::Json => output::print_json(&process)?,
        Format::Table => output::print(lines(&process))?,
    }
    Ok(Exit::Done)
}

fn lines(process: &Process) -> String {
    let number = |number: Option<u32>| number.map(|number| number.to_string());
    // `dotnet` is the name of many processes on a machine.
    let application = process.name.clone().map(|name| match &process.entry_assembly {
        Some(assembly) if name == "dotnet" => assembly.clone(),
        _ => name,
    });
    let rows = [
        ("Process id", number(process.pid)),
        ("Pid inside", number(process.namespace_pid).filter(|_| process.pid != process.namespace_pid)),
        ("Name", application),
        ("User id", number(process.uid)),
        (
            "Command line",
            process.command_line.as_deref().map(|line| command_line::shortened(line).into_owned()),
        ),
        ("Entry assembly", process.entry_assembly.clone()),
        ("Runtime", process.clr_version.clone()),
        ("System", process.os.clone()),
        ("Architecture", process.arch.clone()),
        ("Runtime id", process.runtime_identifier.clone()),
        ("Cookie", process.cookie.clone()),
        ("Endpoint", Some(process.endpoint.clone())),
    ];
    let lines: Vec<_> = rows
        .into_iter()
        .filter_map(|(label, value)| Some(format!("{label:<16}{}\n", escape_controls(&value?))))
        .collect();
    lines.concat()
}
