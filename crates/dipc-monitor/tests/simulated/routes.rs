//! Routes: status, type and body.

use std::sync::Arc;
use std::time::Duration;

use clr_counters::prometheus::NameStyle;
use dipc_client::Uuid;
use dipc_monitor::{Filter, FilterKey, MatchType, MetricsConfig, Tokens};
use dipc_sim::{Runtime, Speed, Version};
use nettrace_export::report::{TopOptions, TopReport};
use nettrace_export::{Metric, NameForm, Options};

use crate::{Fixture, await_that, counters, http};

const PROBLEM: Option<&str> = Some("application/problem+json");

#[test]
fn a_process_is_described_as_in_the_contract() {
    let fixture = Fixture::start();
    let cookie = Uuid::from_u128(0x1234);
    let runtime = fixture.add(Runtime::builder().cookie(cookie).version(Version::NET9));
    let list = fixture.get("/processes").json();
    let process = &list[0];
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(
        (process["pid"].as_u64(), process["isDefault"].as_bool()),
        (Some(runtime.pid().into()), Some(true))
    );
    assert_eq!(process["uid"], cookie.to_string());
    let details = fixture.get(&format!("/process?uid={cookie}")).json();
    let mut members: Vec<_> = details.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    assert_eq!(
        members,
        [
            "commandLine",
            "managedEntryPointAssemblyName",
            "name",
            "operatingSystem",
            "pid",
            "processArchitecture",
            "uid"
        ]
    );
    assert_eq!(details["operatingSystem"], "Linux");
    // The default process is the only one.
    assert_eq!(fixture.get("/process").json(), details);
    assert!(fixture.get("/env").json().is_object());
    let info = fixture.get("/info").json();
    assert_eq!((&info["version"], &info["diagnosticPortMode"]), (&"test".into(), &"Listen".into()));
    // A second one makes the choice ambiguous.
    let _second = fixture.add(Runtime::builder().cookie(Uuid::from_u128(2)));
    let ambiguous = fixture.get("/process");
    assert_eq!((ambiguous.status, ambiguous.header("content-type")), (400, PROBLEM));
    assert!(ambiguous.text().contains("2 processes match"), "{}", ambiguous.text());
}

#[test]
fn log_records_have_the_form_of_dotnet_monitor() {
    let fixture = Fixture::start();
    let _runtime = fixture.add(Runtime::builder().replay(crate::otlp::recording()).end_with_recording());
    let answer = fixture.get("/logs?durationSeconds=600");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/x-ndjson")));
    let records: Vec<serde_json::Value> =
        answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let record = |record: &serde_json::Value| {
        ["LogLevel", "Category", "EventName", "Message"].map(|name| record[name].as_str().unwrap().to_owned())
    };
    let routing = "Microsoft.AspNetCore.Routing.EndpointMiddleware";
    let expected = [
        ["Information", routing, "ExecutingEndpoint", "x"],
        ["Error", "Shop", "Greeted", "hello ann"],
        ["Information", "Shop", "", "plain"],
    ];
    assert_eq!(records.iter().map(record).collect::<Vec<_>>(), expected);
    assert_eq!(
        (&records[1]["Exception"], &records[1]["State"]["count"]),
        (&"System.Exception: no\n at X".into(), &3.into())
    );
}

#[test]
fn exceptions_have_the_form_of_dotnet_monitor() {
    let fixture = Fixture::start();
    let recording = testdata::bytes("traces/net10-exceptions.nettrace.xz");
    let _runtime = fixture.add(Runtime::builder().replay(recording).end_with_recording());
    let answer = fixture.get("/exceptions");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let exceptions: Vec<serde_json::Value> =
        answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((exceptions.len(), &exceptions[0]["id"], &exceptions[42]["id"]), (43, &1.into(), &43.into()));
    let first = &exceptions[0];
    assert_eq!(first["typeName"], "System.Net.Sockets.SocketException");
    // A NativeAOT program does not name its methods.
    let frame = &first["stack"]["frames"][0];
    assert_eq!((&frame["typeName"], &first["moduleName"]), (&"NativeFrame".into(), &"NativeFrame".into()));
}

