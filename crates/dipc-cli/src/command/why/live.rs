//! The evidence of a running process: a recording of a few seconds, with readings of its memory meanwhile.

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use clr_findings::{Evidence, ProcessEnd, ProcessIdentity, Readings};
use dipc_transport::ProcessState;
use nettrace_export::report::EventGroup;

use super::print::{Answer, Subject};
use super::{WhyArgs, missing_end, missing_memory};
use crate::args::source::{ManyProcesses, SourceArgs};
use crate::command::profile;
use crate::command::report::OverviewData;
use crate::command::trace::{self, News, ReadingsUse, RecordingEnd, TraceArgs, WrittenFiles};
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupts;
use crate::process::candidates::{application_name, command_line};
use crate::process::target::FoundTarget;
use crate::processors::no_thread;
use crate::record::source::{EndStatus, SourceSelector};
use crate::render::messages::{self, KeptWarnings};
use crate::render::units;

/// Maximum wait for the end of a program after the end of its recording, and of a process after that of its
/// runtime.
const END: Duration = Duration::from_secs(10);
/// The kernel's samples for each second that a thread runs: shares to 2 % in the default time, at a quarter
/// of the cost of a recording that is kept.
const FREQUENCY: u32 = 249;
/// The time between two looks at a process.
const TICK: Duration = Duration::from_millis(20);

/// Watches the process of the arguments, and prints what is wrong with it. A program that was started runs
/// on, and is waited for.
pub(super) fn run(args: &WhyArgs) -> Outcome {
    if args.source.process.process_ids.len() > 1 {
        return Err(Failure::usage("why: name one process with -p").with_help("--all watches all processes"));
    }
    let interrupts = Interrupts::watch()?;
    if let SourceSelector::Process(selector) = args.source.selector(false)? {
        FoundTarget::find(&selector, args.timeout)?;
    }
    watch(args, args.source.clone(), &interrupts, |answer, exit| args.present(&answer, exit))
}

/// Watches a process, and has `present` show what is wrong with it, with the exit code so far.
pub(super) fn watch(
    args: &WhyArgs,
    source: SourceArgs<ManyProcesses>,
    interrupts: &Interrupts,
    present: impl FnOnce(Answer, Exit) -> Outcome,
) -> Outcome {
    let folder =
        tempfile::tempdir().map_err(|error| Failure::new(Exit::Failed, format_args!("why: {error}")))?;
    let starts_program = !source.command.is_empty();
    let trace = TraceArgs {
        duration: Some(args.duration),
        timeout: args.timeout,
        output: Some(args.output.clone().unwrap_or_else(|| folder.path().join("why.nettrace"))),
        // A recording that is kept has all.
        frequency: args.output.is_none().then_some(FREQUENCY),
        some_exceptions: args.output.is_none(),
        readings: Some(args.output.as_ref().map_or(ReadingsUse::Following, |_| ReadingsUse::Recording)),
        ..profile::everything(source)
    };
    let warnings = KeptWarnings::default();
    let (sender, news) = mpsc::channel();
    thread::scope(|scope| {
        let record = || {
            let _keeping = warnings.keep();
            trace::record(&trace, interrupts, &WrittenFiles::followed(sender))
        };
        let recorder = thread::Builder::new().name("recorder".to_owned()).spawn_scoped(scope, record);
        let mut recorder = Some(recorder.map_err(|error| no_thread(&error))?);
        let watched = Watched::follow(&news);
        let outcome = recorder.take_if(|_| watched.is_finished).map(join).transpose();
        let code = outcome.as_ref().ok().and_then(|exit| (*exit)?.program());
        let (answer, exit) = watched.judge(args, outcome, &warnings)?;
        let presented = present(answer, exit)?;
        let code = match recorder {
            Some(recorder) => {
                if starts_program && !recorder.is_finished() {
                    messages::note("Waiting for the program to end; Ctrl-C ends it");
                }
                let code = join(recorder)?.program();
                if let Some(code) = code {
                    announce_end(code.into());
                }
                code
            }
            None => code,
        };
        Ok(presented.or_program(code))
    })
}

fn join(recorder: ScopedJoinHandle<'_, Outcome>) -> Outcome {
    let ended = || Err(Failure::new(Exit::Failed, "the thread of a recording has ended early"));
    recorder.join().unwrap_or_else(|_| ended())
}

/// A process that is watched.
#[derive(Debug, Default)]
struct Watched {
    pid: Option<u32>,
    process: ProcessIdentity,
    readings: Option<Readings>,
    recording: Option<PathBuf>,
    end: RecordingEnd,
    /// True if the recorder has nothing more to do: a program that it started has ended.
    is_finished: bool,
}

impl Watched {
    /// Follows a recording to its end, and that of a program that ends with it.
    fn follow(news: &Receiver<News>) -> Self {
        let mut watched = Self::default();
        loop {
            let next = match (&watched.recording, watched.end.has_ended) {
                (None, _) => news.recv().map_err(|_| RecvTimeoutError::Disconnected),
                (Some(_), true) => news.recv_timeout(END),
                (Some(_), false) => return watched,
            };
            match next {
                Ok(News::Starting { pid: Some(pid) }) => {
                    watched.pid = Some(pid);
                    watched.process = identity(pid);
                }
                Ok(News::Starting { pid: None }) => {}
                Ok(News::Read(readings)) => watched.readings = Some(*readings),
                Ok(News::Written { path, end }) => {
                    watched.recording = Some(path);
                    watched.end = end;
                }
                Err(error) => {
                    watched.is_finished = error == RecvTimeoutError::Disconnected;
                    return watched;
                }
            }
        }
    }

