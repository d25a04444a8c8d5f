//! The session of a process's counters, shared by all consumers.
//!
//! A process has at most one such session: EventCounters have one interval for all sessions, and a second
//! session of Meters with other settings is refused. It asks for the union of its consumers' requests, at the
//! shortest of their intervals, and each consumer gets its own choice at its own interval. It starts with the
//! first consumer and stops with the last.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use clr_counters::{Counters, Notice, ProviderRequest, Sample, Selection, SessionSettings, Thinning};
use dipc_client::nettrace::TraceInfo;
use dipc_client::{Error, Target};
use dipc_collect::counters::{self, CounterEvents, CounterReader, CountersRequest};
use dipc_collect::session::StartError;
use dipc_collect::silence::Silence;
use dipc_collect::stream::{Ending, Limits};
use dipc_collect::{RetryWait, StopSignal};

use crate::live_session::{BUFFER_MB, DRAIN, LostEvents, TICK};
use crate::process_log::{ProcessEvent, ProcessLog};

/// The bytes read at once.
const CHUNK: usize = 16 << 10;
/// Maximum number of series to keep for a consumer.
const MAX_SERIES: usize = 10_000;
/// Maximum number of notices of a process to report.
const MAX_REPORTED: usize = 20;
/// The stack of a session's thread.
const STACK: usize = 512 << 10;

/// The counters that a consumer wants.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CounterRequest {
    /// The counters.
    pub selection: Selection,
    /// The interval between values.
    pub interval: Duration,
    /// Maximum number of histograms of Meters; 20 by default, as in dotnet-monitor.
    pub max_histograms: u32,
    /// Maximum number of time series of Meters; 1000 by default.
    pub max_time_series: u32,
    /// True if histograms use exponential buckets where the runtime supports them. Consumers of quantiles
    /// cannot share a session with consumers of buckets: while both exist, quantiles are requested.
    pub exponential_histograms: bool,
}

impl CounterRequest {
    /// Creates a request with the defaults.
    pub const fn new(selection: Selection, interval: Duration) -> Self {
        Self { selection, interval, max_histograms: 20, max_time_series: 1000, exponential_histograms: false }
    }

    /// With this [`max_histograms`](Self::max_histograms).
    #[must_use]
    pub fn with_max_histograms(self, max_histograms: u32) -> Self {
        Self { max_histograms, ..self }
    }

    /// With this [`max_time_series`](Self::max_time_series).
    #[must_use]
    pub fn with_max_time_series(self, max_time_series: u32) -> Self {
        Self { max_time_series, ..self }
    }

    /// With or without [`exponential_histograms`](Self::exponential_histograms).
    #[must_use]
    pub fn with_exponential_histograms(self, exponential_histograms: bool) -> Self {
        Self { exponential_histograms, ..self }
    }
}

/// A consumer of the samples of a process. Its methods are called from the session's thread and must not
/// block.
pub trait CounterConsumer: Send {
    /// Called with the header of the stream before the first sample of a session, and again when another
    /// session takes its place: numbers of series belong to one session.
    fn begin(&mut self, info: &TraceInfo) {
        let _ = info;
    }