#[test]
fn invalid_requests_are_problems() {
    let fixture = Fixture::start();
    let _runtime = fixture.add(Runtime::builder());
    let rows = [
        ("GET", "/nothing", 404),
        ("POST", "/processes", 405),
        ("DELETE", "/trace", 405),
        ("GET", "/process?pid=-1", 400),
        ("GET", "/process?pid=x", 400),
        ("GET", "/process?name=nobody", 400),
        ("GET", "/trace?durationSeconds=-2", 400),
        ("GET", "/trace?profile=Memory", 400),
        ("GET", "/trace?egressProvider=blob", 400),
        ("GET", "/dump?type=Huge", 400),
        ("GET", "/logs?level=Loud", 400),
        ("POST", "/trace", 415),
        ("POST", "/parameters", 501),
        ("GET", "/metrics", 400),
        ("GET", "/operations/7", 400),
        ("DELETE", "/operations/00000000-0000-0000-0000-000000000001", 400),
        ("GET", "/collectionrules/x", 400),
    ];
    for (method, path, status) in rows {
        let answer = http::receive(http::send(fixture.address(), method, path, "", ""));
        assert_eq!((answer.status, answer.header("content-type")), (status, PROBLEM), "{method} {path}");
        assert_eq!(answer.json()["status"], status, "{method} {path}");
        assert!(!answer.json()["detail"].as_str().unwrap().is_empty(), "{method} {path}");
    }
    let answer = http::post(fixture.address(), "/trace", "{\"providers\":[]}");
    assert_eq!(answer.status, 400);
    assert!(answer.json()["errors"]["providers"][0].is_string(), "{}", answer.text());
    let large = format!("{{\"x\":\"{}\"}}", "x".repeat(2 << 20));
    assert_eq!(http::post(fixture.address(), "/trace", &large).status, 413);
    // A page with a name that resolves to this machine.
    let mut stream = std::net::TcpStream::connect(fixture.address()).unwrap();
    std::io::Write::write_all(
        &mut stream,
        b"GET /processes HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    )
    .unwrap();
    assert_eq!(http::receive(stream).status, 421);
    // A page of another site, or of another port of this machine; the monitor's own page; an address that is
    // typed.
    for (site, status) in [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)] {
        let header = format!("Sec-Fetch-Site: {site}\r\n");
        let answer = http::receive(http::send(fixture.address(), "GET", "/processes", &header, ""));
        assert_eq!(answer.status, status, "{site}");
    }
}

#[test]
fn a_trace_is_the_stream_of_the_runtime() {
    let fixture = Fixture::start();
    let recording = counters();
    let _runtime = fixture.add(Runtime::builder().replay(recording.clone()).speed(Speed::Max));
    let answer = http::post(
        fixture.address(),
        "/trace?durationSeconds=1&tags=a,b",
        r#"{"Providers":[{"Name":"System.Runtime","Arguments":{"EventCounterIntervalSec":"1"}}]}"#,
    );
    assert_eq!((answer.status, answer.is_whole), (200, true));
    assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
    assert!(answer.header("content-disposition").unwrap().ends_with(".nettrace"));
    assert!(answer.body == recording, "{} bytes of {}", answer.body.len(), recording.len());
    let location = answer.header("location").unwrap();
    let operation = fixture.get(location.strip_prefix("http://localhost").unwrap());
    // 201 says that it is complete.
    assert_eq!((operation.status, operation.json()["status"].as_str()), (201, Some("Succeeded")));
    assert_eq!(fixture.get("/operations?tags=b").json().as_array().unwrap().len(), 1);
    assert_eq!(fixture.get("/operations?tags=b,c").json().as_array().unwrap().len(), 0);
}

#[test]
fn values_of_counters_are_json_sequences() {
    let fixture = Fixture::start();
    let _runtime = fixture.add(Runtime::builder().replay(counters()).looped());
    let answer = fixture.get("/livemetrics?durationSeconds=8");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json-seq")));
    let records: Vec<serde_json::Value> = answer
        .text()
        .split_terminator('\n')
        .map(|line| serde_json::from_str(line.strip_prefix('\u{1e}').expect(line)).expect(line))
        .collect();
    let cpu = records.iter().find(|record| record["name"] == "cpu-usage").expect("a value of cpu-usage");
    assert_eq!((&cpu["provider"], &cpu["unit"]), (&"System.Runtime".into(), &"%".into()));
    assert_eq!((&cpu["displayName"], &cpu["counterType"]), (&"CPU Usage".into(), &"Metric".into()));
    assert!(cpu["value"].is_number() && cpu["timestamp"].as_str().unwrap().ends_with("+00:00"), "{cpu}");
}

