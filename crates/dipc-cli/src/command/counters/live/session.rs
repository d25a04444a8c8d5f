//! The session of one process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clr_counters::{
    Condition, Counters, Notice, Sample, Selection, SessionSettings, SharedSettings, Thinning,
};
use dipc_client::{LiveReader, Rundown, SessionConfig};

use super::{LiveArgs, Process, SampleConsumer};
use crate::exit::{Exit, Failure};
use crate::inspect::counters::{label, report_notices};
use crate::interrupt::Interrupts;
use crate::record::live_stream::{EventConsumer, LiveStream};
use crate::record::recorder::{self, Limits};
use crate::record::session::{resume, start_unless};
use crate::record::source::Source;
use crate::record::stream_stats;
use crate::render::{messages, units};

/// The buffer in the process, as dotnet-counters asks for it.
const BUFFER_MB: u32 = 256;
/// The longest time that an event is held back for older ones of other threads.
const MOST_DELAY: Duration = Duration::from_millis(200);

/// The state that the sessions of a command share.
pub(super) struct Shared<'s, C> {
    pub(super) args: &'s LiveArgs,
    pub(super) interrupts: &'s Interrupts,
    pub(super) delivery: Mutex<Delivery<'s, C>>,
    /// Ends all sessions.
    over: AtomicBool,
    /// The beginning of the first session.
    begun: Mutex<Option<Instant>>,
}

/// The consumer, which one session uses at a time.
pub(super) struct Delivery<'s, C> {
    pub(super) consumer: &'s mut C,
    /// The counter that met the condition.
    pub(super) met: Option<String>,
    /// The consumer's failure, after which it gets no more samples.
    pub(super) failure: Option<Failure>,
}

/// An event of a session, for the thread that watches them all.
pub(super) enum SessionEvent {
    /// Samples were delivered.
    Samples,
    /// The session of this process has ended.
    Ended(usize, Result<SessionEnd, Failure>),
}

/// The end of a session.
#[derive(Debug)]
pub(super) struct SessionEnd {
    pub(super) exit: Exit,
    /// The number of samples in the session.
    pub(super) count: u64,
    /// The counters that arrived without being asked for, by provider.
    pub(super) unselected: BTreeMap<String, BTreeSet<String>>,
    /// Whether another session holds the Meters of the process.
    pub(super) is_refused: bool,
    /// Whether the process has ended by itself.
    pub(super) is_unasked: bool,
}

impl<'s, C: SampleConsumer> Shared<'s, C> {
    pub(super) fn new(args: &'s LiveArgs, interrupts: &'s Interrupts, consumer: &'s mut C) -> Self {
        Self {
            args,
            interrupts,
            delivery: Mutex::new(Delivery { consumer, met: None, failure: None }),
            over: AtomicBool::new(false),
            begun: Mutex::new(None),
        }
    }

    /// Ends all sessions.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Whether all sessions have to end.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire) || self.interrupts.count() > 0
    }

    /// Locks the consumer, once no other session holds it.
    pub(super) fn delivery(&self) -> MutexGuard<'_, Delivery<'s, C>> {
        // A panic elsewhere ends the program with its message; the data it left is still consistent.
        self.delivery.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time left, counted from the beginning of the first session; `None` without a limit.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let limit = self.args.duration.filter(|duration| !duration.is_zero())?;
        let begun = *self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        Some(begun.map_or(limit, |begun| limit.saturating_sub(begun.elapsed())))
    }

    fn mark_begun(&self) {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
    }
}

/// Delivers the samples of a process, in one session, or in two if the first has to learn the settings of the
/// Meters' shared session.
pub(super) fn watch<C: SampleConsumer>(
    shared: &Shared<'_, C>,
    source: &Source,
    process: &Process,
    events: &Sender<SessionEvent>,
) -> Result<SessionEnd, Failure> {
    let args = shared.args;
    let selection = args.selection.counters.clone().unwrap_or_default();
    let awaited = args.until.as_ref().map(|condition| condition.selection().unwrap_or(selection.clone()));
    let requested = awaited.iter().cloned().fold(selection.clone(), Selection::and);
    let mut settings = SessionSettings::default()
        .with_interval(args.refresh_interval)
        .with_max_histograms(args.max_histograms)
        .with_max_time_series(args.max_time_series)
        .with_exponential_histograms(shared.delivery().consumer.wants_exponential_histograms());
    let mut is_first = true;
    loop {
        let session = start_unless(&source.target, &config(&requested, &settings), || shared.is_over())?;
        shared.mark_begun();
        if is_first {
            resume(&source.target);
        }
        let limits = Limits {
            address: source.target.address().clone(),
            duration: shared.time_left(),
            silence: args.timeout,
            interrupts: shared.interrupts.clone(),
        };
        let readings = Readings {
            counters: Counters::new(selection.clone()),
            awaited: awaited.clone().map(Counters::new),
            thinning: Thinning::new(args.refresh_interval),
            client: settings.client.clone(),
            process,
            shared,
            events,
            count: 0,
            has_begun: false,
            expected: None,
        };
        let mut stream = LiveStream { reader: LiveReader::new(MOST_DELAY), consumer: readings };
        let end = recorder::run(session, &mut stream, &limits)?;
        let LiveStream { reader, consumer: mut readings } = stream;
        if let Some(expected) = readings.expected.take().filter(|_| is_first) {
            is_first = false;
            settings = settings.adopt(&expected);
            messages::detail(format_args!(
                "The Meters' shared session has other settings; asking again: {settings:?}"
            ));
            continue;
        }
        return readings.report(&reader, end);
    }
}

