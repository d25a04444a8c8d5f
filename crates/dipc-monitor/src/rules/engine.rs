//! The rules of one process over its events: events and times in, executions of actions out.

mod system;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use clr_activity::Spans;
use clr_conditions::StreamEnd;
use clr_counters::{ProviderRequest, Sample, Selection};
use nettrace::{Event, RelativeTime};
use nettrace_export::units;

use crate::filter::ProcessFacts;
use crate::request_provider::{DIAGNOSTIC_SOURCE, http_provider};

use super::evidence::{Evidence, ThrottledFiring};
use super::rule::{Rule, Trigger};
use super::status::{FinishReason, RuleState, RuleStatus};
use super::trigger::{self, RequestTrigger, TriggerState};

/// The time by which events may be late: a request that has not ended so long ago still runs.
const MAX_DELAY: Duration = Duration::from_secs(1);
/// Maximum number of throttled firings to keep.
const MAX_THROTTLED: usize = 100;

/// The rules of one process.
///
/// The engine does not read a clock: `now` is the time since any fixed moment, the same for all calls, and
/// never goes back. Events have to be added in time order. A rule does not watch for its trigger while its
/// actions run, and starts it anew when they have ended. Firings in between are only
/// [counted](RuleStatus::missed).
///
/// Memory is bounded by the rules, and for each by the spans and series of its trigger.
#[derive(Debug)]
pub struct RuleEngine {
    rules: Vec<ActiveRule>,
    /// `None` if no rule is over requests.
    spans: Option<Spans>,
    /// The last event's time in the stream, and the time of its arrival.
    newest: Option<(RelativeTime, Duration)>,
    executions: VecDeque<Execution>,
    /// The last throttled firings; see [`take_throttled`](Self::take_throttled).
    throttled: VecDeque<ThrottledFiring>,
}

/// The state of a rule.
#[derive(Debug)]
struct ActiveRule {
    rule: Arc<Rule>,
    trigger: TriggerState,
    evidence: Evidence,
    start: Duration,
    /// The starts of the executions in the window of the limit, or of all without one: at most as many as the
    /// limit.
    executions: VecDeque<Duration>,
    lifetime: u64,
    throttled: u64,
    /// The firings while actions ran: in all, and since the start of the running actions.
    missed: u64,
    missed_in_execution: u64,
    is_executing: bool,
    finished: Option<FinishReason>,
}

/// Actions that have to be started.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Execution {
    /// The number of the rule in the engine.
    pub rule_number: usize,
    /// The rule.
    pub rule: Arc<Rule>,
    /// The number of this execution, from 1.
    pub number: u64,
    /// The time of the event in the stream; `None` for a process that appears.
    pub time: Option<RelativeTime>,
    /// The event that started it. It includes untrusted strings from the process.
    pub cause: String,
}

/// The counters that a rule needs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CounterNeed {
    /// The number of the rule in the engine.
    pub rule_number: usize,
    /// The choice of counters.
    pub selection: Selection,
    /// The interval between values.
    pub interval: Duration,
}

impl RuleEngine {
    /// Starts the rules that apply to a process. `interval_of` returns the interval of a provider's counters.
    pub fn new(
        rules: &[Arc<Rule>],
        process: &ProcessFacts,
        interval_of: impl Fn(&str) -> Duration,
        now: Duration,
    ) -> Self {
        Self::of_rules(rules.iter().filter(|rule| rule.is_for(process)), interval_of, now)
    }

