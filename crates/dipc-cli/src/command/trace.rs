//! `dipc trace`: records the events of a .NET process.

mod args;
mod native;
mod request;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use clr_conditions::Condition;
use clr_findings::Readings;
use dipc_client::{PortRuntime, Rundown, Session, SessionConfig, Startup};
use dipc_collect::Retention;
use dipc_collect::names::UnloadableCode;
use dipc_collect::readings::BackgroundReader;
use dipc_collect::staged::folder_of;
use dipc_wire::{Keywords, Level};
use jiff::Zoned;
use nettrace_export::NameForm;
use nettrace_export::report::EventGroup;

use crate::args::format::ConvertFormat;
use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::export::{Export, ExportFormat, sibling_path};
use crate::interrupt::Interrupts;
use crate::process::peer::local_process;
use crate::process::target::TargetSelector;
use crate::record::additions::Additions;
use crate::record::exceptions::ExceptionsRecorder;
use crate::record::flight::{
    CrashDump, CrashSources, FileNames, FlightRecorder, FlightSettings, FlightSummary, RotatingRecorder,
    check_output, dump_variables,
};
use crate::record::kernel_samples::{KernelSampler, RUNTIME_SAMPLER, RuntimeEvents, SampleSettings};
use crate::record::names::{record_names, report_names};
use crate::record::notes::Messages;
use crate::record::recorder::{self, Limits, RecordingResult};
use crate::record::requested_events::{in_words, requested_groups};
use crate::record::selection::Selection;
use crate::record::session::{
    is_native_aot, resume, resume_other, start_unless_interrupted, warn_without_sampler,
};
use crate::record::sink::Sink;
use crate::record::source::{Child, ChildEnd, EndStatus, PortWatcher, Source, SourceSelector};
use crate::record::stopping_event::StoppingEvent;
use crate::record::thread_times::AccountStart;
use crate::render::{messages, shell, units};
use native::NativeProcess;
use request::Elsewhere;

pub(crate) use args::{Buffering, DEFAULT_LIMIT_PERCENT, ReadingsUse, TraceArgs};

/// Maximum wait between checks for recordings that have ended.
const TICK: Duration = Duration::from_millis(50);
/// Maximum wait for the exit of a program after the end of its runtime.
const EXIT: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &TraceArgs) -> Outcome {
    let interrupts = Interrupts::watch()?;
    if !args.show_child_io {
        interrupts.watch_enter();
    }
    record(args, &interrupts, &WrittenFiles::default())
}

