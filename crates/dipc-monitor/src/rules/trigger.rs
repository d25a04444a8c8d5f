//! Triggers over events: the state of one trigger.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use clr_activity::{Span, SpanId, SpanRole, StartedSpan};
use clr_conditions::{Evaluator, StreamEnd};
use clr_counters::{Aspect, Measurement, MeterMeasurement, Sample, Selection, Series, value_text};
use nettrace::{Event, RelativeTime};

use super::evidence::Evidence;
use super::path_filter::PathFilter;
use super::rule::{CounterSource, CounterTrigger, Trigger};
use super::window::SlidingWindow;

/// The state of a trigger since it was started.
#[derive(Debug)]
pub(crate) enum TriggerState {
    Startup,
    Requests(RequestTrigger),
    Counter(CounterState),
    Condition(Box<Evaluator>),
}

impl TriggerState {
    /// Creates the state of a trigger that starts. `interval` is the interval of the counter, if any.
    pub(crate) fn new(trigger: &Trigger, interval: Duration) -> Self {
        match trigger {
            Trigger::Startup => Self::Startup,
            Trigger::RequestCount { window, .. }
            | Trigger::RequestDuration { window, .. }
            | Trigger::ResponseStatus { window, .. } => Self::Requests(RequestTrigger {
                window: SlidingWindow::new(*window),
                running: BTreeMap::new(),
            }),
            Trigger::Counter(_) => Self::Counter(CounterState::new(interval)),
            Trigger::Condition { condition, .. } => {
                Self::Condition(Box::new(Evaluator::new(condition.clone())))
            }
        }
    }

    /// The interval of its counter, if it has one.
    pub(crate) const fn interval(&self) -> Option<Duration> {
        match self {
            Self::Counter(counter) => Some(counter.interval),
            _ => None,
        }
    }

    /// Starts the trigger again, and discards its history.
    pub(crate) fn restart(&mut self) {
        match self {
            // A condition counts each time that it is met, and keeps requests that have started.
            Self::Startup | Self::Condition(_) => {}
            Self::Requests(requests) => {
                requests.window.clear();
                requests.running.clear();
            }
            Self::Counter(counter) => counter.streaks.clear(),
        }
    }
}

/// The state of a trigger over requests.
#[derive(Debug)]
pub(crate) struct RequestTrigger {
    window: SlidingWindow,
    /// The start of each request that runs and has not counted, oldest first. Bounded like `Spans`.
    running: BTreeMap<SpanId, RelativeTime>,
}

/// The path in the name of a request, which may begin with its method.
fn path(name: &str) -> &str {
    let target = name.split_once(' ').map_or(name, |(_, target)| target);
    target.split('?').next().unwrap_or_default()
}

impl RequestTrigger {
    /// Adds a span that starts. Returns true if the trigger fires.
    pub(crate) fn start(
        &mut self,
        trigger: &Trigger,
        span: &StartedSpan<'_>,
        evidence: &mut Evidence,
    ) -> bool {
        if span.role == SpanRole::Server && !matches!(trigger, Trigger::ResponseStatus { .. }) {
            evidence.add_request();
        }
        let is_request = |paths: &PathFilter| span.role == SpanRole::Server && paths.accepts(path(span.name));
        match trigger {
            Trigger::RequestCount { count, paths, .. } if is_request(paths) => {
                evidence.add_counted(self.window.add(span.start)) >= u64::from(*count)
            }
            Trigger::RequestDuration { paths, .. } if is_request(paths) => {
                self.running.insert(span.id, span.start);
                false
            }
            _ => false,
        }
    }

    /// Adds a span that has ended. Returns true if the trigger fires.
    pub(crate) fn end(
        &mut self,
        trigger: &Trigger,
        span: &Span<'_>,
        time: RelativeTime,
        evidence: &mut Evidence,
    ) -> bool {
        match trigger {
            Trigger::RequestDuration { count, duration, .. } => {
                let is_counted = self.running.remove(&span.id).is_none();
                let is_slow = span.is_served_request() && span.duration >= *duration;
                !is_counted && is_slow && evidence.add_counted(self.window.add(time)) >= u64::from(*count)
            }
            Trigger::ResponseStatus { codes, count, paths, .. } if span.is_served_request() => {
                evidence.add_request();
                let status = span.status.and_then(|status| status.parse::<u16>().ok());
                let is_of =
                    |status: u16| codes.iter().any(|(least, most)| (*least..=*most).contains(&status));
                status.is_some_and(is_of)
                    && paths.accepts(path(span.start_name))
                    && evidence.add_counted(self.window.add(time)) >= u64::from(*count)
            }
            _ => false,
        }
    }

    /// Counts the requests that have run for too long at a time. Returns the time at which the trigger fires.
    pub(crate) fn advance(
        &mut self,
        trigger: &Trigger,
        time: RelativeTime,
        evidence: &mut Evidence,
    ) -> Option<RelativeTime> {
        let Trigger::RequestDuration { count, duration, .. } = trigger else { return None };
        while let Some(oldest) = self.running.first_entry()
            && time.saturating_duration_since(*oldest.get()) >= *duration
        {
            let since = oldest.remove().since_start();
            let slow = RelativeTime::after_start(since.saturating_add(*duration));
            if evidence.add_counted(self.window.add(slow)) >= u64::from(*count) {
                return Some(slow);
            }
        }
        None
    }
}