    /// Starts rules without regard to their filters.
    pub fn of_rules<'r>(
        rules: impl Iterator<Item = &'r Arc<Rule>>,
        interval_of: impl Fn(&str) -> Duration,
        now: Duration,
    ) -> Self {
        let mut engine = Self {
            rules: Vec::new(),
            spans: None,
            newest: None,
            executions: VecDeque::new(),
            throttled: VecDeque::new(),
        };
        for rule in rules {
            engine.add(rule, interval_of_trigger(&rule.trigger, &interval_of), now);
        }
        engine
    }

    fn add(&mut self, rule: &Arc<Rule>, interval: Duration, now: Duration) {
        let rule = ActiveRule {
            trigger: TriggerState::new(&rule.trigger, interval),
            evidence: Evidence::new(&rule.trigger),
            rule: Arc::clone(rule),
            start: now,
            executions: VecDeque::new(),
            lifetime: 0,
            throttled: 0,
            missed: 0,
            missed_in_execution: 0,
            is_executing: false,
            finished: None,
        };
        let is_startup = matches!(rule.trigger, TriggerState::Startup);
        if matches!(rule.trigger, TriggerState::Requests(_)) {
            self.spans.get_or_insert_default();
        }
        self.rules.push(rule);
        if is_startup {
            self.fire(self.rules.len().saturating_sub(1), None, "the process appeared".to_owned(), now);
        }
    }

    /// Replaces the rules. Unchanged rules go on as they are; others finish, and new ones start. Rules keep
    /// their numbers: finished ones are kept.
    pub fn change_rules(
        &mut self,
        rules: &[Arc<Rule>],
        process: &ProcessFacts,
        interval_of: impl Fn(&str) -> Duration,
        now: Duration,
    ) {
        let rules: Vec<_> = rules.iter().filter(|rule| rule.is_for(process)).collect();
        let interval = |rule: &Rule| interval_of_trigger(&rule.trigger, &interval_of);
        for known in &mut self.rules {
            let is_same = rules.iter().any(|rule| **rule == known.rule)
                && known.trigger.interval().is_none_or(|own| own == interval(&known.rule));
            if !is_same {
                known.finished = Some(FinishReason::ConfigurationChanged);
            }
        }
        for rule in rules {
            let is_known = self.rules.iter().any(|known| {
                known.rule == *rule && known.finished != Some(FinishReason::ConfigurationChanged)
            });
            if !is_known {
                self.add(rule, interval(rule), now);
            }
        }
    }

    /// The rules by number.
    pub fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.iter().map(|rule| &rule.rule)
    }

    /// Returns the providers that the session of events has to enable, once for each rule; empty if no rule
    /// needs events.
    pub fn requests(&self) -> Vec<ProviderRequest> {
        let unfinished = self.rules.iter().filter(|rule| rule.finished.is_none());
        unfinished.flat_map(|rule| provider_requests(&rule.rule.trigger)).collect()
    }

    /// Returns the counters that rules need, each for one rule.
    pub fn counters(&self) -> Vec<CounterNeed> {
        let needs = self.rules.iter().enumerate().filter_map(|(rule_number, rule)| {
            let (Trigger::Counter(counter), TriggerState::Counter(state)) =
                (&rule.rule.trigger, &rule.trigger)
            else {
                return None;
            };
            let interval = state.interval();
            (rule.finished.is_none()).then(|| CounterNeed {
                rule_number,
                selection: counter.selection(),
                interval,
            })
        });
        needs.collect()
    }

    /// Adds an event of the session of [`requests`](Self::requests).
    pub fn event(&mut self, event: &Event<'_>, now: Duration) {
        self.expire(now);
        let time = event.relative_time();
        self.newest = Some((time, now));
        self.find_running(time, now);
        let mut fired: Vec<(usize, String)> = Vec::new();
        // Other providers of the session, which conditions need, report the same requests once more.
        if let Some(spans) = self.spans.as_mut().filter(|_| event.provider() == DIAGNOSTIC_SOURCE) {
            let rules = &mut self.rules;
            spans.add(event, |span| {
                for (number, active) in rules.iter_mut().enumerate() {
                    let is_met = active.add_request(|requests, trigger, evidence| {
                        requests.end(trigger, &span, time, evidence)
                    });
                    if is_met {
                        let status = span.status.map(|status| format!(", status {status}"));
                        let what = format!(
                            "request {} took {}{}",
                            span.start_name,
                            units::time(span.duration),
                            status.unwrap_or_default()
                        );
                        fired.push((number, what));
                    }
                }
            });
            if let Some(span) = spans.started() {
                for (number, active) in rules.iter_mut().enumerate() {
                    let is_met = active
                        .add_request(|requests, trigger, evidence| requests.start(trigger, &span, evidence));
                    if is_met {
                        fired.push((number, format!("request {} started", span.name)));
                    }
                }
            }
        }
        for (number, what) in fired {
            self.fire(number, Some(time), what, now);
        }
        for number in 0..self.rules.len() {
            let Some(rule) = self.rules.get_mut(number) else { continue };
            let is_watching = rule.is_watching();
            let TriggerState::Condition(evaluator) = &mut rule.trigger else { continue };
            // The condition is kept up to date even while its matches do not count.
            if let Some(met) = trigger::evaluate(evaluator, event) {
                if is_watching {
                    rule.evidence.add_met();
                }
                self.fire(number, Some(met.time), met.what, now);
            }
        }
    }

    /// Adds a value of the counters of a rule.
    pub fn sample(&mut self, rule_number: usize, sample: &Sample<'_>, now: Duration) {
        self.expire(now);
        let Some(rule) = self.rules.get_mut(rule_number).filter(|rule| rule.is_watching()) else { return };
        let (Trigger::Counter(counter), TriggerState::Counter(state)) =
            (&rule.rule.trigger, &mut rule.trigger)
        else {
            return;
        };
        if let Some(what) = state.sample(counter, sample, &mut rule.evidence) {
            self.fire(rule_number, Some(sample.time), what, now);
        }
    }

    /// Records that another session has replaced the source of a rule's values. `start` is its start,
    /// relative to the start of the first session; `None` if unknown, which discards earlier values.
    pub fn restart_counters(&mut self, rule_number: usize, start: Option<Duration>) {
        if let Some(ActiveRule { trigger: TriggerState::Counter(counter), .. }) =
            self.rules.get_mut(rule_number)
        {
            counter.begin_session(start);
        }
    }

    /// Records that another session of events has replaced the last one.
    pub fn restart_events(&mut self) {
        self.newest = None;
        if let Some(spans) = &mut self.spans {
            *spans = Spans::default();
        }
        for rule in &mut self.rules {
            match &mut rule.trigger {
                TriggerState::Condition(evaluator) => evaluator.restart(),
                trigger @ TriggerState::Requests(_) => trigger.restart(),
                TriggerState::Startup | TriggerState::Counter(_) => {}
            }
        }
    }

    /// Lets time pass: rules expire, and requests that run for too long are found. A call a second suffices.
    pub fn advance(&mut self, now: Duration) {
        self.expire(now);
        if let Some((time, arrival)) = self.newest {
            let passed = now.saturating_sub(arrival).saturating_sub(MAX_DELAY);
            let time = RelativeTime::after_start(time.since_start().saturating_add(passed));
            self.find_running(time, now);
        }
    }

    /// Adds the end of the stream of events; `None` if its reason does not matter.
    pub fn end(&mut self, end: Option<StreamEnd>, now: Duration) {
        self.expire(now);
        let time = self.newest.map_or(RelativeTime::START, |(time, _)| time);
        for number in 0..self.rules.len() {
            let Some(rule) = self.rules.get_mut(number).filter(|rule| rule.is_watching()) else { continue };
            let TriggerState::Condition(evaluator) = &mut rule.trigger else { continue };
            if let Some(met) = trigger::evaluate_end(evaluator, end, time) {
                rule.evidence.add_met();
                self.fire(number, Some(met.time), met.what, now);
            }
        }
    }

    /// Returns the next actions to start. Their end has to be reported by
    /// [`actions_ended`](Self::actions_ended).
    pub fn poll(&mut self) -> Option<Execution> {
        self.executions.pop_front()
    }

    /// Returns the throttled firings since the last call: the last hundred of them.
    pub fn take_throttled(&mut self) -> impl Iterator<Item = ThrottledFiring> {
        std::mem::take(&mut self.throttled).into_iter()
    }

    /// Returns the events that a trigger has seen while the rule watched for it.
    pub fn evidence(&self, rule_number: usize) -> Option<&Evidence> {
        self.rules.get(rule_number).map(|rule| &rule.evidence)
    }

    /// Records that the actions of a rule have ended, whether or not they succeeded. Returns the number of
    /// times that its trigger fired while they ran.
    pub fn actions_ended(&mut self, rule_number: usize, now: Duration) -> u64 {
        let Some(rule) = self.rules.get_mut(rule_number).filter(|rule| rule.is_executing) else { return 0 };
        rule.is_executing = false;
        let missed = std::mem::take(&mut rule.missed_in_execution);
        rule.trigger.restart();
        let limits = rule.rule.limits;
        if matches!(rule.trigger, TriggerState::Startup) {
            rule.finished = Some(FinishReason::Startup);
        } else if limits.action_count_window.is_none() && rule.lifetime >= u64::from(limits.action_count) {
            rule.finished = Some(FinishReason::ActionCount);
        }
        self.expire(now);
        missed
    }

    /// Ends a rule: the configuration no longer has it, or its trigger has failed.
    pub fn finish(&mut self, rule_number: usize, reason: FinishReason) {
        if let Some(rule) = self.rules.get_mut(rule_number) {
            rule.finished.get_or_insert(reason);
        }
    }

    /// Returns true if no rule will fire again.
    pub fn is_finished(&self) -> bool {
        self.rules.iter().all(|rule| rule.finished.is_some())
    }

    /// Returns the state of a rule.
    pub fn status(&self, rule_number: usize, now: Duration) -> Option<RuleStatus> {
        let rule = self.rules.get(rule_number)?;
        let limits = rule.rule.limits;
        let in_window = rule.in_window(now);
        let is_full = limits.action_count_window.is_some() && in_window >= limits.action_count;
        let state = match &rule.finished {
            Some(reason) => RuleState::Finished(reason.clone()),
            None if rule.is_executing => RuleState::ActionExecuting,
            None if is_full => RuleState::Throttled,
            None => RuleState::Running,
        };
        let is_active = rule.finished.is_none();
        let oldest = rule
            .executions
            .iter()
            .rev()
            .nth(usize::try_from(limits.action_count.saturating_sub(1)).unwrap_or(usize::MAX));
        let window_countdown = limits
            .action_count_window
            .zip(oldest)
            .filter(|_| is_full && is_active)
            .map(|(window, oldest)| oldest.saturating_add(window).saturating_sub(now));
        let finished_countdown = limits
            .rule_duration
            .filter(|_| is_active)
            .map(|duration| rule.start.saturating_add(duration).saturating_sub(now));
        Some(RuleStatus {
            events: None,
            name: rule.rule.name.clone(),
            state,
            lifetime_occurrences: rule.lifetime,
            sliding_window_occurrences: u64::from(in_window),
            throttled: rule.throttled,
            missed: rule.missed,
            limits,
            window_countdown,
            finished_countdown,
        })
    }

    /// The states of all rules.
    pub fn statuses(&self, now: Duration) -> Vec<RuleStatus> {
        (0..self.rules.len()).filter_map(|number| self.status(number, now)).collect()
    }

    /// Ends expired rules. Running actions are not stopped.
    fn expire(&mut self, now: Duration) {
        for rule in &mut self.rules {
            let is_over = |duration: Duration| now.saturating_sub(rule.start) >= duration;
            if rule.is_watching() && rule.rule.limits.rule_duration.is_some_and(is_over) {
                rule.finished = Some(FinishReason::RuleDuration);
            }
        }
    }

    /// Counts requests that run for too long.
    fn find_running(&mut self, time: RelativeTime, now: Duration) {
        for number in 0..self.rules.len() {
            let Some(rule) = self.rules.get_mut(number).filter(|rule| rule.is_watching()) else { continue };
            let TriggerState::Requests(requests) = &mut rule.trigger else { continue };
            if let Some(slow) = requests.advance(&rule.rule.trigger, time, &mut rule.evidence) {
                self.fire(number, Some(slow), "a request still runs".to_owned(), now);
            }
        }
    }

    /// Starts the actions of a rule after its trigger has fired, unless its limit is reached or they run.
    fn fire(&mut self, number: usize, time: Option<RelativeTime>, cause: String, now: Duration) {
        let Some(rule) = self.rules.get_mut(number).filter(|rule| rule.finished.is_none()) else { return };
        rule.trigger.restart();
        if rule.is_executing {
            rule.missed = rule.missed.saturating_add(1);
            rule.missed_in_execution = rule.missed_in_execution.saturating_add(1);
            return;
        }
        rule.forget(now);
        if rule.in_window(now) >= rule.rule.limits.action_count {
            rule.throttled = rule.throttled.saturating_add(1);
            if self.throttled.len() >= MAX_THROTTLED {
                self.throttled.pop_front();
            }
            self.throttled.push_back(ThrottledFiring { rule_number: number, cause, now });
            return;
        }
        rule.executions.push_back(now);
        rule.lifetime = rule.lifetime.saturating_add(1);
        rule.is_executing = true;
        self.executions.push_back(Execution {
            rule_number: number,
            rule: Arc::clone(&rule.rule),
            number: rule.lifetime,
            time,
            cause,
        });
    }
}