#[test]
fn values_of_counters_have_the_configured_interval() {
    let fixture = Fixture::with_server(|config| config.with_counter_interval(Some(Duration::from_secs(2))));
    let runtime = fixture.add(Runtime::builder().replay(counters()).looped());
    let asked = |interval: &str| {
        assert_eq!(fixture.get("/livemetrics?durationSeconds=1").status, 200);
        let requests = runtime.requests().iter().map(|request| format!("{request:?}")).collect::<Vec<_>>();
        let last = requests.iter().rfind(|request| request.contains("IntervalSec")).unwrap();
        assert!(last.contains(&format!("EventCounterIntervalSec={interval}")), "{last}");
    };
    asked("2");
    // While a session of these counters runs, another consumer has its values from that.
    let process = Arc::clone(&fixture.monitor.processes()[0]);
    await_that("the session has ended", || !process.counters.is_running());
    fixture.server.set_counter_interval(Duration::from_secs(3));
    asked("3");
}

#[test]
fn the_default_process_can_change() {
    let fixture = Fixture::start();
    let _runtimes =
        [1, 2].map(|pid| fixture.add(Runtime::builder().cookie(Uuid::from_u128(pid.into())).pid(pid)));
    assert_eq!(fixture.get("/process").status, 400);
    for pid in ["1", "2"] {
        let filter =
            Filter { key: FilterKey::ProcessId, value: pid.to_owned(), match_type: MatchType::Exact };
        fixture.server.set_default_process(vec![filter]);
        assert_eq!(fixture.get("/process").json()["pid"].to_string(), pid);
    }
}

#[test]
fn stacks_has_all_threads() {
    let fixture = Fixture::start();
    let recording = testdata::bytes("traces/net10-sample.nettrace.xz");
    let _runtime = fixture.add(Runtime::builder().replay(recording).speed(Speed::Max));
    let get = |accept: &str| {
        let accept = format!("Accept: {accept}\r\n");
        http::receive(http::send(fixture.address(), "GET", "/stacks", &accept, ""))
    };
    let answer = get("application/json");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let stacks = answer.json()["stacks"].as_array().unwrap().clone();
    assert!(
        stacks.len() > 3 && stacks.iter().all(|stack| stack["threadId"].as_u64() > Some(0)),
        "{stacks:?}"
    );
    let frames = || stacks.iter().flat_map(|stack| stack["frames"].as_array().unwrap());
    let is_worker = |frame: &&serde_json::Value| {
        frame["typeName"] == "System.Threading.PortableThreadPool+WorkerThread"
            && frame["methodName"] == "WorkerThreadStart"
            && frame["moduleName"] == "System.Private.CoreLib.dll"
    };
    assert!(frames().any(|frame| is_worker(&frame)), "{stacks:?}");
    let text = get("text/plain");
    assert_eq!((text.status, text.text().matches("Thread: (0x").count()), (200, stacks.len()));
    let worker =
        "  System.Private.CoreLib.dll!System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart\n";
    assert!(text.text().contains(worker), "{}", text.text());
    let profile = get("application/speedscope+json");
    assert_eq!(profile.header("content-type"), Some("application/speedscope+json"));
    assert_eq!(profile.json()["profiles"].as_array().unwrap().len(), stacks.len());
    assert_eq!(get("image/png").status, 406);
}