/// Returns the configuration of a session for the counters.
pub(in crate::command::counters) fn config(
    selection: &Selection,
    settings: &SessionSettings,
) -> SessionConfig {
    SessionConfig::new(selection.requests(settings)).with_buffer_mb(BUFFER_MB).with_rundown(Rundown::Off)
}

/// The counters of a session.
struct Readings<'s, 'c, C> {
    counters: Counters,
    /// The counter of `--until`, which need not be among the counters shown.
    awaited: Option<Counters>,
    thinning: Thinning,
    /// Our name in the Meters' shared session.
    client: String,
    process: &'s Process,
    shared: &'s Shared<'c, C>,
    events: &'s Sender<SessionEvent>,
    count: u64,
    has_begun: bool,
    /// The settings of the shared session, if they differ from ours.
    expected: Option<SharedSettings>,
}

/// The samples of a round, on their way to the consumer.
struct Samples<'g, 's, C> {
    delivery: MutexGuard<'g, Delivery<'s, C>>,
    process: &'g Process,
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

    /// Checks whether a sample meets the condition.
    fn judge(&mut self, condition: Option<&Condition>, sample: &Sample<'_>) {
        if let Some(condition) = condition.filter(|_| self.delivery.met.is_none())
            && let Some((aspect, number)) = condition.number_that_meets(sample)
        {
            let series = sample.series;
            let process = if self.is_one_of_many { self.process.title() + " " } else { String::new() };
            let value = units::quantity(number, &series.unit_of(aspect));
            self.delivery.met =
                Some(format!("{process}{} {}: {value}", series.provider, label(series, aspect)));
        }
    }
}

impl<C: SampleConsumer> EventConsumer for Readings<'_, '_, C> {
    /// Delivers what has arrived; at the end of the stream, also what was held back.
    fn read(&mut self, reader: &mut LiveReader, is_end: bool) -> Result<(), Failure> {
        self.begin(reader);
        let args = self.shared.args;
        let until = args.until.as_ref();
        let mut samples = Samples {
            delivery: self.shared.delivery(),
            process: self.process,
            is_one_of_many: args.may_be_many(),
            count: 0,
        };
        while samples.delivery.failure.is_none()
            && let Some(event) = reader.next()
        {
            self.counters.add(&event, |sample| self.thinning.add(&sample, |sample| samples.take(&sample)));
            if let Some(awaited) = &mut self.awaited {
                awaited.add(&event, |sample| samples.judge(until, &sample));
            }
        }
        if is_end {
            if let Some(awaited) = &mut self.awaited {
                awaited.finish(|sample| samples.judge(until, &sample));
            }
            self.counters.finish(|sample| self.thinning.add(&sample, |sample| samples.take(&sample)));
            self.thinning.finish(self.counters.series(), |sample| samples.take(&sample));
        }
        let (count, is_over) =
            (samples.count, samples.delivery.met.is_some() || samples.delivery.failure.is_some());
        drop(samples);
        self.count += count;
        if is_over {
            self.shared.end();
        }
        if count > 0 {
            // After a failure of the command, the receiver is gone.
            let _ = self.events.send(SessionEvent::Samples);
        }
        self.expected = self.counters.notices().iter().find_map(|notice| match notice {
            Notice::OtherSettings { client, expected } if *client == self.client => Some(*expected),
            _ => None,
        });
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        self.expected.is_some() || self.shared.is_over()
    }
}

impl<C: SampleConsumer> Readings<'_, '_, C> {
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

    /// Reports what the session lacked.
    fn report(self, reader: &LiveReader, end: recorder::StreamEnd) -> Result<SessionEnd, Failure> {
        let args = self.shared.args;
        let title = args.may_be_many().then(|| self.process.title());
        report_notices(&self.counters, title.as_deref());
        let events = reader.events();
        let lost = stream_stats::lost_in_words(events.loss());
        if events.loss().total() > 0 {
            stream_stats::warn_of_loss(&lost);
        }
        let inside = stream_stats::report_damage(events, reader.unreadable(), "what could be read was used");
        let is_unasked = end.is_unasked();
        let mut exit = inside;
        // With --reconnect, the end of a process is expected.
        if !(is_unasked && args.reconnect.is_some()) {
            let values = units::count(self.count);
            exit = end.report(&format!("{values} values were shown"), "shown")?.join(inside);
        }
        let mut notices = self.counters.notices().iter();
        let is_refused = notices.any(|notice| matches!(notice, Notice::OtherSession(_)));
        let unselected = self.counters.unselected().clone();
        Ok(SessionEnd { exit, count: self.count, unselected, is_refused, is_unasked })
    }
}
