//! Rules over requests, while sessions of the same EventSource end.

use dipc_client::{Keywords, Level, ProviderConfig, SessionConfig, Target};
use serde_json::json;

use crate::monitor::{Monitor, await_that};
use crate::web_server::WebServer;

/// At the end of a session, the runtime stops its EventSources, which removes the filters of all sessions.
#[test]
fn a_request_rule_survives_the_end_of_other_sessions() {
    let Some(server) = WebServer::start() else { return };
    let rule = json!({
        "Trigger": {"Type": "AspNetRequestCount", "Settings": {"RequestCount": 1, "SlidingWindowDuration": "00:00:10"}},
        "Actions": [{"Type": "Execute", "Settings": {"Path": "/bin/true"}}],
        "Limits": {"ActionCount": 1_000_000, "ActionCountSlidingWindowDuration": "00:00:01"},
    });
    let monitor = Monitor::start(server.pid(), &json!({"Requests": rule}));
    let rule = || monitor.get("/collectionrules/Requests").unwrap_or_default();
    await_that("the rule runs", || rule()["state"] == "Running");
    let await_firing = |when: &str| {
        let before = rule()["lifetimeOccurrences"].as_u64().unwrap();
        await_that(when, || {
            server.get("/");
            rule()["lifetimeOccurrences"].as_u64() > Some(before)
        });
    };
    await_firing("it fires at first");
    // A session of the monitor's own.
    let trace = format!("/trace?pid={}&profile=Http&durationSeconds=1", server.pid());
    assert!(monitor.get_text(&trace).contains("200 OK"));
    await_firing("it fires after a trace has ended");
    let reason = rule()["stateReason"].to_string();
    assert!(reason.contains("requested again once"), "{reason}");
    // A session of another program.
    let provider = ProviderConfig {
        keywords: Keywords(3),
        level: Level::VERBOSE,
        name: "Microsoft-Diagnostics-DiagnosticSource".to_owned(),
        arguments: "FilterAndPayloadSpecs=\"Nothing/Nothing:-\"".to_owned(),
    };
    drop(Target::from_pid(server.pid()).unwrap().start_session(&SessionConfig::new([provider])).unwrap());
    // The process may report requests until it has noticed the end.
    await_that("the rule's events are requested again", || {
        server.get("/");
        rule()["stateReason"].to_string().contains("requested again 2 times")
    });
    await_firing("it fires after the session of another program has ended");
    let (finished, _) = monitor.interrupt();
    let message =
        "another program's session has ended: asking again for Microsoft-Diagnostics-DiagnosticSource";
    assert!(finished.stderr.contains(message), "{}", finished.stderr);
}