/// Records until the end of the process, of the time, or an interrupt. The paths of finished recordings are
/// added to `written`, if its owner presents them; otherwise a note names the command that does.
pub(crate) fn record(args: &TraceArgs, interrupts: &Interrupts, written: &WrittenFiles) -> Outcome {
    let mut sources = args.sources()?;
    let crash_dump = args.flight.dump_on.map(|_| have_it_dump_itself(&mut sources, args)).transpose()?;
    let kernel_samples = args.kernel_samples()?;
    if sources.len() > 1 {
        refuse_standard_output("several processes", args)?;
    }
    if kernel_samples.is_some() {
        refuse_standard_output("--cpu, --off-cpu, --native-alloc and --user-events", args)?;
    }
    let mut selection = Selection::new(&args.selection.request())?;
    // The kernel's samples replace the runtime's, unless the latter are requested or the only ones available.
    let is_replaced = args.user_events || !args.selection.request().names_sampler();
    let without_sampler = (kernel_samples.is_some() && is_replaced).then(|| selection.without_sampler());
    let flight = args.flight.settings();
    if let Some(flight) = &flight {
        flight.check_storage()?;
    }
    let rotation = args.flight.rotate.map(|size| (size, args.flight.retention()));
    if let Some(condition) = &args.flight.snapshot_on {
        selection.include(condition.requests(), "--snapshot-on");
        warn_of_patterns(condition, &selection);
    }
    let format = format(args, &selection)?;
    let stopping_event = stopping_event(args, &selection)?;
    if flight.is_some() || rotation.is_some() {
        refuse_standard_output("--keep and --rotate", args)?;
        check_output(args.output.as_deref().unwrap_or("trace.nettrace".as_ref()))?;
    }
    if flight.is_some() {
        interrupts.watch_snapshots()?;
    }
    // At a port, print the selection before waiting; elsewhere, steps that can fail at once run first.
    let waits_at_port = matches!(sources[..], [SourceSelector::Port(_)]);
    if waits_at_port {
        without_sampler.as_ref().unwrap_or(&selection).announce();
    }
    let mut settings = RecordingSettings {
        collect: SessionConfig::new(selection.configs())
            .with_buffer_mb(args.buffersize)
            .with_buffer_mode(args.buffering_mode.into())
            .with_rundown(selection.rundown(args.rundown)),
        selection,
        is_announced: waits_at_port,
        output: args.output.clone(),
        format,
        names: args.names.form(),
        keeps_names: !args.no_names,
        keeps_thread_times: !args.no_thread_times,
        resume: args.resume_runtime,
        fail_on_loss: args.fail_on_loss,
        // As in dotnet-trace, a duration of zero means no limit.
        duration: args.duration.filter(|duration| !duration.is_zero()),
        timeout: args.timeout,
        interrupts: interrupts.clone(),
        follows: args.follow,
        stopping_event,
        flight,
        rotation,
        child: None,
        crash_dump,
        kernel_samples,
        without_sampler,
        user_events: args.user_events,
        some_exceptions: args.some_exceptions,
        spares_unloading: args.spares_unloading,
        readings: args.readings,
        written: written.clone(),
    };
    let [selector] = &sources[..] else { return run_all(&sources, settings) };
    let mut early = None;
    let mut source = match settings.open(selector, &mut early)? {
        Opened::Runtime(source) => source,
        Opened::Native(native) => return settings.sample_native(&native, false),
        Opened::Ended(exit) => return Ok(exit),
    };
    let mut child = source.child.take();
    settings.child = child.as_ref().map(Child::end);
    let (sender, outcomes) = mpsc::channel();
    let followed = Arc::new(AtomicUsize::new(0));
    // Kept to the end: no runtime may wait forever, and commands for the recorded one go through the port.
    let _watcher = source.port.take().map(|port| {
        let (settings, followed) = (args.follow.then(|| settings.clone()), Arc::clone(&followed));
        PortWatcher::start(port, move |runtime| {
            if let Some(settings) = &settings {
                followed.fetch_add(1, Ordering::AcqRel);
                follow(runtime, settings.clone(), sender.clone());
            } else {
                resume_other(&runtime);
            }
        })
    });
    let mut outcome = settings.run(&source, early, false, || {
        // The program waits to be resumed, which will not happen.
        child.iter_mut().for_each(Child::kill);
    });
    let code = child.map(|child| child.wait(interrupts)).transpose();
    // Recordings of followed runtimes end with their process, or with the interrupts.
    let mut ended = 0;
    while ended < followed.load(Ordering::Acquire) {
        if let Ok(other) = outcomes.recv_timeout(TICK) {
            outcome = join_outcomes(outcome, other);
            ended += 1;
        }
    }
    Ok(outcome?.or_program(code?))
}

/// Sets the variables that make the runtime of a started program dump it in a crash. Returns whether it has
/// them.
fn have_it_dump_itself(sources: &mut [SourceSelector], args: &TraceArgs) -> Result<bool, Failure> {
    let [SourceSelector::Program { variables, .. }] = sources else { return Ok(false) };
    *variables = dump_variables(args.output.as_deref().unwrap_or("trace.nettrace".as_ref()))?;
    Ok(!variables.is_empty())
}

/// Records several processes at the same time, each in a file of its own. All are found before the first
/// recording begins.
fn run_all(sources: &[SourceSelector], mut settings: RecordingSettings) -> Outcome {
    let open = |source| settings.open(source, &mut None);
    let opened = sources.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    // A warning says which of the processes the kernel does not sample.
    settings.without_sampler.as_ref().unwrap_or(&settings.selection).announce();
    settings.is_announced = true;
    settings.follows = true;
    let settings = &settings;
    thread::scope(|scope| {
        let record = |opened: &Opened| match opened {
            Opened::Runtime(source) => settings.run(source, None, true, || {}),
            Opened::Native(native) => settings.sample_native(native, true),
            Opened::Ended(exit) => Ok(*exit),
        };
        let threads: Vec<_> = opened.iter().map(|opened| scope.spawn(move || record(opened))).collect();
        let outcomes = threads.into_iter().map(|thread| {
            let ended = || Err(Failure::new(Exit::Failed, "the thread of a recording has ended early"));
            thread.join().unwrap_or_else(|_| ended())
        });
        outcomes.fold(Ok(Exit::Done), join_outcomes)
    })
}

/// The format that recordings are also converted to. A conflict is reported now rather than after the
/// recording.
fn format(args: &TraceArgs, selection: &Selection) -> Result<Option<ExportFormat>, Failure> {
    let format = args.format.and_then(ConvertFormat::export_format);
    if format.is_some() && args.output.as_deref().is_some_and(|path| path.as_os_str() == "-") {
        return Err(Failure::usage("--format needs a recording in a file: name one with -o"));
    }
    if let Some(format) = format {
        args.output.as_deref().map(|path| sibling_path(path, format)).transpose()?;
        if format != ExportFormat::Events && !selection.samples_threads() {
            messages::warning(
                "--format shows the time of threads, which --profile dotnet-sampled-thread-time records; use dipc convert --by for what is recorded here",
            );
        }
    }
    Ok(format)
}

