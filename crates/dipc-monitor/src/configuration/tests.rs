use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use super::schema::{COLLECTION_RULE_ACTIONS, COLLECTION_RULE_TRIGGERS};
use super::*;
use crate::artifact::{Artifact, TraceProfile};
use crate::filter::{Filter, FilterKey, MatchType};
use crate::rules::{ActionKind, CounterSource, Trigger};

fn read(text: &str) -> CheckedConfiguration {
    Configuration::read(&ConfigurationSources::new().with_text("test.json", text))
}

/// The findings as lines: severity, place, key, message, help.
fn lines(checked: &CheckedConfiguration) -> String {
    let mut text = String::new();
    for finding in &checked.findings {
        writeln!(text, "{} {finding}", finding.severity.name()).unwrap();
        if let Some(help) = &finding.help {
            writeln!(text, "  {help}").unwrap();
        }
    }
    text
}

#[track_caller]
fn assert_findings(text: &str, expected: &[&str]) {
    let checked = read(text);
    let lines = lines(&checked);
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected, "{text}");
}

#[test]
fn unknown_keys_and_wrong_values_are_named_with_the_fix() {
    assert_findings(
        "{\n  // a comment\n  \"GlobalCounter\": { \"IntervalSecond\": 5, },\n}",
        &[
            "error test.json:3:22: GlobalCounter:IntervalSecond: unknown key",
            "  did you mean IntervalSeconds?",
        ],
    );
    assert_findings(
        r#"{"GlobalCounter": {"IntervalSeconds": 0.5, "MaxHistograms": "many"}}"#,
        &[
            "error test.json:1:20: GlobalCounter:IntervalSeconds: \"0.5\" is not a number from 1 to 86400",
            "error test.json:1:44: GlobalCounter:MaxHistograms: \"many\" is not a whole number of at least 1",
        ],
    );
    assert_findings(
        r#"{"Metrics": [1], "Storage": 7}"#,
        &[
            "error test.json:1:2: Metrics: expected an object, as '{ … }', not a list",
            "error test.json:1:18: Storage: expected an object, as '{ … }', not \"7\"",
        ],
    );
    assert_findings(
        r#"{"Egress": {"FileSystem": {"a": {"DirectoryPath": "", "CopyBufferSize": 5}}}}"#,
        &[
            "error test.json:1:34: Egress:FileSystem:a: DirectoryPath is missing",
            "  add \"DirectoryPath\": a text",
            "ignored test.json:1:55: Egress:FileSystem:a:CopyBufferSize: artifacts are written in pieces of a \
             fixed size",
        ],
    );
    assert_findings(
        r#"{"InProcessFeatures": {"Enabled": true, "ParameterCapturing": {"Enabled": true}}}"#,
        &[
            "ignored test.json:1:24: InProcessFeatures:Enabled: /stacks and /exceptions answer from sessions: no code \
             is loaded into processes",
            "unsupported test.json:1:64: InProcessFeatures:ParameterCapturing:Enabled: parameters of methods need code \
             in the process; use an ILogger or an EventSource there",
        ],
    );
    assert_findings(
        r#"{"Metrics": {"Enabled": 1, "enabled": true}}"#,
        &[
            "error test.json:1:14: Metrics:Enabled: \"1\" is not true or false",
            "error test.json:1:28: Metrics:enabled: the key is written twice in one object",
            "  remove one of them; keys are compared without regard to case",
        ],
    );
}

