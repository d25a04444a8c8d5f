//! Rules fire as often as they should, and deliver their artifacts.

use std::fs;
use std::path::Path;

use dipc_monitor::RuleEvent;
use dipc_sim::{CommandId, Fault, Runtime, Speed};
use nettrace_synth::clr::Recording;

use crate::{Fixture, await_that, counters, rules_config};

/// A configuration with rules, and with a directory for artifacts.
fn configuration(directory: &Path, rules: &str) -> String {
    let directory = serde_json::to_string(directory).unwrap();
    format!(
        r#"{{"Egress": {{"FileSystem": {{"files": {{"DirectoryPath": {directory}}}}}}},
            "CollectionRuleDefaults": {{"Actions": {{"Egress": "files"}}}},
            "GlobalCounter": {{"IntervalSeconds": 1}}, "CollectionRules": {{{rules}}}}}"#
    )
}

impl Fixture {
    fn events(&self, is_wanted: impl Fn(&RuleEvent) -> bool) -> Vec<RuleEvent> {
        let messages = self.messages.lock().unwrap();
        messages.iter().map(|message| message.event.clone()).filter(is_wanted).collect()
    }

    fn fired(&self) -> usize {
        self.events(|event| matches!(event, RuleEvent::Fired { .. })).len()
    }

    fn state(&self, name: &str) -> serde_json::Value {
        self.get(&format!("/collectionrules/{name}")).json()
    }

    fn await_state(&self, name: &str, state: &str) {
        await_that(&format!("{name} is {state}"), || self.state(name)["state"] == state);
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // The list of artifacts is not one.
    let mut names: Vec<_> = names.filter(|name| name != ".dipc-recordings").collect();
    names.sort();
    names
}

#[test]
fn a_startup_rule_sees_the_beginning_and_resumes_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::with_rules(&configuration(
        folder.path(),
        r#""First": {"Trigger": {"Type": "Startup"}, "Actions": [
            {"Type": "SetEnvironmentVariable", "Settings": {"Name": "A", "Value": "$(Process.ProcessId)"}},
            {"Type": "LoadProfiler", "Settings": {"Path": "/p.so",
                "Clsid": "d6a8f1b2-0000-0000-0000-000000000001"}},
            {"Type": "CollectTrace", "Settings": {"Duration": "00:00:01", "ArtifactName": "first.nettrace",
                "Providers": [{"Name": "System.Runtime",
                    "Arguments": {"EventCounterIntervalSec": "1"}}]}}]}"#,
    ));
    let runtime = fixture.add(Runtime::builder().replay(counters()).speed(Speed::Max));
    await_that("it runs", || !runtime.state().suspended);
    // All of it happened before.
    let commands: Vec<_> = runtime.requests().iter().map(|request| format!("{request:?}")).collect();
    let place = |what: &str| {
        commands
            .iter()
            .position(|command| command.contains(what))
            .unwrap_or_else(|| panic!("{what}: {commands:?}"))
    };
    let resumed = place("Resume");
    for what in ["SetEnvironmentVariable", "StartupProfiler", "CollectTracing"] {
        assert!(place(what) < resumed, "{what}: {commands:?}");
    }
    fixture.await_state("First", "Finished");
    assert_eq!(fixture.fired(), 1);
    assert_eq!(fs::read(folder.path().join("first.nettrace")).unwrap(), counters());
    assert_eq!(names(folder.path()), ["first.nettrace"]);
    let variables = &runtime.state().environment;
    assert!(format!("{variables:?}").contains(&runtime.pid().to_string()), "{variables:?}");
    let state = fixture.state("First");
    assert_eq!((&state["lifetimeOccurrences"], &state["actionCountLimit"]), (&1.into(), &5.into()));
    let operations = fixture.get("/operations").json();
    let [operation] = &operations.as_array().unwrap()[..] else { panic!("{operations}") };
    assert_eq!(
        (&operation["status"], &operation["egressProviderName"]),
        (&"Succeeded".into(), &"files".into())
    );
}

