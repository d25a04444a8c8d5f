//! The times at which the rules of a configuration would have fired in a recording.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clr_conditions::StreamEnd;
use dipc_monitor::configuration::{Configuration, ConfigurationSources, Severity};
use dipc_monitor::rules::{Evidence, ReplayedFiring, Rule, RuleReplay, RuleState, RuleStatus, Trigger};
use serde::Serialize;

use crate::args::format::Format;
use crate::exit::{Failure, Outcome};
use crate::inspect::recording::Recording;
use crate::render::escape::escape_controls;
use crate::render::table::{Align, Columns};
use crate::render::{messages, output, units};

/// A test of a configuration's rules.
pub(super) struct ConfigurationTest<'a> {
    pub(super) file: &'a Path,
    pub(super) configuration: &'a Path,
    /// The names of the rules; empty for all.
    pub(super) rules: &'a [String],
    /// The time that the actions of an execution take, if it is not that which they collect for.
    pub(super) actions_time: Option<Duration>,
    /// The reason for the end of the recording, if it is known.
    pub(super) end: Option<StreamEnd>,
    pub(super) format: Format,
    /// Maximum number of firings.
    pub(super) number: usize,
}

pub(super) fn run(test: &ConfigurationTest<'_>) -> Outcome {
    let (configuration, rules) = test.read()?;
    let (events, origin) = Recording::open(test.file)?.into_parts();
    let mut events = events.in_time_order();
    let interval_of = |provider: &str| configuration.global_counter.interval_of(provider);
    let mut replay = RuleReplay::new(&rules, interval_of);
    if let Some(time) = test.actions_time {
        replay = replay.with_actions_time(time);
    }
    let mut firings = Firings { most: test.number, ..Firings::default() };
    replay.start(|firing| firings.add(firing));
    let mut last = Duration::ZERO;
    while let Some(event) = events.next().map_err(|error| origin.failed(&error))? {
        last = last.max(event.relative_time().since_start());
        replay.event(&event, |firing| firings.add(firing));
    }
    let events = events.into_events();
    let end = test.end.or_else(|| events.truncated_at().map(|_| StreamEnd::Unknown));
    replay.finish(end, |firing| firings.add(firing));
    // A value is judged at a later event.
    firings.list.sort_by_key(|firing| firing.time);
    let is_recorded =
        |name: &str| events.metadata().iter().any(|kind| kind.provider().eq_ignore_ascii_case(name));
    let results: Vec<RuleResult<'_>> = (rules.iter().enumerate())
        .filter_map(|(number, rule)| RuleResult::of(&replay, number, rule, &is_recorded))
        .collect();
    for result in results.iter().filter(|result| !result.missing.is_empty()) {
        messages::warning(format_args!(
            "rule {}: the recording has no event of {}, which a monitor requests",
            escape_controls(&result.rule.name),
            escape_controls(&result.missing.join(" or "))
        ));
    }
    for rule in rules.iter().filter(|rule| compares_system(rule)) {
        messages::warning(format_args!(
            "rule {}: memory and processor time of the system are not in recordings",
            escape_controls(&rule.name)
        ));
    }
    let exit = origin.report_damage(&events);
    match test.format {
        Format::Json => output::print_json(&report(&results, &firings, &rules, last))?,
        Format::Table => output::print(table(&results, &firings, &rules, last))?,
    }
    let is_quiet = results.iter().all(|result| result.status.lifetime_occurrences == 0);
    Ok(if is_quiet { exit.or_failed() } else { exit })
}

/// Returns true if a rule compares values that a monitor reads of the system.
fn compares_system(rule: &Rule) -> bool {
    matches!(&rule.trigger, Trigger::Condition { condition, .. } if condition.system_values().next().is_some())
}

