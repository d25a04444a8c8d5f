//! The session of one process, and the delivery of its samples.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clr_conditions::{Condition, Evaluator, Match};
use clr_counters::{Counters, Notice, ProviderRequest, Sample, SessionSettings, SharedSettings, Thinning};
use dipc_client::{LiveReader, Rundown, SessionConfig, Target};
use dipc_collect::live_stream::{EventConsumer, LiveStream};
use dipc_collect::silence::SilenceGuard;
use nettrace::RelativeTime;

use super::{LiveArgs, SampleConsumer};
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::counters::{report_notices, unselected_help};
use crate::record::recorder;
use crate::record::session::{resume, start_unless};
use crate::record::silence::warn_of_silence;
use crate::record::source::Source;
use crate::record::stream_stats;
use crate::record::watch::{EventSender, SessionEnd, SharedLimits, WatchSession, WatchView, WatchedProcess};
use crate::render::{messages, units};

/// The buffer in the process, as dotnet-counters asks for it.
const BUFFER_MB: u32 = 256;
/// Maximum time that an event waits for older events of other threads.
const MAX_DELAY: Duration = Duration::from_millis(200);

/// The sessions of a command, and the consumer of their samples.
pub(super) struct CounterSession<'s, C> {
    args: &'s LiveArgs,
    limits: &'s SharedLimits<'s>,
    delivery: Mutex<Delivery<'s, C>>,
}

/// The consumer, which one session uses at a time, and the results of the sessions.
struct Delivery<'s, C> {
    consumer: &'s mut C,
    /// The event that met the condition.
    met: Option<String>,
    /// The consumer's failure, after which it gets no more samples.
    failure: Option<Failure>,
    /// The number of samples of all sessions.
    count: u64,
    /// The counters that the last session received without being asked for, by provider.
    unselected: BTreeMap<String, BTreeSet<String>>,
    /// True if another session holds the Meters of a process.
    is_refused: bool,
    /// The first exit code of a session other than [`Exit::Done`].
    exit: Exit,
}

impl<'s, C: SampleConsumer> CounterSession<'s, C> {
    pub(super) fn new(args: &'s LiveArgs, limits: &'s SharedLimits<'s>, consumer: &'s mut C) -> Self {
        let delivery = Delivery {
            consumer,
            met: None,
            failure: None,
            count: 0,
            unselected: BTreeMap::new(),
            is_refused: false,
            exit: Exit::Done,
        };
        Self { args, limits, delivery: Mutex::new(delivery) }
    }

    /// The view of all sessions.
    pub(super) const fn view(&self) -> DeliveryView<'_, 's, C> {
        DeliveryView(self)
    }

    /// Locks the consumer, once no other session holds it.
    fn delivery(&self) -> MutexGuard<'_, Delivery<'s, C>> {
        // A panic elsewhere ends the program with its message; the data it left is still consistent.
        self.delivery.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: SampleConsumer> WatchSession for CounterSession<'_, C> {
    /// Samples were delivered.
    type Event = ();

    /// Delivers the samples of a process, in one session, or in two if the first has to learn the settings of
    /// the Meters' shared session.
    fn run(
        &self,
        source: &Source,
        process: &WatchedProcess,
        events: &EventSender<()>,
    ) -> Result<SessionEnd, Failure> {
        let Self { args, limits, .. } = self;
        let selection = args.selection.counters.clone().unwrap_or_default();
        let mut settings = SessionSettings::default()
            .with_interval(args.refresh_interval)
            .with_max_histograms(args.max_histograms)
            .with_max_time_series(args.max_time_series)
            .with_exponential_histograms(self.delivery().consumer.wants_exponential_histograms());
        let mut is_first = true;
        loop {
            let requests = args.requests(&settings);
            let session = start_unless(&source.target, &config(requests), || limits.is_over())?;
            let limits = limits.of_session(source);
            if is_first {
                resume(&source.target);
            }
            let mut silence = SilenceGuard::new(settings.interval);
            silence.renew_from(&source.target);
            let readings = Readings {
                counters: Counters::new(selection.clone()),
                evaluator: args
                    .until
                    .clone()
                    .map(|condition| Evaluator::with_counters(condition, &selection)),
                thinning: Thinning::new(args.refresh_interval),
                client: settings.client.clone(),
                process,
                shared: self,
                events,
                count: 0,
                has_begun: false,
                newest: RelativeTime::START,
                expected: None,
                silence,
                settings: settings.clone(),
            };
            let mut stream = LiveStream::new(LiveReader::new(MAX_DELAY), readings);
            let end = recorder::run(session, &mut stream, &limits)?;
            let (reader, mut readings) = stream.into_parts();
            if let Some(expected) = readings.expected.take().filter(|_| is_first) {
                is_first = false;
                settings = settings.adopt(&expected);
                messages::detail(format_args!(
                    "The Meters' shared session has other settings; asking again: {settings:?}"
                ));
                continue;
            }
            return readings.report(&reader, end, &source.target);
        }
    }
}

/// The consumer as the view of all sessions.
pub(super) struct DeliveryView<'v, 's, C>(&'v CounterSession<'s, C>);

impl<C: SampleConsumer> WatchView<()> for DeliveryView<'_, '_, C> {
    fn receive(&mut self, (): ()) -> Result<(), Failure> {
        Ok(())
    }