/// One value a second: every second one completes a window of two seconds.
#[test]
fn a_counter_rule_fires_up_to_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::with_rules(&configuration(
        folder.path(),
        r#""Cpu": {"Trigger": {"Type": "CPUUsage", "Settings": {"GreaterThan": 0, "LessThan": 100,
                "SlidingWindowDuration": "00:00:02"}},
            "Actions": [{"Type": "CollectLogs", "Settings": {"Duration": "00:00:01",
                "ArtifactName": "log.txt"}}],
            "Limits": {"ActionCount": 2}},
           "Never": {"Trigger": {"Type": "CPUUsage", "Settings": {"GreaterThan": 99.9}}},
           "Other": {"Filters": [{"ProcessName": "nobody"}], "Trigger": {"Type": "Startup"}}"#,
    ));
    let _runtime = fixture.add(Runtime::builder().replay(counters()).looped());
    let list = fixture.get("/collectionrules").json();
    assert_eq!(list.as_object().unwrap().keys().collect::<Vec<_>>(), ["Cpu", "Never"]);
    assert_eq!(
        (&list["Never"]["state"], list["Never"]["stateReason"].is_string()),
        (&"Running".into(), true)
    );
    fixture.await_state("Cpu", "Finished");
    assert_eq!(
        (fixture.fired(), names(folder.path())),
        (2, vec!["log-2.txt".to_owned(), "log.txt".to_owned()])
    );
    assert_eq!(fixture.state("Never")["lifetimeOccurrences"], 0);
    assert_eq!(fixture.get("/collectionrules/Other").status, 400);
}

#[test]
fn a_request_rule_counts_requests() {
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("written");
    let fixture = Fixture::with_rules(&configuration(
        folder.path(),
        &format!(
            r#""Five hundred": {{"Trigger": {{"Type": "AspNetResponseStatus", "Settings": {{
                    "StatusCodes": ["500-599"], "ResponseCount": 2, "IncludePaths": ["/api/*"]}}}},
                "Actions": [
                    {{"Type": "SetEnvironmentVariable", "Settings": {{"Name": "A", "Value": "/b"}}}},
                    {{"Name": "E", "Type": "GetEnvironmentVariable", "Settings": {{"Name": "A"}}}},
                    {{"Type": "Execute", "Settings": {{"Path": "/bin/sh",
                        "Arguments": "-c \"echo $0 $1 >> $2\" $(Process.ProcessId) $(Actions.E.Value) {}"}}}}]}},
                "End": {{"Trigger": {{"Type": "AspNetRequestCount", "Settings": {{"RequestCount": 1,
                    "IncludePaths": ["/end"]}}}}, "Limits": {{"ActionCount": 1}}}}"#,
            written.display()
        ),
    ));
    // The fifth one is the second that counts.
    let requests = [
        ("/api/a", "200"),
        ("/api/b", "500"),
        ("/x", "500"),
        ("/api/c", "404"),
        ("/api/d", "503"),
        ("/end", "500"),
    ];
    let runtime = fixture.add(Runtime::builder().replay(recording(&requests)));
    fixture.await_state("End", "Finished");
    fixture.await_state("Five%20hundred", "Running");
    assert_eq!(fixture.state("Five%20hundred")["lifetimeOccurrences"], 1);
    let text = fs::read_to_string(&written).unwrap();
    assert!(text == format!("{} /b\n", runtime.pid()), "{text}");
}

/// A recording of requests one after the other, as dotnet-monitor's filter has them.
fn recording(requests: &[(&str, &str)]) -> Vec<u8> {
    let mut recording = Recording::new();
    recording.thread(7);
    for (number, (path, status)) in (0..).zip(requests) {
        let (time, id) = (number * 50_000_000, number.to_string());
        let start = [("Method", "GET"), ("Path", *path), ("ActivityId", &*id)];
        let stop = [("StatusCode", *status), ("ActivityId", &*id)];
        recording.block().at(time + 1).bridged_request(true, &start);
        recording.at(time + 2).bridged_request(false, &stop);
    }
    recording.bytes()
}

