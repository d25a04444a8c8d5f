//! The session of one process.

use std::time::{Duration, Instant};

use dipc_client::{
    LiveNames, LiveReader, RUNTIME_PROVIDER, Rundown, SAMPLE_PROFILER, SessionConfig, Startup,
};
use dipc_collect::live_stream::{EventConsumer, LiveStream};
use dipc_collect::thread_times::LiveThreadTimes;
use dipc_wire::{Keywords, Level, ProviderConfig};
use nettrace_export::CausalGrouping;

use crate::command::top::TopArgs;
use crate::command::top::interval::{Interval, IntervalBuilder};
use crate::exit::Failure;
use crate::process::peer::local_process;
use crate::record::kernel_samples::{LiveSamples, SamplerChoice};
use crate::record::names::live_names;
use crate::record::recorder;
use crate::record::session::{resume, start_unless};
use crate::record::source::Source;
use crate::record::stream_stats;
use crate::record::watch::{EventSender, SessionEnd, SharedLimits, WatchSession, WatchedProcess};
use crate::render::messages;

/// Maximum time that an event waits for older events of other threads.
const MAX_DELAY: Duration = Duration::from_millis(200);
/// The time between two rounds of the kernel's thread accounting: shorter than the delay of events, so that
/// an interval gets all of its own rounds.
const ACCOUNT_PERIOD: Duration = Duration::from_millis(100);
/// Maximum time that the first interval waits for the names of methods.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// A message from a session to the view.
pub(super) enum SessionEvent {
    /// The session runs.
    Begun(WatchedProcess, Features),
    /// An interval of the process with this number.
    Interval(usize, Box<Interval>),
}

/// The features of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Features {
    /// True if there are samples of threads. NativeAOT yields them only if the kernel permits sampling.
    pub(super) samples: bool,
    pub(super) allocations: bool,
    /// True if the kernel's account has the times of threads on a processor, runnable and waiting: then the
    /// samples omit waiting threads.
    pub(super) thread_uses: bool,
}

/// The sessions of the command.
pub(super) struct TopSession<'s> {
    pub(super) args: &'s TopArgs,
    pub(super) limits: &'s SharedLimits<'s>,
}

impl WatchSession for TopSession<'_> {
    type Event = SessionEvent;

    /// Sends the intervals of a process until its end.
    fn run(
        &self,
        source: &Source,
        process: &WatchedProcess,
        events: &EventSender<SessionEvent>,
    ) -> Result<SessionEnd, Failure> {
        let Self { args, limits } = self;
        let is_starting = source.target.startup().is_ok_and(|startup| startup == Startup::Suspended);
        let is_managed = !source.target.is_native_aot().unwrap_or(false);
        let pid = local_process(source.pid, &source.target);
        let samples = match args.sampler.start(pid, &process.title(), is_managed, true) {
            Ok(samples) => samples,
            Err(failure) if args.sampler == SamplerChoice::Auto => {
                messages::warning(failure);
                None
            }
            Err(failure) => return Err(failure),
        };
        let has_sampler = is_managed && samples.is_none();
        let account = source.pid.and_then(|pid| LiveThreadTimes::start(Some(pid), ACCOUNT_PERIOD));
        if !is_managed && samples.is_none() {
            let (missing, threads) = match account {
                Some(_) => ("methods are not shown", "the times of threads, "),
                None => ("methods and threads are not shown", ""),
            };
            messages::warning(format_args!(
                "{}: a NativeAOT program, whose runtime has no sampler: {missing}",
                process.title()
            ));
            messages::help(format_args!(
                "{threads}collections, exceptions, counters and, with --alloc, allocated types are shown"
            ));
        }
        let session = start_unless(&source.target, &config(args, has_sampler), || limits.is_over())?;
        let features = Features {
            samples: has_sampler || samples.is_some(),
            allocations: args.alloc,
            thread_uses: !has_sampler && account.is_some(),
        };
        events.send(SessionEvent::Begun(process.clone(), features));
        let names = is_managed.then(|| live_names(&source.target, !args.alloc, is_starting));
        resume(&source.target);
        let limits = limits.of_session(source);
        let intervals = Intervals {
            builder: IntervalBuilder::new(
                args.refresh_interval,
                args.names.form(),
                args.awaits.grouping(CausalGrouping::default()),
                account,
                !has_sampler,
            ),
            names,
            samples,
            waits_for_names: is_managed,
            begun: Instant::now(),
            process,
            args,
            limits: self.limits,
            events,
            count: 0,
        };
        let mut stream = LiveStream::new(LiveReader::new(MAX_DELAY), intervals);
        let end = recorder::run(session, &mut stream, &limits)?;
        let (reader, _) = stream.into_parts();
        report(&reader, end)
    }
}