impl ConfigurationTest<'_> {
    /// Reads the rules that are tested.
    fn read(&self) -> Result<(Configuration, Vec<Arc<Rule>>), Failure> {
        let file = self.configuration.display();
        let checked = Configuration::read_part(&ConfigurationSources::new().with_file(self.configuration));
        let errors = checked.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let lines: Vec<_> = errors
            .map(|finding| {
                let help = finding.help.as_ref().map(|help| format!(" ({help})"));
                format!("{}: {finding}{}", finding.severity.name(), help.unwrap_or_default())
            })
            .collect();
        let help = format!("'dipc monitor check {file}' shows all of it");
        if !lines.is_empty() || checked.left_out > 0 {
            let failure = Failure::usage("rules test: the configuration cannot be used");
            return Err(failure.with_candidates(lines).with_help(help));
        }
        let configuration = checked.configuration;
        let rules: Vec<_> = configuration.rules.iter().cloned().map(Arc::new).collect();
        if rules.is_empty() {
            return Err(Failure::usage(format_args!("rules test: {file} has no rules")).with_help(help));
        }
        if let Some(unknown) = self.rules.iter().find(|name| rules.iter().all(|rule| rule.name != **name)) {
            let names = rules.iter().map(|rule| rule.name.clone()).collect();
            let failure = Failure::usage(format_args!("rules test: no rule is called {unknown}"));
            return Err(failure.with_candidates(names));
        }
        let is_tested = |rule: &Arc<Rule>| self.rules.is_empty() || self.rules.contains(&rule.name);
        let rules = rules.into_iter().filter(is_tested).collect();
        Ok((configuration, rules))
    }
}

/// The first firings.
#[derive(Default)]
struct Firings {
    most: usize,
    list: Vec<ReplayedFiring>,
    left_out: u64,
}

impl Firings {
    fn add(&mut self, firing: ReplayedFiring) {
        if self.list.len() < self.most {
            self.list.push(firing);
        } else {
            self.left_out += 1;
        }
    }
}

/// A rule after the recording.
struct RuleResult<'a> {
    rule: &'a Rule,
    status: RuleStatus,
    evidence: Evidence,
    /// Missing providers that keep the rule from firing; any of them would suffice.
    missing: Vec<String>,
}

impl<'a> RuleResult<'a> {
    fn of(
        replay: &RuleReplay,
        number: usize,
        rule: &'a Rule,
        is_recorded: &impl Fn(&str) -> bool,
    ) -> Option<Self> {
        Some(Self {
            rule,
            status: replay.status(number)?,
            evidence: replay.evidence(number)?.clone(),
            missing: rule.missing_providers(is_recorded),
        })
    }

    /// The reason why the rule has not fired more often.
    fn reason(&self) -> String {
        match self.status.state {
            RuleState::Running => self.evidence.text(&self.rule.trigger),
            RuleState::ActionExecuting => "the actions still run at the end".to_owned(),
            RuleState::Throttled | RuleState::Finished(_) => {
                let reason = self.status.state.reason();
                let reason = reason.trim_end_matches('.');
                let evidence = self.evidence.text(&self.rule.trigger);
                if self.status.lifetime_occurrences == 0 && !evidence.is_empty() {
                    format!("{reason}; {evidence}")
                } else {
                    reason.to_owned()
                }
            }
        }
    }
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    /// The time of the last event.
    duration_ns: u64,
    rules: Vec<RuleReport<'a>>,
    /// In time order.
    firings: Vec<FiringReport<'a>>,
    /// Firings beyond the number that was asked for.
    firings_left_out: u64,
}

#[derive(Debug, Serialize)]
struct RuleReport<'a> {
    name: &'a str,
    trigger: String,
    /// Executions of the actions.
    fired: u64,
    /// Firings of the trigger beyond the limit of executions.
    throttled: u64,
    /// Firings of the trigger while the actions ran, which started no others.
    missed: u64,
    state: &'static str,
    reason: String,
    evidence: Option<EvidenceReport>,
    /// Providers without events in the recording. The rule needs at least one of them to fire.
    missing_providers: &'a [String],
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum EvidenceReport {
    Requests { requests: u64, counted: u64, most_in_window: u64 },
    Counter { values: u64, passing: u64, least: Option<f64>, most: Option<f64>, longest_ns: u64 },
    Condition { met: u64 },
}

#[derive(Debug, Serialize)]
struct FiringReport<'a> {
    time_ns: u64,
    rule: &'a str,
    /// `fired` or `throttled`.
    result: &'static str,
    /// The number of the execution; null if it is throttled.
    number: Option<u64>,
    /// The end of the actions; null if it is throttled.
    actions_end_ns: Option<u64>,
    cause: &'a str,
}