    /// Judges the recording and the readings. `recorded` is the outcome of a recorder that has finished.
    fn judge(
        mut self,
        args: &WhyArgs,
        recorded: Result<Option<Exit>, Failure>,
        warnings: &KeptWarnings,
    ) -> Result<(Answer, Exit), Failure> {
        let _keeping = warnings.keep();
        let without = || Readings::missing("the process is not known here");
        let readings = self.readings.take().unwrap_or_else(without);
        let evidence = Evidence::default().with_readings(&readings);
        let subject = Subject::Process { pid: self.pid, recording: args.output.clone() };
        let data = match (&self.recording, recorded) {
            (Some(path), recorded) => {
                let (data, exit) = OverviewData::read(path, &args.user_code.patterns())?;
                let end = data.end().or_else(|| self.exit(recorded.ok().flatten()));
                Ok((data, exit, end))
            }
            (None, Ok(_)) => Err(Failure::new(Exit::Failed, "why: nothing was recorded")),
            (None, Err(failure)) => Err(failure),
        };
        let end = data.as_ref().ok().and_then(|(_, _, end)| end.as_ref());
        let mut missing: Vec<_> = missing_memory(&readings, end).chain(warnings.take()).collect();
        match data {
            Ok((data, exit, end)) => {
                missing.extend(missing_end(&data));
                let process = self.process.or(data.process());
                let evidence = evidence
                    .with_recording(&data.reports)
                    .with_requested(&EventGroup::ALL)
                    .with_partial_exceptions(self.end.some_exceptions)
                    .with_end(end.as_ref())
                    .with_missing(&missing);
                // A recording is cut by the end of its process.
                let exit = if end.is_some() { Exit::Done } else { exit };
                Ok((Answer::new(process, &evidence, subject), exit))
            }
            // A runtime that does not answer is known by its memory.
            Err(failure) => {
                let end = self.pid.filter(|pid| is_gone(*pid)).map(unrecorded_end);
                if end.is_none() && readings.memory.is_empty() {
                    return Err(failure);
                }
                missing.push(format!("events and processor time: {failure}"));
                let evidence = evidence.with_end(end.as_ref()).with_missing(&missing);
                Ok((Answer::new(self.process, &evidence, subject), Exit::Done))
            }
        }
    }

    /// The exit of the process, if it has ended by itself. `recorded` has the code of a program that was
    /// started.
    fn exit(&self, recorded: Option<Exit>) -> Option<ProcessEnd> {
        if let Some(code) = recorded.and_then(Exit::program) {
            return Some(program_end(code.into()));
        }
        let pid = self.pid.filter(|pid| self.end.has_ended && awaits_end(*pid))?;
        Some(match EndStatus::of_zombie(pid) {
            Some(EndStatus::Code(code)) => ProcessEnd::exit(Some(code)),
            _ => ProcessEnd::exit(None),
        })
    }
}

/// The end of a program that was started, by its exit code, which has the signal that ended it as in a shell.
/// .NET exits with 128 and the number of other signals itself.
fn program_end(code: i32) -> ProcessEnd {
    const FATAL: [i32; 5] = [4, 6, 7, 9, 11];
    let mut end = ProcessEnd::exit(Some(code));
    let signal = FATAL.into_iter().find(|signal| code == 128 + signal).and_then(units::signal_name);
    if let Some(name) = signal {
        end.cause = format!("the process was ended by {name} (exit code {code})");
    }
    end
}

/// Says how a program has ended that was watched before.
fn announce_end(code: i32) {
    if code != 0 {
        let ProcessEnd { cause, .. } = program_end(code);
        messages::note(format_args!(
            "Ended          : {cause}; with a longer --duration it is watched to its end"
        ));
    }
}

/// The end of a process before its recording could be read.
fn unrecorded_end(pid: u32) -> ProcessEnd {
    let cause = "the process ended before it could be recorded";
    match EndStatus::of_zombie(pid) {
        Some(status) => ProcessEnd::new(format!("{cause}: {status}")),
        None => ProcessEnd::new(cause),
    }
}

/// Waits for the end of a process with a runtime that has ended. Returns false if it does not end.
fn awaits_end(pid: u32) -> bool {
    let begin = Instant::now();
    while !is_gone(pid) {
        if begin.elapsed() > END {
            return false;
        }
        thread::sleep(TICK);
    }
    true
}

fn is_gone(pid: u32) -> bool {
    matches!(dipc_transport::process_state(pid), Ok(ProcessState::Gone | ProcessState::Zombie))
}

/// The process as the system describes it.
pub(super) fn identity(pid: u32) -> ProcessIdentity {
    let name = dipc_transport::process_name(pid).ok().map(|name| application_name(pid, &name));
    ProcessIdentity::default()
        .with_process_id(Some(u64::from(pid)))
        .with_name(name)
        .with_command_line(Some(command_line(pid)).filter(|line| !line.is_empty()))
        .with_runtime(dipc_doctor::runtime_version(pid))
}