/// The event that ends the session, if there is one.
fn stopping_event(args: &TraceArgs, selection: &Selection) -> Result<Option<StoppingEvent>, Failure> {
    let event = args.stopping.event_among(selection);
    if args.user_events && event.is_some() {
        return Err(Failure::usage(
            "--stopping-event-provider-name ends a session with a stream: events of --user-events are read after it",
        )
        .with_help("--duration ends it, or Ctrl-C"));
    }
    Ok(event)
}

/// Warns of providers that a condition needs but that cannot be requested from a runtime.
fn warn_of_patterns(condition: &Condition, selection: &Selection) {
    let configs = selection.configs();
    let names: Vec<_> = configs.iter().map(|config| &*config.name).collect();
    for provider in condition.unrequested_providers(&names) {
        messages::warning(format_args!(
            "--snapshot-on: provider {provider}: runtimes take full names, not patterns; list the providers with --providers"
        ));
    }
}

/// Refuses standard output, which cannot take several files.
fn refuse_standard_output(flags: &str, args: &TraceArgs) -> Result<(), Failure> {
    if args.output.as_deref().is_some_and(|path| path.as_os_str() == "-") {
        return Err(Failure::usage(format_args!("{flags} need a file: name one with -o")));
    }
    Ok(())
}

/// The settings of the recording of each runtime.
#[derive(Debug, Clone)]
struct RecordingSettings {
    selection: Selection,
    /// True if the selection was printed already.
    is_announced: bool,
    collect: SessionConfig,
    output: Option<PathBuf>,
    /// The format that each recording is also converted to.
    format: Option<ExportFormat>,
    /// The form of names in that format.
    names: NameForm,
    /// True to keep the names that a recording without its end would lack.
    keeps_names: bool,
    /// True to keep the kernel's thread accounting with samples of threads.
    keeps_thread_times: bool,
    resume: bool,
    fail_on_loss: bool,
    duration: Option<Duration>,
    timeout: Duration,
    interrupts: Interrupts,
    /// True if other runtimes may be recorded at the same time.
    follows: bool,
    stopping_event: Option<StoppingEvent>,
    flight: Option<FlightSettings>,
    /// The size of each file, and the limits on the files that are kept.
    rotation: Option<(u64, Retention)>,
    /// The program that was started, if one was.
    child: Option<ChildEnd>,
    /// If a crash is to leave a core dump: true if the program was configured to dump itself.
    crash_dump: Option<bool>,
    /// The samples to request from the kernel.
    kernel_samples: Option<SampleSettings>,
    /// The selection to use if the kernel samples the process.
    without_sampler: Option<Selection>,
    /// True if the runtime writes its events to the kernel, beside the samples.
    user_events: bool,
    /// True to record exceptions in a session of their own, which ends once they are many.
    some_exceptions: bool,
    /// True to take the names of methods from memory if the runtime could end while it lists them.
    spares_unloading: bool,
    /// The use of readings of the process beside its events.
    readings: Option<ReadingsUse>,
    written: WrittenFiles,
}

/// The readers of a process beside its session.
struct BesideSession {
    account: Option<AccountStart>,
    sampler: Option<KernelSampler>,
    exceptions: Option<ExceptionsRecorder>,
    /// The code to take names from, in place of the runtime's list.
    code: Option<UnloadableCode>,
    reader: Option<BackgroundReader>,
}

/// The finished recordings, for a command that presents them.
#[derive(Debug, Clone, Default)]
pub(crate) struct WrittenFiles {
    files: Option<Arc<Mutex<Vec<WrittenFile>>>>,
    news: Option<mpsc::Sender<News>>,
}

/// A finished recording.
#[derive(Debug)]
pub(crate) struct WrittenFile {
    pub(crate) path: PathBuf,
    /// The groups of events that were requested, but did not happen.
    pub(crate) absent: Vec<EventGroup>,
}

/// A step of a recording, for a command that works beside it.
#[derive(Debug)]
pub(crate) enum News {
    /// The session of a process is about to start.
    Starting { pid: Option<u32> },
    /// The process was read beside its events, also if it could not be recorded.
    Read(Box<Readings>),
    /// The recording is complete. A program that was started may still run.
    Written { path: PathBuf, end: RecordingEnd },
}

/// The end of a recording.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RecordingEnd {
    /// True if it has ended by itself, most likely with its process.
    pub(crate) has_ended: bool,
    /// True if exceptions were recorded for a part of the time: they were many.
    pub(crate) some_exceptions: bool,
}

impl WrittenFiles {
    /// A list of recordings that its owner presents.
    pub(crate) fn presented() -> Self {
        Self { files: Some(Arc::default()), news: None }
    }

    /// Has the steps of recordings sent to a command that presents them. The cause of a crash is written next
    /// to the recording of each process.
    pub(crate) fn followed(news: mpsc::Sender<News>) -> Self {
        Self { news: Some(news), ..Self::presented() }
    }