impl ActiveRule {
    /// Returns true if its trigger can fire.
    const fn is_watching(&self) -> bool {
        self.finished.is_none() && !self.is_executing
    }

    /// Adds a request to its trigger with `add`, which returns whether it fires. Evidence is only of the time
    /// in which the rule watches.
    fn add_request(
        &mut self,
        add: impl FnOnce(&mut RequestTrigger, &Trigger, &mut Evidence) -> bool,
    ) -> bool {
        let is_watching = self.is_watching();
        let Self { rule, trigger: TriggerState::Requests(requests), evidence, finished: None, .. } = self
        else {
            return false;
        };
        let mut ignored = Evidence::new(&rule.trigger);
        add(requests, &rule.trigger, if is_watching { evidence } else { &mut ignored })
    }

    /// Forgets executions that have left the window.
    fn forget(&mut self, now: Duration) {
        let Some(window) = self.rule.limits.action_count_window else { return };
        while self.executions.front().is_some_and(|start| now.saturating_sub(*start) > window) {
            self.executions.pop_front();
        }
    }

    /// The number of executions in the window.
    fn in_window(&self, now: Duration) -> u32 {
        let window = self.rule.limits.action_count_window.unwrap_or(Duration::MAX);
        let recent = self.executions.iter().filter(|start| now.saturating_sub(**start) <= window);
        u32::try_from(recent.count()).unwrap_or(u32::MAX)
    }
}

/// The interval of a trigger's counter.
fn interval_of_trigger(trigger: &Trigger, interval_of: &impl Fn(&str) -> Duration) -> Duration {
    match trigger {
        Trigger::Counter(counter) => interval_of(&counter.provider),
        _ => Duration::ZERO,
    }
}

/// Returns the providers of events that a trigger needs, except for counters.
pub(crate) fn provider_requests(trigger: &Trigger) -> Vec<ProviderRequest> {
    match trigger {
        Trigger::Startup | Trigger::Counter(_) => Vec::new(),
        Trigger::RequestCount { .. } | Trigger::RequestDuration { .. } | Trigger::ResponseStatus { .. } => {
            // The same in every session of a monitor: the arguments of the last one apply to all.
            let provider = http_provider();
            vec![ProviderRequest::new(
                provider.name,
                provider.keywords.0,
                provider.level.0,
                provider.arguments,
            )]
        }
        Trigger::Condition { condition, .. } => condition.requests(),
    }
}
