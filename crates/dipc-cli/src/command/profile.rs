//! `dipc profile`: records everything about a process at once, and shows it as a page and an overview.
//!
//! A preset of `trace` with the same recorder, followed by `convert` and `report`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{ArgGroup, Args, ValueHint};
use dipc_client::{ALL_PROFILE, Profile};
use dipc_collect::{KeptFiles, Retention};
use jiff::Zoned;

use crate::args::flight::FlightArgs;
use crate::args::format::ConvertFormat;
use crate::args::names::NameArgs;
use crate::args::selection::SelectionArgs;
use crate::args::source::{ManyProcesses, SOURCES, SourceArgs};
use crate::args::stopping::StoppingArgs;
use crate::command::report;
use crate::command::trace::{
    self, Buffering, DEFAULT_LIMIT_PERCENT, MachineArgs, ReadingsUse, TraceArgs, WrittenFile, WrittenFiles,
    snapshot_name,
};
use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::export::{Export, ExportFormat, sibling_path};
use crate::inspect::names::names_path;
use crate::inspect::thread_times::threads_path;
use crate::interrupt::Interrupts;
use crate::record::notes::report_removal;
use crate::record::requested_events::in_words;
use crate::render::{browser, messages, shell};
use crate::size;

/// Megabytes of the buffer in the process, as for `trace`.
const BUFFER_MB: u32 = 256;

/// The default limit for each of the runtime's answers.
const TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).args(SOURCES))]
pub(crate) struct ProfileArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs<ManyProcesses>,
    /// Path of the result, or of the recording next to it [default: APPNAME_PID_yyyyMMdd_HHmmss.nettrace,
    /// .html]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Format of the result, as for convert; nettrace for the recording alone
    #[arg(short, long, value_enum, ignore_case = true, default_value = "html")]
    pub(crate) format: ConvertFormat,
    /// Stop after this time: 30s, 1m30s, 500ms or dd:hh:mm:ss [default: until Ctrl-C or the end of the
    /// process]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) duration: Option<Duration>,
    /// Open the page in the browser
    #[arg(long)]
    pub(crate) open: bool,
    /// Record one file after another, each for this time and with its own page: 1h
    ///
    /// Nothing is recorded while the runtime lists its methods between two files. The limits on files count a
    /// recording, its page and the files next to it as one.
    #[arg(long = "loop", value_name = "TIME", value_parser = parse_round, conflicts_with_all = ["command", "diagnostic_port"])]
    pub(crate) round: Option<Duration>,
    /// Remove the oldest recording of this run when there are more than this many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "round")]
    pub(crate) keep_files: Option<u32>,
    /// Remove the oldest recordings of this run when their total size is larger
    #[arg(long, value_name = "SIZE", value_parser = size::parse, requires = "round")]
    pub(crate) keep_total: Option<u64>,
    /// Remove recordings of this run that are older than this whenever another is written
    #[arg(long, value_name = "TIME", value_parser = duration::parse, requires = "round")]
    pub(crate) keep_age: Option<Duration>,
    /// Also record each task, await and item of the thread pool: shows how long requests were queued
    ///
    /// The events slow down a program of many small tasks: 80 µs per task were measured.
    #[arg(long)]
    pub(crate) tasks: bool,
    /// Samples by the kernel for each second that a thread runs [default: 997]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) frequency: Option<u32>,
    /// Let the started program use this terminal; Ctrl-C then reaches it too
    #[arg(long, requires = "command")]
    pub(crate) show_child_io: bool,
    #[command(flatten)]
    pub(crate) names: NameArgs,
    /// Exit with 7 if the runtime lost events
    #[arg(long)]
    pub(crate) fail_on_loss: bool,
    /// Time limit for each of the runtime's answers, and for its silence after the stop
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "20s")]
    pub(crate) timeout: Duration,
}

pub(crate) fn run(args: &ProfileArgs) -> Outcome {
    let format = args.format.export_format();
    if args.output.as_deref().is_some_and(|path| path.as_os_str() == "-") {
        return Err(Failure::usage("profile writes several files: name one with -o"));
    }
    if args.open && format != Some(ExportFormat::Page) {
        return Err(Failure::usage("--open is for pages: leave out --format"));
    }
    let output = args.output.as_deref().map(|path| recording_path(path, format)).transpose()?;
    let presenter = Presenter { args, format, interrupts: Interrupts::watch()? };
    match args.round {
        Some(round) => presenter.repeat(output.as_deref(), round),
        None => presenter.record_once(output),
    }
}

