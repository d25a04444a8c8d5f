//! `dipc counters collect`: the counters of a process in a file.

use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueHint};
use clr_counters::Sample;
use nettrace::TraceInfo;

use crate::command::counters::live::{self, LiveArgs, Process, SampleConsumer};
use crate::exit::{Failure, Outcome};
use crate::inspect::counters::{Clock, CounterFile, CounterFormat, CounterOrigin};
use crate::render::destination::Destination;
use crate::render::{messages, output, units};

#[derive(Debug, Args)]
pub(crate) struct CollectArgs {
    #[command(flatten)]
    live: LiveArgs,
    /// Format of the file
    #[arg(long, value_enum, default_value_t = CounterFormat::Csv)]
    format: CounterFormat,
    /// Path of the file, whose extension is added if it has none; '-' is standard output
    #[arg(short, long, value_name = "FILE", default_value = "counter", value_hint = ValueHint::FilePath)]
    output: PathBuf,
}

pub(crate) fn run(args: &CollectArgs) -> Outcome {
    let path = path(&args.output, args.format);
    let out =
        if path.as_os_str() == "-" { Destination::open(None)? } else { Destination::open(Some(&path))? };
    let mut file =
        Collected { out: Some(out), file: None, format: args.format, interval: args.live.refresh_interval };
    let outcome = live::run(&args.live, &mut file);
    let closed = file.close();
    let exit = outcome?;
    closed?;
    Ok(exit)
}

/// The path with the extension of the format, where it has none.
fn path(path: &Path, format: CounterFormat) -> PathBuf {
    let is_whole = path.as_os_str() == "-" || path.extension().is_some();
    if is_whole { path.to_owned() } else { path.with_extension(format.extension()) }
}

/// The file that samples go to.
struct Collected {
    /// The destination, until the session runs.
    out: Option<Destination>,
    file: Option<CounterFile<BufWriter<Destination>>>,
    format: CounterFormat,
    interval: Duration,
}

impl Collected {
    /// Completes the file.
    fn close(self) -> Result<(), Failure> {
        let Some(file) = self.file else {
            // There was no session: a file that was not there before is none afterwards.
            self.out.into_iter().for_each(Destination::discard);
            return Ok(());
        };
        let count = file.count;
        let out = file.end().map_err(|error| output::failed(&error))?;
        let out = out.into_inner().map_err(|error| output::failed(error.error()))?;
        messages::note(format_args!("Values         : {}", units::count(count)));
        out.close()
    }
}

impl SampleConsumer for Collected {
    fn begin(&mut self, process: &Process, info: Option<&TraceInfo>) -> Result<(), Failure> {
        let Some(out) = self.out.take() else { return Ok(()) };
        messages::note(format_args!("Output File    : {out}"));
        let origin = CounterOrigin {
            clock: Clock::of(info),
            process: process.name.clone().unwrap_or_default(),
            interval: self.interval,
        };
        let file = CounterFile::begin(BufWriter::new(out), self.format, origin);
        self.file = Some(file.map_err(|error| output::failed(&error))?);
        Ok(())
    }

    fn sample(&mut self, sample: &Sample<'_>) -> Result<(), Failure> {
        match &mut self.file {
            Some(file) => file.write(sample).map_err(|error| output::failed(&error)),
            None => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        match &mut self.file {
            Some(file) => file.flush().map_err(|error| output::failed(&error)),
            None => Ok(()),
        }
    }
}