#[test]
fn keys_without_effect_are_named() {
    let key = |checked: &CheckedConfiguration| {
        let keys: Vec<_> =
            checked.findings.iter().map(|it| format!("{} {}", it.severity.name(), it.key)).collect();
        keys.join(", ")
    };
    for (text, expected) in [
        (r#"{"Logging": {"CaptureScopes": true}}"#, "ignored Logging"),
        (
            r#"{"Authentication": {"AzureAd": {"TenantId": "t", "ClientId": "c", "RequiredRole": "r"}}}"#,
            "unsupported Authentication:AzureAd",
        ),
        (r#"{"DiagnosticPort": {"EndpointName": "/x"}}"#, "ignored DiagnosticPort:EndpointName"),
        (
            r#"{"DiagnosticPort": {"ConnectionMode": "Listen", "EndpointName": "/x",
                "DeleteEndpointOnStartup": true}}"#,
            "ignored DiagnosticPort:DeleteEndpointOnStartup",
        ),
        (r#"{"Storage": {"DefaultSharedPath": "/diag"}}"#, ""),
        (
            r#"{"Storage": {"DefaultSharedPath": "/diag"}, "DiagnosticPort": {"ConnectionMode": "Listen"}}"#,
            "",
        ),
        (r#"{"Storage": {"DumpTempFolder": "/diag"}}"#, ""),
        (r#"{"Storage": {"SharedLibraryPath": "/diag"}}"#, "ignored Storage:SharedLibraryPath"),
        (r#"{"Metrics": {"MetricCount": 3}}"#, "ignored Metrics:MetricCount"),
        (
            r#"{"Egress": {"Properties": {"a": "b"}}}"#,
            if cfg!(feature = "stores") { "" } else { "ignored Egress:Properties" },
        ),
        (r#"{"InProcessFeatures": {"CallStacks": {"Enabled": false}}}"#, ""),
        (
            r#"{"InProcessFeatures": {"CallStacks": {"Enabled": true}}}"#,
            "ignored InProcessFeatures:CallStacks:Enabled",
        ),
        (r#"{"GlobalCounter": {"IntervalSeconds": 2}, "DefaultProcess": {"Filters": []}}"#, ""),
    ] {
        assert_eq!(key(&read(text)), expected, "{text}");
    }
}

#[test]
fn reports_the_end_of_a_cut_document() {
    for (text, place, end) in [
        ("{\n  \"Metrics\": {\n    \"Enabled\": true,\n", "test.json:2:14", "at line 4, column 1"),
        ("{\"a\": [1, 2", "test.json:1:7", "at line 1, column 12"),
        ("{\"a\": \"xy", "test.json:1:7", "at line 1, column 10"),
    ] {
        let checked = read(text);
        let [finding] = &checked.findings[..] else { panic!("{text}: {checked:?}") };
        assert!(finding.to_string().contains(place), "{finding}");
        assert!(finding.help.as_ref().is_some_and(|help| help.ends_with(end)), "{finding:?}");
    }
}

#[test]
fn reports_the_place_of_invalid_json() {
    for (text, place) in [
        ("{\n \"a\": }", "test.json:2:7"),
        ("[]", "test.json:1:1"),
        ("", "test.json:1:1"),
        ("{\"a\": 'x'}", "test.json:1:7"),
        ("{\"a\": 1 \"b\": 2}", "test.json:1:"),
    ] {
        let checked = read(text);
        let [finding] = &checked.findings[..] else { panic!("{text}: {checked:?}") };
        assert_eq!(finding.severity, Severity::Error, "{text}");
        assert!(finding.to_string().starts_with(place), "{text}: {finding}");
    }
    let deep = format!("{}1{}", "{\"a\":".repeat(100), "}".repeat(100));
    let checked = read(&deep);
    assert!(checked.findings.iter().any(|finding| finding.message.contains("nested deeper")), "{checked:?}");
    let deeper = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(!read(&deeper).findings.is_empty());
}

#[test]
fn a_rule_is_typed() {
    let checked = read(
        r#"{
        "Egress": {"FileSystem": {"tmp": {"DirectoryPath": "/tmp"}}},
        "CollectionRules": {"HighCpu": {
            "Filters": [{"Key": "ProcessName", "Value": "dotnet"}, {"CommandLine": "shop", "MatchType": "contains"}],
            "Trigger": {"Type": "eventcounter", "Settings": {"ProviderName": "System.Runtime",
                "CounterName": "cpu-usage", "GreaterThan": "70", "SlidingWindowDuration": "00:00:10"}},
            "Actions": [{"Type": "CollectTrace", "Settings": {"Profile": "Cpu, Http", "Egress": "tmp"}}],
            "Limits": {"ActionCount": 2, "ActionCountSlidingWindowDuration": "1:00:00"}
        }}}"#,
    );
    assert_eq!(lines(&checked), "");
    let [rule] = &checked.configuration.rules[..] else { panic!("{checked:?}") };
    let filter = |key, value: &str, match_type| Filter { key, value: value.to_owned(), match_type };
    assert_eq!(
        rule.filters,
        [
            filter(FilterKey::ProcessName, "dotnet", MatchType::Exact),
            filter(FilterKey::CommandLine, "shop", MatchType::Contains),
        ]
    );
    let Trigger::Counter(counter) = &rule.trigger else { panic!("{rule:?}") };
    assert_eq!(
        (counter.source, counter.greater_than, counter.less_than, counter.window),
        (CounterSource::EventCounters, Some(70.0), None, Duration::from_secs(10))
    );
    let ActionKind::Collect { artifact: Artifact::Trace(trace), .. } = &rule.actions[0].kind else {
        panic!("{rule:?}")
    };
    assert_eq!((trace.duration, trace.buffer_mb), (Some(Duration::from_secs(30)), 256));
    assert_eq!(trace.providers, TraceProfile::providers(&[TraceProfile::Cpu, TraceProfile::Http]));
    assert_eq!(
        (rule.limits.action_count, rule.limits.action_count_window),
        (2, Some(Duration::from_secs(3600)))
    );
}

#[test]
fn faults_between_keys_are_found() {
    let rule = |trigger: &str, actions: &str| {
        read(&format!(
            r#"{{"Egress": {{"FileSystem": {{"tmp": {{"DirectoryPath": "/tmp"}}}}}},
                "CollectionRules": {{"R": {{"Trigger": {trigger}, "Actions": [{actions}]}}}}}}"#
        ))
    };
    let startup = r#"{"Type": "Startup"}"#;
    let rows = [
        (r#"{"Type": "Startup", "Settings": {"A": 1}}"#, "", "this type has no settings"),
        (r#"{"Type": "EventCounter"}"#, "", "EventCounter needs Settings"),
        (r#"{"Type": "EventCounters"}"#, "", "did you mean EventCounter?"),
        (r#"{"Type": "AspNetRequestCount"}"#, "", "RequestCount is missing"),
        (
            r#"{"Type": "CPUUsage", "Settings": {"GreaterThan": 60, "LessThan": 50}}"#,
            "",
            "no value is greater than 60 and less than 50",
        ),
        (
            r#"{"Type": "GCHeapSize", "Settings": {"SlidingWindowDuration": "2.00:00:00"}}"#,
            "",
            "out of range",
        ),
        (
            r#"{"Type": "GCHeapSize", "Settings": {"SlidingWindowDuration": "10s"}}"#,
            "",
            "write it as 00:00:10",
        ),
        (
            r#"{"Type": "EventMeter", "Settings": {"MeterName": "M", "InstrumentName": "I", "GreaterThan": 1,
                "HistogramPercentile": 90}}"#,
            "",
            "choose 50, 95 or 99",
        ),
        (
            r#"{"Type": "AspNetResponseStatus", "Settings": {"ResponseCount": 1, "StatusCodes": ["5xx"]}}"#,
            "",
            "not a range of status codes",
        ),
        (
            startup,
            r#"{"Type": "CollectDump", "Settings": {"Egress": "elsewhere"}}"#,
            "add Egress:FileSystem:elsewhere",
        ),
        (startup, r#"{"Type": "CollectDump", "Settings": {"Egress": "tmpp"}}"#, "did you mean tmp?"),
        (startup, r#"{"Type": "CollectDump"}"#, "Egress is missing"),
        (
            startup,
            r#"{"Type": "CollectTrace", "Settings": {"Egress": "tmp"}}"#,
            "neither Profile nor Providers",
        ),
        (
            startup,
            r#"{"Type": "CollectTrace", "Settings": {"Egress": "tmp", "Profile": "Cpu", "Providers": [{"Name": "A"}]}}"#,
            "has Profile and Providers",
        ),
        (
            startup,
            r#"{"Type": "Execute", "Settings": {"Path": "/bin/true", "Arguments": "$(Actions.A.EgressPath)"}}"#,
            "no earlier action of the rule is called \"A\"",
        ),
        (
            startup,
            r#"{"Name": "A", "Type": "GetEnvironmentVariable", "Settings": {"Name": "X"}},
               {"Type": "Execute", "Settings": {"Path": "/bin/true", "Arguments": "$(Actions.A.ExitCode)"}}"#,
            "the output of A is called Value",
        ),
        (
            r#"{"Type": "CPUUsage"}"#,
            r#"{"Type": "LoadProfiler", "Settings": {"Path": "/p.so", "Clsid": "{D6A8F1B2-0000-0000-0000-000000000001}"}}"#,
            "use the trigger Startup",
        ),
        (
            startup,
            r#"{"Type": "LoadProfiler", "Settings": {"Path": "/p.so", "Clsid": "x"}}"#,
            "\"x\" is not a GUID",
        ),
        (r#""Missing""#, "", "no template is called \"Missing\""),
    ];
    for (trigger, actions, expected) in rows {
        let checked = rule(trigger, actions);
        let lines = lines(&checked);
        assert!(lines.contains(expected), "{trigger} {actions}: {lines}");
        assert!(checked.configuration.rules.is_empty(), "{trigger} {actions}");
        assert_eq!(checked.configuration.unusable_rules, ["R"]);
    }
    let rule = rule(startup, r#"{"Type": "CollectDump", "Settings": {"Egress": "tmp"}}"#);
    assert_eq!((lines(&rule), rule.configuration.rules.len()), (String::new(), 1));
}

#[test]
fn templates_and_defaults_take_their_places() {
    let checked = read(
        r#"{"Egress": {"FileSystem": {"tmp": {"DirectoryPath": "/tmp"}}},
        "Templates": {
            "CollectionRuleFilters": {"F": {"ProcessName": "shop"}},
            "CollectionRuleTriggers": {"T": {"Type": "AspNetRequestCount"}},
            "CollectionRuleActions": {"A": {"Type": "CollectDump"}},
            "CollectionRuleLimits": {"L": {"ActionCount": 9}}},
        "CollectionRuleDefaults": {
            "Triggers": {"RequestCount": 7, "SlidingWindowDuration": "00:02:00"},
            "Actions": {"Egress": "tmp"},
            "Limits": {"RuleDuration": "01:00:00"}},
        "CollectionRules": {"R": {"Filters": ["F"], "Trigger": "t", "Actions": ["A"], "Limits": "L"}}}"#,
    );
    assert_eq!(lines(&checked), "");
    let [rule] = &checked.configuration.rules[..] else { panic!("{checked:?}") };
    assert_eq!(rule.filters.len(), 1);
    let Trigger::RequestCount { count, window, .. } = rule.trigger else { panic!("{rule:?}") };
    assert_eq!((count, window), (7, Duration::from_secs(120)));
    assert_eq!(rule.actions[0].kind.destination().unwrap().egress, "tmp");
    assert_eq!((rule.limits.action_count, rule.limits.rule_duration), (9, Some(Duration::from_secs(3600))));
}

#[test]
fn later_sources_replace_single_values() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    std::fs::write(path.join("CollectionRules__R__Trigger__Settings__GreaterThan"), "90\n").unwrap();
    std::fs::write(path.join("settings.json"), "not a key").unwrap();
    std::fs::create_dir(path.join("..data")).unwrap();
    let sources = ConfigurationSources::new()
        .with_text("one", r#"{"CollectionRules": {"R": {"Trigger": {"Type": "CPUUsage", "Settings":
            {"GreaterThan": 10, "SlidingWindowDuration": "00:00:05"}}}}, "GlobalCounter": {"IntervalSeconds": 7}}"#)
        .with_directory(path)
        .with_environment([
            ("DotnetMonitor_globalcounter__intervalseconds".to_owned(), "3".to_owned()),
            ("DOTNETMONITOR_Metrics__Providers__1__ProviderName".to_owned(), "B".to_owned()),
            ("Metrics__Providers__0__ProviderName".to_owned(), "A".to_owned()),
            ("PATH".to_owned(), "/bin".to_owned()),
            ("DotnetMonitor_Metric__Enabled".to_owned(), "false".to_owned()),
        ]);
    let checked = Configuration::read(&sources);
    assert_eq!(
        lines(&checked),
        "error environment variable DotnetMonitor_Metric__Enabled: Metric: unknown key\n  did you mean Metrics?\n"
    );
    let configuration = &checked.configuration;
    assert_eq!(configuration.global_counter.interval, Duration::from_secs(3));
    let names: Vec<_> = configuration.metrics.providers.iter().map(|group| &*group.name).collect();
    assert_eq!(names, ["A", "B"]);
    let Trigger::Counter(counter) = &configuration.rules[0].trigger else { panic!("{configuration:?}") };
    assert_eq!((counter.greater_than, counter.window), (Some(90.0), Duration::from_secs(5)));
}

#[test]
fn the_sources_of_the_system_have_the_precedence_of_dotnet_monitor() {
    let directory = tempfile::tempdir().unwrap();
    let settings = directory.path().join("dotnet-monitor");
    std::fs::create_dir(&settings).unwrap();
    std::fs::write(
        settings.join("settings.json"),
        r#"{"GlobalCounter": {"IntervalSeconds": 2, "MaxHistograms": 2}}"#,
    )
    .unwrap();
    let variables = [
        ("XDG_CONFIG_HOME", directory.path().to_str().unwrap()),
        ("GlobalCounter__IntervalSeconds", "1"),
        ("GlobalCounter__MaxTimeSeries", "1"),
        ("DotnetMonitor_GlobalCounter__MaxHistograms", "3"),
    ];
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    let counter =
        Configuration::read(&ConfigurationSources::of_system(variables)).configuration.global_counter;
    assert_eq!(counter.interval, Duration::from_secs(2), "a file is above plain variables");
    assert_eq!(counter.max_time_series, 1);
    assert_eq!(counter.max_histograms, 3, "variables with the prefix are above files");
}

#[test]
fn the_samples_of_the_machine_are_configured() {
    let text = r#"{"ContinuousProfiling": {"Keep": "1.00:00:00", "Frequency": 49, "MaxSizeMegabytes": 512,
        "DirectoryPath": "/ring", "SegmentDuration": "00:00:30", "KernelFrames": false,
        "Filters": [{"Key": "ProcessName", "Value": "shop"}]}}"#;
    let checked = Configuration::read(&ConfigurationSources::new().with_text("test.json", text));
    assert!(checked.findings.is_empty(), "{}", lines(&checked));
    let expected = ContinuousProfiling {
        keep: Some(Duration::from_secs(86_400)),
        frequency: Some(49),
        max_bytes: Some(512 << 20),
        directory: Some("/ring".into()),
        segment: Some(Duration::from_secs(30)),
        kernel_frames: Some(false),
        filters: vec![Filter {
            key: FilterKey::ProcessName,
            value: "shop".to_owned(),
            match_type: MatchType::Exact,
        }],
    };
    assert_eq!(checked.configuration.continuous_profiling, expected);
    let text = r#"{"ContinuousProfiling": {"Frequency": 1000, "SegmentDuration": "00:11:00", "Kept": 1}}"#;
    let checked = Configuration::read(&ConfigurationSources::new().with_text("test.json", text));
    let lines = lines(&checked);
    for part in [
        "Frequency: \"1000\" is not a whole number from 1 to 997",
        "SegmentDuration: out of range",
        "Kept: unknown",
    ] {
        assert!(lines.contains(part), "{lines}");
    }
}

#[test]
fn unreadable_sources_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing.json");
    let checked = Configuration::read(&ConfigurationSources::new().with_file(&path));
    assert!(lines(&checked).contains("missing.json: cannot read: "), "{checked:?}");
    let path = directory.path().join("latin.json");
    std::fs::write(&path, b"{\"a\": \"\xe9\"}").unwrap();
    let checked = Configuration::read(&ConfigurationSources::new().with_file(&path));
    assert!(lines(&checked).contains("not UTF-8 at byte 7"), "{checked:?}");
}

/// dotnet-monitor's files, if present.
fn contract(name: &str) -> Option<Value> {
    let Some(shared) = std::env::var_os("DIPC_SHARED") else {
        eprintln!("NOT RUN: DIPC_SHARED is not set");
        return None;
    };
    let path = std::path::Path::new(&shared).join("peers/dotnet-monitor").join(name);
    Some(serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
}

const BLOB_OF_RULE: &str = if cfg!(feature = "stores") {
    ""
} else {
    "unsupported CollectionRules:HighRequestCount:Actions:1:Settings:Egress: \"monitorBlob\" is of \
     AzureBlobStorage, which is not supported: the rule is not run\n\
     unsupported Egress:AzureBlobStorage: this program writes artifacts into directories only: \
     dipc-fleet monitor writes to object stores\n"
};
const BLOB: &str = if cfg!(feature = "stores") {
    ""
} else {
    "unsupported Egress:AzureBlobStorage: this program writes artifacts into directories only: \
     dipc-fleet monitor writes to object stores\n"
};
const S3: &str = if cfg!(feature = "stores") {
    ""
} else {
    "unsupported Egress:S3Storage: this program writes artifacts into directories only: \
     dipc-fleet monitor writes to object stores\n"
};

/// The expected result of each configuration of dotnet-monitor's documentation, in its order: the part that
/// it is, and its findings without the ones that are ignored, sorted: `serde_json` has members in their
/// order or in that of the alphabet, depending on a feature that other crates of a build enable.
const DOCUMENTED: [(&str, &str); 27] = [
    // The documentation makes this key unreadable.
    ("", "error Authentication:MonitorApiKey:PublicKey: it is not a JSON Web Key in base64url\n"),
    ("CollectionRules", ""),
    ("CollectionRules", ""),
    ("CollectionRules", ""),
    ("CollectionRules", ""),
    ("CollectionRules:Rule", ""),
    ("CollectionRules:Rule", ""),
    ("CollectionRules:Rule", ""),
    // The page shows a rule without its egress provider.
    (
        "",
        "error CollectionRules:HighCpuRule:Actions:0:Settings:Egress: no egress provider is called \"TmpDir\"\n",
    ),
    ("CollectionRules:Rule:Actions:0:Settings (CollectExceptions)", ""),
    ("CollectionRules:Rule:Actions:0:Settings (CollectTrace)", ""),
    // The page has a key that dotnet-monitor itself does not know.
    (
        "CollectionRules:Rule:Actions:0:Settings (CollectLiveMetrics)",
        "error UseDefaultProviders: unknown key\n",
    ),
    ("", BLOB_OF_RULE),
    ("", ""),
    ("", ""),
    ("", BLOB),
    ("", S3),
    ("", ""),
    ("", ""),
    ("", ""),
    ("", ""),
    ("", ""),
    ("", ""),
    ("", ""),
    ("", ""),
    ("", ""),
    ("", ""),
];

#[test]
fn documented_configurations_give_the_expected_result() {
    let Some(configurations) = contract("configurations.json") else { return };
    let configurations = configurations.as_array().unwrap();
    assert_eq!(configurations.len(), DOCUMENTED.len());
    for (number, (entry, (part, findings))) in configurations.iter().zip(DOCUMENTED).enumerate() {
        let text = serde_json::to_string_pretty(&entry["configuration"]).unwrap();
        let checked = Configuration::read_part(&ConfigurationSources::new().with_text("", &text));
        let is_built =
            |finding: &Finding| cfg!(feature = "jwt") || finding.key != "Authentication:MonitorApiKey";
        let found = checked.findings.iter().filter(|finding| finding.severity != Severity::Ignored);
        let found = found.filter(|finding| is_built(finding));
        let mut found: Vec<_> = found
            .map(|finding| format!("{} {}: {}", finding.severity.name(), finding.key, finding.message))
            .collect();
        found.sort();
        assert_eq!(found, findings.lines().collect::<Vec<_>>(), "{number}: {text}");
        assert_eq!(checked.fragment_of.as_deref().unwrap_or_default(), part, "{number}: {text}");
        let rules = entry["configuration"].as_object().unwrap();
        let expected = match part {
            "CollectionRules" => rules.len(),
            "CollectionRules:Rule" => 1,
            "" => entry["configuration"]["CollectionRules"].as_object().map_or(0, serde_json::Map::len),
            _ => 0,
        };
        let configuration = &checked.configuration;
        assert_eq!(configuration.rules.len() + configuration.unusable_rules.len(), expected, "{number}");
    }
}

mod random {
    use super::*;

    proptest::proptest! {
        #[test]
        fn reading_survives_any_input(text in "\\PC{0,200}", path in "[A-Za-z_:0-9]{0,60}") {
            let sources = ConfigurationSources::new()
                .with_text("text", &*text)
                .with_environment([(format!("DotnetMonitor_{path}"), text.clone())]);
            let checked = Configuration::read(&sources);
            proptest::prop_assert!(checked.configuration.rules.is_empty());
            Configuration::read_part(&sources);
        }
    }
}

/// The documentation of dotnet-monitor has this name for `ResponseCount`.
#[test]
fn the_documented_name_of_a_count_is_accepted() {
    for (counts, expected) in [
        (r#""RequestCount": 3"#, 3),
        (r#""ResponseCount": 4"#, 4),
        (r#""RequestCount": 3, "ResponseCount": 4"#, 4),
    ] {
        let checked = read(&format!(
            r#"{{"CollectionRules": {{"R": {{"Trigger": {{"Type": "AspNetResponseStatus",
                "Settings": {{"StatusCodes": ["500"], {counts}}}}}}}}}}}"#
        ));
        let [rule] = &checked.configuration.rules[..] else { panic!("{checked:?}") };
        let Trigger::ResponseStatus { count, .. } = rule.trigger else { panic!("{rule:?}") };
        assert_eq!((lines(&checked), count), (String::new(), expected), "{counts}");
    }
}