    /// Returns true if another command presents the recordings.
    const fn are_presented(&self) -> bool {
        self.files.is_some()
    }

    const fn are_followed(&self) -> bool {
        self.news.is_some()
    }

    /// Takes the files that were added.
    pub(crate) fn take(&self) -> Vec<WrittenFile> {
        let lock = |files: &Arc<Mutex<Vec<WrittenFile>>>| {
            std::mem::take(&mut *files.lock().unwrap_or_else(PoisonError::into_inner))
        };
        self.files.as_ref().map(lock).unwrap_or_default()
    }

    fn tell(&self, news: News) {
        if let Some(sender) = &self.news {
            // The receiver is gone if the command has failed.
            let _ = sender.send(news);
        }
    }

    fn tell_readings(&self, readings: &Readings) {
        if self.are_followed() {
            self.tell(News::Read(Box::new(readings.clone())));
        }
    }

    /// Adds a recording, or prints a note with the command that shows it: `report` after the file.
    fn add(&self, path: &Path, report: &str, absent: Vec<EventGroup>, end: RecordingEnd) {
        self.tell(News::Written { path: path.to_owned(), end });
        match &self.files {
            Some(files) => {
                let file = WrittenFile { path: path.to_owned(), absent };
                files.lock().unwrap_or_else(PoisonError::into_inner).push(file);
            }
            None => {
                messages::note(format_args!("Overview       : dipc report {}{report}", shell::path(path)));
            }
        }
    }
}

/// A process that was found, or started.
#[derive(Debug)]
enum Opened {
    Runtime(Box<Source>),
    Native(NativeProcess),
    /// A program without a runtime, which was sampled until its end.
    Ended(Exit),
}

/// Records another runtime that has connected to the port.
fn follow(runtime: PortRuntime, settings: RecordingSettings, outcomes: mpsc::Sender<Outcome>) {
    thread::spawn(move || {
        let source = Source::from_runtime(&runtime, settings.timeout);
        let outcome = settings.run(&source, None, true, || {});
        // The receiver is gone if the program ends first.
        let _ = outcomes.send(outcome);
    });
}

/// Joins the outcomes of two recordings as [`Exit::join`] does. A second failure is only a warning.
fn join_outcomes(one: Outcome, other: Outcome) -> Outcome {
    match (one, other) {
        (Ok(Exit::Done), other) => other,
        (Ok(one), Ok(other)) => Ok(one.join(other)),
        (Ok(one), Err(failure)) => {
            let exit = one.join(failure.exit);
            messages::warning(failure);
            Ok(exit)
        }
        (Err(one), other) => {
            other.err().into_iter().for_each(messages::warning);
            Err(one)
        }
    }
}

impl RecordingSettings {
    /// Records a runtime; `not_begun` is called if the session fails to start. A program that was started has
    /// an `early` sampler.
    fn run(
        &self,
        source: &Source,
        early: Option<KernelSampler>,
        beside_others: bool,
        not_begun: impl FnOnce(),
    ) -> Outcome {
        if self.flight.is_some() || self.rotation.is_some() {
            self.announce_selection(beside_others);
            warn_without_sampler(&source.target, &self.selection);
            let session = start_unless_interrupted(&source.target, &self.collect, &self.interrupts);
            return match session {
                Ok(session) => self.watch(source, session, beside_others),
                Err(failure) => {
                    not_begun();
                    Err(failure)
                }
            };
        }
        let has_sampler = self.selection.samples_threads() && !is_native_aot(&source.target).unwrap_or(false);
        // Without any sampler, the account is all that is left.
        let is_wanted = self.keeps_thread_times && (has_sampler || self.kernel_samples.is_some());
        let account = AccountStart::read(source.pid.filter(|_| is_wanted));
        self.written.tell(News::Starting { pid: source.pid });
        let code = self.unloadable_code(source);
        // Memory is read of a runtime that does not answer, too.
        let reader = self.start_reader(source);
        match self.begin(source, early, beside_others, (has_sampler, code.is_none())) {
            Ok((session, sink, sampler)) => {
                let account = account.filter(|_| has_sampler || sampler.is_none());
                let exceptions = self.start_exceptions(source);
                let beside = BesideSession { account, sampler, exceptions, code, reader };
                self.record(source, session, sink, beside, beside_others)
            }
            Err(failure) => {
                not_begun();
                if let Some(reader) = reader.filter(|_| self.written.are_followed()) {
                    self.written.tell_readings(&reader.finish());
                }
                Err(failure)
            }
        }
    }

