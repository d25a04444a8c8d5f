//! The language: accepted strings, session settings, and positions of errors.

use std::time::Duration;

use clr_conditions::Condition;
use clr_counters::{Selection, SessionSettings};

/// The session settings of a condition.
fn requests(condition: &str) -> Vec<(String, u64, u32)> {
    let condition = Condition::parse(condition).unwrap();
    condition.requests().into_iter().map(|it| (it.name, it.keywords, it.level)).collect()
}

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

#[test]
fn requests_only_the_providers_that_a_condition_needs() {
    assert_eq!(requests("exception X"), [(RUNTIME.to_owned(), 0x8000, 2)]);
    assert_eq!(requests("exception X or gc > 1s"), [(RUNTIME.to_owned(), 0x8001, 4)]);
    let tick = format!("event {RUNTIME}/GC/AllocationTick TypeName = *String*");
    assert_eq!(requests(&tick), [(RUNTIME.to_owned(), 1, 5)]);
    assert_eq!(requests("event MyCompany-Shop/OrderFailed"), [("MyCompany-Shop".to_owned(), u64::MAX, 5)]);
    for dynamic in ["GC/CommittedUsage", "GC/Comm*"] {
        assert_eq!(
            requests(&format!("event {RUNTIME}/{dynamic}")),
            [(RUNTIME.to_owned(), 1, 4)],
            "{dynamic}"
        );
    }
    assert_eq!(requests("exit or crash"), []);
    let names = |condition| requests(condition).into_iter().map(|it| it.0).collect::<Vec<_>>();
    // For .NET's own counters, only the way in which it has them.
    assert_eq!(names("cpu-usage > 80"), ["System.Runtime"]);
    assert_eq!(names("dotnet.gc.pause.time > 1"), ["System.Diagnostics.Metrics"]);
    assert_eq!(names("Mine/x > 80"), ["Mine", "System.Diagnostics.Metrics"]);
    assert_eq!(names(r"EventCounters\Mine/x > 80"), ["Mine"]);
    assert_eq!(names(r"Meter\Mine/x > 80"), ["System.Diagnostics.Metrics"]);
    let tasks = "System.Threading.Tasks.TplEventSource";
    assert_eq!(
        names("request > 2s"),
        ["Microsoft.AspNetCore.Hosting", tasks, "Microsoft-Extensions-Logging"],
        "activities, too, by which requests are paired"
    );
}

#[test]
fn a_provider_is_missing_if_no_other_one_will_do() {
    let missing = |condition: &str, recorded: &[&str]| {
        Condition::parse(condition).unwrap().missing_providers(|name| recorded.contains(&name))
    };
    let meters = "System.Diagnostics.Metrics";
    assert_eq!(missing("Mine/x > 1", &[meters]), [""; 0]);
    assert_eq!(missing("Mine/x > 1", &["Mine"]), [""; 0]);
    assert_eq!(missing("Mine/x > 1 or Mine/y > 1", &["Other"]), ["Mine"]);
    assert_eq!(missing("dotnet.gc.pause.time > 1", &[meters]), [""; 0]);
    assert_eq!(missing("request > 1s", &["Microsoft.AspNetCore.Hosting"]), [""; 0]);
    assert_eq!(missing("request > 1s or exception", &[]), ["Microsoft.AspNetCore.Hosting", RUNTIME]);
}

#[test]
fn providers_with_a_star_are_not_asked_for() {
    let condition = "event MyCompany-*/X or event MyCompany-Shop/X or event Microsoft-*/X";
    let condition = Condition::parse(condition).unwrap();
    assert_eq!(condition.unrequested_providers(&[]), ["MyCompany-*"]);
    assert_eq!(condition.unrequested_providers(&["OtherCompany", "mycompany-shop"]), [""; 0]);
}

