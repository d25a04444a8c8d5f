//! Rules over a recording: the executions that a monitor would have started.

use std::sync::Arc;
use std::time::Duration;

use clr_conditions::StreamEnd;
use clr_counters::{Counters, Sample, Thinning};
use nettrace::{Event, RelativeTime};

use super::engine::{RuleEngine, provider_requests};
use super::evidence::Evidence;
use super::rule::{Rule, Trigger};
use super::status::RuleStatus;

/// Maximum number of series of a rule's counter to keep.
const MAX_SERIES: usize = 10_000;

/// The rules of a configuration over the events of one recording.
///
/// The start of the recording counts as the appearance of the process, and filters of rules are ignored. Time
/// is measured by the events: actions take exactly their configured collection time.
///
/// ```no_run
/// use dipc_monitor::RulesConfig;
/// use dipc_monitor::configuration::{Configuration, ConfigurationSources};
/// use dipc_monitor::rules::RuleReplay;
/// use std::time::Duration;
///
/// let checked = Configuration::read(&ConfigurationSources::new().with_file("rules.json"));
/// let rules = RulesConfig::of(&checked.configuration).rules;
/// let mut replay = RuleReplay::new(&rules, |_| Duration::from_secs(5));
/// let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?.in_time_order();
/// events.for_each(|event| replay.event(&event, |firing| println!("{:?} {}", firing.time, firing.cause)))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RuleReplay {
    engine: RuleEngine,
    counters: Vec<ReplayedCounter>,
    /// The end of the actions that run, by the numbers of their rules.
    running: Vec<(usize, Duration)>,
    /// The time of all actions of an execution, in place of that which they are configured for.
    actions_time: Option<Duration>,
    now: Duration,
}

/// The counter of a rule.
#[derive(Debug)]
struct ReplayedCounter {
    rule_number: usize,
    counters: Counters,
    thinning: Thinning,
}

/// A trigger that fires.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplayedFiring {
    /// The number of the rule.
    pub rule_number: usize,
    /// The time since the start of the recording.
    pub time: Duration,
    /// The event. It includes untrusted strings from the process.
    pub cause: String,
    /// The number of the execution and the end of its actions; `None` if the limit of executions is reached.
    pub execution: Option<(u64, Duration)>,
}

impl RuleReplay {
    /// Starts the rules. `interval_of` returns the interval of a provider's counters: more frequent values
    /// are combined, as in a monitor.
    pub fn new(rules: &[Arc<Rule>], interval_of: impl Fn(&str) -> Duration) -> Self {
        let engine = RuleEngine::of_rules(rules.iter(), interval_of, Duration::ZERO);
        let counters = engine.counters().into_iter().map(|need| ReplayedCounter {
            rule_number: need.rule_number,
            counters: Counters::new(need.selection).with_max_series(MAX_SERIES),
            thinning: Thinning::new(need.interval),
        });
        Self {
            counters: counters.collect(),
            engine,
            running: Vec::new(),
            actions_time: None,
            now: Duration::ZERO,
        }
    }

    /// Has the actions of each execution take this time.
    #[must_use]
    pub const fn with_actions_time(mut self, time: Duration) -> Self {
        self.actions_time = Some(time);
        self
    }

    /// Adds the next event in time order, and passes the firings up to it to `emit`.
    pub fn event(&mut self, event: &Event<'_>, mut emit: impl FnMut(ReplayedFiring)) {
        let time = event.relative_time().since_start();
        self.advance(time, &mut emit);
        for number in 0..self.counters.len() {
            let Some(counter) = self.counters.get_mut(number) else { continue };
            let ReplayedCounter { rule_number, counters, thinning } = counter;
            let engine = &mut self.engine;
            let now = self.now;
            counters.add(event, |sample| {
                thinning.add(&sample, |sample| engine.sample(*rule_number, &sample, now));
            });
            self.collect(&mut emit);
        }
        self.engine.event(event, self.now);
        self.collect(&mut emit);
    }