    /// Starts the kernel's sampling of a process. If sampling is not available, a warning gives the reason
    /// and names the replacement.
    ///
    /// # Errors
    /// If native allocations or events of the kernel were requested and are not available: nothing replaces
    /// them.
    fn sample(
        &self,
        source: &Source,
        sink: &Sink,
        has_sampler: bool,
    ) -> Result<Option<KernelSampler>, Failure> {
        let (Some(settings), Some(folder)) = (self.kernel_samples, sink.path().map(folder_of)) else {
            return Ok(None);
        };
        let started = local_process(source.pid, &source.target).and_then(|pid| {
            let events = self.start_user_events(source)?;
            Ok(KernelSampler::start(pid, settings, events, folder, &mut Messages)?)
        });
        let failure = match started {
            Ok(sampler) => {
                describe_samples(&sampler);
                return Ok(Some(sampler));
            }
            Err(failure) => failure,
        };
        if settings.native_allocations.is_some() || self.user_events {
            return Err(failure);
        }
        messages::warning(failure);
        if has_sampler {
            messages::effect(format_args!("recording with the runtime's own sampler: {RUNTIME_SAMPLER}"));
            messages::note("Samples        : by the runtime");
        } else if self.keeps_thread_times {
            messages::warning(
                "this program has no sampler of its own: recording the processor time of each thread once a second, from /proc, without stacks",
            );
            messages::note("Samples        : none; times of threads");
        } else {
            messages::note("Samples        : none");
        }
        Ok(None)
    }

    /// Has the runtime write its events to the kernel, if it is wanted.
    fn start_user_events(&self, source: &Source) -> Result<Option<RuntimeEvents>, Failure> {
        if !self.user_events {
            return Ok(None);
        }
        let selection = self.without_sampler.as_ref().unwrap_or(&self.selection);
        Ok(Some(RuntimeEvents::prepare(&source.target, selection.configs())?))
    }

    /// Finds the source. If it is a process that cannot be reached, and the kernel's samples are requested,
    /// it is sampled without its runtime. A program that is started gets an `early` sampler.
    fn open(&self, source: &SourceSelector, early: &mut Option<KernelSampler>) -> Result<Opened, Failure> {
        // Without a runtime there would be no events, and probes are in the libraries that a program has once
        // its runtime connects.
        let samples = self.kernel_samples.filter(|_| !self.user_events);
        let alone = samples.filter(|samples| samples.native_allocations.is_none());
        if let (SourceSelector::Program { command, show_io, .. }, Some(samples)) = (source, alone) {
            return self.start(command, *show_io, samples, early);
        }
        let failure = match Source::open(source, self.timeout, &self.interrupts) {
            Ok(source) => return Ok(Opened::Runtime(Box::new(source))),
            Err(failure) => failure,
        };
        let Some(samples) = samples.filter(|_| failure.exit == Exit::NotReachable) else {
            return Err(failure);
        };
        let found = match source {
            SourceSelector::Process(TargetSelector::Pid(pid)) => {
                dipc_transport::process_name(*pid).ok().map(|name| (*pid, name))
            }
            SourceSelector::Process(TargetSelector::Name(name)) => native::process_of_name(name)?,
            _ => None,
        };
        match found {
            Some((pid, name)) => Ok(Opened::Native(NativeProcess { pid, name, samples, reason: failure })),
            None => Err(failure),
        }
    }

