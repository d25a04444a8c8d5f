//! States of rules, as dotnet-monitor reports them.

use std::time::Duration;

use super::rule::Limits;

/// The state of a rule in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "those of dotnet-monitor")]
pub enum RuleState {
    /// The rule watches for its trigger.
    Running,
    /// The rule's actions run.
    ActionExecuting,
    /// The limit of executions within the window is reached.
    Throttled,
    /// The rule will not fire again.
    Finished(FinishReason),
}

/// The reason for which a rule will not fire again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// The trigger is the start of the process.
    Startup,
    /// The limit of executions is reached, and is not limited to a window.
    ActionCount,
    /// The time of the rule has passed.
    RuleDuration,
    /// The configuration no longer has such a rule.
    ConfigurationChanged,
    /// The trigger has failed.
    Failure(String),
}

impl RuleState {
    /// The name, as in `/collectionrules`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::ActionExecuting => "ActionExecuting",
            Self::Throttled => "Throttled",
            Self::Finished(_) => "Finished",
        }
    }

    /// The reason for the state, for people.
    pub fn reason(&self) -> String {
        match self {
            Self::Running => "The rule waits for its trigger.".to_owned(),
            Self::ActionExecuting => "The trigger has fired, and the actions run.".to_owned(),
            Self::Throttled => {
                "The actions have run ActionCount times within ActionCountSlidingWindowDuration.".to_owned()
            }
            Self::Finished(FinishReason::Startup) => "The trigger Startup fires once.".to_owned(),
            Self::Finished(FinishReason::ActionCount) => "The actions have run ActionCount times.".to_owned(),
            Self::Finished(FinishReason::RuleDuration) => "RuleDuration has passed.".to_owned(),
            Self::Finished(FinishReason::ConfigurationChanged) => {
                "The configuration no longer has this rule.".to_owned()
            }
            Self::Finished(FinishReason::Failure(message)) => format!("The trigger failed: {message}"),
        }
    }
}

/// The state of a rule with its counts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleStatus {
    /// The name of the rule.
    pub name: String,
    /// The state.
    pub state: RuleState,
    /// The number of executions.
    pub lifetime_occurrences: u64,
    /// The number of executions in the window of the limit.
    pub sliding_window_occurrences: u64,
    /// The number of firings without an execution because the limit was reached.
    pub throttled: u64,
    /// The number of firings without an execution because actions of the rule ran.
    pub missed: u64,
    /// A sentence about the events of its trigger, if they were lost at the end of another session and
    /// requested again.
    pub events: Option<String>,
    /// The limits.
    pub limits: Limits,
    /// The time until the rule is no longer throttled.
    pub window_countdown: Option<Duration>,
    /// The time until the rule expires.
    pub finished_countdown: Option<Duration>,
}