#[test]
fn a_failed_action_stops_the_others_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::with_rules(&configuration(
        folder.path(),
        r#""R": {"Trigger": {"Type": "Startup"}, "Actions": [
            {"Type": "CollectTrace", "Settings": {"Duration": "01:00:00",
                "Providers": [{"Name": "System.Runtime"}]}},
            {"Type": "Execute", "WaitForCompletion": true, "Settings": {"Path": "/bin/sh",
                "Arguments": "-c \"exit 3\""}},
            {"Type": "CollectLogs", "Settings": {"Duration": "00:00:01"}}]}"#,
    ));
    let runtime = fixture.add(Runtime::builder().replay(counters()).looped());
    fixture.await_state("R", "Finished");
    let failed = fixture.events(|event| matches!(event, RuleEvent::ActionFailed { .. }));
    let [RuleEvent::ActionFailed { action: "Execute", error }] = &failed[..] else { panic!("{failed:?}") };
    assert!(error.contains("ended with 3"), "{error}");
    await_that("the trace is cancelled", || runtime.session_count() == 0);
    await_that("its file is gone", || names(folder.path()).is_empty());
}

#[test]
fn an_event_stops_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::with_rules(&configuration(
        folder.path(),
        r#""R": {"Trigger": {"Type": "Startup"}, "Actions": [{"Type": "CollectTrace", "Settings": {
            "Duration": "01:00:00", "ArtifactName": "t.nettrace", "Providers": [{"Name": "System.Runtime"}],
            "StoppingEvent": {"ProviderName": "System.Runtime", "EventName": "EventCounters"}}}]}"#,
    ));
    let _runtime = fixture.add(Runtime::builder().replay(counters()));
    fixture.await_state("R", "Finished");
    assert_eq!(fs::read(folder.path().join("t.nettrace")).unwrap(), counters());
}

/// Its rules are waited for, but not for long.
#[test]
fn a_runtime_that_starts_no_session_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::with_rules(&configuration(
        folder.path(),
        r#""R": {"Trigger": {"Type": "Startup"}, "Actions": [{"Type": "CollectTrace", "Settings": {
            "Profile": "Cpu"}}]},
           "Q": {"Trigger": {"Type": "AspNetRequestCount", "Settings": {"RequestCount": 1}}}"#,
    ));
    let commands = [
        CommandId::COLLECT_TRACING_1,
        CommandId::COLLECT_TRACING_2,
        CommandId::COLLECT_TRACING_3,
        CommandId::COLLECT_TRACING_4,
        CommandId::COLLECT_TRACING_5,
        CommandId::COLLECT_TRACING_6,
    ];
    let builder = commands
        .into_iter()
        .fold(Runtime::builder(), |builder, command| builder.fault_on(command, Fault::NeverAnswer));
    let runtime = fixture.add(builder);
    await_that("it runs", || !runtime.state().suspended);
    fixture.await_state("R", "Finished");
    assert_eq!(fixture.events(|event| matches!(event, RuleEvent::ActionFailed { .. })).len(), 1);
    assert_eq!(fixture.state("Q")["state"], "Running");
    assert!(names(folder.path()).is_empty());
}

/// Unchanged rules keep their state, removed ones end, and new ones start.
#[test]
fn rules_are_replaced_while_they_run() {
    let folder = tempfile::tempdir().unwrap();
    let rule = |name: &str, arguments: &str| {
        format!(
            r#""{name}": {{"Trigger": {{"Type": "Startup"}}, "Actions": [{{"Type": "Execute", "Settings": {{
                "Path": "/bin/sh", "Arguments": "{arguments}"}}}}]}}"#
        )
    };
    let both = format!("{}, {}", rule("A", "-c true"), rule("B", "-c true"));
    let fixture = Fixture::with_rules(&configuration(folder.path(), &both));
    let _runtime = fixture.add(Runtime::builder());
    fixture.await_state("A", "Finished");
    fixture.await_state("B", "Finished");
    let changed = format!("{}, {}", rule("A", "-c true"), rule("C", "-c true"));
    fixture.rules.replace(rules_config(&configuration(folder.path(), &changed)));
    fixture.await_state("C", "Finished");
    let list = fixture.get("/collectionrules").json();
    assert_eq!(list.as_object().unwrap().keys().collect::<Vec<_>>(), ["A", "C"]);
    assert_eq!(fixture.fired(), 3);
    fixture.rules.stop();
}