#[test]
fn all_triggers_and_actions_of_the_table_are_built() {
    // A type that the builder does not know would be left out without a finding.
    for trigger in COLLECTION_RULE_TRIGGERS {
        let settings = match trigger.name {
            "Startup" => "null",
            "AspNetRequestCount" | "AspNetRequestDuration" => r#"{"RequestCount": 1}"#,
            "AspNetResponseStatus" => r#"{"ResponseCount": 1, "StatusCodes": ["500"]}"#,
            "EventCounter" => r#"{"ProviderName": "P", "CounterName": "C", "LessThan": 1}"#,
            "Condition" => r#"{"Condition": "crash"}"#,
            "EventMeter" => r#"{"MeterName": "P", "InstrumentName": "C", "LessThan": 1}"#,
            _ => "{}",
        };
        let checked = read(&format!(
            r#"{{"CollectionRules": {{"R": {{"Trigger": {{"Type": "{}", "Settings": {settings}}}}}}}}}"#,
            trigger.name
        ));
        assert_eq!(
            (lines(&checked), checked.configuration.rules.len()),
            (String::new(), 1),
            "{}",
            trigger.name
        );
    }
    for action in COLLECTION_RULE_ACTIONS {
        let settings = match action.name {
            "CollectTrace" => r#"{"Egress": "tmp", "Profile": "Cpu"}"#,
            "Execute" => r#"{"Path": "/bin/true"}"#,
            "LoadProfiler" => r#"{"Path": "/p.so", "Clsid": "d6a8f1b2-0000-0000-0000-000000000001"}"#,
            name if name.ends_with("Variable") => r#"{"Name": "X"}"#,
            _ => r#"{"Egress": "tmp"}"#,
        };
        let checked = read(&format!(
            r#"{{"Egress": {{"FileSystem": {{"tmp": {{"DirectoryPath": "/tmp"}}}}}}, "CollectionRules": {{"R":
                {{"Trigger": {{"Type": "Startup"}}, "Actions": [{{"Type": "{}", "Settings": {settings}}}]}}}}}}"#,
            action.name
        ));

        assert_eq!(lines(&checked), "", "{checked:?}");
        assert_eq!(checked.configuration.rules[0].actions[0].kind.type_name(), action.name);
    }
}

