//! `dipc counters collect`: the counters of a process in a file.

use std::collections::BTreeMap;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueHint};
use clr_counters::Sample;
use nettrace::TraceInfo;

use crate::command::counters::live::{self, LiveArgs, SampleConsumer};
use crate::exit::{Failure, Outcome};
use crate::inspect::counters::{Clock, CounterFile, CounterFormat, CounterOrigin};
use crate::record::watch::WatchedProcess;
use crate::render::destination::Destination;
use crate::render::output_file::OutputFile;
use crate::render::{messages, output, units};

#[derive(Debug, Args)]
pub(crate) struct CollectArgs {
    #[command(flatten)]
    live: LiveArgs,
    /// Format of the file
    #[arg(long, value_enum, default_value_t = CounterFormat::Csv)]
    format: CounterFormat,
    /// Path of the file; an extension is added if it has none; '-' is standard output [default: counter]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &CollectArgs) -> Outcome {
    let path = path(args.output.as_deref().unwrap_or(Path::new("counter")), args.format);
    let is_standard_output = path.as_os_str() == "-";
    // Only the jsonl format names the process.
    let is_one_each = args.live.may_be_many() && args.format != CounterFormat::Jsonl;
    if is_one_each && is_standard_output {
        return Err(Failure::usage(
            "--output -: there may be several processes, and csv and json files hold one process each",
        )
        .with_help("--format jsonl writes all processes, with the process's name in each line"));
    }
    let out = match &args.output {
        _ if is_one_each => None,
        Some(_) => Some(Destination::open((!is_standard_output).then_some(&*path))?),
        None => Some(Destination::File(OutputFile::create_new(&path)?)),
    };
    let mut files = CounterFiles {
        path,
        is_one_each,
        format: args.format,
        interval: args.live.refresh_interval,
        out,
        files: BTreeMap::new(),
        origins: BTreeMap::new(),
        count: 0,
        reconnects: args.live.reconnects(),
    };
    let outcome = live::run(&args.live, &mut files);
    let closed = files.close();
    let exit = outcome?;
    closed?;
    Ok(exit)
}

/// The path; without an extension, it gets the format's.
fn path(path: &Path, format: CounterFormat) -> PathBuf {
    let is_whole = path.as_os_str() == "-" || path.extension().is_some();
    if is_whole { path.to_owned() } else { path.with_extension(format.extension()) }
}

