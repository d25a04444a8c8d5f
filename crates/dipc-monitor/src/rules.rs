//! Rules: triggers over the events of a process, and the actions that they start.
//!
//! [`RuleEngine`] takes events, values of counters and times, and returns executions of actions. It does not
//! do I/O. Requests are [`clr_activity::Spans`], values of counters are from [`clr_counters::Counters`], and
//! conditions from [`clr_conditions`]. [`RuleReplay`] drives it from a recording.

mod action;
mod engine;
mod evidence;
mod path_filter;
pub(crate) mod placeholder;
mod replay;
mod rule;
mod status;
#[cfg(test)]
mod tests;
mod trigger;
mod window;

pub use action::{Action, ActionKind, Destination, StoppingEvent};
pub use clr_conditions::StreamEnd;
pub use clr_events::Glob;
pub use engine::{CounterNeed, Execution, RuleEngine};
pub use evidence::{Evidence, ThrottledFiring};
pub use path_filter::PathFilter;
pub use placeholder::Placeholders;
pub use replay::{ReplayedFiring, RuleReplay};
pub use rule::{CounterSource, CounterTrigger, Limits, Rule, Trigger};
pub use status::{FinishReason, RuleState, RuleStatus};

pub(crate) use engine::provider_requests;
pub(crate) use placeholder::used_actions;