    /// Takes a sample.
    fn sample(&mut self, sample: &Sample<'_>);

    /// Called when the session could not be started, or has failed. It is tried again.
    fn failed(&mut self, error: &Error) {
        let _ = error;
    }
}

/// The session of a process's counters. Clones are of one session.
#[derive(Clone)]
pub struct SharedCounters {
    shared: Arc<Shared>,
}

/// A consumer's place in a session. The consumer leaves when this is dropped.
#[must_use = "the consumer leaves when this is dropped"]
pub struct CounterSubscription {
    shared: Weak<Shared>,
    id: u64,
}

struct Shared {
    target: Target,
    has_ended: Arc<AtomicBool>,
    lost: LostEvents,
    log: ProcessLog,
    state: Mutex<State>,
    changed: Condvar,
    sessions: AtomicU64,
}

#[derive(Default)]
struct State {
    subscribers: Vec<Subscriber>,
    /// The decoders of the session, one for each selection of counters.
    decoders: Vec<Decoder>,
    next_decoder: u64,
    next_id: u64,
    /// The notices that were reported.
    reported: Vec<Notice>,
    /// True if it was reported that values were left out.
    is_limit_reported: bool,
    /// True if the thread runs.
    is_running: bool,
}

struct Subscriber {
    id: u64,
    request: CounterRequest,
    consumer: Box<dyn CounterConsumer>,
    /// The state of its samples, once a session has begun for it.
    readings: Option<Readings>,
}

/// The samples of a consumer in a session.
struct Readings {
    /// The number of the decoder that read them.
    decoder: u64,
    thinning: Thinning,
}

/// The decoder of all consumers with the same selection of counters: an event is decoded once for them.
struct Decoder {
    number: u64,
    selection: Selection,
    counters: Counters,
    /// Number of omitted values counted so far.
    left_out: u64,
}

impl State {
    /// Begins the readings of consumers without any.
    fn begin_readings(&mut self, info: &TraceInfo) {
        let Self { subscribers, decoders, next_decoder, .. } = self;
        for Subscriber { request, readings, consumer, .. } in subscribers {
            if readings.is_some() {
                continue;
            }
            let known = decoders.iter().find(|decoder| decoder.selection == request.selection);
            let decoder = known.map(|decoder| decoder.number);
            let decoder = decoder.unwrap_or_else(|| {
                let number = *next_decoder;
                *next_decoder = number.wrapping_add(1);
                let selection = request.selection.clone();
                let counters = Counters::new(selection.clone()).with_max_series(MAX_SERIES);
                decoders.push(Decoder { number, selection, counters, left_out: 0 });
                number
            });
            *readings = Some(Readings { decoder, thinning: Thinning::new(request.interval) });
            consumer.begin(info);
        }
    }

    /// Forgets all readings, because another session begins.
    fn end_readings(&mut self) {
        self.decoders.clear();
        for subscriber in &mut self.subscribers {
            subscriber.readings = None;
        }
    }

    /// Removes a consumer, and its decoder unless others use it.
    fn remove(&mut self, id: u64) -> Option<Subscriber> {
        let Self { subscribers, decoders, .. } = self;
        let place = subscribers.iter().position(|subscriber| subscriber.id == id)?;
        let removed = subscribers.swap_remove(place);
        decoders.retain(|decoder| subscribers.iter().any(|other| other.uses(decoder)));
        Some(removed)
    }
}

impl Subscriber {
    fn uses(&self, decoder: &Decoder) -> bool {
        self.readings.as_ref().is_some_and(|readings| readings.decoder == decoder.number)
    }
}

/// Passes a sample of a decoder to its consumers.
fn pass(subscribers: &mut [Subscriber], decoder: u64, sample: &Sample<'_>) {
    for Subscriber { readings, consumer, .. } in subscribers {
        if let Some(Readings { decoder: own, thinning }) = readings
            && *own == decoder
        {
            thinning.add(sample, |sample| consumer.sample(&sample));
        }
    }
}

impl SharedCounters {
    /// Creates the session of a process. Lost events are added to `lost`.
    pub(crate) fn new(target: Target, has_ended: Arc<AtomicBool>, lost: LostEvents, log: ProcessLog) -> Self {
        let shared = Shared {
            target,
            has_ended,
            lost,
            log,
            state: Mutex::default(),
            changed: Condvar::new(),
            sessions: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Adds a consumer, and starts the session if it is the first.
    pub fn subscribe(
        &self,
        request: CounterRequest,
        consumer: Box<dyn CounterConsumer>,
    ) -> CounterSubscription {
        let mut state = self.shared.state();
        let id = state.next_id;
        state.next_id = id.wrapping_add(1);
        state.subscribers.push(Subscriber { id, request, consumer, readings: None });
        if !state.is_running && !self.shared.has_ended.load(Ordering::Acquire) {
            let shared = Arc::clone(&self.shared);
            let thread = thread::Builder::new().name("counters".to_owned()).stack_size(STACK);
            // Without a thread the consumer does not get values until the next one subscribes.
            state.is_running = thread.spawn(move || shared.run()).is_ok();
        }
        drop(state);
        self.shared.changed.notify_all();
        CounterSubscription { shared: Arc::downgrade(&self.shared), id }
    }

    /// The number of consumers.
    pub fn consumer_count(&self) -> usize {
        self.shared.state().subscribers.len()
    }

    /// The number of sessions that were started so far.
    pub fn session_count(&self) -> u64 {
        self.shared.sessions.load(Ordering::Relaxed)
    }

    /// Returns true if a session runs, starts or stops.
    pub fn is_running(&self) -> bool {
        self.shared.state().is_running
    }

    /// Ends the wait for another attempt.
    pub(crate) fn wake(&self) {
        self.shared.changed.notify_all();
    }
}

impl fmt::Debug for SharedCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedCounters").field("consumers", &self.consumer_count()).finish_non_exhaustive()
    }
}

impl Drop for CounterSubscription {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let mut state = shared.state();
        let removed = state.remove(self.id);
        drop(state);
        shared.changed.notify_all();
        // The consumer's own drop must not run while the session is locked.
        drop(removed);
    }
}

