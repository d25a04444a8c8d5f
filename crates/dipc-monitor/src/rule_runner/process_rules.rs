//! The rules of one process: their engine, and the threads around it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use clr_conditions::{Condition, SystemUsage};
use clr_counters::{ProviderRequest, Sample};
use dipc_client::nettrace::{Event, TraceInfo};
use dipc_collect::StopSignal;

use super::actions::ActionList;
use super::diagnosis_limits::{Diagnoses, LastDiagnosis};
use super::{Context, RuleEvent, RuleMessage, RulesConfig};
use crate::counters::{CounterConsumer, CounterRequest, CounterSubscription};
use crate::process::Watched;
use crate::rules::provider_requests;
use crate::rules::{Execution, FinishReason, RuleEngine, RuleState, RuleStatus, StreamEnd, Trigger};

/// The stack of the threads.
pub(super) const STACK: usize = 512 << 10;

/// The rules that apply to a process.
pub(super) struct ProcessRules {
    pub(super) process: Arc<Watched>,
    context: Arc<Context>,
    /// The beginning of the engine's time.
    start: Instant,
    state: Mutex<State>,
    changed: Condvar,
    pub(super) stop: StopSignal,
    process_has_ended: AtomicBool,
}

struct State {
    engine: RuleEngine,
    config: Arc<RulesConfig>,
    subscriptions: BTreeMap<usize, CounterSubscription>,
    /// The number of executions that run.
    executions: usize,
    /// The number of executions at the start of the process before their actions have begun.
    beginning: usize,
    /// True if the first session of events was neither started nor refused.
    awaits_session: bool,
    /// True if the thread runs that keeps the session of events and the time.
    is_watching: bool,
    last_diagnosis: LastDiagnosis,
}