/// Returns the path of the recording for a path that the user gave for the result, or for the recording.
fn recording_path(path: &Path, format: Option<ExportFormat>) -> Result<PathBuf, Failure> {
    let name = path.file_name().and_then(|name| name.to_str());
    let (Some(format), Some(name)) = (format, name) else { return Ok(path.to_owned()) };
    let result = sibling_path(Path::new("x.nettrace"), format)?;
    let ending = result.to_string_lossy();
    let ending = ending.trim_start_matches('x');
    if name.ends_with(".nettrace") {
        return Ok(path.to_owned());
    }
    let stem = name.strip_suffix(ending).filter(|stem| !stem.is_empty()).unwrap_or(name);
    Ok(path.with_file_name(format!("{stem}.nettrace")))
}

fn parse_round(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        Duration::ZERO => Err("a time of zero records nothing".to_owned()),
        time => Ok(time),
    }
}

/// The recorder, and the results of its recordings.
#[derive(Debug)]
struct Presenter<'a> {
    args: &'a ProfileArgs,
    /// The format of the result; `None` for the recording alone.
    format: Option<ExportFormat>,
    interrupts: Interrupts,
}

impl Presenter<'_> {
    fn record_once(&self, output: Option<PathBuf>) -> Outcome {
        let written = WrittenFiles::presented();
        let outcome = trace::record(&self.trace(output, self.args.duration), &self.interrupts, &written);
        let mut presented = Exit::Done;
        for file in written.take() {
            let (exit, _) = self.interrupts.while_computing(|| self.present(&file.path));
            presented = presented.join(exit);
            let overview = || report::overview(&file.path, &file.absent);
            presented = presented.join(or_warn(self.interrupts.while_computing(overview)));
        }
        // The code of a started program counts if nothing of this one failed.
        Ok(match outcome? {
            // The recording of a program that has crashed ends in the middle.
            program @ Exit::Program(1..) if presented == Exit::Incomplete => program,
            program @ Exit::Program(_) if presented != Exit::Done => {
                messages::detail(format_args!("the program ended with {}", program.code()));
                presented
            }
            exit => exit.join(presented),
        })
    }

    /// Records one file after the other, until the time is over, an interrupt, or the end of the process.
    fn repeat(&self, output: Option<&Path>, round: Duration) -> Outcome {
        let start = Instant::now();
        let left = || self.args.duration.map(|most| most.saturating_sub(start.elapsed()));
        let limits = self.retention();
        let mut kept = KeptFiles::default();
        let mut all = Exit::Done;
        let mut has_recorded = false;
        let mut failed = None;
        while self.interrupts.count() == 0 && left() != Some(Duration::ZERO) {
            let time = left().map_or(round, |left| left.min(round));
            let path = output.map(|path| snapshot_name(path, &Zoned::now()));
            let written = WrittenFiles::presented();
            match trace::record(&self.trace(path, Some(time)), &self.interrupts, &written) {
                Ok(exit) => {
                    all = all.join(exit);
                    failed.take().iter().for_each(|failure: &Failure| messages::warning(failure));
                }
                // The process was reachable before, so it has ended.
                Err(failure) if has_recorded && failure.exit == Exit::NotReachable => {
                    messages::note(format_args!("Ended          : {failure}"));
                    return Ok(all);
                }
                // The process may have ended meanwhile, which the next attempt shows.
                Err(failure) if has_recorded && failed.is_none() => failed = Some(failure),
                Err(failure) => return Err(failed.unwrap_or(failure)),
            }
            for WrittenFile { path: file, absent } in written.take() {
                if let Some(absent) = in_words(&absent) {
                    messages::note(format_args!("None happened  : {absent}"));
                }
                has_recorded = true;
                let (exit, result) = self.interrupts.while_finishing(|| self.present(&file));
                all = all.join(exit);
                messages::note(format_args!("Overview       : dipc report {}", shell::path(&file)));
                let beside =
                    [names_path(&file), threads_path(&file)].into_iter().filter(|path| path.is_file());
                let files: Vec<_> = [file.clone()].into_iter().chain(result).chain(beside).collect();
                let sizes = files.iter().filter_map(|path| fs::metadata(path).ok());
                let bytes = sizes.map(|metadata| metadata.len()).sum();
                kept.add(files, bytes, &limits, report_removal);
            }
        }
        match failed {
            Some(failure) if self.interrupts.count() == 0 => Err(failure),
            _ => Ok(all),
        }
    }

    /// Writes the result of a recording. A failure is a warning: the recording is there.
    fn present(&self, file: &Path) -> (Exit, Option<PathBuf>) {
        let Some(format) = self.format else { return (Exit::Done, None) };
        let mut export = Export::beside(file, format, self.args.names.form());
        // The user has named it, by the name of the recording.
        let named = sibling_path(file, format);
        if let (Ok(path), true) = (&named, self.args.output.is_some()) {
            export.output = Some(path);
        }
        match export.write_named() {
            Ok((exit, path)) => {
                if let Some(path) = path.as_deref().filter(|_| self.args.open) {
                    browser::open(path);
                }
                (exit, path)
            }
            Err(failure) => (or_warn(Err(failure)), None),
        }
    }

    fn retention(&self) -> Retention {
        Retention::default()
            .with_files(self.args.keep_files.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
            .with_bytes(self.args.keep_total)
            .with_age(self.args.keep_age)
    }

    /// The recording, in the terms of `trace`.
    fn trace(&self, output: Option<PathBuf>, duration: Option<Duration>) -> TraceArgs {
        let args = self.args;
        let mut trace = everything(args.source.clone());
        trace.selection.profile.extend(args.tasks.then_some("tasks").and_then(Profile::find));
        TraceArgs {
            output,
            duration,
            frequency: args.frequency,
            show_child_io: args.show_child_io,
            names: args.names,
            readings: Some(ReadingsUse::Recording),
            fail_on_loss: args.fail_on_loss,
            timeout: args.timeout,
            ..trace
        }
    }
}