impl fmt::Debug for CounterSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CounterSubscription").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The union of the consumers' requests.
#[derive(Debug, Clone, PartialEq)]
struct Plan {
    selections: Vec<Selection>,
    interval: Duration,
    max_histograms: u32,
    max_time_series: u32,
    exponential_histograms: bool,
}

impl Plan {
    fn of(subscribers: &[Subscriber]) -> Option<Self> {
        let requests = || subscribers.iter().map(|subscriber| &subscriber.request);
        let mut selections = Vec::<Selection>::new();
        for request in requests() {
            if !selections.contains(&request.selection) {
                selections.push(request.selection.clone());
            }
        }
        Some(Self {
            selections,
            interval: requests().map(|request| request.interval).min()?,
            max_histograms: requests().map(|request| request.max_histograms).max()?,
            max_time_series: requests().map(|request| request.max_time_series).max()?,
            exponential_histograms: requests().all(|request| request.exponential_histograms),
        })
    }

    /// Returns true if a session of this plan covers the other plan, at its interval or a shorter one.
    fn covers(&self, other: &Self) -> bool {
        other.selections.iter().all(|selection| self.selections.contains(selection))
            && self.interval <= other.interval
            && self.max_histograms >= other.max_histograms
            && self.max_time_series >= other.max_time_series
            && (!self.exponential_histograms || other.exponential_histograms)
    }

    /// Returns true if its session is kept for the other plan: it covers that plan, and is not much too fine.
    fn suits(&self, other: &Self) -> bool {
        self.covers(other) && other.interval < self.interval * 2
    }

    fn settings(&self) -> SessionSettings {
        SessionSettings::default()
            .with_interval(self.interval)
            .with_max_histograms(self.max_histograms)
            .with_max_time_series(self.max_time_series)
            .with_exponential_histograms(self.exponential_histograms)
    }