/// The path of one file among several processes' files: `counter_4711.csv`.
fn path_of(path: &Path, process: &WatchedProcess) -> PathBuf {
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

/// The files that samples are written to: one for all processes, or one per process.
struct CounterFiles {
    path: PathBuf,
    is_one_each: bool,
    format: CounterFormat,
    interval: Duration,
    /// The destination of the common file, until a session runs.
    out: Option<Destination>,
    /// The files by process number; a file shared by all processes has the number 0.
    files: BTreeMap<usize, CounterFile<BufWriter<Destination>>>,
    /// The last process with each number.
    origins: BTreeMap<usize, Origin>,
    /// The number of values in completed files.
    count: u64,
    /// True if restarted processes are followed.
    reconnects: bool,
}

/// The origin of a process's samples.
struct Origin {
    of_file: CounterOrigin,
    /// True if its session has ended.
    has_ended: bool,
}

impl CounterFiles {
    /// Completes the files.
    fn close(mut self) -> Result<(), Failure> {
        // The session failed to start: remove the file if it did not exist before.
        self.out.take().into_iter().for_each(Destination::discard);
        if self.files.is_empty() {
            return Ok(());
        }
        while let Some((_, file)) = self.files.pop_first() {
            self.end_file(file)?;
        }
        messages::note(format_args!("Values         : {}", units::count(self.count)));
        Ok(())
    }

    /// Completes a file.
    fn end_file(&mut self, file: CounterFile<BufWriter<Destination>>) -> Result<(), Failure> {
        self.count += file.count;
        let out = file.end().map_err(|error| output::failed(&error))?;
        let out = out.into_inner().map_err(|error| output::failed(error.error()))?;
        out.close()
    }

    /// Returns true if a process continues the file of the previous one with its number: it is the same
    /// process, or its restart.
    fn goes_on(&self, process: &WatchedProcess, before: &Origin) -> bool {
        let Origin { of_file, has_ended } = before;
        let is_same = of_file.pid.is_some() && of_file.pid == process.pid;
        !has_ended || of_file.process == process.name && (self.reconnects || is_same)
    }

    /// Begins the file of a process, or the common file.
    fn open(
        &mut self,
        process: &WatchedProcess,
        origin: &CounterOrigin,
    ) -> Result<CounterFile<BufWriter<Destination>>, Failure> {
        let out = match self.out.take() {
            Some(out) => out,
            // Pids are reused.
            None => Destination::File(OutputFile::create_new(&path_of(&self.path, process))?),
        };
        messages::note(format_args!("Output File    : {out}"));
        CounterFile::begin(BufWriter::new(out), self.format, origin).map_err(|error| output::failed(&error))
    }
}

impl SampleConsumer for CounterFiles {
    fn begin(&mut self, process: &WatchedProcess, info: Option<&TraceInfo>) -> Result<(), Failure> {
        let origin = CounterOrigin {
            clock: Clock::of(info),
            process: process.name.clone(),
            pid: process.pid,
            interval: self.interval,
        };
        let number = if self.is_one_each { process.number } else { 0 };
        // A restarted process continues the previous file; a different process with the same number does not.
        if let Some(before) = self.origins.get(&process.number).filter(|_| self.is_one_each)
            && !self.goes_on(process, before)
            && let Some(file) = self.files.remove(&number)
        {
            self.end_file(file)?;
        }
        if !self.files.contains_key(&number) {
            let file = self.open(process, &origin)?;
            self.files.insert(number, file);
        }
        self.origins.insert(process.number, Origin { of_file: origin, has_ended: false });
        Ok(())
    }

    fn sample(&mut self, process: &WatchedProcess, sample: &Sample<'_>) -> Result<(), Failure> {
        let Some(origin) = self.origins.get(&process.number) else { return Ok(()) };
        let number = if self.is_one_each { process.number } else { 0 };
        match self.files.get_mut(&number) {
            Some(file) => file.write(sample, &origin.of_file).map_err(|error| output::failed(&error)),
            None => Ok(()),
        }
    }

    fn end(&mut self, process: &WatchedProcess) -> Result<(), Failure> {
        if let Some(origin) = self.origins.get_mut(&process.number) {
            origin.has_ended = true;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        for file in self.files.values_mut() {
            file.flush().map_err(|error| output::failed(&error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects from successive processes with the same number. Returns the names of the files.
    fn collect(reconnects: bool, processes: &[(&str, u32)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let mut files = CounterFiles {
            path: folder.path().join("c.csv"),
            is_one_each: true,
            format: CounterFormat::Csv,
            interval: Duration::from_secs(1),
            out: None,
            files: BTreeMap::new(),
            origins: BTreeMap::new(),
            count: 0,
            reconnects,
        };
        for (name, pid) in processes {
            let process = WatchedProcess { number: 0, name: Some((*name).to_owned()), pid: Some(*pid) };
            // The second session has the settings of the Meters' shared session.
            files.begin(&process, None).unwrap();
            files.begin(&process, None).unwrap();
            assert_eq!(files.files.len(), 1);
            files.end(&process).unwrap();
        }
        files.close().unwrap();
        let names =
            folder.path().read_dir().unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_process_of_the_same_name_has_a_file_of_its_own() {
        assert_eq!(collect(false, &[("web", 7), ("web", 8)]), ["c_7.csv", "c_8.csv"]);
        assert_eq!(
            collect(false, &[("web", 7), ("web", 8), ("web", 7)]),
            ["c_7.csv", "c_7_2.csv", "c_8.csv"]
        );
    }

    #[test]
    fn a_restarted_process_continues_its_file() {
        assert_eq!(collect(true, &[("web", 7), ("web", 8)]), ["c_7.csv"]);
        assert_eq!(collect(false, &[("web", 7), ("web", 7)]), ["c_7.csv"]);
        // The number belonged to a different process: there are too many.
        assert_eq!(collect(true, &[("web", 7), ("shop", 8)]), ["c_7.csv", "c_8.csv"]);
    }
}
