//! `dipc ps`: the .NET processes that can be reached.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use clap::Args;
use dipc_transport::{Discovery, SkipReason};

use crate::args::format::Format;
use crate::duration;
use crate::exit::{Exit, Outcome};
use crate::process::info::Process;
use crate::process::{query, table};
use crate::render::{messages, output};

#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    /// Format of the list
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Time limit for each runtime's answer
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "2s")]
    pub(crate) timeout: Duration,
}

pub(crate) fn run(args: &PsArgs) -> Outcome {
    let counts_unreachable = matches!(args.format, Format::Table) && !messages::is_quiet();
    let (discovery, processes, with_runtime) = thread::scope(|scope| {
        // The two searches take about the same time.
        let search = counts_unreachable.then(|| scope.spawn(dipc_doctor::find_runtimes));
        let discovery = dipc_transport::discover();
        let processes = query::ask_all(&discovery.endpoints, args.timeout);
        let with_runtime = search.and_then(|search| search.join().ok());
        (discovery, processes, with_runtime)
    });
    for skipped in &discovery.skipped {
        messages::detail(skipped);
    }
    match args.format {
        Format::Json => output::print_json(&processes)?,
        Format::Table => {
            for process in &processes {
                warn_of_error(process);
            }
            if processes.is_empty() {
                messages::note("No .NET process was found that can be reached.");
            } else {
                output::print(table::fitted(&processes))?;
            }
            note_foreign(&discovery);
            if let Some(with_runtime) = with_runtime {
                match unreachable(&discovery, &processes, with_runtime) {
                    0 if processes.is_empty() => note_unreadable(&discovery),
                    count => note_unreachable(count),
                }
            }
        }
    }
    Ok(Exit::Done)
}

fn warn_of_error(process: &Process) {
    if let (Some(pid), Some(error)) = (process.pid, &process.error) {
        let text = format!("process {pid}: {error}");
        // .NET Core 3.1 can be recorded, although it does not know the command.
        if process.reached { messages::detail(text) } else { messages::warning(text) }
    }
}

/// Returns the number of .NET processes that were not reached.
fn unreachable(discovery: &Discovery, processes: &[Process], with_runtime: Vec<u32>) -> usize {
    let reached: BTreeSet<_> =
        processes.iter().filter(|process| process.reached).filter_map(|process| process.pid).collect();
    let asked: BTreeSet<_> = discovery.endpoints.iter().map(|endpoint| endpoint.pid).collect();
    dipc_doctor::candidates(discovery, with_runtime)
        .into_iter()
        .filter(|pid| !reached.contains(pid) && dipc_transport::process_name(*pid).is_ok())
        // A process that has just started may have its socket by now.
        .filter(|pid| asked.contains(pid) || dipc_transport::find(*pid).is_err())
        .count()
}

/// Prints a note about runtimes of other containers, which a socket in a shared folder shows.
fn note_foreign(discovery: &Discovery) {
    let foreign = dipc_doctor::find_foreign_sockets(discovery);
    let Some(first) = foreign.first() else { return };
    let more = if foreign.len() > 1 { format!(" (and {} more)", foreign.len() - 1) } else { String::new() };
    messages::note(format_args!(
        "A process that is not visible here, as in another container, listens at {}{more}: use --endpoint instead of -p.",
        first.display()
    ));
}

/// Prints a note about processes of which nothing is known, after no .NET process was found.
fn note_unreadable(discovery: &Discovery) {
    let is_unreadable = |reason: &SkipReason| matches!(reason, SkipReason::EnvironmentUnreadable(_));
    let mut pids =
        discovery.skipped.iter().filter(|it| is_unreadable(&it.reason)).filter_map(|skipped| skipped.pid);
    let Some(first) = pids.next() else { return };
    messages::note(match pids.count() {
        0 => format!("Process {first} cannot be looked into; dipc doctor -p {first} says why."),
        more => format!(
            "{} processes cannot be looked into, such as {first}; dipc doctor -p {first} says why.",
            more + 1
        ),
    });
}

fn note_unreachable(count: usize) {
    match count {
        0 => {}
        1 => messages::note("1 .NET process cannot be reached; dipc doctor says why."),
        _ => messages::note(format_args!("{count} .NET processes cannot be reached; dipc doctor says why.")),
    }
}