#[test]
#[cfg(feature = "stores")]
fn stores_have_their_names_and_secrets() {
    use super::{EgressProvider, Secret, StoreEgress};

    let text = r#"{"Egress": {
        "AzureBlobStorage": {"blob": {"AccountUri": "https://shop.blob.core.windows.net/", "ContainerName": "c",
            "BlobPrefix": "a/", "AccountKeyName": "Key", "SharedAccessSignature": "sig"}},
        "S3Storage": {"s3": {"BucketName": "b", "Endpoint": "http://127.0.0.1:9000", "AccessKeyId": "id",
            "SecretAccessKey": "hidden", "UseKmsEncryption": true}},
        "Properties": {"Key": "secret"}}}"#;
    let checked = Configuration::read(&ConfigurationSources::new().with_text("test.json", text));
    assert!(checked.findings.is_empty(), "{:?}", checked.findings);
    let store = |name: &str| match &checked.configuration.egress[name] {
        EgressProvider::Store(store) => store,
        other => panic!("{other:?}"),
    };
    assert_eq!(store("blob").address("x.dmp"), "https://shop.blob.core.windows.net/c/a/x.dmp");
    let StoreEgress::Azure(blob) = store("blob") else { panic!() };
    let revealed = |secret: &Option<Secret>| secret.as_ref().unwrap().reveal().to_owned();
    assert_eq!(revealed(&blob.account_key), "secret");
    assert_eq!(revealed(&blob.shared_access_signature), "sig");
    let StoreEgress::S3(s3) = store("s3") else { panic!() };
    let (id, key) = s3.access_key.as_ref().unwrap();
    assert_eq!((&**id, key.reveal(), s3.uses_kms, &s3.kms_key), ("id", "hidden", true, &None));
}

#[test]
#[cfg(feature = "stores")]
fn data_sets_take_recordings_alone() {
    let configuration = |action: &str| {
        format!(
            r#"{{"Egress": {{"ParquetDataSet": {{"t": {{"DirectoryPath": "/tables", "Labels": {{"service": "shop"}}}}}}}},
                "CollectionRules": {{"R": {{"Trigger": {{"Type": "Startup"}}, "Actions": [
                    {{"Type": "{action}", "Settings": {{"Egress": "t", "Profile": "Cpu"}}}}]}}}}}}"#
        )
    };
    let checked = read(&configuration("CollectTrace"));
    assert_eq!(lines(&checked), "");
    assert_eq!(checked.configuration.rules.len(), 1);
    let checked = read(&configuration("CollectDump").replace(r#", "Profile": "Cpu""#, ""));
    assert!(
        lines(&checked).contains("\"t\" is a data set, which takes recordings only"),
        "{}",
        lines(&checked)
    );
    assert_eq!(checked.configuration.rules.len(), 0);
}