fn report<'a>(
    results: &'a [RuleResult<'a>],
    firings: &'a Firings,
    rules: &'a [Arc<Rule>],
    last: Duration,
) -> Report<'a> {
    let of_rule = |result: &'a RuleResult<'a>| RuleReport {
        name: &result.rule.name,
        trigger: result.rule.trigger.to_string(),
        fired: result.status.lifetime_occurrences,
        throttled: result.status.throttled,
        missed: result.status.missed,
        state: result.status.state.name(),
        reason: result.reason(),
        evidence: match result.evidence {
            Evidence::Requests { seen, counted, most } => {
                Some(EvidenceReport::Requests { requests: seen, counted, most_in_window: most })
            }
            Evidence::Counter { values, passing, range, longest } => Some(EvidenceReport::Counter {
                values,
                passing,
                least: range.map(|(least, _)| least),
                most: range.map(|(_, most)| most),
                longest_ns: units::nanoseconds(longest),
            }),
            Evidence::Condition { met } => Some(EvidenceReport::Condition { met }),
            _ => None,
        },
        missing_providers: &result.missing,
    };
    let of_firing = |firing: &'a ReplayedFiring| FiringReport {
        time_ns: units::nanoseconds(firing.time),
        rule: name_of(rules, firing),
        result: if firing.execution.is_some() { "fired" } else { "throttled" },
        number: firing.execution.map(|(number, _)| number),
        actions_end_ns: firing.execution.map(|(_, end)| units::nanoseconds(end)),
        cause: &firing.cause,
    };
    Report {
        duration_ns: units::nanoseconds(last),
        rules: results.iter().map(of_rule).collect(),
        firings: firings.list.iter().map(of_firing).collect(),
        firings_left_out: firings.left_out,
    }
}

fn name_of<'a>(rules: &'a [Arc<Rule>], firing: &ReplayedFiring) -> &'a str {
    rules.get(firing.rule_number).map(|rule| &*rule.name).unwrap_or_default()
}

fn table(results: &[RuleResult<'_>], firings: &Firings, rules: &[Arc<Rule>], last: Duration) -> String {
    let mut text = String::new();
    if !firings.list.is_empty() {
        let mut columns = Columns::new([
            ("AT", Align::Right),
            ("RULE", Align::Left),
            ("RESULT", Align::Left),
            ("CAUSE", Align::Left),
        ]);
        for firing in &firings.list {
            let result = match firing.execution {
                None => "throttled".to_owned(),
                Some((number, end)) if end > firing.time => {
                    format!("fired, execution {number}; actions until {}", units::moment(end))
                }
                Some((number, _)) => format!("fired, execution {number}"),
            };
            columns.row([
                units::moment(firing.time),
                escape_controls(name_of(rules, firing)).into_owned(),
                result,
                escape_controls(&firing.cause).into_owned(),
            ]);
        }
        text.push_str(&columns.fitted(&[]));
        // Writing into a `String` does not fail.
        if firings.left_out > 0 {
            let _ = writeln!(text, "{} more are not shown: -n shows more", firings.left_out);
        }
        text.push('\n');
    }
    let mut columns = Columns::new([
        ("RULE", Align::Left),
        ("FIRED", Align::Right),
        ("THROTTLED", Align::Right),
        ("MISSED", Align::Right),
        ("STATE", Align::Left),
        ("REASON", Align::Left),
    ]);
    for result in results {
        columns.row([
            escape_controls(&result.rule.name).into_owned(),
            result.status.lifetime_occurrences.to_string(),
            result.status.throttled.to_string(),
            result.status.missed.to_string(),
            result.status.state.name().to_owned(),
            escape_controls(&result.reason()).into_owned(),
        ]);
    }
    let fired = results.iter().filter(|result| result.status.lifetime_occurrences > 0).count();
    let _ = write!(text, "{}\n{fired} of {} rules fire", columns.fitted(&[]), results.len());
    let _ = writeln!(text, " in {}", units::moment(last));
    text
}
