//! Every trigger.

use std::fmt::Write as _;

use super::rule;
use super::simulation::Simulation;

/// The times at which a rule without limits fires if its actions end at once.
fn fired(trigger: &str, steps: &str) -> Vec<f64> {
    let rule = rule(trigger, r#", "Limits": {"ActionCount": 1000}"#);
    Simulation::new(&rule, 0.0).run(steps).fired.clone()
}

#[track_caller]
fn check(trigger: &str, rows: &[(&str, &[f64])]) {
    for (steps, expected) in rows {
        assert_eq!(fired(trigger, steps), *expected, "{trigger}\n{steps}");
    }
}

fn settings(kind: &str, settings: &str) -> String {
    format!(r#"{{"Type": "{kind}", "Settings": {{{settings}}}}}"#)
}

#[test]
fn startup_fires_once() {
    check(r#"{"Type": "Startup"}"#, &[("", &[0.0]), ("1 tick; 2 start a /; 100 tick", &[0.0])]);
}

#[test]
fn counts_request_starts_in_the_window() {
    let trigger = settings("AspNetRequestCount", r#""RequestCount": 3, "SlidingWindowDuration": "00:00:10""#);
    check(
        &trigger,
        &[
            ("1 start a /; 2 start b /; 3 stop a 200", &[]),
            ("1 start a /; 2 start b /; 3 start c /", &[3.0]),
            // A start leaves the window when it is older than the window is long.
            ("1 start a /; 2 start b /; 11 start c /", &[11.0]),
            ("1 start a /; 2 start b /; 11.001 start c /", &[]),
            // Afterwards earlier values do not count.
            ("1 start a /; 2 start b /; 3 start c /; 4 start d /; 5 start e /", &[3.0]),
            ("1 start a /; 2 start b /; 3 start c /; 4 start d /; 5 start e /; 6 start f /", &[3.0, 6.0]),
            ("1 start a /; 2 start b /; 2.5 events; 3 start c /", &[]),
        ],
    );
    let minute = settings("AspNetRequestCount", r#""RequestCount": 2"#);
    check(&minute, &[("1 start a /; 61 start b /", &[61.0]), ("1 start a /; 61.5 start b /", &[])]);
}

#[test]
fn requests_are_chosen_by_their_paths() {
    let trigger = settings(
        "AspNetRequestCount",
        r#""RequestCount": 1, "IncludePaths": ["/api/**/*", "/exact"], "ExcludePaths": ["**/health", "/api/v1/*"]"#,
    );
    check(
        &trigger,
        &[
            ("1 start a /", &[]),
            ("1 start a /api/orders", &[1.0]),
            ("1 start a /API/Orders/7", &[1.0]),
            ("1 start a /exact", &[1.0]),
            ("1 start a /exact/more", &[]),
            ("1 start a /api/health", &[]),
            ("1 start a /api/v1/x", &[]),
            ("1 start a /api/v1/x/y", &[1.0]),
        ],
    );
    let status = settings(
        "AspNetResponseStatus",
        r#""ResponseCount": 1, "StatusCodes": ["500"], "IncludePaths": ["/a"]"#,
    );
    check(&status, &[("1 start a /a; 2 stop a 500", &[2.0]), ("1 start a /b; 2 stop a 500", &[])]);
    let duration = settings("AspNetRequestDuration", r#""RequestCount": 1, "ExcludePaths": ["/poll"]"#);
    check(&duration, &[("1 start a /poll; 20 stop a 200", &[]), ("1 start a /x; 20 stop a 200", &[20.0])]);
}

#[test]
fn request_duration_counts_requests_that_still_run() {
    let trigger = settings(
        "AspNetRequestDuration",
        r#""RequestCount": 2, "RequestDuration": "00:00:05", "SlidingWindowDuration": "00:01:00""#,
    );
    check(
        &trigger,
        &[
            ("0 start a /; 4.9 stop a 200; 5 start b /; 9.9 stop b 200", &[]),
            ("0 start a /; 5 stop a 200; 6 start b /; 11 stop b 200", &[11.0]),
            // A running request counts once it has run for that long, and not again at its end.
            ("0 start a /; 0 start b /; 3 tick; 7 tick", &[7.0]),
            ("0 start a /; 7 tick; 8 stop a 200; 9 tick", &[]),
            ("0 start a /; 7 tick; 8 stop a 200; 8 start b /; 30 tick", &[30.0]),
            // Too long ago.
            ("0 start a /; 5 stop a 200; 100 start b /; 106 stop b 200", &[]),
            // Requests from before the trigger's start do not count.
            ("5 stop a 200; 6 stop b 200", &[]),
            (
                "0 start c /; 0 start a /; 0 start b /; 7 tick; 8 stop a 200; 8 stop b 200; 9 stop c 200",
                &[7.0],
            ),
        ],
    );
    let usual = settings("AspNetRequestDuration", r#""RequestCount": 1"#);
    check(&usual, &[("0 start a /; 4.9 stop a 200", &[]), ("0 start a /; 5.0 stop a 200", &[5.0])]);
}

#[test]
fn response_status_counts_codes_in_the_window() {
    /// Times and codes of responses, and the times at which the trigger fires.
    type Row = (&'static [(f64, u32)], &'static [f64]);

    let trigger = settings(
        "AspNetResponseStatus",
        r#""ResponseCount": 2, "StatusCodes": ["400-499", "503"], "SlidingWindowDuration": "00:00:10""#,
    );
    let request = |time: f64, status: u32| format!("{time} start r{time} /; {time} stop r{time} {status};");
    let rows: [Row; 7] = [
        (&[(1.0, 400), (2.0, 499)], &[2.0]),
        (&[(1.0, 399), (2.0, 499)], &[]),
        (&[(1.0, 500), (2.0, 503)], &[]),
        (&[(1.0, 503), (2.0, 500), (3.0, 404)], &[3.0]),
        (&[(1.0, 503), (11.0, 404)], &[11.0]),
        (&[(1.0, 503), (11.5, 404)], &[]),
        (&[(1.0, 503), (2.0, 503), (3.0, 503), (4.0, 503)], &[2.0, 4.0]),
    ];
    for (responses, expected) in rows {
        let mut steps = String::new();
        for (time, status) in responses {
            write!(steps, "{}", request(*time, *status)).unwrap();
        }
        assert_eq!(fired(&trigger, &steps), expected, "{steps}");
    }
    // The start of a request is not awaited.
    assert_eq!(fired(&trigger, "1 start a /; 1 start b /; 2 stop a 404; 3 stop b 404"), [3.0]);
}

#[test]
fn event_counters_have_to_pass_for_the_whole_window() {
    let trigger = |bounds: &str, window: &str| {
        settings(
            "EventCounter",
            &format!(
                r#""ProviderName": "P", "CounterName": "c", {bounds}, "SlidingWindowDuration": "{window}""#
            ),
        )
    };
    // Values are sent every five seconds. The time counts from the start of the first passing interval.
    check(
        &trigger(r#""GreaterThan": 50"#, "00:00:10"),
        &[
            ("5 mean 60", &[]),
            ("5 mean 60; 10 mean 60", &[10.0]),
            ("5 mean 60; 10 mean 60; 15 mean 60", &[10.0]),
            ("5 mean 60; 10 mean 60; 15 mean 60; 20 mean 60", &[10.0, 20.0]),
            // Strict.
            ("5 mean 50; 10 mean 50; 15 mean 50", &[]),
            ("5 mean 50.1; 10 mean 50.1", &[10.0]),
            // A failing value restarts the window.
            ("5 mean 60; 10 mean 40; 15 mean 60; 20 mean 60", &[20.0]),
            // So does a hole of more than 1.5 intervals.
            ("5 mean 60; 12.5 mean 60", &[12.5]),
            ("5 mean 60; 12.6 mean 60", &[]),
            ("5 mean 60; 12.6 mean 60; 17.6 mean 60", &[17.6]),
            // Increments of an interval are compared as they are.
            ("5 sum 51; 10 sum 51", &[10.0]),
        ],
    );
    check(
        &trigger(r#""LessThan": 5"#, "00:00:05"),
        &[("5 mean 5", &[]), ("5 mean 4", &[5.0]), ("5 mean 4; 10 mean 6; 15 mean -1", &[5.0, 15.0])],
    );
    check(
        &trigger(r#""GreaterThan": 1, "LessThan": 3"#, "00:00:05"),
        &[
            ("5 mean 1; 10 mean 3", &[]),
            ("5 mean 2", &[5.0]),
            ("5 mean 1.5; 10 mean 9; 15 mean 2.5", &[5.0, 15.0]),
        ],
    );
    // A minute is twelve values.
    let usual = settings("EventCounter", r#""ProviderName": "P", "CounterName": "c", "GreaterThan": 0"#);
    let mut steps = String::new();
    for value in 1..=25 {
        write!(steps, "{} mean 1;", value * 5).unwrap();
    }
    assert_eq!(fired(&usual, &steps), [60.0, 120.0]);
}

#[test]
fn another_session_of_counters_breaks_nothing() {
    let trigger = settings(
        "EventCounter",
        r#""ProviderName": "P", "CounterName": "c", "GreaterThan": 50, "SlidingWindowDuration": "00:00:20""#,
    );
    check(
        &trigger,
        &[
            // The session starts at 12: its first value arrives at 17, and covers the five seconds before.
            ("5 mean 60; 10 mean 60; 12 session; 17 mean 60; 22 mean 60", &[22.0]),
            ("5 mean 60; 10 mean 60; 12 session; 17 mean 40; 22 mean 60", &[]),
            // The session's second value is missing.
            ("5 mean 60; 10 mean 60; 12 session; 17 mean 60; 27 mean 60", &[]),
            // The session's first value arrived too late.
            ("5 mean 60; 10 mean 60; 12 session; 23 mean 60; 28 mean 60", &[]),
        ],
    );
}

#[test]
fn meters_are_compared_by_their_totals_and_percentiles() {
    let trigger = |more: &str| {
        settings(
            "EventMeter",
            &format!(
                r#""MeterName": "M", "InstrumentName": "i", "SlidingWindowDuration": "00:00:10", {more}"#
            ),
        )
    };
    check(
        &trigger(r#""GreaterThan": 100"#),
        &[
            ("5 gauge 101; 10 gauge 102", &[10.0]),
            ("5 gauge 100; 10 gauge 100", &[]),
            ("5 total 101; 10 total 102", &[10.0]),
            // Runtimes before .NET 8 report no total.
            ("5 increment 101; 10 increment 101", &[10.0]),
            // Each set of tags is a series of its own.
            ("5 gauge 101 a=1; 10 gauge 101 a=22", &[]),
            ("5 gauge 101 a=1; 5 gauge 7 a=22; 10 gauge 101 a=1; 10 gauge 7 a=22", &[10.0]),
            // EventCounters of the same name are others.
            ("5 mean 101; 10 mean 101", &[]),
        ],
    );
    for percentile in [50, 95, 99] {
        let trigger =
            trigger(&format!(r#""LessThan": 20, "GreaterThan": 10, "HistogramPercentile": {percentile}"#));
        let steps = |value: u32| format!("5 p{percentile} {value}; 10 p{percentile} {value}");
        assert_eq!(fired(&trigger, &steps(15)), [10.0], "p{percentile}");
        assert_eq!(fired(&trigger, &steps(20)), [0.0; 0], "p{percentile}");
        assert_eq!(fired(&trigger, &steps(10)), [0.0; 0], "p{percentile}");
        // Values other than histograms do not have percentiles.
        assert_eq!(fired(&trigger, "5 gauge 15; 10 gauge 15"), [0.0; 0]);
    }
}

/// The shortcuts, with their counters and defaults.
#[test]
fn shortcuts_have_the_documented_defaults() {
    for (kind, below, above) in
        [("CPUUsage", 50.0, 50.1), ("GCHeapSize", 10.0, 10.1), ("ThreadpoolQueueLength", 200.0, 201.0)]
    {
        let usual = format!(r#"{{"Type": "{kind}"}}"#);
        let mut steps = [String::new(), String::new()];
        for value in 1..=12 {
            write!(steps[0], "{} mean {below};", value * 5).unwrap();
            write!(steps[1], "{} mean {above};", value * 5).unwrap();
        }
        assert_eq!(fired(&usual, &steps[0]), [0.0; 0], "{kind}");
        assert_eq!(fired(&usual, &steps[1]), [60.0], "{kind}");
        let less = settings(kind, r#""LessThan": 1, "SlidingWindowDuration": "00:00:05""#);
        check(&less, &[("5 mean 0.5", &[5.0]), ("5 mean 1", &[]), ("5 mean 1000", &[])]);
        let greater = settings(kind, r#""GreaterThan": 70, "SlidingWindowDuration": "00:00:05""#);
        check(&greater, &[("5 mean 70", &[]), ("5 mean 71", &[5.0])]);
    }
}
