//! Conditions over values of the system.

use std::time::Duration;

use clr_conditions::{Condition, Evaluator, StreamEnd, SystemUsage};
use nettrace::RelativeTime;

fn evaluator(condition: &str) -> Evaluator {
    Evaluator::new(Condition::parse_for_rules(condition).unwrap())
}

fn memory(percent: f64) -> SystemUsage {
    SystemUsage { container_memory_percent: Some(percent), ..SystemUsage::default() }
}

fn at(seconds: u64) -> RelativeTime {
    RelativeTime::after_start(Duration::from_secs(seconds))
}

/// Adds values, and returns the messages of the matches.
fn met(evaluator: &mut Evaluator, usages: &[(u64, SystemUsage)]) -> Vec<String> {
    let mut found = Vec::new();
    for (seconds, usage) in usages {
        evaluator.usage(usage, at(*seconds), |met| found.push(met.what));
    }
    found
}

#[test]
fn each_stretch_beyond_the_bound_counts_once() {
    let mut evaluator = evaluator("container memory > 80%");
    let rows = [79.9, 80.0, 80.1, 95.0, 50.0, 81.0].map(memory);
    let mut usages: Vec<_> = (0..).zip(rows).collect();
    // A value that is not known ends a stretch.
    usages.extend([(6, SystemUsage::default()), (7, memory(90.0))]);
    assert_eq!(
        met(&mut evaluator, &usages),
        [80.1, 81.0, 90.0].map(|percent| format!("container memory = {percent:.1}% of its limit"))
    );
}

#[test]
fn values_are_joined_with_each_other_and_with_the_end() {
    let usage = |cpu: f64, bytes: u64| SystemUsage {
        process_cpu_percent: Some(cpu),
        process_memory_bytes: Some(bytes),
        ..SystemUsage::default()
    };
    let mut both = evaluator("process cpu > 150% and process memory > 1MB");
    let found = met(&mut both, &[(1, usage(160.0, 5)), (100, usage(160.0, 2_000_000)), (101, usage(1.0, 0))]);
    assert_eq!(found, ["process cpu = 160.0% and process memory = 2.0 MB"]);
    let mut crash = evaluator("container memory > 90% and crash");
    assert_eq!(met(&mut crash, &[(1, memory(95.0))]), [""; 0]);
    let found = crash.end(StreamEnd::Crash, at(60)).unwrap();
    assert_eq!(found.what, "container memory = 95.0% of its limit and the process crashed or was killed");
}

#[test]
fn another_session_ends_no_stretch() {
    let mut evaluator = evaluator("container memory > 80% or exception");
    assert_eq!(met(&mut evaluator, &[(1, memory(90.0))]).len(), 1);
    evaluator.restart();
    assert_eq!(met(&mut evaluator, &[(2, memory(91.0)), (3, memory(10.0)), (4, memory(91.0))]).len(), 1);
}

fn native(bytes: u64) -> SystemUsage {
    SystemUsage { native_memory_bytes: Some(bytes), ..SystemUsage::default() }
}

#[test]
fn values_last_for_a_time_before_they_count() {
    let mut evaluator = evaluator("native memory > 1MB for 5m");
    let mut usages = Vec::new();
    // A stretch that is too short, and one that lasts: it counts once.
    for (seconds, bytes) in [(0, 2), (240, 2), (299, 2), (300, 1), (310, 3), (500, 3), (609, 3)] {
        usages.push((seconds, native(bytes * 1_000_000)));
    }
    assert_eq!(met(&mut evaluator, &usages), [""; 0]);
    let lasting = [(610, native(3_000_000)), (2000, native(3_000_000))];
    assert_eq!(met(&mut evaluator, &lasting), ["native memory = 3.0 MB for 300 s"]);
    // A value that is not known ends the stretch.
    let unknown = [(2001, SystemUsage::default()), (2002, native(9_000_000)), (2301, native(9_000_000))];
    assert_eq!(met(&mut evaluator, &unknown), [""; 0]);
    assert_eq!(met(&mut evaluator, &[(2302, native(9_000_000))]), ["native memory = 9.0 MB for 300 s"]);
}

#[test]
fn the_time_of_another_session_does_not_count() {
    let mut evaluator = evaluator("native memory > 1MB for 5m");
    assert_eq!(met(&mut evaluator, &[(0, native(2_000_000)), (60, native(2_000_000))]), [""; 0]);
    // Its times begin elsewhere: an hour later, and then at zero.
    evaluator.restart();
    assert_eq!(met(&mut evaluator, &[(3600, native(2_000_000)), (3660, native(2_000_000))]), [""; 0]);
    evaluator.restart();
    assert_eq!(met(&mut evaluator, &[(0, native(2_000_000)), (179, native(2_000_000))]), [""; 0]);
    assert_eq!(met(&mut evaluator, &[(180, native(2_000_000))]), ["native memory = 2.0 MB for 300 s"]);
}
