//! The rules of a configuration, run for all processes of a monitor.
//!
//! Each process that a rule applies to has its own engine, one session of events if a trigger needs events,
//! and its part in the shared session of counters. Actions run in threads of their own.

mod actions;
mod diagnosis;
mod diagnosis_limits;
mod event_session;
mod history;
mod process_rules;
mod program;
mod system_watch;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clr_conditions::SystemValue;

use crate::configuration::{Configuration, EgressProvider, GlobalCounter};
use crate::egress::EgressQueue;
use crate::monitor::ProcessObserver;
use crate::operation::Operations;
use crate::process::Watched;
use crate::rules::{Rule, RuleStatus};
use crate::stop::await_end;

use diagnosis_limits::Diagnoses;
use history::RuleHistory;
use process_rules::ProcessRules;

pub use history::RuleRecord;

/// Maximum time that the start of a process waits for its rules.
const MAX_START_TIME: Duration = Duration::from_secs(10);
/// The time in which actions end when the rules are stopped: traces get their rundown.
const LAST_ACTIONS: Duration = Duration::from_secs(10);

/// A message about a rule.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RuleMessage {
    /// The name of the rule.
    pub rule: String,
    /// The pid of the process.
    pub pid: u32,
    /// The name of the process. It is untrusted.
    pub process_name: String,
    /// The event.
    pub event: RuleEvent,
}

/// An event of a rule's life.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleEvent {
    /// The trigger has fired, and the actions start.
    Fired {
        /// The number of this execution, from 1.
        number: u64,
        /// The event that fired it. It includes untrusted strings from the process.
        cause: String,
    },
    /// The first cause of what is wrong with the process, by its memory and the kernel's account in the two
    /// seconds after the trigger. It includes untrusted strings from the process.
    Diagnosed(String),
    /// An action is complete.
    ActionCompleted {
        /// The type of the action.
        action: &'static str,
        /// The output of the action: the path of an artifact, for example.
        output: Option<String>,
    },
    /// An action has failed. The other actions of the execution are stopped.
    ActionFailed {
        /// The type of the action.
        action: &'static str,
        /// The reason.
        error: String,
    },
    /// The number of firings while the actions ran. These did not start further actions.
    Missed(u64),
    /// The session of the trigger could not be started, or has failed. It is tried again.
    SessionFailed(String),
    /// The condition of the trigger compares a value that the system does not have for this process.
    ValueUnknown(SystemValue),
}

/// A number as an ordinal: first, second, 11th.
struct Ordinal(u64);

impl fmt::Display for Ordinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => return f.write_str("first"),
            2 => return f.write_str("second"),
            3 => return f.write_str("third"),
            _ => {}
        }
        let suffix = match self.0 % 10 {
            _ if (11..=13).contains(&(self.0 % 100)) => "th",
            1 => "st",
            2 => "nd",
            3 => "rd",
            _ => "th",
        };
        write!(f, "{}{suffix}", self.0)
    }
}

impl fmt::Display for RuleMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} of {} ({}): {}", self.rule, self.process_name, self.pid, self.event)
    }
}

impl fmt::Display for RuleEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fired { number, cause } => write!(f, "fired for the {} time: {cause}", Ordinal(*number)),
            Self::Diagnosed(cause) => write!(f, "diagnosis: {cause}"),
            Self::ActionCompleted { action, output: Some(output) } => write!(f, "{action}: {output}"),
            Self::ActionCompleted { action, output: None } => write!(f, "{action} is done"),
            Self::ActionFailed { action, error } => write!(f, "{action} failed: {error}"),
            Self::Missed(1) => {
                f.write_str("the trigger fired once more while the actions ran, and was ignored")
            }
            Self::Missed(count) => {
                write!(f, "the trigger fired {count} more times while the actions ran, and was ignored")
            }
            Self::SessionFailed(error) => write!(f, "no session for the trigger: {error}"),
            Self::ValueUnknown(value) => {
                write!(f, "{value} is unknown: this part of the condition is not met")
            }
        }
    }
}

/// A receiver of messages. It is called from many threads, and must not block.
pub type RuleLog = Arc<dyn Fn(&RuleMessage) + Send + Sync>;

/// The part of a configuration that rules use.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RulesConfig {
    /// The rules.
    pub rules: Vec<Arc<Rule>>,
    /// The destinations of artifacts.
    pub egress: BTreeMap<String, EgressProvider>,
    /// Intervals and limits of counters.
    pub counters: GlobalCounter,
}

