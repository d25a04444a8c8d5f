//! `dipc memory`: the resident memory of a process, or the memory in a core dump, by its owners.

mod table;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum, ValueHint};
use clr_dump::Runtime;
use dipc_collect::memory::{MemoryPage, MemoryReading, MemoryReport};

use crate::args::format::Format;
use crate::args::target::{TARGETS, TargetArgs};
use crate::duration;
#[cfg(target_os = "linux")]
use crate::exit::Exit;
use crate::exit::{Failure, Outcome};
use crate::inspect::core_source::Source;
use crate::render::destination::Destination;
use crate::render::output_file::NameOrigin;
use crate::render::{output, width};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("measured").required(true).arg("core").args(TARGETS))]
pub(crate) struct MemoryArgs {
    /// A core dump instead of a process; - is standard input
    #[arg(value_name = "CORE", value_hint = ValueHint::FilePath)]
    core: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    parts: PartsArgs,
    /// Read the process again at this interval, at least 1s, until Ctrl+C or its end: which owners grow, in
    /// bytes a minute
    #[arg(long, value_name = "TIME", value_parser = parse_interval, conflicts_with_all = ["core", "parts"])]
    watch: Option<Duration>,
    /// Stop --watch after this time
    #[arg(long, value_name = "TIME", value_parser = duration::parse, requires = "watch")]
    duration: Option<Duration>,
    /// Format of the output; with --watch, json is one object a line, and dipc diff compares two of them
    #[arg(long, value_enum, default_value_t)]
    format: MemoryFormat,
    /// Path of the page for --format html [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

/// The parts of owners in the output.
#[derive(Debug, Args)]
pub(crate) struct PartsArgs {
    /// List the parts of each owner below the table: threads, files, mappings
    #[arg(long)]
    parts: bool,
    /// Number of parts to list for each owner, the largest first; with --watch, of owners that changed
    #[arg(long = "rows", value_name = "N", default_value_t = 10)]
    rows: usize,
}

/// The format of an account of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum MemoryFormat {
    /// For people
    #[default]
    Table,
    /// For programs, and as a snapshot for dipc diff
    Json,
    /// A page with bars of the owners and their parts; opens in any browser, loads nothing
    Html,
}

/// Minimum time between two readings: one can take more than a second.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = duration::parse(text)?;
    if interval < MIN_INTERVAL {
        return Err("the shortest interval is 1s: a reading can take as long".to_owned());
    }
    Ok(interval)
}

pub(crate) fn run(args: &MemoryArgs) -> Outcome {
    if args.output.is_some() && args.format != MemoryFormat::Html {
        return Err(Failure::usage(
            "--output FILE is for --format html; other formats go to standard output",
        ));
    }
    let source = args.target.core_or_memory(args.core.as_deref())?;
    if let Some(interval) = args.watch {
        return watch::run(args, &source, interval);
    }
    match args.format {
        MemoryFormat::Table => print(&source, &args.parts, Format::Table)?,
        MemoryFormat::Json => print(&source, &args.parts, Format::Json)?,
        MemoryFormat::Html => {
            let reading = read(&source, source.runtime().as_ref())?;
            let page = MemoryPage::of_reading(&reading, &title(args, &source));
            let out = Destination::create(args.output.as_deref(), NameOrigin::User)?;
            out.write_with(|out| page.write(out))?;
        }
    }
    Ok(source.exit())
}

/// Prints the memory of a process or a core dump by its owners.
pub(crate) fn print(source: &Source, parts: &PartsArgs, format: Format) -> Result<(), Failure> {
    let reading = read(source, source.runtime().as_ref())?;
    match format {
        Format::Json => output::print_json(&MemoryReport::new(&reading)),
        Format::Table => {
            let rows = parts.parts.then_some(parts.rows);
            output::print(table::text(&reading, rows, width::of_output()))
        }
    }
}

/// The title of a page: the file, or the process.
fn title(args: &MemoryArgs, source: &Source) -> String {
    let name = args.core.as_ref().and_then(|core| Some(core.file_name()?.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| source.subject())
}

/// Reads the memory of a source, with the runtime that was found in it.
fn read(source: &Source, runtime: Result<&Runtime, &Failure>) -> Result<MemoryReading, Failure> {
    let runtime = runtime.map_err(|failure| &*failure.message);
    match source {
        Source::Core(core) => Ok(MemoryReading::of_core(core, runtime)),
        #[cfg(target_os = "linux")]
        Source::Process(memory) => MemoryReading::of_process(memory, runtime).map_err(|error| {
            let what = format_args!("read the mappings of process {}: {error}", memory.pid()).to_string();
            Failure::new(Exit::NotReachable, what)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_not_shorter_than_a_reading() {
        assert_eq!(parse_interval("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_interval("1s"), Ok(Duration::from_secs(1)));
        for text in ["0s", "999ms", "10", "", "-1s"] {
            assert!(parse_interval(text).is_err(), "{text}");
        }
    }
}
