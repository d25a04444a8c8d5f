//! Rules as data.

use std::time::Duration;

use clr_conditions::Condition;

use crate::filter::{Filter, ProcessFacts};

use super::action::Action;
use super::path_pattern::PathFilter;

/// A rule: a trigger, and the actions that it starts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Rule {
    /// The name, which is unique.
    pub name: String,
    /// The processes that it is for: those that all filters match.
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

    /// Whether the rule is for a process.
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
    /// Requests take long: `count` of them within the window. Those that still run count as well.
    RequestDuration {
        /// The number.
        count: u32,
        /// The least duration of a request.
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
    /// A condition of the [language](clr_conditions#the-language) is met.
    Condition(Condition),
}

/// The way in which a counter is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterSource {
    /// An EventCounter.
    EventCounters,
    /// An instrument of a Meter.
    Meter,
}

/// A trigger over the values of a counter: each value has to pass the bounds, without a break, for the window.
#[derive(Debug, Clone, PartialEq)]
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

impl CounterTrigger {
    /// Whether a value passes the bounds, which are strict.
    pub fn passes(&self, value: f64) -> bool {
        self.greater_than.is_none_or(|bound| value > bound)
            && self.less_than.is_none_or(|bound| value < bound)
    }
}

/// The limits of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most executions of the actions within the window.
    pub action_count: u32,
    /// The window of `action_count`; without one it is the whole life of the rule.
    pub action_count_window: Option<Duration>,
    /// The time after which the rule ends.
    pub rule_duration: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { action_count: 5, action_count_window: None, rule_duration: None }
    }
}