    fn requests(&self, settings: &SessionSettings) -> Vec<ProviderRequest> {
        let selection = self.selections.iter().cloned().reduce(Selection::and);
        selection.map(|selection| selection.requests(settings)).unwrap_or_default()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs sessions until no consumer is left or the process has ended.
    fn run(&self) {
        let mut retry = RetryWait::default();
        while let Some(plan) = self.plan() {
            let start = Instant::now();
            let is_outdated = self.run_session(&plan);
            if start.elapsed() > retry.max() {
                retry.reset();
            }
            match is_outdated {
                Ok(true) => retry.reset(),
                Ok(false) => self.wait(retry.next_wait()),
                Err(error) => {
                    for subscriber in &mut self.state().subscribers {
                        subscriber.consumer.failed(&error);
                    }
                    self.wait(retry.next_wait());
                }
            }
        }
    }

    /// Returns the requests of the consumers; `None` at the end, after which the thread does not run.
    fn plan(&self) -> Option<Plan> {
        let mut state = self.state();
        let plan = Plan::of(&state.subscribers).filter(|_| !self.has_ended.load(Ordering::Acquire));
        state.is_running = plan.is_some();
        plan
    }

    /// Waits before another attempt, as long as there are consumers.
    fn wait(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut state = self.state();
        while !state.subscribers.is_empty() && !self.has_ended.load(Ordering::Acquire) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns true if the session has to be replaced or stopped. `known` are the consumers at the last call.
    fn is_outdated(&self, plan: &Plan, known: &mut Vec<u64>) -> bool {
        let state = self.state();
        if self.has_ended.load(Ordering::Acquire) {
            return true;
        }
        let ids = || state.subscribers.iter().map(|subscriber| subscriber.id);
        if known.iter().copied().eq(ids()) {
            return state.subscribers.is_empty();
        }
        *known = ids().collect();
        Plan::of(&state.subscribers).is_none_or(|wanted| !plan.suits(&wanted))
    }

    /// Runs a session of the plan. Returns true if it was stopped because the consumers want something else,
    /// or nothing.
    fn run_session(&self, plan: &Plan) -> Result<bool, Error> {
        let mut session =
            PlannedSession { shared: self, plan, known: Vec::new(), is_outdated: false, lost: 0 };
        let request = CountersRequest::new(plan.settings()).with_buffer_mb(BUFFER_MB);
        let is_unwanted = || self.has_ended.load(Ordering::Acquire) || self.state().subscribers.is_empty();
        let collected = match counters::collect(&self.target, request, &mut session, is_unwanted, &mut ()) {
            Ok(collected) => collected,
            Err(StartError::Failed(error)) => return Err(error),
            Err(_) => return Ok(is_unwanted()),
        };
        match collected.end.ending {
            Ending::Cut(Some(error)) if !session.is_outdated && !collected.is_refused => Err(error),
            _ => Ok(session.is_outdated),
        }
    }

    /// Passes the events that are ready to the consumers; with `is_end` also samples that were held back.
    fn deliver(&self, events: &mut CounterEvents<'_>, is_end: bool) {
        let Some(info) = events.info().cloned() else { return };
        let mut state = self.state();
        state.begin_readings(&info);
        let State { subscribers, decoders, .. } = &mut *state;
        while let Some(event) = events.next() {
            for Decoder { number, counters, .. } in &mut *decoders {
                counters.add(&event, |sample| pass(subscribers, *number, &sample));
            }
        }
        for decoder in decoders.iter_mut().filter(|_| is_end) {
            decoder.counters.finish(|sample| pass(subscribers, decoder.number, &sample));
            for subscriber in subscribers.iter_mut().filter(|subscriber| subscriber.uses(decoder)) {
                let Subscriber { readings: Some(readings), consumer, .. } = subscriber else { continue };
                readings.thinning.finish(decoder.counters.series(), |sample| consumer.sample(&sample));
            }
        }
        self.report_limits(&mut state);
    }

    /// Reports values that are left out, and the notices of the runtime, each once for a process.
    fn report_limits(&self, state: &mut State) {
        let State { decoders, reported, is_limit_reported, .. } = state;
        for Decoder { counters, left_out, .. } in decoders {
            let more = counters.left_out().saturating_sub(*left_out);
            if more > 0 {
                *left_out = counters.left_out();
                self.lost.left_out_values.fetch_add(more, Ordering::Relaxed);
                if !std::mem::replace(is_limit_reported, true) {
                    self.log.report(ProcessEvent::CountersLeftOut { most: MAX_SERIES });
                }
            }
            for notice in counters.notices() {
                // Other settings are adopted.
                let is_handled = matches!(notice, Notice::OtherSettings { .. });
                if !is_handled && reported.len() < MAX_REPORTED && !reported.contains(notice) {
                    reported.push(notice.clone());
                    self.log.report(ProcessEvent::CounterNotice(notice.clone()));
                }
            }
        }
    }
}

/// A session of a plan.
struct PlannedSession<'s> {
    shared: &'s Shared,
    plan: &'s Plan,
    /// The consumers at the last check.
    known: Vec<u64>,
    /// True if the consumers want something else, or nothing.
    is_outdated: bool,
    /// The lost events that were counted.
    lost: u64,
}

impl CounterReader for PlannedSession<'_> {
    type Error = StartError;

    fn requests(&self, settings: &SessionSettings) -> Vec<ProviderRequest> {
        self.plan.requests(settings)
    }

    fn begin(&mut self, _: &SessionSettings) -> Limits {
        self.shared.sessions.fetch_add(1, Ordering::Relaxed);
        self.shared.state().end_readings();
        self.lost = 0;
        Limits::new(StopSignal::new()).with_silence(DRAIN).with_reads(CHUNK, TICK)
    }

    fn read(&mut self, events: &mut CounterEvents<'_>, is_end: bool) -> Result<(), StartError> {
        // The last values of a process that has ended are not whole.
        let was_stopped = self.is_outdated || events.is_refused();
        self.shared.deliver(events, is_end && was_stopped);
        let lost = events.reader().events().loss().total();
        self.shared.lost.counters.fetch_add(lost.saturating_sub(self.lost), Ordering::Relaxed);
        self.lost = lost;
        self.is_outdated = self.is_outdated || self.shared.is_outdated(self.plan, &mut self.known);
        Ok(())
    }

    fn report(&mut self, silence: Silence) {
        if let Silence::Counters { source, time } = silence {
            self.shared.log.report(ProcessEvent::CountersSilent { source, time });
        }
    }

    fn is_satisfied(&self) -> bool {
        self.is_outdated
    }
}

#[cfg(test)]
mod tests;