impl RulesConfig {
    /// Returns the part of a configuration.
    pub fn of(configuration: &Configuration) -> Self {
        Self {
            rules: configuration.rules.iter().cloned().map(Arc::new).collect(),
            egress: configuration.egress.clone(),
            counters: configuration.global_counter.clone(),
        }
    }
}

/// Rules that run. Add this to the observers of a [`Monitor`](crate::Monitor).
pub struct Rules {
    context: Arc<Context>,
    config: Mutex<Arc<RulesConfig>>,
    processes: Mutex<BTreeMap<u32, Arc<ProcessRules>>>,
}

/// The state that the rules of all processes share.
struct Context {
    operations: Operations,
    host_name: String,
    log: RuleLog,
    history: RuleHistory,
    diagnoses: Diagnoses,
    /// The queue of artifacts for object stores.
    queue: Option<EgressQueue>,
}

impl Rules {
    /// Creates the state without any process. Artifacts are among the `operations`.
    pub fn new(config: RulesConfig, operations: Operations, host_name: String, log: RuleLog) -> Self {
        Self {
            context: Arc::new(Context {
                operations,
                host_name,
                log,
                history: RuleHistory::default(),
                diagnoses: Diagnoses::default(),
                queue: None,
            }),
            config: Mutex::new(Arc::new(config)),
            processes: Mutex::default(),
        }
    }

    /// Sets the queue of artifacts for object stores, before any process is added.
    #[must_use]
    pub fn with_queue(mut self, queue: Option<EgressQueue>) -> Self {
        if let Some(context) = Arc::get_mut(&mut self.context) {
            context.queue = queue;
        }
        self
    }

    fn config(&self) -> MutexGuard<'_, Arc<RulesConfig>> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn processes(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<ProcessRules>>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The states of the rules that apply to a process, in the order of the configuration.
    pub fn statuses(&self, process: &Watched) -> Vec<RuleStatus> {
        let rules = self.processes().get(&process.number).cloned();
        rules.map(|rules| rules.statuses()).unwrap_or_default()
    }

    /// The last 200 events of all rules, oldest first.
    pub fn history(&self) -> Vec<RuleRecord> {
        self.context.history.records()
    }

    /// The directories of egress providers, by the names of these.
    pub(crate) fn egress_directories(&self) -> BTreeMap<String, PathBuf> {
        crate::egress::directories(&self.config().egress)
    }

    /// Replaces the rules. Unchanged rules go on, with their state and their sessions; running actions are
    /// not stopped.
    pub fn replace(&self, config: RulesConfig) {
        let config = Arc::new(config);
        // Processes that appear from here on get the new ones.
        *self.config() = Arc::clone(&config);
        let processes: Vec<_> = self.processes().values().cloned().collect();
        for process in processes {
            process.replace(&config);
        }
    }

    /// Stops all rules. Running actions are asked to end, so that their artifacts are complete, and are given
    /// a limited time for it. Actions on processes that the system keeps from answering get less.
    pub fn stop(&self) {
        let processes: Vec<_> = self.processes().values().cloned().collect();
        for process in &processes {
            process.stop(false);
        }
        await_end(&processes, |it| it.can_answer(), |it| it.is_active(), LAST_ACTIONS);
        for process in &processes {
            process.stop(true);
        }
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        for process in self.processes().values() {
            process.stop(true);
        }
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("config", &self.config()).finish_non_exhaustive()
    }
}

impl ProcessObserver for Rules {
    fn started(&self, process: &Arc<Watched>) {
        let rules = {
            // The configuration is not replaced before the process is in the table.
            let config = self.config();
            let rules = ProcessRules::new(Arc::clone(process), &config, Arc::clone(&self.context));
            self.processes().insert(process.number, Arc::clone(&rules));
            rules
        };
        rules.start();
        // Sessions begin, and a profiler is loaded, before the process runs on.
        rules.wait_for_start(Instant::now() + MAX_START_TIME);
    }

    fn ended(&self, process: &Arc<Watched>) {
        let rules = self.processes().get(&process.number).cloned();
        if let Some(rules) = rules {
            rules.process_ended();
        }
        // Actions may outlive their process: they are known until they have ended.
        self.processes().retain(|_, rules| !rules.process_has_ended() || rules.is_active());
    }
}

#[cfg(test)]
mod tests {
    use super::Ordinal;

    #[test]
    fn ordinals_are_english() {
        let words =
            [1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 101, 111, 112].map(|number| Ordinal(number).to_string());
        let expected = "first second third 4th 11th 12th 13th 21st 22nd 23rd 101st 111th 112th"
            .split(' ')
            .collect::<Vec<_>>();
        assert_eq!(words.to_vec(), expected);
    }
}
