//! `dipc counters`: the counters and measurements of a process.

mod collect;
mod list;
mod live;
mod monitor;
mod push;
mod read;
mod serve;

use clap::{Args, Subcommand, ValueEnum};
use clr_counters::Selection;

use crate::exit::Outcome;

/// The commands about counters.
#[derive(Debug, Subcommand)]
pub(crate) enum CountersCommand {
    /// Show the counters of a process as they change
    Monitor(monitor::MonitorArgs),
    /// Write the counters of a process to a file
    Collect(collect::CollectArgs),
    /// Show the counters of a recording, or turn them into a file
    Read(read::ReadArgs),
    /// List the counters built into .NET, or the counters of a process
    List(list::ListArgs),
    /// Serve the counters of a process to Prometheus
    Serve(serve::ServeArgs),
    /// Push the counters of a process to an OpenTelemetry collector
    Push(push::PushArgs),
}

pub(crate) fn run(command: &CountersCommand) -> Outcome {
    match command {
        CountersCommand::Monitor(args) => monitor::run(args),
        CountersCommand::Collect(args) => collect::run(args),
        CountersCommand::Read(args) => read::run(args),
        CountersCommand::List(args) => list::run(args),
        CountersCommand::Serve(args) => serve::run(args),
        CountersCommand::Push(args) => push::run(args),
    }
}

/// The selection of counters.
#[derive(Debug, Clone, Args)]
pub(crate) struct CounterSelectionArgs {
    /// Only these counters: 'PROVIDER,PROVIDER[COUNTER,…],…'; '*' matches any text
    ///
    /// A provider is an EventSource or a Meter; if it is both, the Meter's values are shown.
    /// EventCounters\NAME and Meter\NAME select one of the two. Quote names that contain a comma, a semicolon
    /// or brackets: '"Shop,Berlin"["a;b"]'.
    #[allow(clippy::doc_link_with_quotes, reason = "an example for command lines")]
    #[arg(long, value_name = "LIST", value_parser = parse_selection)]
    counters: Option<Selection>,
}

/// The form in which histograms are exported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum HistogramKind {
    /// Quantiles of the last interval, with the count and sum of all measurements
    #[default]
    Summary,
    /// Buckets of exponential width, for .NET 10 and later; summaries for earlier versions
    Exponential,
}

fn parse_selection(list: &str) -> Result<Selection, String> {
    Selection::parse(list).map_err(|error| error.to_string())
}
