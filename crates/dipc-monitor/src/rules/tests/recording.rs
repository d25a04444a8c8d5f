//! The table of rules over a recording of a real web server: each fires at exactly the times that a program
//! of its own, `testdata/monitor/rules.py`, has computed from the events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use clr_conditions::StreamEnd;

use crate::configuration::{Configuration, ConfigurationSources};
use crate::rules::{Evidence, FinishReason, ReplayedFiring, Rule, RuleReplay, RuleState, Trigger};

const RECORDING: &str = "monitor/rules.nettrace.xz";

fn configuration() -> Configuration {
    let text = String::from_utf8(testdata::bytes("monitor/rules.json")).unwrap();
    let checked = Configuration::read(&ConfigurationSources::new().with_text("rules.json", &text));
    assert!(checked.findings.is_empty(), "{:?}", checked.findings);
    checked.configuration
}

fn replay(
    rules: &[Arc<Rule>],
    interval: Duration,
    actions: Option<Duration>,
) -> (RuleReplay, Vec<ReplayedFiring>) {
    let recording = testdata::bytes(RECORDING);
    let mut replay = RuleReplay::new(rules, |_| interval);
    if let Some(time) = actions {
        replay = replay.with_actions_time(time);
    }
    let mut firings = Vec::new();
    replay.start(|firing| firings.push(firing));
    let mut events = nettrace::Reader::new(&*recording).unwrap().in_time_order();
    events.for_each(|event| replay.event(&event, |firing| firings.push(firing))).unwrap();
    replay.finish(Some(StreamEnd::Exit), |firing| firings.push(firing));
    (replay, firings)
}

fn seconds(firings: &[ReplayedFiring], number: usize) -> Vec<String> {
    let of_rule = firings.iter().filter(|it| it.rule_number == number && it.execution.is_some());
    of_rule.map(|firing| format!("{:.3}", firing.time.as_secs_f64())).collect()
}

#[test]
fn rules_fire_at_exactly_the_events_they_should() {
    let rules: Vec<_> = configuration().rules.into_iter().map(Arc::new).collect();
    let expected = String::from_utf8(testdata::bytes("monitor/rules.tsv")).unwrap();
    let expected: BTreeMap<&str, Vec<&str>> = expected
        .lines()
        .map(|line| {
            let mut fields = line.split('\t');
            (fields.next().unwrap(), fields.collect())
        })
        .collect();
    let (replay, firings) = replay(&rules, Duration::from_secs(1), None);
    assert_eq!(rules.len(), expected.len());
    let mut kinds = BTreeMap::<&str, BTreeSet<bool>>::new();
    for (number, rule) in rules.iter().enumerate() {
        let fired = seconds(&firings, number);
        assert_eq!(fired, expected[&*rule.name], "{}: {}", rule.name, rule.trigger);
        assert_eq!(replay.status(number).unwrap().lifetime_occurrences, fired.len() as u64);
        kinds.entry(kind(&rule.trigger)).or_default().insert(fired.is_empty());
    }
    // Each kind has rules that fire and rules that do not.
    for (kind, outcomes) in kinds.iter().filter(|(kind, _)| **kind != "Startup") {
        assert_eq!(outcomes.len(), 2, "{kind}");
    }
    assert_eq!(kinds.len(), 6);
}

const fn kind(trigger: &Trigger) -> &'static str {
    match trigger {
        Trigger::Startup => "Startup",
        Trigger::RequestCount { .. } => "RequestCount",
        Trigger::RequestDuration { .. } => "RequestDuration",
        Trigger::ResponseStatus { .. } => "ResponseStatus",
        Trigger::Counter(counter) => match counter.source {
            crate::rules::CounterSource::EventCounters => "EventCounter",
            crate::rules::CounterSource::Meter => "EventMeter",
        },
        Trigger::Condition { .. } => "Condition",
    }
}

fn rule(name: &str) -> Arc<Rule> {
    Arc::new(configuration().rules.into_iter().find(|rule| rule.name == name).unwrap())
}

