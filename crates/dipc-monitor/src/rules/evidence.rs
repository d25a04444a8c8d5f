//! Observations of a trigger, as an explanation of a rule that has not fired.

use std::time::Duration;

use super::rule::{CounterTrigger, Trigger};
use crate::configuration::format_time_span;

/// A throttled firing of a trigger: the limit of executions was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThrottledFiring {
    /// The number of the rule in the engine.
    pub rule_number: usize,
    /// The event. It includes untrusted strings from the process.
    pub cause: String,
    /// The time of the call, as of [`RuleEngine::event`](super::RuleEngine::event).
    pub now: Duration,
}

/// The events that a trigger has seen while its rule watched for it, since the rule began.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Evidence {
    /// The trigger fires once, at the start.
    Startup,
    /// The trigger counts requests.
    Requests {
        /// The requests of any path and status.
        seen: u64,
        /// The requests that count.
        counted: u64,
        /// Maximum number of counted requests within the window.
        most: u64,
    },
    /// The trigger compares values of a counter.
    Counter {
        /// The values.
        values: u64,
        /// The values that pass the bounds.
        passing: u64,
        /// Smallest and largest value.
        range: Option<(f64, f64)>,
        /// Longest time for which values have passed without a break.
        longest: Duration,
    },
    /// The trigger is a condition.
    Condition {
        /// The number of times that it was met.
        met: u64,
    },
}

impl Evidence {
    pub(crate) const fn new(trigger: &Trigger) -> Self {
        match trigger {
            Trigger::Startup => Self::Startup,
            Trigger::RequestCount { .. }
            | Trigger::RequestDuration { .. }
            | Trigger::ResponseStatus { .. } => Self::Requests { seen: 0, counted: 0, most: 0 },
            Trigger::Counter(_) => {
                Self::Counter { values: 0, passing: 0, range: None, longest: Duration::ZERO }
            }
            Trigger::Condition { .. } => Self::Condition { met: 0 },
        }
    }

    /// Adds a request of any kind.
    pub(crate) const fn add_request(&mut self) {
        if let Self::Requests { seen, .. } = self {
            *seen = seen.saturating_add(1);
        }
    }

    /// Adds a request that counts, and returns the given number of requests in the window.
    pub(crate) fn add_counted(&mut self, in_window: u64) -> u64 {
        if let Self::Requests { counted, most, .. } = self {
            *counted = counted.saturating_add(1);
            *most = in_window.max(*most);
        }
        in_window
    }

    /// Adds a value of the counter. `None` for instruments without measurements.
    pub(crate) fn add_value(&mut self, value: Option<f64>) {
        if let Self::Counter { values, range, .. } = self
            && let Some(value) = value.filter(|value| !value.is_nan())
        {
            *values = values.saturating_add(1);
            let (least, most) = range.unwrap_or((value, value));
            *range = Some((least.min(value), most.max(value)));
        }
    }

    /// Adds a value that passes, after some time of such values.
    pub(crate) fn add_passing(&mut self, length: Duration) {
        if let Self::Counter { passing, longest, .. } = self {
            *passing = passing.saturating_add(1);
            *longest = length.max(*longest);
        }
    }

    /// Adds a time at which the condition was met.
    pub(crate) const fn add_met(&mut self) {
        if let Self::Condition { met } = self {
            *met = met.saturating_add(1);
        }
    }

    /// Returns a sentence about the events that the trigger has seen.
    pub fn text(&self, trigger: &Trigger) -> String {
        match (self, trigger) {
            (Self::Requests { seen: 0, .. }, _) => "no request was seen".to_owned(),
            (
                Self::Requests { seen, counted, most },
                Trigger::RequestCount { window, .. }
                | Trigger::RequestDuration { window, .. }
                | Trigger::ResponseStatus { window, .. },
            ) => {
                let window = format_time_span(*window);
                format!("{counted} of {seen} requests count, at most {most} in {window}")
            }
            (Self::Counter { range: None, .. }, Trigger::Counter(CounterTrigger { percentile, .. })) => {
                let kind = percentile.map_or("", |_| " with percentiles");
                format!("no value{kind} was seen")
            }
            (Self::Counter { values, passing, range: Some((least, most)), longest }, _) => {
                let range = if least.to_bits() == most.to_bits() {
                    format!("all {}", rounded(*least))
                } else {
                    format!("{} to {}", rounded(*least), rounded(*most))
                };
                let seconds = longest.as_secs_f64();
                format!("{passing} of {values} values pass, {range}; {seconds:.1} s without a break at most")
            }
            (Self::Condition { met }, _) => format!("met {met} times"),
            _ => String::new(),
        }
    }
}

/// A value with as many digits as people need.
fn rounded(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.001 {
        format!("{value:.2e}")
    } else if value.fract() == 0.0 {
        format!("{value}")
    } else {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}
