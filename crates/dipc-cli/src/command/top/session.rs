//! The session of one process.

use std::time::Duration;

use dipc_client::{LiveReader, Startup};
use dipc_collect::live::{Interval, IntervalSettings, LiveIntervals};
use dipc_collect::live_stream::{EventConsumer, LiveStream};
use dipc_collect::thread_times::LiveThreadTimes;
use nettrace_export::CausalGrouping;

use crate::command::top::TopArgs;
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
    /// True if allocations are followed through collections.
    pub(super) objects: bool,
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
        let samples = match args.sampler.start(pid, false, &process.title(), is_managed, true) {
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
                "{}: a NativeAOT program without a sampler: {missing}",
                process.title()
            ));
            messages::help(format_args!(
                "{threads}collections, exceptions, counters and, with --alloc, allocated types are shown"
            ));
        }
        let settings = IntervalSettings::new(args.refresh_interval)
            .with_names(args.names.form())
            .with_grouping(args.awaits.grouping(CausalGrouping::default()))
            .with_samples_of_kernel(!has_sampler)
            .with_allocations(args.alloc)
            .with_objects_in_use(args.live_alloc);
        let session = start_unless(&source.target, &settings.session_config(), || limits.is_over())?;
        let features = Features {
            samples: has_sampler || samples.is_some(),
            allocations: args.alloc || args.live_alloc,
            objects: args.live_alloc,
            thread_uses: !has_sampler && account.is_some(),
        };
        events.send(SessionEvent::Begun(process.clone(), features));
        let names =
            is_managed.then(|| live_names(&source.target, !(args.alloc || args.live_alloc), is_starting));
        resume(&source.target);
        let limits = limits.of_session(source);
        let intervals = Intervals {
            live: LiveIntervals::new(&settings, names, account, samples),
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

/// The intervals of the session.
struct Intervals<'s> {
    live: LiveIntervals<LiveSamples>,
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
        self.live.receive(bytes);
    }

    fn read(&mut self, reader: &mut LiveReader, is_end: bool) -> Result<(), Failure> {
        let Self { live, process, args, events, count, .. } = self;
        live.read(reader, is_end, |interval| {
            if args.count.is_none_or(|most| *count < most) {
                *count += 1;
                events.send(SessionEvent::Interval(process.number, Box::new(interval)));
            }
        });
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        self.limits.is_over() || self.args.count.is_some_and(|count| self.count >= count)
    }
}

/// Reports the session's omissions.
fn report(reader: &LiveReader, end: recorder::StreamEnd) -> Result<SessionEnd, Failure> {
    let events = reader.events();
    if events.loss().total() > 0 {
        stream_stats::warn_of_loss(&stream_stats::lost_in_words(events.loss()));
    }
    let inside = stream_stats::report_damage(events, reader.unreadable(), "the readable part was used");
    let is_unasked = end.is_unasked();
    // Here, the end of the process is expected.
    let exit = if is_unasked { inside } else { end.report("the process was watched", "shown")? };
    Ok(SessionEnd { exit: exit.join(inside), is_unasked })
}