    fn end(&mut self, process: &WatchedProcess) -> Result<(), Failure> {
        self.0.delivery().consumer.end(process)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let mut delivery = self.0.delivery();
        delivery.failure.take().map_or(Ok(()), Err)?;
        delivery.consumer.flush()
    }

    fn is_done(&self) -> bool {
        self.0.delivery().consumer.is_satisfied()
    }

    fn finish(&mut self, outcome: Outcome) -> Outcome {
        let mut delivery = self.0.delivery();
        let finished = delivery.consumer.finish();
        let exit = delivery.outcome(outcome?, self.0.args.until.is_some())?;
        finished.map(|()| exit)
    }
}

impl<C> Delivery<'_, C> {
    /// Takes a match of the condition; only the first counts.
    fn meet(&mut self, found: &Match, process: &WatchedProcess, is_one_of_many: bool) {
        let title = if is_one_of_many { process.title() + " " } else { String::new() };
        self.met.get_or_insert_with(|| title + &found.what);
    }

    /// Returns the exit code of the command; `exit` is the sessions' exit code.
    fn outcome(&mut self, exit: Exit, has_condition: bool) -> Outcome {
        self.failure.take().map_or(Ok(()), Err)?;
        if let Some(met) = &self.met {
            messages::note(format_args!("Met            : {met}"));
            return Ok(self.exit);
        }
        if has_condition {
            return Err(Failure::new(Exit::TimedOut, "counters: --until: the condition was not met"));
        }
        if self.count == 0 && matches!(exit, Exit::Done) {
            let exit = if self.is_refused { Exit::Refused } else { Exit::Failed };
            let help = unselected_help(&self.unselected);
            return Err(Failure::new(exit, "counters: no values arrived").with_help(help.as_deref().unwrap_or(
                "values arrive once every --refresh-interval; dipc counters list shows the counters of .NET, and --counters requests others",
            )));
        }
        Ok(exit)
    }
}

/// Returns the configuration of a session for counters.
pub(in crate::command::counters) fn config(requests: Vec<ProviderRequest>) -> SessionConfig {
    SessionConfig::new(requests).with_buffer_mb(BUFFER_MB).with_rundown(Rundown::Off)
}

/// The counters of a session.
struct Readings<'s, 'c, C> {
    counters: Counters,
    /// The state of the condition of `--until`.
    evaluator: Option<Evaluator>,
    thinning: Thinning,
    /// Our name in the Meters' shared session.
    client: String,
    process: &'s WatchedProcess,
    shared: &'s CounterSession<'c, C>,
    events: &'s EventSender<()>,
    count: u64,
    has_begun: bool,
    /// The time of the last event.
    newest: RelativeTime,
    /// The settings of the shared session, if they differ from ours.
    expected: Option<SharedSettings>,
    silence: SilenceGuard,
    settings: SessionSettings,
}

/// The samples of a round, on their way to the consumer.
struct Samples<'g, 's, C> {
    delivery: MutexGuard<'g, Delivery<'s, C>>,
    process: &'g WatchedProcess,
    is_one_of_many: bool,
    count: u64,
}

impl<C: SampleConsumer> Samples<'_, '_, C> {
    /// Delivers a sample.
    fn take(&mut self, sample: &Sample<'_>) {
        let Delivery { consumer, failure, .. } = &mut *self.delivery;
        if failure.is_some() {
            return;
        }
        self.count += 1;
        *failure = consumer.sample(self.process, sample).err();
    }

