//! `dipc counters list`: the counters that .NET has by itself, or that a process has.

mod process;

use std::time::Duration;

use clap::{ArgGroup, Args};
use clr_counters::Selection;
use clr_counters::known::{KnownProvider, PROVIDERS};
use serde::Serialize;

use crate::args::format::Format;
use crate::args::source::{SOURCES, SourceArgs};
use crate::duration;
use crate::exit::{Exit, Outcome};
use crate::render::output;
use crate::render::table::{Align, Columns, heading};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").args(SOURCES))]
pub(crate) struct ListArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// EventSources of the program: 'NAME,NAME'; lists all Meters, but EventCounters only of .NET and of the
    /// EventSources named here
    #[arg(long, value_name = "LIST", value_parser = super::parse_selection, requires = "source")]
    counters: Option<Selection>,
    /// Time limit for each of the runtime's answers
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration::parse)]
    timeout: Duration,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(args: &ListArgs) -> Outcome {
    if args.source.is_given() {
        return process::run(args);
    }
    match args.format {
        Format::Table => output::print(table(PROVIDERS))?,
        Format::Json => output::print_json(&PROVIDERS.iter().map(listed).collect::<Vec<_>>())?,
    }
    Ok(Exit::Done)
}

fn table(providers: &[KnownProvider]) -> String {
    use Align::Left;
    let mut text = String::new();
    for provider in providers {
        let kind = if provider.is_meter { "Meter" } else { "EventCounters" };
        let since = match provider.since {
            "" => String::new(),
            since => format!(", since {since}"),
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&heading(&format!("{} ({kind}{since})", provider.name)));
        let mut columns = Columns::new([("COUNTER", Left), ("UNIT", Left), ("MEANING", Left)]);
        for counter in provider.counters {
            let meaning = if counter.kind.is_empty() { counter.display_name } else { counter.kind };
            columns.row([counter.name.to_owned(), counter.unit.to_owned(), meaning.to_owned()]);
        }
        text.push_str(&columns.fitted(&["MEANING"]));
    }
    text
}

/// A provider as it is printed.
#[derive(Serialize)]
struct ListedProvider<'a, C> {
    provider: &'a str,
    is_meter: bool,
    /// For a provider of .NET, the first version that has it; empty if all do.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<&'a str>,
    /// For a provider of a process, the Meter's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    counters: Vec<C>,
}

/// A counter of .NET as it is printed.
#[derive(Serialize)]
struct ListedKnownCounter {
    name: &'static str,
    unit: &'static str,
    kind: &'static str,
    display_name: &'static str,
}

fn listed(provider: &KnownProvider) -> ListedProvider<'static, ListedKnownCounter> {
    let counters = provider.counters.iter().map(|counter| ListedKnownCounter {
        name: counter.name,
        unit: counter.unit,
        kind: if counter.kind.is_empty() { "EventCounter" } else { counter.kind },
        display_name: counter.display_name,
    });
    ListedProvider {
        provider: provider.name,
        is_meter: provider.is_meter,
        since: Some(provider.since),
        version: None,
        counters: counters.collect(),
    }
}
