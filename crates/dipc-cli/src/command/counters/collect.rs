//! `dipc counters collect`: the counters of a process in a file.

use std::collections::BTreeMap;
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
    let is_standard_output = path.as_os_str() == "-";
    // Only lines name their process.
    let is_one_each = args.live.may_be_many() && args.format != CounterFormat::Jsonl;
    if is_one_each && is_standard_output {
        return Err(Failure::usage(
            "--output -: there may be several processes, and csv and json files have one each",
        )
        .with_help("--format jsonl has all in one, a process's name in each line"));
    }
    let out =
        if is_one_each { None } else { Some(Destination::open((!is_standard_output).then_some(&*path))?) };
    let mut files = CounterFiles {
        path,
        is_one_each,
        format: args.format,
        interval: args.live.refresh_interval,
        out,
        files: Vec::new(),
        origins: BTreeMap::new(),
    };
    let outcome = live::run(&args.live, &mut files);
    let closed = files.close();
    let exit = outcome?;
    closed?;
    Ok(exit)
}

/// The path with the extension of the format, where it has none.
fn path(path: &Path, format: CounterFormat) -> PathBuf {
    let is_whole = path.as_os_str() == "-" || path.extension().is_some();
    if is_whole { path.to_owned() } else { path.with_extension(format.extension()) }
}

/// The path of the file of one of several processes: `counter_4711.csv`.
fn path_of(path: &Path, process: &Process) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(match process.pid {
        Some(pid) => format!("_{pid}"),
        None => format!("_{}", process.number),
    });
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// The files that samples go to: one for all processes, or one each.
struct CounterFiles {
    path: PathBuf,
    is_one_each: bool,
    format: CounterFormat,
    interval: Duration,
    /// The destination of the one file, until a session runs.
    out: Option<Destination>,
    files: Vec<CounterFile<BufWriter<Destination>>>,
    /// The process of each number, and which file its samples go to.
    origins: BTreeMap<usize, (CounterOrigin, usize)>,
}

impl CounterFiles {
    /// Completes the files.
    fn close(self) -> Result<(), Failure> {
        // There was no session: a file that was not there before is none afterwards.
        self.out.into_iter().for_each(Destination::discard);
        if self.files.is_empty() {
            return Ok(());
        }
        let mut count = 0;
        for file in self.files {
            count += file.count;
            let out = file.end().map_err(|error| output::failed(&error))?;
            let out = out.into_inner().map_err(|error| output::failed(error.error()))?;
            out.close()?;
        }
        messages::note(format_args!("Values         : {}", units::count(count)));
        Ok(())
    }

    /// Begins the file of a process, or the one of all.
    fn open(&mut self, process: &Process, origin: &CounterOrigin) -> Result<(), Failure> {
        let out = match self.out.take() {
            Some(out) => out,
            None => Destination::open(Some(&path_of(&self.path, process)))?,
        };
        messages::note(format_args!("Output File    : {out}"));
        let file = CounterFile::begin(BufWriter::new(out), self.format, origin);
        self.files.push(file.map_err(|error| output::failed(&error))?);
        Ok(())
    }
}

impl SampleConsumer for CounterFiles {
    fn begin(&mut self, process: &Process, info: Option<&TraceInfo>) -> Result<(), Failure> {
        let origin = CounterOrigin {
            clock: Clock::of(info),
            process: process.name.clone(),
            pid: process.pid,
            interval: self.interval,
        };
        // A process that has started again goes on in the file of the one before.
        let known = self.origins.get(&process.number).map(|(_, file)| *file);
        let shared = (!self.is_one_each && !self.files.is_empty()).then_some(0);
        let file = known.or(shared);
        if file.is_none() {
            self.open(process, &origin)?;
        }
        let file = file.unwrap_or(self.files.len().saturating_sub(1));
        self.origins.insert(process.number, (origin, file));
        Ok(())
    }

    fn sample(&mut self, process: &Process, sample: &Sample<'_>) -> Result<(), Failure> {
        let Some((origin, file)) = self.origins.get(&process.number) else { return Ok(()) };
        match self.files.get_mut(*file) {
            Some(file) => file.write(sample, origin).map_err(|error| output::failed(&error)),
            None => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        for file in &mut self.files {
            file.flush().map_err(|error| output::failed(&error))?;
        }
        Ok(())
    }
}