#[test]
fn a_flame_graph_is_a_picture_or_a_page() {
    let fixture = Fixture::start();
    let recording = testdata::bytes("traces/net10-sample.nettrace.xz");
    let _runtime = fixture.add(Runtime::builder().replay(recording).speed(Speed::Max));
    let get = |accept: &str| {
        let accept = format!("Accept: {accept}\r\n");
        http::receive(http::send(fixture.address(), "GET", "/flamegraph?durationSeconds=1", &accept, ""))
    };
    let picture = get("*/*");
    assert_eq!((picture.status, picture.header("content-type")), (200, Some("image/svg+xml")));
    let text = picture.text();
    // Callers are below: a frame of the pool is one of several, and has its share.
    assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"), "{text}");
    let frames: Vec<_> = text.split("<title>").skip(1).filter_map(|it| it.split("</title>").next()).collect();
    let worker = "System.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart() (";
    assert!(frames.iter().any(|frame| frame.contains(worker)), "{frames:#?}");
    assert!(!text.contains("<script"), "{text}");
    let page = get("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.text().contains("<!DOCTYPE html>") || page.text().contains("<!doctype html>"));
    assert_eq!(get("application/json").status, 406);
}

#[test]
fn hot_methods_match_the_report() {
    let fixture = Fixture::start();
    let recording = testdata::bytes("traces/net10-sample.nettrace.xz");
    let _runtime = fixture.add(Runtime::builder().replay(recording.clone()).speed(Speed::Max));
    let get = |query: &str, accept: &str| {
        let path = format!("/top?durationSeconds=1{query}");
        let accept = format!("Accept: {accept}\r\n");
        http::receive(http::send(fixture.address(), "GET", &path, &accept, ""))
    };
    let answer = get("&number=10000", "*/*");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let report = answer.json();
    let rows = report["rows"].as_array().unwrap().clone();
    // The same of the file, by the exporter.
    let options = Options::new(Metric::Wall).with_idle(false).with_kinds(false).with_names(NameForm::CSharp);
    let (profile, _) = nettrace_export::profile(std::io::Cursor::new(recording), options).unwrap();
    let expected = serde_json::to_string(&TopReport::new(
        &profile,
        TopOptions::default().with_number(10_000).with_blocked(true),
    ))
    .unwrap();
    assert_eq!(answer.text(), expected);
    assert!(rows.len() > 20 && report["total"].as_u64() > Some(1_000_000_000), "{report}");
    let own: u64 = rows.iter().map(|row| row["exclusive"].as_u64().unwrap()).sum();
    assert_eq!(report["total"], own, "each sample has one leaf");
    let first: Vec<_> = rows.iter().take(20).cloned().collect();
    assert_eq!(get("", "application/json").json()["rows"], serde_json::Value::from(first));
    let inclusive = get("&inclusive=true&number=1", "*/*").json();
    let most = rows.iter().map(|row| row["inclusive"].as_u64().unwrap()).max();
    assert_eq!(inclusive["rows"][0]["inclusive"].as_u64(), most, "{inclusive}");
    assert_ne!(inclusive["rows"][0], rows[0]);
    let text = get("&number=3", "text/plain");
    assert_eq!(text.header("content-type"), Some("text/plain; charset=utf-8"));
    let lines: Vec<_> = text.text().lines().collect();
    assert_eq!((lines.len(), lines[2].trim_start()), (6, "SELF     TOTAL   BLOCKED  METHOD"), "{lines:#?}");
    for (line, row) in lines[3..].iter().zip(&rows) {
        let share = format!("{:.2}%", row["exclusive_percent"].as_f64().unwrap());
        assert!(line.trim_start().starts_with(&share), "{line}");
        assert!(line.ends_with(row["csharp"].as_str().unwrap()), "{line}");
    }
    assert_eq!(get("&number=0", "*/*").status, 400);
    assert_eq!(get("", "image/svg+xml").status, 406);
}

#[test]
fn requests_are_summed_up_by_route() {
    let fixture = Fixture::start();
    let runtime = fixture.add(Runtime::builder().replay(crate::otlp::recording()).speed(Speed::Max));
    let answer = fixture.get("/requests?durationSeconds=1");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let report = answer.json();
    let row = |name: &str| {
        let rows = report["rows"].as_array().unwrap();
        let found: Vec<_> = rows.iter().filter(|row| row["name"] == name).cloned().collect();
        assert_eq!(found.len(), 1, "{name}: {report}");
        found[0].clone()
    };
    let served = row("GET /carts/{n}");
    assert_eq!((&served["role"], &served["count"]), (&"server".into(), &1.into()), "{served}");
    assert_eq!(served["statuses"][0]["status"], "500", "{served}");
    // Without the query.
    assert_eq!(row("POST https://bank.example/pay")["role"], "outgoing");
    assert_eq!(report["slowest"].as_array().unwrap().len(), 1, "{report}");
    let requests: Vec<_> = runtime.requests().iter().map(|request| format!("{request:?}")).collect();
    let session = requests.iter().find(|request| request.contains("CollectTracing")).unwrap();
    assert!(session.contains("Microsoft.AspNetCore.Hosting.HttpRequestIn.Start@Activity1Start"), "{session}");
}

#[test]
fn causes_are_those_of_dipc_why() {
    let fixture = Fixture::start();
    let recording = testdata::bytes("stacks/net9-deadlock.nettrace.xz");
    let _runtime = fixture.add(Runtime::builder().replay(recording).speed(Speed::Max));
    let answer = fixture.get("/why?durationSeconds=1");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let report = answer.json();
    let cause = &report["findings"][0];
    assert_eq!((&cause["kind"], &cause["method"]), (&"deadlock".into(), &"D.First".into()), "{report}");
    assert!(cause["command"].as_str().unwrap().starts_with("dipc locks -p "), "{report}");
    assert_eq!(report["healthy"], false);
    let get = |accept: &str| {
        let accept = format!("Accept: {accept}\r\n");
        http::receive(http::send(fixture.address(), "GET", "/why?durationSeconds=1", &accept, ""))
    };
    let text = get("text/plain");
    assert_eq!((text.status, text.header("content-type")), (200, Some("text/plain; charset=utf-8")));
    assert!(text.text().starts_with("Cause      Deadlock: "), "{}", text.text());
    assert_eq!(get("image/png").status, 406);
}

/// The simulated runtime is in this process, which is read.
#[test]
fn memory_has_owners_that_sum_to_the_whole() {
    let fixture = Fixture::start();
    let _runtime = fixture.add(Runtime::builder());
    let answer = fixture.get("/memory");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let report = answer.json();
    let owners = report["owners"].as_array().unwrap();
    let sum = owners.iter().map(|owner| owner["bytes"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(Some(sum), report["rss_bytes"].as_u64(), "{report}");
    assert_eq!(report["process_id"], std::process::id(), "{report}");
}

#[test]
fn exceptions_have_their_stacks() {
    let fixture = Fixture::start();
    let recording = testdata::bytes("traces/net10-exceptions.nettrace.xz");
    let _runtime = fixture.add(Runtime::builder().replay(recording).speed(Speed::Max));
    let answer = fixture.get("/exceptions?durationSeconds=1");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/x-ndjson")));
    let exceptions: Vec<serde_json::Value> =
        answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(exceptions.len(), 43);
    let first = &exceptions[0];
    let thrown = first["typeName"].as_str().unwrap();
    assert!(first["timestamp"].as_str().unwrap().starts_with("2026-11-22T11:04:0"), "{first}");
    // The same by a filter, and all others without it.
    let count = |filter: &str| {
        let body = format!("{{\"{filter}\":[{{\"exceptionType\":\"{thrown}\"}}]}}");
        let answer = http::post(fixture.address(), "/exceptions?durationSeconds=1", &body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.text().lines().count()
    };
    let (included, excluded) = (count("include"), count("exclude"));
    assert!(included > 0 && included + excluded == 43, "{included} and {excluded}");
    let body = "{\"include\":[{\"exceptionName\":\"x\"}]}";
    assert_eq!(http::post(fixture.address(), "/exceptions", body).status, 400);
}

/// Since .NET 9, the runtime's methods that throw are managed code, and no part of an exception's stack.
#[test]
fn stacks_of_exceptions_begin_with_the_method_that_threw() {
    let fixture = Fixture::start();
    let recording = testdata::bytes("traces/net9-everything.nettrace.xz");
    let _runtime = fixture.add(Runtime::builder().replay(recording).speed(Speed::Max).end_with_recording());
    let get = |accept: &str| {
        let accept = format!("Accept: {accept}\r\n");
        http::receive(http::send(fixture.address(), "GET", "/exceptions?durationSeconds=-1", &accept, ""))
    };
    for accept in ["application/x-ndjson", "text/plain"] {
        let answer = get(accept);
        let text = answer.text();
        assert!(text.contains("Deep") && !text.contains("System.Runtime.EH"), "{text}");
    }
}

#[test]
fn metrics_have_all_processes() {
    let config = MetricsConfig::new(NameStyle::OpenTelemetry).with_interval(Duration::from_secs(1));
    let fixture = Fixture::with(Tokens::default(), Some(config));
    let add =
        |number| fixture.add(Runtime::builder().cookie(Uuid::from_u128(number)).replay(counters()).looped());
    let (_one, _two) = (add(1), add(2));
    let count = || {
        let answer = fixture.get("/metrics");
        assert_eq!(answer.status, 200);
        // Both have the pid of the test.
        let of_each = [1, 2].map(|number| {
            let instance = format!("service_instance_id=\"{}\"", Uuid::from_u128(number));
            let lines = || answer.text().lines().filter(|line| line.contains(&instance)).map(str::to_owned);
            let has_info = lines().any(|line| line.starts_with("target_info{") && line.ends_with("} 1.0"));
            if has_info { lines().count() } else { 0 }
        });
        (
            of_each[0].min(of_each[1]),
            fixture.get("/metrics").header("content-type").unwrap().starts_with("text/plain; version=0.0.4"),
        )
    };
    await_that("there are values", || count().0 > 10);
    assert!(count().1);
    let sessions =
        || -> Vec<u64> { fixture.monitor.processes().iter().map(|it| it.counters.session_count()).collect() };
    await_that("both have a session", || sessions().iter().all(|count| *count > 0));
    assert_eq!(sessions(), [1, 1], "a session a process");
}

#[test]
fn tokens_permit_their_scopes() {
    let tokens = "read 0123456789abcdef\nmetrics,artifacts fedcba9876543210\nadmin aaaaaaaaaaaaaaaa\n";
    let fixture = Fixture::with(Tokens::parse(tokens).unwrap(), None);
    let _runtime = fixture.add(Runtime::builder());
    let status = |path: &str, token: &str| {
        let header =
            if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
        let answer = http::receive(http::send(fixture.address(), "GET", path, &header, ""));
        assert_eq!(answer.header("www-authenticate").is_some(), answer.status == 401);
        answer.status
    };
    assert_eq!(status("/processes", ""), 401);
    assert_eq!(status("/processes", "0123456789abcdeX"), 401);
    assert_eq!(status("/processes", "0123456789abcdef"), 200);
    assert_eq!(status("/env", "0123456789abcdef"), 403);
    assert_eq!(status("/env", "fedcba9876543210"), 200);
    assert_eq!(status("/processes", "fedcba9876543210"), 403);
    assert_eq!((status("/env", "aaaaaaaaaaaaaaaa"), status("/processes", "aaaaaaaaaaaaaaaa")), (200, 200));
}

#[test]
fn health_counts_running_work() {
    let config = MetricsConfig::new(NameStyle::OpenTelemetry).with_interval(Duration::from_secs(1));
    let fixture = Fixture::with(Tokens::default(), Some(config));
    let health = || fixture.get("/health").json();
    let idle = health();
    assert_eq!((&idle["version"], &idle["processes"]["watched"]), (&"test".into(), &0.into()));
    assert_eq!(idle["counters"], serde_json::json!({"sessions": 0, "consumers": 0, "leftOutValues": 0}));
    // Neither was given to the server.
    assert!(idle["blackBoxes"].is_null() && idle["queuedArtifacts"].is_null(), "{idle}");
    let _runtime = fixture.add(Runtime::builder().replay(counters()).looped());
    await_that("the session is counted", || health()["counters"]["sessions"] == 1);
    let busy = health();
    assert_eq!((&busy["processes"]["watched"], &busy["counters"]["consumers"]), (&1.into(), &1.into()));
    assert_eq!(
        busy["operations"],
        serde_json::json!({"running": 0, "ended": 0, "succeeded": 0, "failed": 0, "cancelled": 0})
    );
    assert_eq!(fixture.get("/trace?durationSeconds=1").status, 200);
    let ended = serde_json::json!({"running": 0, "ended": 1, "succeeded": 1, "failed": 0, "cancelled": 0});
    assert_eq!(health()["operations"], ended);
    if cfg!(target_os = "linux") {
        // The server is a thread of the test: the kernel's account of this process bounds the answer.
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak: u64 = peak.trim().strip_suffix(" kB").unwrap().parse().unwrap();
        let resident = busy["residentBytes"].as_u64().unwrap();
        assert!(resident > 1 << 20 && resident <= peak * 1024 * 2, "{resident} bytes, peak {peak} kB");
        assert!(busy["cpuSeconds"].as_f64().unwrap() >= idle["cpuSeconds"].as_f64().unwrap());
    }
}