    /// Runs the flight recorder on a session: keeps the last events and writes them when there is a reason
    /// to, or writes one file after the other.
    fn watch(&self, source: &Source, session: Session, beside_others: bool) -> Outcome {
        let limits = self.limits(source);
        let (output, name, pid) = (self.output.clone(), source.name.clone(), source.pid);
        let file_name: FileNames = Box::new(move || match (&output, pid.filter(|_| beside_others)) {
            (Some(path), Some(pid)) => snapshot_name(&with_pid(path, pid), &Zoned::now()),
            (Some(path), None) => snapshot_name(path, &Zoned::now()),
            (None, _) => file_name(name.as_deref().unwrap_or("trace"), pid, &Zoned::now()),
        });
        let stopping_event = self.stopping_event.clone();
        let lists_methods = self.keeps_names && self.lists_methods();
        let is_starting =
            lists_methods && source.target.startup().is_ok_and(|startup| startup == Startup::Suspended);
        let needs_help = self.selection.level_of_methods() == Some(Level::INFORMATIONAL);
        let begin = |what: fmt::Arguments<'_>| {
            if self.resume {
                resume(&source.target);
            }
            source.announce();
            messages::note(what);
        };
        let (end, summary) = if let Some(flight) = &self.flight {
            let capacity = flight.capacity;
            let mut recorder = FlightRecorder::new(
                flight.clone(),
                self.interrupts.clone(),
                stopping_event,
                self.duration,
                file_name,
            );
            if lists_methods {
                recorder.list_methods(&source.target, needs_help, is_starting);
            }
            // A followed runtime is not the program that dipc started.
            let dump = self.crash_dump.map(|is_told| CrashDump {
                has_our_names: is_told && !beside_others,
                folder: folder_of(self.output.as_deref().unwrap_or("trace.nettrace".as_ref())).to_owned(),
            });
            recorder.watch_for_crash(
                &source.target,
                self.child.clone().filter(|_| !beside_others),
                dump.as_ref(),
            );
            let bytes = units::bytes(capacity.bytes);
            match capacity.time {
                Some(time) => {
                    let time = duration::display(time);
                    begin(format_args!("Keeping        : the last {time}, {bytes} at most"));
                }
                None => begin(format_args!("Keeping        : the last {bytes}")),
            }
            let end = recorder::run(session, &mut recorder, &limits);
            let end = end.inspect_err(|_| recorder.finish_begun())?;
            let summary = recorder.finish(&end, &source.target)?;
            (end, summary)
        } else {
            let (size, retention) = self.rotation.unwrap_or_default();
            let mut recorder =
                RotatingRecorder::new(size, retention, stopping_event, self.duration, file_name);
            if lists_methods {
                recorder.list_methods(&source.target, needs_help, is_starting);
            }
            begin(format_args!("Output Files   : {} each", units::bytes(size)));
            let end = recorder::run(session, &mut recorder, &limits)?;
            let summary = recorder.finish(&end)?;
            (end, summary)
        };
        let FlightSummary { text, lost, damage, has_crashed_as_asked, failure } = summary;
        messages::note(text);
        let exit = if has_crashed_as_asked {
            damage
        } else {
            end.report("the written part was kept", "kept")?.join(damage)
        };
        if let Some(failure) = failure {
            // The failure was reported when it happened.
            return Ok(exit.join(failure.exit));
        }
        if exit == Exit::Done && self.fail_on_loss && lost > 0 {
            return Ok(Exit::EventsLost);
        }
        Ok(exit)
    }

    fn limits(&self, source: &Source) -> Limits {
        Limits::new(&source.target, source.pid, self.timeout, &self.interrupts).with_duration(self.duration)
    }

    /// Returns true if the runtime lists its methods at the end.
    fn lists_methods(&self) -> bool {
        match self.collect.rundown {
            Rundown::Default => true,
            Rundown::Keyword(keywords) => keywords.intersects(Keywords::METHODS),
            _ => false,
        }
    }

    /// Starts the session, and opens its file.
    fn begin(
        &self,
        source: &Source,
        early: Option<KernelSampler>,
        beside_others: bool,
        (has_sampler, lists_methods): (bool, bool),
    ) -> Result<(Session, Sink, Option<KernelSampler>), Failure> {
        let mut sink = self.open_sink(source, beside_others)?;
        // The runtime may belong to another process, which the program has started.
        let sampler = match early {
            Some(sampler) if Some(sampler.pid()) == source.pid => {
                messages::note(format_args!("Samples        : {}", sampler.description()));
                Some(sampler)
            }
            early => {
                drop(early.map(KernelSampler::finish));
                match self.sample(source, &sink, has_sampler) {
                    Ok(sampler) => sampler,
                    Err(failure) => {
                        sink.discard();
                        return Err(failure);
                    }
                }
            }
        };
        let without_sampler = self.without_sampler.as_ref().filter(|_| sampler.is_some());
        let selection = without_sampler.unwrap_or(&self.selection);
        if !self.is_announced && !beside_others {
            selection.announce();
        }
        warn_without_sampler(&source.target, selection);
        let elsewhere = Elsewhere {
            without_sampler,
            all: self.user_events,
            exceptions: self.some_exceptions,
            names: !lists_methods,
        };
        let collect = elsewhere.taken_from(&self.collect);
        match start_unless_interrupted(&source.target, &collect, &self.interrupts) {
            Ok(session) => {
                sink.begin()?;
                Ok((session, sink, sampler))
            }
            Err(failure) => {
                // This also removes the sampler's file.
                drop(sampler.map(KernelSampler::finish));
                sink.discard();
                Err(failure)
            }
        }
    }

    /// Records a running session.
    fn record(
        &self,
        source: &Source,
        session: Session,
        mut sink: Sink,
        BesideSession { account, sampler, exceptions, code, reader }: BesideSession,
        beside_others: bool,
    ) -> Outcome {
        let limits = self.limits(source);
        let account = account.and_then(|start| {
            if let Some(path) = sink.path().filter(|path| path.is_file()) {
                start.record(path)
            } else {
                messages::note(
                    "Thread times   : none: the kernel's accounting of threads is kept next to a file",
                );
                None
            }
        });
        let names = self.needs_names(&sink).filter(|_| code.is_none()).map(|path| {
            let is_starting = source.target.startup().is_ok_and(|startup| startup == Startup::Suspended);
            record_names(&source.target, &self.selection, path, is_starting)
        });
        // A followed runtime is not the program that dipc started.
        let child = self.child.clone().filter(|_| !beside_others);
        let crash = (child.is_some() || self.written.are_followed())
            .then(|| CrashSources::new(&source.target, child, None));
        if self.resume {
            resume(&source.target);
        }
        announce(source, &sink, &session);
        let recorded = recorder::record(session, &mut sink, &limits, self.stopping_event.clone());
        if let Some(account) = account {
            account.finish();
        }
        let samples = sampler.map(KernelSampler::finish);
        let mut readings = reader.map(BackgroundReader::finish);
        if let Some(readings) = &mut readings {
            let has_ended = recorded.as_ref().is_ok_and(RecordingResult::has_ended);
            readings.exit_code = self.exit_code(has_ended && !beside_others);
            self.written.tell_readings(readings);
        }
        let readings = readings.filter(|_| self.readings == Some(ReadingsUse::Recording));
        let exceptions = exceptions.and_then(|exceptions| or_warn(exceptions.finish()));
        let some_exceptions = exceptions.as_ref().is_some_and(|exceptions| exceptions.are_partial);
        let crash =
            crash.filter(|_| recorded.as_ref().is_ok_and(|recorded| recorded.has_crashed(&source.target)));
        let is_whole = recorded.as_ref().is_ok_and(RecordingResult::is_whole);
        let output = sink.to_string();
        let path = sink.path().map(Path::to_owned);
        // The recording with all events replaces this one, so it must be closed first.
        drop(sink);
        let exceptions = exceptions.map(|exceptions| exceptions.file);
        let user_events = samples.as_ref().and_then(|samples| samples.as_ref().ok());
        let user_events = user_events.map_or(0, |samples| samples.summary().events);
        let additions = Additions { samples, exceptions, code, readings };
        let merged = path.as_ref().filter(|_| !additions.is_empty()).map(|path| {
            let requested = requested_groups(&self.selection.configs());
            additions.merge_into(path, &requested, self.fail_on_loss)
        });
        if let Ok(recorded) = &recorded {
            let bytes = merged.as_ref().and(path.as_ref()).and_then(|path| path.metadata().ok());
            messages::note(recorded.summary(&output, user_events, bytes.map(|file| file.len())));
        }
        let absent = match &recorded {
            Ok(recorded) if !self.user_events => recorded.absent_events(&self.selection.configs()),
            _ => Vec::new(),
        };
        if let Some(absent) = in_words(&absent).filter(|_| !self.written.are_presented()) {
            messages::note(format_args!("None happened  : {absent}"));
        }
        if let Some(names) = names {
            report_names(names.finish(!is_whole));
        }
        let merged_exit = merged.transpose()?.unwrap_or(Exit::Done);
        let recorded = recorded?;
        let has_ended = recorded.has_ended();
        let exit = match (crash, &path) {
            (Some(mut crash), Some(path)) => {
                describe_crash(&mut crash, path);
                // The program's code says the rest.
                recorded.report_inside(self.fail_on_loss)
            }
            _ => recorded.report(self.fail_on_loss)?,
        };
        let exit = exit.join(merged_exit);
        let converted = match (self.format, path) {
            (Some(format), Some(path)) => {
                let export = || Export::beside(&path, format, self.names).write();
                // Other recordings may still be written, so that only the third request ends the program.
                if self.follows { export()? } else { self.interrupts.while_computing(export)? }
            }
            (None, Some(path)) => {
                self.written.add(&path, "", absent, RecordingEnd { has_ended, some_exceptions });
                Exit::Done
            }
            (_, None) => Exit::Done,
        };
        Ok(exit.join(converted))
    }

    /// Starts the session of exceptions, if they have one. A failure is a warning.
    fn start_exceptions(&self, source: &Source) -> Option<ExceptionsRecorder> {
        let start = || ExceptionsRecorder::start(&source.target, source.pid, self.timeout, &self.interrupts);
        self.some_exceptions.then(start).and_then(or_warn)
    }

    /// The exit code of the program that was started, if its recording has ended with it.
    fn exit_code(&self, has_ended: bool) -> Option<i32> {
        match self.child.as_ref().filter(|_| has_ended)?.wait(EXIT)? {
            EndStatus::Code(code) => Some(code),
            EndStatus::Signal(_) | EndStatus::Unknown => None,
        }
    }

    /// Starts to read the process, if it is wanted. Without a thread, nothing is read.
    fn start_reader(&self, source: &Source) -> Option<BackgroundReader> {
        BackgroundReader::start(source.pid.filter(|_| self.readings.is_some())?, self.duration).ok()
    }

    /// The code of a process whose runtime is not asked to list its methods, because it could end meanwhile.
    fn unloadable_code(&self, source: &Source) -> Option<UnloadableCode> {
        let code = source.pid.filter(|_| self.spares_unloading && self.lists_methods())?;
        let code = UnloadableCode::find(code)?;
        messages::note(
            "Names          : from memory: the program has load contexts, and its runtime could end while it lists methods",
        );
        Some(code)
    }

    /// Returns the path of a recording that needs a companion file with names: a file that should end with
    /// the list of all methods.
    fn needs_names<'s>(&self, sink: &'s Sink) -> Option<&'s Path> {
        let is_wanted = self.keeps_names && self.lists_methods();
        sink.path().filter(|path| is_wanted && path.is_file())
    }

    /// Prints the selection, once.
    fn announce_selection(&self, beside_others: bool) {
        if !self.is_announced && !beside_others {
            self.selection.announce();
        }
    }

    /// Opens the file of a runtime: the user's file, or a new file named after the process. If several
    /// runtimes are recorded, the name of the user's file gets the pid.
    fn open_sink(&self, source: &Source, beside_others: bool) -> Result<Sink, Failure> {
        match (&self.output, source.pid.filter(|_| beside_others)) {
            (Some(path), Some(pid)) => Sink::create_new(&with_pid(path, pid)),
            (Some(path), None) => Sink::open(path),
            (None, _) => {
                let name = source.name.as_deref().unwrap_or("trace");
                Sink::create_new(&file_name(name, source.pid, &Zoned::now()))
            }
        }
    }
}