#[test]
fn rules_that_do_not_fire_say_why() {
    let text = |name: &str| {
        let rule = rule(name);
        let (replay, firings) = replay(&[Arc::clone(&rule)], Duration::from_secs(1), None);
        assert!(firings.is_empty(), "{name}");
        replay.evidence(0).unwrap().text(&rule.trigger)
    };
    assert_eq!(text("cpu-never"), "0 of 26 values pass, 0.005 to 44.749; 0.0 s without a break at most");
    assert_eq!(text("duration-too-long"), "0 of 1120 requests count, at most 0 in 00:01:00");
    assert_eq!(text("status-none"), "0 of 1120 requests count, at most 0 in 00:01:00");
    assert_eq!(text("count-too-few"), "1120 of 1120 requests count, at most 1120 in 00:00:20");
}

#[test]
fn limits_throttle_and_end_rules() {
    let (replay_of, firings) = replay(&[rule("limit-window")], Duration::from_secs(1), None);
    let status = replay_of.status(0).unwrap();
    let throttled = firings.iter().filter(|firing| firing.execution.is_none()).count();
    assert_eq!((status.throttled, throttled), (4, 4));
    let (replay_of, firings) = replay(&[rule("limit-two")], Duration::from_secs(1), None);
    assert_eq!(firings.len(), 2);
    assert_eq!(replay_of.status(0).unwrap().state, RuleState::Finished(FinishReason::ActionCount));
    // Nothing is seen once the rule has ended.
    let Some(Evidence::Requests { counted, .. }) = replay_of.evidence(0) else { panic!() };
    assert_eq!(*counted, 2);
}

#[test]
fn actions_that_take_time_keep_the_rule_from_watching() {
    let rules = [rule("limit-window")];
    let (_, firings) = replay(&rules, Duration::from_secs(1), Some(Duration::from_millis(1200)));
    assert_eq!(seconds(&firings, 0), ["6.750", "8.239", "10.745", "14.744"]);
    let Some((1, end)) = firings[0].execution else { panic!() };
    assert_eq!(firings[0].time + Duration::from_millis(1200), end);
}

#[test]
fn values_are_combined_to_the_interval_of_the_configuration() {
    // The 45 percent of one second are nine in a mean of five.
    let (_, firings) = replay(&[rule("cpu-peak")], Duration::from_secs(5), None);
    assert!(firings.is_empty(), "{firings:?}");
}

#[test]
fn actions_take_their_configured_time() {
    let time = |actions: &str| {
        let text = format!(
            r#"{{"Egress": {{"FileSystem": {{"f": {{"DirectoryPath": "/tmp"}}}}}},
                "CollectionRuleDefaults": {{"Actions": {{"Egress": "f"}}}},
                "CollectionRules": {{"R": {{"Trigger": {{"Type": "Startup"}}, "Actions": [{actions}]}}}}}}"#
        );
        let checked = Configuration::read(&ConfigurationSources::new().with_text("rule", &text));
        let [rule] = &checked.configuration.rules[..] else { panic!("{text}: {checked:?}") };
        rule.actions_time().as_secs()
    };
    let trace =
        r#"{"Name": "T", "Type": "CollectTrace", "Settings": {"Profile": "Cpu", "Duration": "00:00:10"}}"#;
    let logs = r#"{"Type": "CollectLogs"}"#;
    let waited =
        r#"{"Type": "CollectLogs", "Settings": {"Duration": "00:00:07"}, "WaitForCompletion": true}"#;
    let copy =
        r#"{"Type": "Execute", "Settings": {"Path": "/bin/cp", "Arguments": "$(Actions.T.EgressPath)"}}"#;
    assert_eq!(time(r#"{"Type": "CollectGCDump"}"#), 0);
    assert_eq!(time(trace), 10);
    assert_eq!(time(&format!("{trace}, {logs}")), 30);
    assert_eq!(time(&format!("{waited}, {trace}, {copy}")), 17);
    assert_eq!(time(&format!("{trace}, {copy}, {waited}")), 17);
}