#[test]
fn meters_of_several_counters_are_asked_for_together() {
    let condition = Condition::parse("A/x > 1 or B/y > 2 or A/z > 3").unwrap();
    let requests = condition.requests();
    let meters = requests.iter().find(|it| it.name == "System.Diagnostics.Metrics").unwrap();
    assert!(meters.arguments.contains(";Metrics=A,B;"), "{}", meters.arguments);
}

#[test]
fn an_event_of_the_logging_library_is_not_filtered_for_requests() {
    let arguments = |condition: &str| {
        let requests = Condition::parse(condition).unwrap().requests();
        let logging: Vec<_> =
            requests.into_iter().filter(|it| it.name == "Microsoft-Extensions-Logging").collect();
        assert_eq!(logging.len(), 1);
        logging[0].arguments.clone()
    };
    let filter = "FilterSpecs=\"Microsoft.AspNetCore.Hosting.Diagnostics:Information\"";
    assert_eq!(arguments("request > 2s or request status >= 500"), filter);
    let event = "event Microsoft-Extensions-Logging/FormattedMessage";
    assert_eq!(arguments(&format!("request > 2s or {event}")), "");
    assert_eq!(arguments(&format!("{event} or request > 2s")), "");
    assert_eq!(arguments(&format!("request > 2s or {event} or request > 3s")), "");
}

#[test]
fn errors_have_a_position_and_name_the_expected_token() {
    for (text, position, message) in [
        ("", 0, "a condition is expected"),
        ("exception X or", 14, "a condition is expected"),
        ("exceptoin X", 0, "a condition is expected"),
        ("gc 200ms", 3, "a comparison is expected"),
        ("gc > 200", 5, "a time is expected"),
        ("gc > 200ms exception X", 11, "'and', 'or' or the end is expected"),
        ("(gc > 1s", 8, "')' is expected"),
        ("exception X within 2s", 12, "'within' follows"),
        ("exception 'X", 10, "a quote has no end"),
        ("event P/E a >", 13, "a value is expected"),
        ("event P/E a > b", 14, "a number is expected"),
        ("event Microsoft-Windows-DotNETRuntime/Exception/Strat", 6, "there is Exception/"),
        ("event Microsoft-Windows-DotNETRuntime/GC/Start Depht > 1", 47, "no field \"Depht\"; it has "),
        ("request", 7, "a time, 'status' or 'path'"),
        ("request status > x", 17, "a status is expected"),
        ("no-such-counter > 3", 0, "the provider of \"no-such-counter\" is not known"),
        ("cpu-usage > high", 12, "a number is expected"),
        ("cpu-usage > NaN", 12, "a number is expected"),
        ("cpu-usage", 0, "a condition is expected"),
        ("counter cpu-usage", 17, "a comparison is expected"),
        ("counter > 3", 8, "a counter is expected"),
        ("cpu-usage:p200 > 3", 0, "\"p200\" is not one of value, rate"),
        ("System.Runtime/ > 3", 0, "does not name a counter"),
        ("ä ! 3", 2, "'!' is not a comparison"),
    ] {
        let error = Condition::parse(text).unwrap_err();
        assert_eq!(error.position(), position, "{text}: {error}");
        assert!(error.message().contains(message), "{text}: {error}");
        assert!(error.to_string().contains(&format!("at character {}", position + 1)), "{error}");
    }
}

#[test]
fn display_names_of_counters_have_blanks() {
    let same = [
        ("cpu-usage > 80", "CPU Usage > 80"),
        ("gc-heap-size > 5 and exit", "GC Heap Size > 5 and exit"),
        ("exception-count >= 1", "Exception Count >= 1"),
        ("cpu-usage > 80", "counter 'CPU Usage' > 80"),
        ("Mine/order:p95 > 1", "counter Mine/order : p95 > 1"),
    ];
    for (name, display_name) in same {
        let (name, display_name) = (Condition::parse(name).unwrap(), Condition::parse(display_name).unwrap());
        assert_eq!(name, display_name);
    }
    // These begin like a counter of .NET, and are not counters.
    for text in ["gc pause > 1s", "request duration > 1s", "event System.Runtime/x y > 1"] {
        assert!(Condition::parse(text).unwrap().missing_providers(|_| false).len() == 1, "{text}");
    }
}