impl ProcessRules {
    /// Creates the state of the rules that apply to a process.
    pub(super) fn new(process: Arc<Watched>, config: &Arc<RulesConfig>, context: Arc<Context>) -> Arc<Self> {
        let interval_of = |provider: &str| config.counters.interval_of(provider);
        let engine = RuleEngine::new(&config.rules, &process.facts, interval_of, Duration::ZERO);
        let state = State {
            awaits_session: !engine.requests().is_empty(),
            engine,
            config: Arc::clone(config),
            subscriptions: BTreeMap::new(),
            executions: 0,
            beginning: 0,
            is_watching: false,
            last_diagnosis: LastDiagnosis::default(),
        };
        Arc::new(Self {
            process,
            context,
            start: Instant::now(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            stop: StopSignal::new(),
            process_has_ended: AtomicBool::new(false),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Starts everything that the rules need: actions, the subscriptions of counters, and the session of
    /// events.
    pub(super) fn start(self: &Arc<Self>) {
        self.dispatch();
        self.subscribe();
        let is_needed = {
            let mut state = self.state();
            let is_needed = !state.is_watching && !state.engine.is_finished() && !self.stop.is_stopped();
            state.is_watching |= is_needed;
            is_needed
        };
        if is_needed {
            let rules = Arc::clone(self);
            let thread = thread::Builder::new().name("rules".to_owned()).stack_size(STACK);
            if let Err(error) = thread.spawn(move || rules.watch()) {
                self.session_failed(&format!("start a thread: {error}"));
                self.session_began(true);
                self.state().is_watching = false;
            }
        }
    }

    /// Waits until the session of events and the actions at the start have begun, or the deadline.
    pub(super) fn wait_for_start(&self, deadline: Instant) {
        let mut state = self.state();
        while (state.awaits_session || state.beginning > 0) && !self.stop.is_stopped() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Replaces the rules.
    pub(super) fn replace(self: &Arc<Self>, config: &Arc<RulesConfig>) {
        {
            let mut state = self.state();
            let interval_of = |provider: &str| config.counters.interval_of(provider);
            let now = self.now();
            state.engine.change_rules(&config.rules, &self.process.facts, interval_of, now);
            state.config = Arc::clone(config);
        }
        self.drop_finished();
        self.start();
        self.changed.notify_all();
    }

    /// The states of the rules, in the order of the configuration.
    pub(super) fn statuses(&self) -> Vec<RuleStatus> {
        let state = self.state();
        let mut statuses = state.engine.statuses(self.now());
        let events = self.process.filtered_sources.description();
        for (status, rule) in statuses.iter_mut().zip(state.engine.rules()) {
            if provider_requests(&rule.trigger).iter().any(|request| !request.arguments.is_empty()) {
                status.events.clone_from(&events);
            }
        }
        statuses.retain(|status| status.state != RuleState::Finished(FinishReason::ConfigurationChanged));
        statuses.sort_by_key(|status| state.config.rules.iter().position(|rule| rule.name == status.name));
        statuses
    }

    /// Returns true unless the system is known to keep the process from answering.
    pub(super) fn can_answer(&self) -> bool {
        self.process.obstacle().is_none()
    }

    /// Asks everything to end: at once, or so that artifacts are complete.
    pub(super) fn stop(&self, at_once: bool) {
        if at_once {
            self.stop.cancel();
        } else {
            self.stop.stop();
        }
        self.unsubscribe();
        self.changed.notify_all();
    }

    /// Records the end of the process. Actions that run go on.
    pub(super) fn process_ended(&self) {
        self.process_has_ended.store(true, Ordering::Release);
        self.unsubscribe();
        self.changed.notify_all();
    }

    pub(super) fn process_has_ended(&self) -> bool {
        self.process_has_ended.load(Ordering::Acquire)
    }

    /// Returns true if a session or actions run.
    pub(super) fn is_active(&self) -> bool {
        let state = self.state();
        state.is_watching || state.executions > 0
    }

    fn unsubscribe(&self) {
        // Dropping a subscription locks the session of counters, so the state must not be locked meanwhile.
        let subscriptions = std::mem::take(&mut self.state().subscriptions);
        drop(subscriptions);
    }

    /// Subscribes to the counters that rules need and have not.
    fn subscribe(self: &Arc<Self>) {
        let (needs, config) = {
            let state = self.state();
            let mut needs = state.engine.counters();
            needs.retain(|need| !state.subscriptions.contains_key(&need.rule_number));
            (needs, Arc::clone(&state.config))
        };
        for need in needs {
            let request = CounterRequest::new(need.selection, need.interval)
                .with_max_histograms(config.counters.max_histograms)
                .with_max_time_series(config.counters.max_time_series);
            let consumer = RuleConsumer {
                rules: Arc::downgrade(self),
                rule_number: need.rule_number,
                first_start: None,
                has_failed: false,
            };
            let subscription = self.process.counters.subscribe(request, Box::new(consumer));
            let replaced = self.state().subscriptions.insert(need.rule_number, subscription);
            drop(replaced);
        }
    }

    /// Leaves the counters of rules that will not fire again.
    fn drop_finished(&self) {
        let finished: Vec<CounterSubscription> = {
            let mut state = self.state();
            let needed: Vec<usize> = state.engine.counters().iter().map(|need| need.rule_number).collect();
            let gone: Vec<usize> =
                state.subscriptions.keys().filter(|number| !needed.contains(number)).copied().collect();
            gone.iter().filter_map(|number| state.subscriptions.remove(number)).collect()
        };
        drop(finished);
    }

    /// Starts the actions of rules that have fired.
    fn dispatch(self: &Arc<Self>) {
        loop {
            let (execution, config) = {
                let mut state = self.state();
                let Some(execution) = state.engine.poll() else { return };
                if self.stop.is_stopped() {
                    continue;
                }
                state.executions += 1;
                state.beginning += usize::from(is_at_start(&execution));
                (execution, Arc::clone(&state.config))
            };
            let (rules, number) = (Arc::clone(self), execution.rule_number);
            let name = execution.rule.name.clone();
            let is_at_start = is_at_start(&execution);
            let thread = thread::Builder::new().name("rule".to_owned()).stack_size(STACK);
            if let Err(error) = thread.spawn(move || rules.execute(&execution, &config)) {
                let error = format!("start a thread: {error}");
                self.report(&name, RuleEvent::ActionFailed { action: "rule", error });
                if is_at_start {
                    self.begun();
                }
                self.executed(number, &name);
            }
        }
    }

    /// Runs the actions of a rule to their end.
    fn execute(self: &Arc<Self>, execution: &Execution, config: &RulesConfig) {
        let name = &execution.rule.name;
        self.report(name, RuleEvent::Fired { number: execution.number, cause: execution.cause.clone() });
        if !is_at_start(execution) {
            self.diagnose(name);
        }
        let awaits = AtomicBool::new(is_at_start(execution));
        let list = ActionList {
            context: &self.context,
            egress: &config.egress,
            process: &self.process,
            execution,
            stop: &self.stop,
            begun: &|| {
                if awaits.swap(false, Ordering::AcqRel) {
                    self.begun();
                }
            },
            report: &|event| self.report(name, event),
        };
        list.run();
        self.executed(execution.rule_number, name);
        self.drop_finished();
        self.dispatch();
    }

    /// Records that actions at the start have begun.
    fn begun(&self) {
        let mut state = self.state();
        state.beginning = state.beginning.saturating_sub(1);
        drop(state);
        self.changed.notify_all();
    }

    /// Records the end of a rule's actions.
    fn executed(&self, rule_number: usize, rule: &str) {
        let now = self.now();
        let mut state = self.state();
        state.executions = state.executions.saturating_sub(1);
        let missed = state.engine.actions_ended(rule_number, now);
        drop(state);
        self.changed.notify_all();
        if missed > 0 {
            self.report(rule, RuleEvent::Missed(missed));
        }
    }

    /// The diagnoses that are made for all processes.
    pub(super) fn diagnoses(&self) -> &Diagnoses {
        &self.context.diagnoses
    }

    /// Returns true, and begins the time to the next one, if the process was not diagnosed a short while ago.
    pub(super) fn is_diagnosis_due(&self) -> bool {
        self.state().last_diagnosis.begin(Instant::now())
    }

    pub(super) fn report(&self, rule: &str, event: RuleEvent) {
        let message = RuleMessage {
            rule: rule.to_owned(),
            pid: self.process.facts.pid,
            process_name: self.process.title().to_owned(),
            event,
        };
        self.context.history.add(&message);
        (self.context.log)(&message);
    }

    /// Reports that no rule with such a trigger can fire at present.
    pub(super) fn session_failed(&self, error: &str) {
        let names: Vec<String> = {
            let state = self.state();
            let statuses = state.engine.statuses(self.now());
            let rules = statuses.iter().zip(state.engine.rules());
            let rules = rules.filter(|(status, rule)| {
                !matches!(status.state, RuleState::Finished(_))
                    && !matches!(rule.trigger, Trigger::Counter(_) | Trigger::Startup)
            });
            rules.map(|(status, _)| status.name.clone()).collect()
        };
        for name in names {
            self.report(&name, RuleEvent::SessionFailed(error.to_owned()));
        }
    }

    // Functions for the session's thread.

    /// Lets time pass. Returns true if the thread is still needed; if not, it counts as ended.
    pub(super) fn tick(self: &Arc<Self>, has_session: bool) -> bool {
        let now = self.now();
        {
            let mut state = self.state();
            state.engine.advance(now);
            let is_over = self.stop.is_stopped()
                || (self.process_has_ended() && !has_session)
                || state.engine.is_finished();
            if is_over {
                state.is_watching = false;
                state.awaits_session = false;
                drop(state);
                self.changed.notify_all();
                return false;
            }
        }
        self.drop_finished();
        self.dispatch();
        true
    }

    /// The providers of the events that rules need.
    pub(super) fn requests(&self) -> Vec<ProviderRequest> {
        self.state().engine.requests()
    }

    /// Waits for a change.
    pub(super) fn wait(&self, time: Duration) {
        let state = self.state();
        drop(self.changed.wait_timeout(state, time));
    }

    /// Records that a session of events has begun, or was refused.
    pub(super) fn session_began(&self, is_refused: bool) {
        let mut state = self.state();
        state.awaits_session = false;
        if !is_refused {
            state.engine.restart_events();
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Adds the events that `each` passes on.
    pub(super) fn add_events(self: &Arc<Self>, each: impl FnOnce(&mut dyn FnMut(&Event<'_>))) {
        let now = self.now();
        {
            let mut state = self.state();
            let engine = &mut state.engine;
            each(&mut |event| engine.event(event, now));
        }
        self.dispatch();
    }

    /// The interval at which values of the system are read, and the conditions that compare them, with the
    /// names of their rules.
    pub(super) fn system_conditions(&self) -> (Duration, Vec<(String, Condition)>) {
        let state = self.state();
        let names: Vec<&str> = state.engine.rules().map(|rule| &*rule.name).collect();
        let conditions = state
            .engine
            .system_conditions()
            .filter_map(|(number, condition)| Some(((*names.get(number)?).to_owned(), condition.clone())));
        (state.config.counters.interval, conditions.collect())
    }

    /// Adds values of the system.
    pub(super) fn add_usage(self: &Arc<Self>, usage: &SystemUsage) {
        let now = self.now();
        self.state().engine.usage(usage, now);
        self.dispatch();
    }

    /// Adds the end of the stream of events.
    pub(super) fn add_end(self: &Arc<Self>, end: StreamEnd) {
        self.state().engine.end(Some(end), self.now());
        self.dispatch();
    }
}

/// Returns true if the process waits for the actions to begin.
fn is_at_start(execution: &Execution) -> bool {
    matches!(execution.rule.trigger, Trigger::Startup)
}

/// The consumer of the values of a rule's counter.
struct RuleConsumer {
    rules: Weak<ProcessRules>,
    rule_number: usize,
    /// The process's clock at the start of the first session, in ticks.
    first_start: Option<u64>,
    has_failed: bool,
}

impl CounterConsumer for RuleConsumer {
    fn begin(&mut self, info: &TraceInfo) {
        self.has_failed = false;
        let Some(rules) = self.rules.upgrade() else { return };
        let first = *self.first_start.get_or_insert(info.start_ticks.0);
        let ticks = info.start_ticks.0.checked_sub(first);
        #[allow(clippy::cast_precision_loss, reason = "milliseconds matter")]
        let seconds = ticks.map(|ticks| ticks as f64 / info.frequency.max(1) as f64);
        let start = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        rules.state().engine.restart_counters(self.rule_number, start);
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        let Some(rules) = self.rules.upgrade() else { return };
        let now = rules.now();
        rules.state().engine.sample(self.rule_number, sample, now);
        rules.dispatch();
    }

    fn failed(&mut self, error: &dipc_client::Error) {
        let Some(rules) = self.rules.upgrade().filter(|_| !self.has_failed) else { return };
        // The failure repeats until the process answers again.
        self.has_failed = true;
        let name = rules.state().engine.rules().nth(self.rule_number).map(|rule| rule.name.clone());
        if let Some(name) = name {
            rules.report(&name, RuleEvent::SessionFailed(error.to_string()));
        }
    }
}
