//! Requests in known states (`testdata/workload/requests`), by the memory of the
//! process and by a core dump: the rows of the view are the program's own account.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::run;
use crate::runtime::{Runtime, on_runtimes};
use crate::web_server::WebServer;
use crate::workload::Target;

/// Longer than a handler takes on a loaded machine from its arrival to what it waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The view of a source, `-p PID` or a core dump, as JSON.
fn view(source: &[&str]) -> Value {
    run([&["dump", "analyze"], source, &["requests", "--format", "json"]].concat()).with_code(0).json()
}

/// The facts of the rows of a direction that the program states, too, by URL.
fn rows(list: &Value, in_of_row: &str) -> BTreeMap<String, Value> {
    let row = |row: &Value| {
        let facts = json!({
            "state": row["state"], "method": row["method"], "version": row["version"],
            "in": row[in_of_row], "trace": row["trace_id"],
        });
        (row["url"].as_str().unwrap_or_default().to_owned(), facts)
    };
    list.as_array().unwrap().iter().map(row).collect()
}

/// The first view that is equal to the account: what a handler waits for begins after its arrival.
fn await_account(source: &[&str], account: &Value) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let report = view(source);
        let differs = ["incoming", "outgoing"]
            .into_iter()
            .find(|direction| rows(&report[direction]["rows"], "in") != rows(&account[direction], "code"));
        let Some(direction) = differs else { return report };
        if Instant::now() >= deadline {
            assert_eq!(rows(&report[direction]["rows"], "in"), rows(&account[direction], "code"));
        }
    }
}

fn check(source: &[&str], account: &Value, is_core: bool) {
    let report = await_account(source, account);
    for direction in ["incoming", "outgoing"] {
        let count = account[direction].as_array().unwrap().len();
        assert_eq!(report[direction]["requests"], count, "{report}");
        assert_eq!(report[direction]["rows"].as_array().unwrap().len(), count, "one URL each");
    }
    assert_eq!((&report["idle_connections"], &report["complete"]), (&account["idle"], &json!(true)));
    // Each request with an activity has a start, as each call of a client with a timeout does.
    for row in report["incoming"]["rows"].as_array().unwrap() {
        assert_eq!(row["started"].is_string(), row["trace_id"].is_string(), "{row}");
        assert_eq!(row["age_ms"].is_u64(), row["trace_id"].is_string(), "{row}");
        assert_eq!(row["age_is_minimum"], is_core && row["age_ms"].is_u64(), "{row}");
    }
    let has_server = !report["incoming"]["rows"].as_array().unwrap().is_empty();
    for row in report["outgoing"]["rows"].as_array().unwrap() {
        // Before .NET 5 the timeout ends with the headers.
        let is_known = has_server || (!is_core && row["state"] != "reading response");
        assert!(row["age_ms"].is_u64() || !is_known, "{row}");
        assert!(row["age_ms"].as_u64().unwrap_or_default() < 3_600_000, "{row}");
    }
    // A thread runs these, on which the server began the request or another one.
    let locked = report["incoming"]["rows"].as_array().unwrap().iter();
    let locked = locked.filter(|row| row["url"].as_str().is_some_and(|url| url.starts_with("/locked")));
    assert!(locked.into_iter().all(|row| row["tid"].is_u64()), "{report}");
}

fn requests_are_the_account_of_the_program(program: std::process::Command) {
    let target = Target::start(program);
    let account: Value = serde_json::from_str(&target.line()).unwrap();
    let pid = target.pid().to_string();
    check(&["-p", &pid], &account, false);
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("requests.core");
    let core = core.to_str().unwrap();
    run(["dump", "-p", &pid, "--stream", "-o", core]).with_code(0);
    check(&[core], &account, true);
    let shown = run(["dump", "analyze", core, "requests", "-n", "1"]).with_code(0).text();
    let incoming = account["incoming"].as_array().map_or(0, Vec::len);
    assert!(shown.starts_with(&format!("{incoming} incoming requests")), "{shown}");
    assert!(shown.contains("more)\n"), "{shown}");
    // A copy without contents has no URLs.
    let copy = folder.path().join("stripped.core");
    let copy = copy.to_str().unwrap();
    run(["dump", "strip", core, "-o", copy]).with_code(0);
    let shown = run(["dump", "analyze", copy, "requests", "--format", "json"]).text();
    assert!(!shown.contains("/awaiting/") && !shown.contains("/sync/"), "{shown}");
}

#[test]
fn a_server_of_net9_has_the_requests_that_it_counts() {
    let Some(program) = Runtime::Net9_0.program("requests/requests.dll") else { return };
    requests_are_the_account_of_the_program(program);
}

#[test]
fn a_server_of_net10_has_the_requests_that_are_not_whole() {
    let Some(server) = WebServer::start() else { return };
    let _half = server.begin("PUT /half?x=1 HTTP/1.1\r\nHost: a");
    let _body = server.begin(
        "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: 100\r\n\r\n{\"a\"",
    );
    let pid = server.pid().to_string();
    let expected = BTreeMap::from([
        ("/".to_owned(), json!(["reading body", "POST", "1.1", true])),
        ("/half?x=1".to_owned(), json!(["reading", "PUT", "1.1", false])),
    ]);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let report = view(&["-p", &pid]);
        let row = |row: &Value| {
            let facts = json!([row["state"], row["method"], row["version"], row["age_ms"].is_u64()]);
            (row["url"].as_str().unwrap_or_default().to_owned(), facts)
        };
        let rows: BTreeMap<_, _> = report["incoming"]["rows"].as_array().unwrap().iter().map(row).collect();
        if rows == expected || Instant::now() >= deadline {
            assert_eq!(rows, expected, "{report}");
            break;
        }
    }
}

fn calls_are_the_account_of_the_program(runtime: Runtime) {
    let Some(program) = runtime.program("requests/calls.dll") else { return };
    requests_are_the_account_of_the_program(program);
}

on_runtimes!(calls_are_the_account_of_the_program: net_3_1, net_8_0, net_9_0);
