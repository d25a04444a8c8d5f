//! `dipc counters read`: the counters of a recording.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use clr_counters::{Counters, Sample, Selection};

use crate::command::counters::CounterSelectionArgs;
use crate::exit::{Failure, Outcome};
use crate::inspect::counters::{
    Clock, CounterFile, CounterFormat, CounterOrigin, Summary, report_notices, unselected_help,
};
use crate::inspect::recording::Recording;
use crate::inspect::rewrite::refuse_input;
use crate::render::destination::Destination;
use crate::render::output;
use crate::render::output_file::NameOrigin;

/// The number of bytes collected for one write.
const BUFFER: usize = 1 << 16;

#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// The recording; '-' is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    selection: CounterSelectionArgs,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: ReadFormat,
    /// The file to write to [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

/// The format of the counters of a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReadFormat {
    /// For people: each counter's last, mean, minimum and maximum value
    #[default]
    Table,
    /// As dotnet-counters writes it: one line per value
    Csv,
    /// The same, with quotes around fields that contain commas: RFC 4180
    StrictCsv,
    /// As dotnet-counters writes it: one object
    Json,
    /// One object per line, with everything that the runtime sent
    Jsonl,
}

impl ReadFormat {
    const fn file_format(self) -> Option<CounterFormat> {
        match self {
            Self::Table => None,
            Self::Csv => Some(CounterFormat::Csv),
            Self::StrictCsv => Some(CounterFormat::StrictCsv),
            Self::Json => Some(CounterFormat::Json),
            Self::Jsonl => Some(CounterFormat::Jsonl),
        }
    }
}

pub(crate) fn run(args: &ReadArgs) -> Outcome {
    let file_format = args.format.file_format();
    if file_format.is_none() && args.output.is_some() {
        return Err(Failure::usage("a table is for people: choose --format csv, json or jsonl for a file"));
    }
    let output = args.output.as_deref().filter(|output| output.as_os_str() != "-");
    if let Some(output) = output {
        refuse_input(&[&args.file], output)?;
    }
    let (events, origin) = Recording::open(&args.file)?.into_parts();
    let selection = args.selection.counters.clone().unwrap_or_else(Selection::everything);
    let mut counters = Counters::new(selection);
    let mut out = Destination::create(output, NameOrigin::User)?;
    let of = CounterOrigin {
        clock: Clock::of(events.info()),
        // A recording does not name its process, but dotnet-counters' JSON does.
        process: (args.format == ReadFormat::Json)
            .then(|| args.file.file_stem().unwrap_or_default().to_string_lossy().into_owned()),
        pid: None,
        interval: Duration::from_secs(1),
    };
    let mut values = match file_format {
        Some(format) => {
            let file = CounterFile::begin(BufWriter::with_capacity(BUFFER, &mut out), format, &of);
            Values::File { file: file.map_err(|error| output::failed(&error))?, origin: of, written: Ok(()) }
        }
        None => Values::Table(Summary::default()),
    };
    let mut events = events.in_time_order_of(Counters::needs);
    while values.are_wanted()
        && let Some(event) = events.next().map_err(|error| origin.failed(&error))?
    {
        counters.add(&event, |sample| values.add(&sample));
    }
    counters.finish(|sample| values.add(&sample));
    let exit = origin.report_damage(events.events());
    report_notices(&counters, None);
    let table = values.end().map_err(|error| out.failed(&error))?;
    if counters.series().is_empty() {
        out.discard();
        let failure = Failure::new(
            exit.or_failed(),
            format_args!("{}: the recording has no values of the requested counters", args.file.display()),
        );
        return Err(match unselected_help(counters.unselected()) {
            Some(help) => failure.with_help(help),
            None => failure.with_help("record them: dipc counters collect -p PID, or dipc trace with --providers and EventCounterIntervalSec"),
        });
    }
    if let Some(table) = table {
        output::print(table)?;
    }
    out.close()?;
    Ok(exit)
}

/// The samples of a recording, on their way to the output.
enum Values<W: Write> {
    Table(Summary),
    /// `written` is the output's error, after which nothing more is written.
    File {
        file: CounterFile<W>,
        origin: CounterOrigin,
        written: io::Result<()>,
    },
}

impl<W: Write> Values<W> {
    fn add(&mut self, sample: &Sample<'_>) {
        match self {
            Self::Table(summary) => summary.add(sample),
            Self::File { file, origin, written } => {
                if written.is_ok() {
                    *written = file.write(sample, origin);
                }
            }
        }
    }

    const fn are_wanted(&self) -> bool {
        !matches!(self, Self::File { written: Err(_), .. })
    }

    /// Completes the file, or returns the table.
    fn end(self) -> io::Result<Option<String>> {
        match self {
            Self::Table(summary) => Ok(Some(summary.table())),
            Self::File { file, written, .. } => written.and_then(|()| file.end()).map(|_| None),
        }
    }
}