/// Returns the configuration of the session.
fn config(args: &TopArgs, has_sampler: bool) -> SessionConfig {
    let provider = |name: &str, keywords, level, arguments: String| ProviderConfig {
        name: name.to_owned(),
        keywords,
        level,
        arguments,
    };
    let level = if args.alloc { Level::VERBOSE } else { Level::INFORMATIONAL };
    let seconds = args.refresh_interval.as_secs_f64();
    let mut providers = vec![
        provider(
            RUNTIME_PROVIDER,
            Keywords::GC | Keywords::LOADER | Keywords::METHODS | Keywords::EXCEPTION,
            level,
            String::new(),
        ),
        provider(
            "System.Runtime",
            Keywords::NONE,
            Level::INFORMATIONAL,
            format!("EventCounterIntervalSec={seconds}"),
        ),
    ];
    if has_sampler {
        providers.push(provider(SAMPLE_PROFILER, Keywords::SAMPLES, Level::INFORMATIONAL, String::new()));
    }
    SessionConfig::new(providers).with_rundown(Rundown::Off)
}

/// The intervals of the session.
struct Intervals<'s> {
    builder: IntervalBuilder,
    /// The source of names of earlier methods, which also keeps the runtime reporting new ones.
    names: Option<LiveNames>,
    /// The kernel's samples, if the runtime does not sample itself.
    samples: Option<LiveSamples>,
    waits_for_names: bool,
    begun: Instant,
    process: &'s WatchedProcess,
    args: &'s TopArgs,
    limits: &'s SharedLimits<'s>,
    events: &'s EventSender<SessionEvent>,
    /// The number of intervals.
    count: u64,
}

impl EventConsumer for Intervals<'_> {
    type Error = Failure;

    fn receive(&mut self, bytes: usize) {
        self.builder.add_bytes(bytes);
    }

    /// Sums up the data that have arrived.
    fn read(&mut self, reader: &mut LiveReader, is_end: bool) -> Result<(), Failure> {
        if let Some(names) = &mut self.names {
            let builder = &mut self.builder;
            let is_whole = names.read(|event| builder.add_code(event));
            self.waits_for_names &= !is_whole && self.begun.elapsed() < MAX_WAIT;
        }
        if let Some(samples) = &mut self.samples {
            let builder = &mut self.builder;
            samples.read(|event| builder.add_sample(event));
        }
        if let Some(info) = reader.info() {
            self.builder.set_info(info);
        }
        let mut ended = Vec::new();
        while let Some(event) = reader.next() {
            if !self.waits_for_names && self.builder.is_over(&event) {
                // The event borrows the reader, so the lost events are counted below.
                ended.push(self.builder.take(false));
            }
            self.builder.add(&event);
        }
        let lost = reader.events().loss().total();
        for interval in ended {
            self.send(interval, lost);
        }
        if !self.waits_for_names && self.builder.is_overdue() {
            let interval = self.builder.take(false);
            self.send(interval, lost);
        }
        if is_end && self.builder.has_events() {
            let interval = self.builder.take(true);
            self.send(interval, lost);
        }
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        self.limits.is_over() || self.is_complete()
    }
}

impl Intervals<'_> {
    fn send(&mut self, mut interval: Interval, lost: u64) {
        if interval.lacks_names()
            && let Some(names) = &mut self.names
        {
            names.request_again();
        }
        interval.omissions.lost = lost;
        if !self.is_complete() {
            self.count += 1;
            self.events.send(SessionEvent::Interval(self.process.number, Box::new(interval)));
        }
    }

    /// Returns true if it has sent as many intervals as were asked for.
    fn is_complete(&self) -> bool {
        self.args.count.is_some_and(|count| self.count >= count)
    }
}

/// Reports the session's omissions.
fn report(reader: &LiveReader, end: recorder::StreamEnd) -> Result<SessionEnd, Failure> {
    let events = reader.events();
    if events.loss().total() > 0 {
        stream_stats::warn_of_loss(&stream_stats::lost_in_words(events.loss()));
    }
    let inside = stream_stats::report_damage(events, reader.unreadable(), "what could be read was used");
    let is_unasked = end.is_unasked();
    // Here, the end of the process is expected.
    let exit = if is_unasked { inside } else { end.report("the process was watched", "shown")? };
    Ok(SessionEnd { exit: exit.join(inside), is_unasked })
}
