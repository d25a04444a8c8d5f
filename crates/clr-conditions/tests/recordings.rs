//! Conditions over recordings of real runtimes. Other tests compare their events with TraceEvent's reading.

use clr_conditions::{Condition, Evaluator, Match, StreamEnd};
use nettrace::RelativeTime;

/// The matches in a recording of testdata.
fn matches(name: &str, condition: &str) -> Vec<Match> {
    let input = testdata::bytes(&format!("traces/{name}"));
    let mut events = nettrace::Reader::new(&*input).unwrap().in_time_order();
    let mut evaluator = Evaluator::new(Condition::parse(condition).unwrap());
    let mut matches = Vec::new();
    while let Some(event) = events.next().unwrap() {
        evaluator.event(&event, |met| matches.push(met));
    }
    evaluator.finish(|met| matches.push(met));
    matches
}

fn exceptions(condition: &str) -> usize {
    matches("net10-exceptions.nettrace.xz", condition).len()
}

#[test]
fn exceptions_are_known_by_their_types() {
    // As `dipc report exceptions` counts them.
    assert_eq!(exceptions("exception"), 43);
    assert_eq!(exceptions("exception System.AggregateException"), 1);
    assert_eq!(exceptions("exception socketexception"), 8);
    assert_eq!(exceptions("exception Azure.*, System.Net.Http.*"), 34);
    assert_eq!(exceptions("exception Socket*"), 8);
    assert_eq!(exceptions("exception Exception"), 0);
    let first = &matches("net10-exceptions.nettrace.xz", "exception AggregateException")[0];
    assert_eq!(first.what, "exception System.AggregateException: One or more errors occurred.");
}

#[test]
fn fields_and_types_are_two_ways_to_the_same_event() {
    let event = "event Microsoft-Windows-DotNETRuntime/Exception/Start";
    assert_eq!(exceptions(event), 43);
    assert_eq!(exceptions(&format!("{event} ExceptionType = System.AggregateException")), 1);
    assert_eq!(exceptions(&format!("{event} where exceptiontype:*Socket*, ExceptionMessage != x")), 8);
    for value in ["*Socket*", "'*Socket*'", "\"*Socket*\"", " '*Socket*'"] {
        assert_eq!(exceptions(&format!("{event} ExceptionType:{value}")), 8, "{value}");
    }
    assert_eq!(exceptions(&format!("{event} ClrInstanceID > 1000000")), 0);
}

#[test]
fn a_pause_is_as_long_as_the_report_says() {
    let pauses = |condition| matches("net9-everything.nettrace.xz", condition);
    // `dipc report gc`: one collection at 1.012 s, 1.31 ms.
    assert_eq!(pauses("gc pause > 1.3ms").len(), 1);
    assert_eq!(pauses("gc > 1400us").len(), 0);
    let pause = &pauses("gc >= 1ms")[0];
    assert_eq!(pause.what, "gc pause of 1.31 ms");
    assert!((1_000_000_000..1_030_000_000).contains(&pause.time.as_nanos()), "{pause:?}");
}

#[test]
fn a_counter_counts_once_for_each_stretch() {
    let counters = |condition| matches("net10-counters.nettrace.xz", condition).len();
    assert_eq!(counters("System.Runtime/dotnet.process.cpu.count > 0"), 1);
    assert_eq!(counters("counter dotnet.process.cpu.count > 1000000"), 0);
    assert_eq!(counters("DotNet.Process.CPU.Count > 0"), 1);
    assert_eq!(counters("system.runtime/DotNet.Process.CPU.Count:value > 0"), 1);
}

/// .NET 9 and later have a Meter as well as the EventCounters of the same provider, under other names.
#[test]
fn an_event_counter_is_judged_at_its_time_next_to_a_meter_of_its_provider() {
    let met = |condition| matches("net10-counters.nettrace.xz", condition);
    for condition in [
        "counter System.Runtime/cpu-usage >= 0",
        r"EventCounters\System.Runtime/cpu-usage >= 0",
        "cpu-usage >= 0",
        "counter 'CPU Usage' >= 0",
    ] {
        let met = met(condition);
        let [first] = &met[..] else { panic!("{condition}: {met:?}") };
        assert!(first.what.starts_with("counter System.Runtime/cpu-usage = "), "{first:?}");
        // The first value, a second after the start.
        assert_eq!(first.time.as_nanos() / 1_000_000, 1011, "{condition}");
    }
    let both = met("cpu-usage >= 0 and dotnet.process.cpu.count > 0");
    assert!(both[0].what.contains("cpu-usage") && both[0].what.contains("cpu.count"), "{both:?}");
    // A pattern may select a Meter: its value waits for one, and has its own time.
    let waited = met("System.Run*/cpu-usage >= 0");
    assert_eq!(waited[0].time.as_nanos() / 1_000_000, 1011, "{waited:?}");
}

#[test]
fn parts_that_and_joins_lie_within_a_time() {
    // The first SocketException is at 4.69 s, the AggregateException at 5.16 s.
    let joined = "exception SocketException and exception AggregateException";
    assert_eq!(exceptions(joined), 1);
    assert_eq!(exceptions(&format!("{joined} within 1us")), 0);
    assert_eq!(
        exceptions("(exception SocketException or exception X) and exception AggregateException within 1s"),
        1
    );
    let what = &matches("net10-exceptions.nettrace.xz", joined)[0].what;
    assert!(what.contains("SocketException: ") && what.contains(" and exception System.Agg"), "{what}");
}

#[test]
fn the_end_matches_once_and_distinguishes_exit_from_crash() {
    let met = |condition, end| {
        Evaluator::new(Condition::parse(condition).unwrap()).end(end, RelativeTime::START).is_some()
    };
    assert!(met("exit", StreamEnd::Exit) && met("exit", StreamEnd::Crash) && met("crash", StreamEnd::Crash));
    assert!(met("disconnect", StreamEnd::Disconnect) && !met("disconnect", StreamEnd::Crash));
    assert!(!met("crash or exit", StreamEnd::Disconnect));
    assert!(["exit", "crash", "disconnect"].iter().all(|condition| met(condition, StreamEnd::Unknown)));
    assert!(!met("crash", StreamEnd::Exit) && !met("exception", StreamEnd::Crash));
    assert!(!met("exit and exception", StreamEnd::Exit));
}