    /// Takes a match of the condition; only the first counts.
    fn meet(&mut self, found: &Match) {
        self.delivery.meet(found, self.process, self.is_one_of_many);
    }
}

impl<C: SampleConsumer> EventConsumer for Readings<'_, '_, C> {
    type Error = Failure;

    /// Delivers the samples that have arrived; at the end of the stream, also samples held back.
    fn read(&mut self, reader: &mut LiveReader, is_end: bool) -> Result<(), Failure> {
        self.begin(reader);
        let args = self.shared.args;
        let mut samples = Samples {
            delivery: self.shared.delivery(),
            process: self.process,
            is_one_of_many: args.may_be_many(),
            count: 0,
        };
        while samples.delivery.failure.is_none()
            && let Some(event) = reader.next()
        {
            self.silence.add(&event);
            self.counters.add(&event, |sample| self.thinning.add(&sample, |sample| samples.take(&sample)));
            if let Some(evaluator) = &mut self.evaluator {
                self.newest = event.relative_time();
                evaluator.event(&event, |found| samples.meet(&found));
            }
        }
        if is_end {
            if let Some(evaluator) = &mut self.evaluator {
                evaluator.finish(|found| samples.meet(&found));
            }
            self.counters.finish(|sample| self.thinning.add(&sample, |sample| samples.take(&sample)));
            self.thinning.finish(self.counters.series(), |sample| samples.take(&sample));
        }
        let (count, is_over) =
            (samples.count, samples.delivery.met.is_some() || samples.delivery.failure.is_some());
        samples.delivery.count += count;
        drop(samples);
        self.count += count;
        if is_over {
            self.shared.limits.end();
        }
        if count > 0 {
            self.events.send(());
        }
        self.expected = self.counters.notices().iter().find_map(|notice| match notice {
            Notice::OtherSettings { client, expected } if *client == self.client => Some(*expected),
            _ => None,
        });
        if !is_end {
            self.check_silence();
        }
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        self.expected.is_some() || self.shared.limits.is_over()
    }
}

impl<C: SampleConsumer> Readings<'_, '_, C> {
    /// Requests counters again that have fallen silent.
    fn check_silence(&mut self) {
        let args = self.shared.args;
        let needs_requests = args.until.as_ref().is_some_and(Condition::has_requests);
        // A client of the shared session must not have two sessions.
        let settings = &self.settings;
        let config = || config(args.requests(&settings.clone().with_unique_client()));
        let silences = self.silence.check(needs_requests, config);
        warn_of_silence("counters", Some(&self.process.title()), &silences);
    }

    /// Tells the consumer that the session runs, once its stream's header is read.
    fn begin(&mut self, reader: &LiveReader) {
        if !self.has_begun
            && let Some(info) = reader.info()
        {
            self.has_begun = true;
            let mut delivery = self.shared.delivery();
            if delivery.failure.is_none() {
                delivery.failure = delivery.consumer.begin(self.process, Some(info)).err();
            }
        }
    }

    /// Reports the session's omissions.
    fn report(
        mut self,
        reader: &LiveReader,
        end: recorder::StreamEnd,
        target: &Target,
    ) -> Result<SessionEnd, Failure> {
        let args = self.shared.args;
        if let Some(evaluator) = self.evaluator.as_mut().filter(|_| end.is_unasked())
            && let Some(found) = evaluator.end(end.cause(target), self.newest)
        {
            self.shared.delivery().meet(&found, self.process, args.may_be_many());
        }
        let title = args.may_be_many().then(|| self.process.title());
        report_notices(&self.counters, title.as_deref());
        let events = reader.events();
        let lost = stream_stats::lost_in_words(events.loss());
        if events.loss().total() > 0 {
            stream_stats::warn_of_loss(&lost);
        }
        let inside = stream_stats::report_damage(events, reader.unreadable(), "the readable part was used");
        let is_unasked = end.is_unasked();
        let mut exit = inside;
        // With --reconnect, the end of a process is expected.
        if !(is_unasked && args.reconnect.is_some()) {
            let values = units::count(self.count);
            exit = end.report(&format!("{values} values were shown"), "shown")?.join(inside);
        }
        let mut notices = self.counters.notices().iter();
        let mut delivery = self.shared.delivery();
        delivery.unselected.clone_from(self.counters.unselected());
        delivery.is_refused |= notices.any(|notice| matches!(notice, Notice::OtherSession(_)));
        delivery.exit = delivery.exit.join(exit);
        Ok(SessionEnd { exit, is_unasked })
    }
}