/// Returns the recording of everything about a process, in the terms of `trace`.
pub(crate) fn everything(source: SourceArgs<ManyProcesses>) -> TraceArgs {
    TraceArgs {
        source,
        machine: MachineArgs::default(),
        output: None,
        duration: None,
        selection: SelectionArgs {
            profile: Profile::find(ALL_PROFILE).into_iter().collect(),
            ..SelectionArgs::default()
        },
        buffersize: BUFFER_MB,
        buffering_mode: Buffering::default(),
        rundown: None,
        no_names: false,
        no_thread_times: false,
        resume_runtime: true,
        user_events: false,
        cpu: true,
        off_cpu: true,
        native_alloc: None,
        native_alloc_limit: DEFAULT_LIMIT_PERCENT,
        frequency: None,
        stopping: StoppingArgs::default(),
        flight: FlightArgs::default(),
        follow: false,
        show_child_io: false,
        format: None,
        names: NameArgs::default(),
        some_exceptions: false,
        spares_unloading: true,
        readings: None,
        fail_on_loss: false,
        timeout: TIMEOUT,
    }
}

/// Returns the exit code of a step after the recording, and warns of its failure.
fn or_warn(outcome: Outcome) -> Exit {
    outcome.unwrap_or_else(|failure| {
        if failure.exit != Exit::Done {
            messages::warning(&failure);
        }
        failure.exit
    })
}

#[cfg(test)]
mod tests {
    use nettrace_export::Format;

    use super::*;

    #[test]
    fn the_recording_is_next_to_the_result() {
        let page = Some(ExportFormat::Page);
        for (path, format, expected) in [
            ("out/a.html", page, "out/a.nettrace"),
            ("a.nettrace", page, "a.nettrace"),
            ("a", page, "a.nettrace"),
            ("a.b", page, "a.b.nettrace"),
            (".html", page, ".html.nettrace"),
            ("a.speedscope.json", Some(ExportFormat::Profile(Format::Speedscope)), "a.nettrace"),
            ("a", None, "a"),
        ] {
            assert_eq!(recording_path(Path::new(path), format).unwrap(), PathBuf::from(expected), "{path}");
        }
    }

    #[test]
    fn a_round_takes_time() {
        assert_eq!(parse_round("1h"), Ok(Duration::from_secs(3600)));
        assert!(parse_round("0s").is_err());
    }
}