    /// Adds the end of the recording, with its reason if it is known.
    pub fn finish(&mut self, end: Option<StreamEnd>, mut emit: impl FnMut(ReplayedFiring)) {
        let now = self.now;
        for ReplayedCounter { rule_number, counters, thinning } in &mut self.counters {
            let engine = &mut self.engine;
            let mut add = |sample: &Sample<'_>| {
                thinning.add(sample, |sample| engine.sample(*rule_number, &sample, now));
            };
            counters.finish(|sample| add(&sample));
        }
        self.collect(&mut emit);
        self.engine.end(end, now);
        self.collect(&mut emit);
    }

    /// Lets time pass until the next event. What happens without events happens at its own time.
    fn advance(&mut self, time: Duration, emit: &mut impl FnMut(ReplayedFiring)) {
        loop {
            let next = self.running.iter().enumerate().min_by_key(|(_, (_, end))| *end);
            let Some((place, (number, end))) = next.map(|(place, running)| (place, *running)) else { break };
            if end > time {
                break;
            }
            self.now = end.max(self.now);
            self.engine.advance(self.now);
            self.collect(emit);
            self.running.swap_remove(place);
            self.engine.actions_ended(number, self.now);
        }
        self.now = time.max(self.now);
    }

    /// Passes on the engine's results.
    fn collect(&mut self, emit: &mut impl FnMut(ReplayedFiring)) {
        loop {
            for throttled in self.engine.take_throttled() {
                emit(ReplayedFiring {
                    rule_number: throttled.rule_number,
                    time: throttled.now,
                    cause: throttled.cause,
                    execution: None,
                });
            }
            let Some(execution) = self.engine.poll() else { return };
            let time = execution.time.map_or(Duration::ZERO, RelativeTime::since_start);
            let length = self.actions_time.unwrap_or_else(|| execution.rule.actions_time());
            let end = self.now.saturating_add(length);
            emit(ReplayedFiring {
                rule_number: execution.rule_number,
                time,
                cause: execution.cause,
                execution: Some((execution.number, end)),
            });
            if length.is_zero() {
                self.engine.actions_ended(execution.rule_number, self.now);
            } else {
                self.running.push((execution.rule_number, end));
            }
        }
    }

    /// Passes what fires at the start of the recording to `emit`. Call it before the first event.
    pub fn start(&mut self, mut emit: impl FnMut(ReplayedFiring)) {
        self.collect(&mut emit);
    }

    /// The rules by number.
    pub fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.engine.rules()
    }

    /// The state of a rule after the last event.
    pub fn status(&self, rule_number: usize) -> Option<RuleStatus> {
        self.engine.status(rule_number, self.now)
    }

    /// The observations of a rule's trigger while the rule watched for it.
    pub fn evidence(&self, rule_number: usize) -> Option<&Evidence> {
        self.engine.evidence(rule_number)
    }
}

impl Rule {
    /// The total collection time of the rule's actions, in order. Actions that are not waited for run in
    /// parallel.
    pub fn actions_time(&self) -> Duration {
        let mut ends: Vec<(Option<&str>, Duration)> = Vec::new();
        let mut now = Duration::ZERO;
        for action in &self.actions {
            for used in super::used_actions(&action.kind) {
                let end = ends.iter().find(|(name, _)| *name == Some(&*used)).map(|(_, end)| *end);
                now = now.max(end.unwrap_or_default());
            }
            let end = now.saturating_add(action.kind.collection_time());
            ends.push((action.name.as_deref(), end));
            if action.wait_for_completion {
                now = end;
            }
        }
        ends.into_iter().map(|(_, end)| end).max().unwrap_or_default()
    }

    /// The providers that the rule needs to fire, if the recording does not contain any of their events.
    pub fn missing_providers(&self, is_recorded: impl Fn(&str) -> bool) -> Vec<String> {
        match &self.trigger {
            Trigger::Condition { condition, .. } => condition.missing_providers(is_recorded),
            Trigger::Counter(counter) => {
                let requests = counter.selection().requests(&clr_counters::SessionSettings::default());
                let names: Vec<_> = requests.into_iter().map(|request| request.name).collect();
                if names.iter().any(|name| is_recorded(name)) { Vec::new() } else { names }
            }
            trigger => {
                let requests = provider_requests(trigger).into_iter().map(|request| request.name);
                requests.filter(|name| !is_recorded(name)).collect()
            }
        }
    }
}