/// Prints the kind of samples, and the cost of probes.
fn describe_samples(sampler: &KernelSampler) {
    messages::note(format_args!("Samples        : {}", sampler.description()));
    if let Some(probes) = sampler.probes() {
        messages::note(format_args!("Probes         : {probes}"));
    }
}

/// The value of a step that the recording does without; its failure is a warning.
fn or_warn<T>(result: Result<T, Failure>) -> Option<T> {
    result.map_err(messages::warning).ok()
}

/// Prints how the started program ended, and writes it to a file next to its recording.
fn describe_crash(crash: &mut CrashSources, recording: &Path) {
    let end = crash.await_end();
    match crash.describe(recording, &end, None) {
        Ok(description) => description.print(),
        Err(failure) => messages::warning(failure),
    }
}

fn announce(source: &Source, sink: &Sink, session: &Session) {
    source.announce();
    messages::note(format_args!("Output File    : {sink}"));
    messages::detail(format_args!(
        "Session        : {} by {} at {}",
        session.id(),
        session.command(),
        source.target.address()
    ));
}

/// `<appname>_<pid>_<yyyyMMdd>_<HHmmss>.nettrace` in local time: as dotnet-trace names its files, plus the
/// pid, because every `dotnet app.dll` has the same name.
fn file_name(process: &str, pid: Option<u32>, now: &Zoned) -> PathBuf {
    // A process may call itself anything.
    let mut name: String =
        process.chars().map(|c| if c.is_control() || c == '/' { '_' } else { c }).collect();
    if name.starts_with('-') {
        // Commands would mistake it for a flag.
        name.replace_range(..1, "_");
    }
    let pid = pid.map(|pid| format!("_{pid}")).unwrap_or_default();
    format!("{name}{pid}_{}.nettrace", now.strftime("%Y%m%d_%H%M%S")).into()
}

