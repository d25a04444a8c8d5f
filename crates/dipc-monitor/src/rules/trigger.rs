//! Triggers over events: the state of one trigger.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use clr_activity::{Span, SpanId, SpanRole, StartedSpan};
use clr_conditions::{Evaluator, StreamEnd};
use clr_counters::{Aspect, Sample, Selection, SeriesId};
use nettrace::{Event, RelativeTime};

use super::path_pattern::PathFilter;
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
    /// Creates the state of a trigger that starts. `interval` is that of the counter, if it has one.
    pub(crate) fn new(trigger: &Trigger, interval: Duration) -> Self {
        match trigger {
            Trigger::Startup => Self::Startup,
            Trigger::RequestCount { window, .. }
            | Trigger::RequestDuration { window, .. }
            | Trigger::ResponseStatus { window, .. } => Self::Requests(RequestTrigger {
                window: SlidingWindow::new(*window),
                running: BTreeMap::new(),
            }),
            Trigger::Counter(_) => Self::Counter(CounterState { interval, streaks: HashMap::new() }),
            Trigger::Condition { condition, .. } => {
                Self::Condition(Box::new(Evaluator::new(condition.clone())))
            }
        }
    }

    /// Starts the trigger again: nothing of before counts.
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
    /// The start of each request that runs and has not counted, oldest first. Bounded as those of `Spans`.
    running: BTreeMap<SpanId, RelativeTime>,
}

/// The path in the name of a request, which may begin with its method.
fn path(name: &str) -> &str {
    let target = name.split_once(' ').map_or(name, |(_, target)| target);
    target.split('?').next().unwrap_or_default()
}

impl RequestTrigger {
    /// Adds a span that starts. Returns whether the trigger fires.
    pub(crate) fn start(&mut self, trigger: &Trigger, span: &StartedSpan<'_>) -> bool {
        let is_request = |paths: &PathFilter| span.role == SpanRole::Server && paths.accepts(path(span.name));
        match trigger {
            Trigger::RequestCount { count, paths, .. } if is_request(paths) => {
                self.window.add(span.start) >= u64::from(*count)
            }
            Trigger::RequestDuration { paths, .. } if is_request(paths) => {
                self.running.insert(span.id, span.start);
                false
            }
            _ => false,
        }
    }

    /// Adds a span that has ended. Returns whether the trigger fires.
    pub(crate) fn end(&mut self, trigger: &Trigger, span: &Span<'_>, time: RelativeTime) -> bool {
        match trigger {
            Trigger::RequestDuration { count, duration, .. } => {
                let is_counted = self.running.remove(&span.id).is_none();
                let is_slow = span.is_served_request() && span.duration >= *duration;
                !is_counted && is_slow && self.window.add(time) >= u64::from(*count)
            }
            Trigger::ResponseStatus { codes, count, paths, .. } if span.is_served_request() => {
                let status = span.status.and_then(|status| status.parse::<u16>().ok());
                let is_of =
                    |status: u16| codes.iter().any(|(least, most)| (*least..=*most).contains(&status));
                status.is_some_and(is_of)
                    && paths.accepts(path(span.start_name))
                    && self.window.add(time) >= u64::from(*count)
            }
            _ => false,
        }
    }

    /// Counts the requests that have run for too long at a time. Returns the time at which the trigger fires.
    pub(crate) fn advance(&mut self, trigger: &Trigger, time: RelativeTime) -> Option<RelativeTime> {
        let Trigger::RequestDuration { count, duration, .. } = trigger else { return None };
        while let Some(oldest) = self.running.first_entry()
            && time.saturating_duration_since(*oldest.get()) >= *duration
        {
            let since = oldest.remove().since_start();
            let slow = RelativeTime::after_start(since.saturating_add(*duration));
            if self.window.add(slow) >= u64::from(*count) {
                return Some(slow);
            }
        }
        None
    }
}

/// The state of a trigger over a counter.
#[derive(Debug)]
pub(crate) struct CounterState {
    /// The requested interval.
    interval: Duration,
    /// Each series whose last value passes.
    streaks: HashMap<SeriesId, Streak>,
}

/// Values that pass without a break.
#[derive(Debug, Clone, Copy)]
struct Streak {
    latest: RelativeTime,
    /// The start of the interval of the first one.
    start: Duration,
}

impl CounterState {
    pub(crate) const fn interval(&self) -> Duration {
        self.interval
    }

    /// Adds a value. Returns the text of the value if the trigger fires.
    pub(crate) fn sample(&mut self, trigger: &CounterTrigger, sample: &Sample<'_>) -> Option<String> {
        let series = sample.series;
        let is_meter = trigger.source == CounterSource::Meter;
        if series.kind.is_meter() != is_meter
            || series.name != trigger.counter
            || !series.provider.eq_ignore_ascii_case(&trigger.provider)
        {
            return None;
        }
        let value = trigger.value(sample).filter(|value| trigger.passes(*value));
        let Some(value) = value else {
            self.streaks.remove(&sample.id);
            return None;
        };
        let interval = sample.interval.unwrap_or(self.interval);
        let new = Streak { latest: sample.time, start: sample.time.since_start().saturating_sub(interval) };
        let streak = self.streaks.entry(sample.id).or_insert(new);
        // A value is missing: the series has a hole.
        if sample.time.saturating_duration_since(streak.latest) > self.interval.mul_f64(1.5) {
            *streak = new;
        }
        streak.latest = sample.time;
        let is_met = sample.time.since_start().saturating_sub(streak.start) >= trigger.window;
        is_met.then(|| format!("{}/{} = {value}", series.provider, series.name))
    }
}

impl CounterTrigger {
    /// Returns the value that the bounds are for: the mean, increment, gauge or total, as in dotnet-monitor;
    /// the rate where runtimes before 8.0 report no total; the quantile of a histogram.
    fn value(&self, sample: &Sample<'_>) -> Option<f64> {
        match self.percentile {
            Some(percentile) => sample.number(Aspect::Quantile(percentile.saturating_mul(10))),
            None => sample.number(Aspect::Value).or_else(|| sample.number(Aspect::Rate)),
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