/// Maximum number of series of a counter to follow. Values of further ones do not count.
const MAX_SERIES: usize = 10_000;

/// The state of a trigger over a counter.
#[derive(Debug)]
pub(crate) struct CounterState {
    /// The requested interval.
    interval: Duration,
    /// The start of the current session, relative to the start of the first one.
    session_start: Duration,
    /// Each series with a passing last value, by tags.
    streaks: HashMap<String, Streak>,
}

/// Values that pass without a break. Times are since the start of the first session.
#[derive(Debug, Clone, Copy)]
struct Streak {
    latest: Duration,
    /// The start of the interval of the first one.
    start: Duration,
    /// The start of the session of `latest`.
    session_start: Duration,
}

impl CounterState {
    fn new(interval: Duration) -> Self {
        Self { interval, session_start: Duration::ZERO, streaks: HashMap::new() }
    }

    pub(crate) const fn interval(&self) -> Duration {
        self.interval
    }

    /// Records that another session has replaced the last one. `start` is its start, relative to the start of
    /// the first one; `None` if unknown, which discards earlier values.
    pub(crate) fn begin_session(&mut self, start: Option<Duration>) {
        if let Some(start) = start.filter(|start| *start >= self.session_start) {
            self.session_start = start;
        } else {
            self.session_start = Duration::ZERO;
            self.streaks.clear();
        }
    }

    /// Adds a value. Returns the text of the value if the trigger fires.
    pub(crate) fn sample(
        &mut self,
        trigger: &CounterTrigger,
        sample: &Sample<'_>,
        evidence: &mut Evidence,
    ) -> Option<String> {
        let series = sample.series;
        let is_meter = trigger.source == CounterSource::Meter;
        if series.kind.is_meter() != is_meter
            || series.name != trigger.counter
            || !series.provider.eq_ignore_ascii_case(&trigger.provider)
        {
            return None;
        }
        let key = key(series);
        let value = trigger.value(sample);
        evidence.add_value(value);
        let Some(value) = value.filter(|value| trigger.passes(*value)) else {
            self.streaks.remove(&key);
            return None;
        };
        let session_start = self.session_start;
        let time = session_start.saturating_add(sample.time.since_start());
        let interval = sample.interval.unwrap_or(self.interval);
        let new = Streak { latest: time, start: time.saturating_sub(interval), session_start };
        if self.streaks.len() >= MAX_SERIES && !self.streaks.contains_key(&key) {
            return None;
        }
        let streak = self.streaks.entry(key).or_insert(new);
        // A session's first value arrives one interval after its start, and values before it are not missing.
        let longest = self.interval.mul_f64(if streak.session_start == session_start { 1.5 } else { 2.5 });
        if time.saturating_sub(streak.latest) > longest {
            *streak = new;
        }
        streak.latest = time;
        streak.session_start = session_start;
        let length = time.saturating_sub(streak.start);
        evidence.add_passing(length);
        let is_met = length >= trigger.window;
        is_met.then(|| format!("{}/{} = {}", series.provider, series.name, value_text(value)))
    }
}

/// The part of a series that is not in the trigger. Numbers of series belong to one session.
fn key(series: &Series) -> String {
    let parts = [&*series.meter_version, &series.meter_tags, &series.instrument_tags, &series.tags];
    parts.join("\u{1f}")
}

impl CounterTrigger {
    /// Returns the value that the bounds are for, as dotnet-monitor has it: the mean, the increment of the
    /// interval, the gauge, the total, or a percentile of a histogram. Counters of Meters do not have a total
    /// before .NET 8: their increment is used instead.
    fn value(&self, sample: &Sample<'_>) -> Option<f64> {
        match (self.percentile, sample.measurement) {
            (Some(percentile), _) => sample.number(Aspect::Quantile(percentile.saturating_mul(10))),
            (None, Measurement::Meter(MeterMeasurement::Counter { total: None, increment })) => *increment,
            (None, _) => sample.number(Aspect::Value),
        }
    }

    /// The selection of its counter.
    pub fn selection(&self) -> Selection {
        match self.source {
            CounterSource::EventCounters => Selection::of_event_counter(&self.provider, &self.counter),
            CounterSource::Meter => Selection::of_instrument(&self.provider, &self.counter),
        }
    }
}

/// Evaluates a condition at an event. Returns the first match.
pub(crate) fn evaluate(evaluator: &mut Evaluator, event: &Event<'_>) -> Option<clr_conditions::Match> {
    let mut found = None;
    evaluator.event(event, |met| {
        found.get_or_insert(met);
    });
    found
}

/// Evaluates a condition at the end of a stream.
pub(crate) fn evaluate_end(
    evaluator: &mut Evaluator,
    end: Option<StreamEnd>,
    time: RelativeTime,
) -> Option<clr_conditions::Match> {
    let mut found = None;
    evaluator.finish(|met| {
        found.get_or_insert(met);
    });
    found.or_else(|| evaluator.end(end?, time))
}
