//! Rules as data.

use std::fmt;
use std::time::Duration;

use clr_conditions::Condition;

use crate::configuration::format_time_span;
use crate::filter::{Filter, ProcessFacts};

use super::action::Action;
use super::path_filter::PathFilter;

/// A rule: a trigger, and the actions that it starts.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Rule {
    /// The name, which is unique.
    pub name: String,
    /// The processes that the rule applies to: all filters must match.
    pub filters: Vec<Filter>,
    /// The trigger.
    pub trigger: Trigger,
    /// The actions, in their order.
    pub actions: Vec<Action>,
    /// The limits.
    pub limits: Limits,
}

impl Rule {
    /// Creates a rule for all processes with the default limits.
    pub fn new(name: impl Into<String>, trigger: Trigger, actions: Vec<Action>) -> Self {
        Self { name: name.into(), filters: Vec::new(), trigger, actions, limits: Limits::default() }
    }

    /// Returns true if the rule is for a process.
    pub fn is_for(&self, process: &ProcessFacts) -> bool {
        self.filters.iter().all(|filter| filter.matches(process))
    }
}

/// The event that starts a rule's actions.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Trigger {
    /// The process appears.
    Startup,
    /// Requests start: `count` of them within the window.
    RequestCount {
        /// The number.
        count: u32,
        /// The window.
        window: Duration,
        /// The requests that count.
        paths: PathFilter,
    },
    /// Requests take long: `count` of them within the window. Running requests count as well.
    RequestDuration {
        /// The number.
        count: u32,
        /// Minimum duration of a request.
        duration: Duration,
        /// The window.
        window: Duration,
        /// The requests that count.
        paths: PathFilter,
    },
    /// Requests end with some status: `count` of them within the window.
    ResponseStatus {
        /// The status codes, as ranges with both ends.
        codes: Vec<(u16, u16)>,
        /// The number.
        count: u32,
        /// The window.
        window: Duration,
        /// The requests that count.
        paths: PathFilter,
    },
    /// A counter passes bounds for some time.
    Counter(CounterTrigger),
    /// A condition is met.
    Condition {
        /// The text, in the [language](clr_conditions#the-language).
        text: String,
        /// The condition.
        condition: Condition,
    },
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Startup => f.write_str("the process appears"),
            Self::RequestCount { count, window, paths } => {
                write!(f, "{count} requests start in {}{paths}", format_time_span(*window))
            }
            Self::RequestDuration { count, duration, window, paths } => {
                let (duration, window) = (format_time_span(*duration), format_time_span(*window));
                write!(f, "{count} requests of at least {duration} in {window}{paths}")
            }
            Self::ResponseStatus { codes, count, window, paths } => {
                write!(f, "{count} responses with status ")?;
                for (number, (first, last)) in codes.iter().enumerate() {
                    f.write_str(if number > 0 { ", " } else { "" })?;
                    write!(f, "{first}")?;
                    if first != last {
                        write!(f, "-{last}")?;
                    }
                }
                write!(f, " in {}{paths}", format_time_span(*window))
            }
            Self::Counter(counter) => counter.fmt(f),
            Self::Condition { text, .. } => f.write_str(text),
        }
    }
}

/// The way in which a counter is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CounterSource {
    /// An EventCounter.
    EventCounters,
    /// An instrument of a Meter.
    Meter,
}

/// A trigger over the values of a counter: each value has to pass the bounds, without a break, for the
/// window.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct CounterTrigger {
    /// The way in which it is requested.
    pub source: CounterSource,
    /// The EventSource or Meter.
    pub provider: String,
    /// The counter or instrument.
    pub counter: String,
    /// The value has to be greater.
    pub greater_than: Option<f64>,
    /// The value has to be less.
    pub less_than: Option<f64>,
    /// The quantile of a histogram, in percent.
    pub percentile: Option<u16>,
    /// The window.
    pub window: Duration,
}

impl fmt::Display for CounterTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.counter)?;
        if let Some(percentile) = self.percentile {
            write!(f, ":p{percentile}")?;
        }
        if let Some(bound) = self.greater_than {
            write!(f, " > {bound}")?;
        }
        if let Some(bound) = self.less_than {
            write!(f, "{} < {bound}", if self.greater_than.is_some() { " and" } else { "" })?;
        }
        write!(f, " for {}", format_time_span(self.window))
    }
}

impl CounterTrigger {
    /// Returns true if a value passes the bounds, which are strict.
    pub fn passes(&self, value: f64) -> bool {
        self.greater_than.is_none_or(|bound| value > bound)
            && self.less_than.is_none_or(|bound| value < bound)
    }
}

/// The limits of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct Limits {
    /// Maximum number of executions of the actions within the window.
    pub action_count: u32,
    /// The window of `action_count`; without one it is the whole life of the rule.
    pub action_count_window: Option<Duration>,
    /// The time after which the rule ends.
    pub rule_duration: Option<Duration>,
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.action_count {
            1 => f.write_str("once")?,
            count => write!(f, "{count} times")?,
        }
        if let Some(window) = self.action_count_window {
            write!(f, " in {}", format_time_span(window))?;
        }
        if let Some(duration) = self.rule_duration {
            write!(f, ", for {}", format_time_span(duration))?;
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { action_count: 5, action_count_window: None, rule_duration: None }
    }
}