/// `out.nettrace` becomes `out_20210315_111514.nettrace`.
pub(crate) fn snapshot_name(path: &Path, now: &Zoned) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(now.strftime("_%Y%m%d_%H%M%S").to_string());
    name.push(".");
    name.push(path.extension().unwrap_or("nettrace".as_ref()));
    path.with_file_name(name)
}

/// `out.nettrace` for process 7 becomes `out.7.nettrace`.
fn with_pid(path: &Path, pid: u32) -> PathBuf {
    if path.as_os_str() == "-" {
        return format!("trace.{pid}.nettrace").into();
    }
    match path.extension() {
        Some(extension) => path.with_extension(format!("{pid}.{}", extension.to_string_lossy())),
        None => path.with_extension(pid.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_as_dotnet_trace_names_them_with_the_pid() {
        let now = jiff::civil::date(2021, 3, 15).at(11, 15, 14, 0).to_zoned(jiff::tz::TimeZone::UTC).unwrap();
        assert_eq!(file_name("myapp", Some(7), &now), PathBuf::from("myapp_7_20210315_111514.nettrace"));
        assert_eq!(file_name("-rf", Some(7), &now), PathBuf::from("_rf_7_20210315_111514.nettrace"));
        assert_eq!(file_name("../a\n", None, &now), PathBuf::from(".._a__20210315_111514.nettrace"));
    }

    #[test]
    fn file_names_of_several_processes_have_their_pids() {
        for (path, expected) in
            [("out/a.b.nettrace", "out/a.b.7.nettrace"), ("out", "out.7"), ("-", "trace.7.nettrace")]
        {
            assert_eq!(with_pid(Path::new(path), 7), PathBuf::from(expected));
        }
    }
}
