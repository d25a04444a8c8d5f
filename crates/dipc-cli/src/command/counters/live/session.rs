//! The session of one process, and the delivery of its samples.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clr_conditions::{Condition, Evaluator, Match};
use clr_counters::{Counters, Notice, ProviderRequest, Sample, SessionSettings, Thinning};
use dipc_collect::counters::{self, CollectedCounters, CounterEvents, CounterReader, CountersRequest};
use dipc_collect::silence::Silence;
use dipc_collect::stream::Limits;
use nettrace::RelativeTime;

use super::{LiveArgs, SampleConsumer};
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::counters::{report_notices, unselected_help};
use crate::record::notes::Messages;
use crate::record::recorder::StreamEnd;
use crate::record::session::resume;
use crate::record::silence::warn_of_silence;
use crate::record::source::Source;
use crate::record::stream_stats;
use crate::record::watch::{EventSender, SessionEnd, SharedLimits, WatchSession, WatchView, WatchedProcess};
use crate::render::{messages, units};

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

    /// Delivers the samples of a process.
    fn run(
        &self,
        source: &Source,
        process: &WatchedProcess,
        events: &EventSender<()>,
    ) -> Result<SessionEnd, Failure> {
        let Self { args, limits, .. } = self;
        let settings = SessionSettings::default()
            .with_interval(args.refresh_interval)
            .with_max_histograms(args.max_histograms)
            .with_max_time_series(args.max_time_series)
            .with_exponential_histograms(self.delivery().consumer.wants_exponential_histograms());
        let needs_statuses = args.until.as_ref().is_some_and(Condition::has_requests);
        let request = CountersRequest::new(settings).with_statuses(needs_statuses);
        let readings = Readings::new(args);
        let mut session = ProcessSession { source, process, shared: self, events, is_first: true, readings };
        let is_over = || limits.is_over();
        let collected = counters::collect(&source.target, request, &mut session, is_over, &mut Messages)?;
        session.report(collected)
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

/// The counters of a process.
struct ProcessSession<'s, 'c, C> {
    source: &'s Source,
    process: &'s WatchedProcess,
    shared: &'s CounterSession<'c, C>,
    events: &'s EventSender<()>,
    /// True until a session has begun.
    is_first: bool,
    readings: Readings,
}

/// The counters of a session.
struct Readings {
    counters: Counters,
    /// The state of the condition of `--until`.
    evaluator: Option<Evaluator>,
    thinning: Thinning,
    count: u64,
    has_begun: bool,
    /// The time of the last event.
    newest: RelativeTime,
}

impl Readings {
    fn new(args: &LiveArgs) -> Self {
        let selection = args.selection.counters.clone().unwrap_or_default();
        let condition = args.until.clone();
        Self {
            evaluator: condition.map(|condition| Evaluator::with_counters(condition, &selection)),
            counters: Counters::new(selection),
            thinning: Thinning::new(args.refresh_interval),
            count: 0,
            has_begun: false,
            newest: RelativeTime::START,
        }
    }
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

impl<C: SampleConsumer> CounterReader for ProcessSession<'_, '_, C> {
    type Error = Failure;

    fn requests(&self, settings: &SessionSettings) -> Vec<ProviderRequest> {
        self.shared.args.requests(settings)
    }

    fn begin(&mut self, _: &SessionSettings) -> Limits {
        let limits = self.shared.limits.of_session(self.source);
        if std::mem::take(&mut self.is_first) {
            resume(&self.source.target);
        }
        self.readings = Readings::new(self.shared.args);
        limits.stream
    }

    /// Delivers the samples that have arrived; at the end of the stream, also samples held back.
    fn read(&mut self, events: &mut CounterEvents<'_>, is_end: bool) -> Result<(), Failure> {
        self.begin_samples(events);
        let Readings { counters, evaluator, thinning, newest, .. } = &mut self.readings;
        let mut samples = Samples {
            delivery: self.shared.delivery(),
            process: self.process,
            is_one_of_many: self.shared.args.may_be_many(),
            count: 0,
        };
        while samples.delivery.failure.is_none()
            && let Some(event) = events.next()
        {
            counters.add(&event, |sample| thinning.add(&sample, |sample| samples.take(&sample)));
            if let Some(evaluator) = evaluator {
                *newest = event.relative_time();
                evaluator.event(&event, |found| samples.meet(&found));
            }
        }
        if is_end {
            if let Some(evaluator) = evaluator {
                evaluator.finish(|found| samples.meet(&found));
            }
            counters.finish(|sample| thinning.add(&sample, |sample| samples.take(&sample)));
            thinning.finish(counters.series(), |sample| samples.take(&sample));
        }
        let (count, is_over) =
            (samples.count, samples.delivery.met.is_some() || samples.delivery.failure.is_some());
        samples.delivery.count += count;
        drop(samples);
        self.readings.count += count;
        if is_over {
            self.shared.limits.end();
        }
        if count > 0 {
            self.events.send(());
        }
        Ok(())
    }

    fn report(&mut self, silence: Silence) {
        warn_of_silence("counters", Some(&self.process.title()), silence);
    }

    fn is_satisfied(&self) -> bool {
        self.shared.limits.is_over()
    }
}

impl<C: SampleConsumer> ProcessSession<'_, '_, C> {
    /// Tells the consumer that the session runs, once its stream's header is read.
    fn begin_samples(&mut self, events: &CounterEvents<'_>) {
        if !self.readings.has_begun
            && let Some(info) = events.info()
        {
            self.readings.has_begun = true;
            let mut delivery = self.shared.delivery();
            if delivery.failure.is_none() {
                delivery.failure = delivery.consumer.begin(self.process, Some(info)).err();
            }
        }
    }

    /// Reports the session's omissions.
    fn report(self, collected: CollectedCounters) -> Result<SessionEnd, Failure> {
        let Self { source, process, shared, readings, .. } = self;
        let Readings { counters, mut evaluator, count, newest, .. } = readings;
        let CollectedCounters { reader, end, .. } = collected;
        let (args, target) = (shared.args, &source.target);
        let end = StreamEnd::new(target.address().clone(), end);
        if let Some(evaluator) = evaluator.as_mut().filter(|_| end.is_unasked())
            && let Some(found) = evaluator.end(end.cause(target), newest)
        {
            shared.delivery().meet(&found, process, args.may_be_many());
        }
        let title = args.may_be_many().then(|| process.title());
        report_notices(&counters, title.as_deref());
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
            let values = units::count(count);
            exit = end.report(&format!("{values} values were shown"), "shown")?.join(inside);
        }
        let mut notices = counters.notices().iter();
        let mut delivery = shared.delivery();
        delivery.unselected.clone_from(counters.unselected());
        delivery.is_refused |= notices.any(|notice| matches!(notice, Notice::OtherSession(_)));
        delivery.exit = delivery.exit.join(exit);
        Ok(SessionEnd { exit, is_unasked })
    }
}