#[test]
fn a_session_of_counters_needs_no_provider_and_gets_the_rest_of_the_condition() {
    let text = "(orders > 3 or Mine/size:p95 > 10) and gc pause > 200ms";
    assert!(Condition::parse(text).is_err());
    let condition = Condition::parse_for_counters(text).unwrap();
    let counters = Selection::parse("Shop").unwrap();
    let settings = SessionSettings::default().with_interval(Duration::from_millis(200));
    let requests = condition.requests_with(&counters, &settings);
    let names: Vec<_> = requests.iter().map(|request| (&*request.name, request.keywords)).collect();
    assert_eq!(names, [("Shop", 0), ("Mine", 0), ("System.Diagnostics.Metrics", 2), (RUNTIME, 1)]);
    for request in &requests[..2] {
        assert_eq!(request.arguments, "EventCounterIntervalSec=0.2");
    }
    assert!(requests[2].arguments.contains(";Metrics=Shop,Mine;"), "{}", requests[2].arguments);
    assert_eq!(condition.missing_providers(|_| false), ["Mine", RUNTIME]);
}

#[test]
fn depth_length_and_number_of_parts_are_bounded() {
    let nested = format!("{}exit{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(Condition::parse(&nested).unwrap_err().message().contains("8192 bytes"));
    let nested = format!("{}exit{}", "(".repeat(33), ")".repeat(33));
    assert!(Condition::parse(&nested).unwrap_err().message().contains("parentheses"));
    let many = |count: usize| vec!["exit"; count].join(" or ");
    assert!(Condition::parse(&many(64)).is_ok());
    assert!(Condition::parse(&many(65)).unwrap_err().message().contains("64 parts"));
}

#[test]
fn values_of_the_system_are_for_rules_alone() {
    use clr_conditions::SystemValue::{
        ContainerCpu, ContainerMemory, ContainerMemoryShare, NativeMemory, ProcessCpu, ProcessMemory,
    };
    for (text, value) in [
        ("container memory > 80%", ContainerMemoryShare),
        ("container memory >= 1.5GiB", ContainerMemory),
        ("Container CPU > 90.5%", ContainerCpu),
        ("process cpu > 150%", ProcessCpu),
        ("process memory < 500mb", ProcessMemory),
        ("native memory > 1GB", NativeMemory),
        ("native memory > 1GB for 5m", NativeMemory),
        ("(Process CPU > 90% FOR 1m30s)", ProcessCpu),
    ] {
        let condition = Condition::parse_for_rules(text).unwrap();
        assert_eq!(condition.system_values().collect::<Vec<_>>(), [value], "{text}");
        assert_eq!(condition.requests(), [], "{text}");
        let error = Condition::parse(text).unwrap_err();
        assert_eq!(error.position(), usize::from(text.starts_with('(')), "{text}");
        assert!(error.to_string().contains("dipc monitor"), "{error}");
    }
    for (text, position) in [
        ("container memory > 80", 19),
        ("container memory > -1%", 19),
        ("container memory > nanGB", 19),
        ("process memory > 80%", 17),
        ("process cpu > 2", 14),
        ("container cpu 90%", 14),
        ("container cpu >", 15),
        ("native memory > 80%", 16),
        ("native memory > 1GB for", 23),
        ("native memory > 1GB for 5", 24),
        ("native memory > 1GB for 5m for 5m", 27),
        ("native memory > 1GB 5m", 20),
        ("native cpu > 1%", 13),
    ] {
        assert_eq!(Condition::parse_for_rules(text).unwrap_err().position(), position, "{text}");
    }
    // A counter with such a name is still a counter.
    assert_eq!(Condition::parse_for_rules("process/cpu > 1").unwrap().system_values().count(), 0);
    // Other words are the name of a counter.
    assert_eq!(Condition::parse_for_rules("container disk > 1%").unwrap_err().position(), 17);
}
