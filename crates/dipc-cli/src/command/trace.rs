//! `dipc trace`: records the events of a .NET process.

mod args;
mod file_names;
mod flight;
mod machine;
mod machine_args;
mod native;
mod request;
mod session;
mod written;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clr_conditions::Condition;
use dipc_client::{PortRuntime, Rundown, SessionConfig};
use dipc_collect::Retention;
use dipc_wire::Keywords;
use nettrace_export::NameForm;

use crate::args::format::ConvertFormat;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::export::{ExportFormat, sibling_path};
use crate::interrupt::Interrupts;
use crate::process::target::TargetSelector;
use crate::record::flight::{FlightSettings, check_output, dump_variables};
use crate::record::kernel_samples::{KernelSampler, SampleSettings};
use crate::record::recorder::Limits;
use crate::record::selection::Selection;
use crate::record::session::resume_other;
use crate::record::source::{Child, ChildEnd, PortWatcher, Source, SourceSelector};
use crate::record::stopping_event::StoppingEvent;
use crate::render::messages;
use native::NativeProcess;

pub(crate) use args::{Buffering, DEFAULT_LIMIT_PERCENT, ReadingsUse, TraceArgs};
pub(crate) use file_names::snapshot_name;
pub(crate) use machine_args::MachineArgs;
pub(crate) use written::{News, RecordingEnd, WrittenFile, WrittenFiles};

/// Maximum wait between checks for recordings that have ended.
const TICK: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &TraceArgs) -> Outcome {
    let interrupts = Interrupts::watch()?;
    if !args.show_child_io {
        interrupts.watch_enter();
    }
    let written = WrittenFiles::default();
    if args.machine.are_given() {
        return machine::record(args, &interrupts, &written);
    }
    record(args, &interrupts, &written)
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

    /// Prints the selection, once.
    fn announce_selection(&self, beside_others: bool) {
        if !self.is_announced && !beside_others {
            self.selection.announce();
        }
    }
}
