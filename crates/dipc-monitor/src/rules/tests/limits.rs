//! Limits, states, and unlimited rules.

use std::sync::Arc;
use std::time::Duration;

use clr_conditions::{Condition, StreamEnd};

use super::rule;
use super::simulation::Simulation;
use crate::filter::ProcessFacts;
use crate::rules::{FinishReason, Limits, Rule, RuleEngine, RuleState, Trigger};

/// A rule that fires at each request.
fn each_request(limits: &str) -> Arc<Rule> {
    rule(
        r#"{"Type": "AspNetRequestCount", "Settings": {"RequestCount": 1}}"#,
        &format!(r#", "Limits": {{{limits}}}"#),
    )
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A request each second from `first` to `last`.
fn requests(first: u32, last: u32) -> String {
    let steps: Vec<_> = (first..=last).map(|time| format!("{time} start r{time} /")).collect();
    steps.join(";")
}

#[test]
fn the_number_of_executions_is_limited() {
    let rows: [(&str, f64, &[f64]); 7] = [
        // Five in the whole life of the rule.
        ("", 0.0, &[1.0, 2.0, 3.0, 4.0, 5.0]),
        (r#""ActionCount": 2"#, 0.0, &[1.0, 2.0]),
        // The trigger is not watched while actions run.
        (r#""ActionCount": 3"#, 2.5, &[1.0, 4.0, 7.0]),
        // Within a window: the execution of second 1 leaves it after second 11.
        (
            r#""ActionCount": 2, "ActionCountSlidingWindowDuration": "00:00:10""#,
            0.0,
            &[1.0, 2.0, 12.0, 13.0, 23.0, 24.0],
        ),
        // The window counts from the starts of the executions.
        (
            r#""ActionCount": 2, "ActionCountSlidingWindowDuration": "00:00:10""#,
            4.5,
            &[1.0, 6.0, 12.0, 17.0, 23.0, 28.0],
        ),
        (r#""RuleDuration": "00:00:03""#, 0.0, &[1.0, 2.0]),
        // Actions that run at the end of the rule are not stopped.
        (r#""RuleDuration": "00:00:03""#, 10.0, &[1.0]),
    ];
    for (limits, actions, expected) in rows {
        let mut simulation = Simulation::new(&each_request(limits), actions);
        assert_eq!(simulation.run(&requests(1, 30)).fired, expected, "{limits}, actions take {actions} s");
    }
}

#[test]
fn states_follow_the_limits() {
    let state = |simulation: &Simulation, now: u64| {
        let status = simulation.engine.status(0, seconds(now)).unwrap();
        (
            status.state,
            status.lifetime_occurrences,
            status.sliding_window_occurrences,
            status.window_countdown.map(|it| it.as_secs()),
            status.finished_countdown.map(|it| it.as_secs()),
        )
    };
    let window =
        r#""ActionCount": 2, "ActionCountSlidingWindowDuration": "00:00:10", "RuleDuration": "00:01:00""#;
    let mut simulation = Simulation::new(&each_request(window), 1.5);
    assert_eq!(state(&simulation, 0), (RuleState::Running, 0, 0, None, Some(60)));
    simulation.run("2 start a /");
    assert_eq!(state(&simulation, 3), (RuleState::ActionExecuting, 1, 1, None, Some(57)));
    simulation.run("4 tick");
    assert_eq!(state(&simulation, 4), (RuleState::Running, 1, 1, None, Some(56)));
    simulation.run("5 start b /; 7 tick; 8 start c /");
    assert_eq!(state(&simulation, 8), (RuleState::Throttled, 2, 2, Some(4), Some(52)));
    assert_eq!(simulation.engine.status(0, seconds(8)).unwrap().throttled, 1);
    assert_eq!(state(&simulation, 13), (RuleState::Running, 2, 1, None, Some(47)));
    simulation.run("60 tick");
    assert_eq!(state(&simulation, 61), (RuleState::Finished(FinishReason::RuleDuration), 2, 0, None, None));
    assert!(simulation.engine.is_finished());

    let mut simulation = Simulation::new(&each_request(r#""ActionCount": 1"#), 5.0);
    simulation.run("1 start a /; 2 tick");
    assert_eq!(state(&simulation, 2), (RuleState::ActionExecuting, 1, 1, None, None));
    simulation.run("6 tick");
    assert_eq!(state(&simulation, 6), (RuleState::Finished(FinishReason::ActionCount), 1, 1, None, None));

    let mut simulation = Simulation::new(&rule(r#"{"Type": "Startup"}"#, ""), 1.0);
    assert_eq!(state(&simulation, 0), (RuleState::ActionExecuting, 1, 1, None, None));
    simulation.run("2 tick");
    assert_eq!(state(&simulation, 2), (RuleState::Finished(FinishReason::Startup), 1, 1, None, None));
}

#[test]
fn firings_while_actions_run_are_counted() {
    let mut simulation = Simulation::new(&each_request(""), 5.0);
    simulation.run("1 start a /; 1 start b /; 1 start c /; 2 tick");
    assert_eq!(simulation.fired, [1.0]);
    let status = simulation.engine.status(0, seconds(2)).unwrap();
    assert_eq!((status.lifetime_occurrences, status.throttled, status.missed), (1, 0, 2));
    assert_eq!(
        simulation.engine.evidence(0).unwrap().text(&each_request("").trigger),
        "1 of 1 requests count, at most 1 in 00:01:00"
    );
    // None is missed between the end of the actions and the next firing.
    simulation.run("7 start d /; 8 start e /");
    assert_eq!(simulation.fired, [1.0, 7.0]);
    assert_eq!(simulation.engine.status(0, seconds(8)).unwrap().missed, 3);
    assert_eq!(simulation.engine.actions_ended(0, seconds(12)), 1);
}

#[test]
fn a_finished_rule_needs_no_session() {
    let mut simulation = Simulation::new(&each_request(r#""ActionCount": 1"#), 0.0);
    assert_eq!(simulation.engine.requests().len(), 1);
    simulation.run("1 start a /");
    assert!(simulation.engine.requests().is_empty());
    let mut simulation =
        Simulation::new(&rule(r#"{"Type": "CPUUsage"}"#, r#", "Limits": {"RuleDuration": "00:00:03"}"#), 0.0);
    let [need] = &simulation.engine.counters()[..] else { panic!() };
    assert_eq!((need.rule_number, need.interval), (0, seconds(5)));
    simulation.run("3 tick");
    assert!(simulation.engine.counters().is_empty());
}

#[test]
fn rules_are_for_the_processes_that_all_filters_match() {
    let filtered = rule(
        r#"{"Type": "Startup"}"#,
        r#", "Filters": [{"ProcessName": "shop"},
            {"Key": "CommandLine", "Value": "--prod", "MatchType": "Contains"}]"#,
    );
    let all = rule(r#"{"Type": "Startup"}"#, "");
    let rules = [filtered, all];
    let process = |name: &str, command_line: &str| ProcessFacts {
        pid: 1,
        name: name.to_owned(),
        command_line: Some(command_line.to_owned()),
        entry_assembly: None,
    };
    for (name, command_line, count) in [("Shop", "shop --prod", 2), ("shop", "shop", 1), ("x", "--prod", 1)] {
        let mut engine =
            RuleEngine::new(&rules, &process(name, command_line), |_| seconds(5), Duration::ZERO);
        assert_eq!(std::iter::from_fn(|| engine.poll()).count(), count, "{name} {command_line}");
    }
}

/// Our own triggers, with the same limits.
#[test]
fn conditions_fire_at_the_end_of_a_stream() {
    let rows = [
        ("crash", StreamEnd::Crash, 1),
        ("crash", StreamEnd::Exit, 0),
        ("exit", StreamEnd::Exit, 1),
        ("exit", StreamEnd::Disconnect, 0),
        ("disconnect", StreamEnd::Disconnect, 1),
    ];
    for (text, end, count) in rows {
        let trigger =
            Trigger::Condition { text: text.to_owned(), condition: Condition::parse(text).unwrap() };
        let mut rule = Rule::new("R", trigger, Vec::new());
        rule.limits = Limits::default();
        let mut engine = RuleEngine::of_rules([&Arc::new(rule)].into_iter(), |_| seconds(5), Duration::ZERO);
        engine.end(Some(end), seconds(1));
        assert_eq!(std::iter::from_fn(|| engine.poll()).count(), count, "{text} {end:?}");
    }
}
