//! `dipc monitor --otlp`: the spans and log records of a server, which a receiver reads by the official
//! messages.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;
use rustix::process::Signal;

use crate::machine::may_sample_machine;
use crate::program::{Running, dipc, run};
use crate::runtime::{Runtime, say_not_run};
use crate::web_server::WebServer;
use crate::workload::Workload;

/// Longer than anything takes on a loaded machine of two slow cores.
const PATIENCE: Duration = Duration::from_secs(120);

/// A receiver that refuses the first request for now.
struct Receiver {
    address: SocketAddr,
    received: Arc<Mutex<Received>>,
}

#[derive(Default)]
struct Received {
    requests: usize,
    /// The attributes of the last resource.
    resource: BTreeMap<String, String>,
    spans: Vec<(String, Span)>,
    profiles: Vec<ExportProfilesServiceRequest>,
    records: Vec<(String, LogRecord)>,
    /// The last values of gauges, by the process, name and attributes, with the unit.
    gauges: BTreeMap<(String, String, String), (f64, String)>,
}

impl Receiver {
    fn start() -> Self {
        Self::at("127.0.0.1:0".parse().unwrap())
    }

    fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Received::default()));
        let shared = Arc::clone(&received);
        // The thread ends with the test.
        thread::spawn(move || {
            for stream in listener.incoming() {
                shared.lock().unwrap().take(&stream.unwrap());
            }
        });
        Self { address, received }
    }
}

impl Received {
    /// Reads a request, and answers it.
    fn take(&mut self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "a head that ends: {head}");
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
        let mut body = vec![0; length.parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        self.requests += 1;
        let answer = if self.requests == 1 {
            "503 Service Unavailable\r\nRetry-After: 0"
        } else {
            match head.split(' ').nth(1).unwrap() {
                "/v1/traces" => self.take_spans(&body),
                "/v1/logs" => self.take_records(&body),
                "/v1/metrics" => self.take_gauges(&body),
                "/v1development/profiles" => {
                    self.profiles.push(ExportProfilesServiceRequest::decode(&*body).unwrap());
                }
                other => panic!("{other}"),
            }
            "200 OK\r\nContent-Type: application/x-protobuf"
        };
        let mut stream = stream;
        write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n").unwrap();
    }

    fn take_spans(&mut self, body: &[u8]) {
        for of_resource in ExportTraceServiceRequest::decode(body).unwrap().resource_spans {
            self.resource = attributes(&of_resource.resource.unwrap().attributes);
            for of_scope in of_resource.scope_spans {
                let name = of_scope.scope.unwrap().name;
                self.spans.extend(of_scope.spans.into_iter().map(|span| (name.clone(), span)));
            }
        }
    }

    fn take_gauges(&mut self, body: &[u8]) {
        for of_resource in ExportMetricsServiceRequest::decode(body).unwrap().resource_metrics {
            let pid = attributes(&of_resource.resource.unwrap().attributes).remove("process.pid").unwrap();
            for metric in of_resource.scope_metrics.into_iter().flat_map(|of_scope| of_scope.metrics) {
                let Some(Data::Gauge(gauge)) = metric.data else { continue };
                for point in gauge.data_points {
                    let tags = attributes(&point.attributes).into_values().collect::<Vec<_>>().join(",");
                    let value = match point.value.unwrap() {
                        number_data_point::Value::AsDouble(value) => value,
                        number_data_point::Value::AsInt(number) => {
                            panic!("{number}: bytes are sent as a double")
                        }
                    };
                    let key = (pid.clone(), metric.name.clone(), tags);
                    self.gauges.insert(key, (value, metric.unit.clone()));
                }
            }
        }
    }

    fn take_records(&mut self, body: &[u8]) {
        for of_resource in ExportLogsServiceRequest::decode(body).unwrap().resource_logs {
            for of_scope in of_resource.scope_logs {
                let name = of_scope.scope.unwrap().name;
                self.records.extend(of_scope.log_records.into_iter().map(|record| (name.clone(), record)));
            }
        }
    }
}

fn attributes(list: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |pair: &KeyValue| match &pair.value.as_ref().unwrap().value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => format!("{number}"),
        other => format!("{other:?}"),
    };
    list.iter().map(|pair| (pair.key.clone(), text(pair))).collect()
}

/// Every request has one span of its trace and its parent, and the records of ASP.NET Core with its ids: two,
/// and one more if nothing serves it.
#[test]
fn a_collector_gets_the_spans_and_records_of_the_requests() {
    const REQUESTS: u8 = 20;
    let Some(server) = WebServer::start() else { return };
    let receiver = Receiver::start();
    let folder = tempfile::tempdir().unwrap();
    let urls = format!("unix:{}", folder.path().join("http").display());
    let (filter, url) = (format!("ProcessId={}", server.pid()), format!("http://{}", receiver.address));
    let logs = "Microsoft.AspNetCore.Hosting.Diagnostics:Information";
    let monitor = ["monitor", "--urls", &urls, "--filter", &filter, "--metrics", "false"];
    let otlp = ["--otlp", &url, "--otlp-signals", "logs,traces", "--otlp-logs", logs];
    let more = ["--otlp-attribute", "deployment.environment.name=test"];
    let running = Running::start(dipc(monitor.into_iter().chain(otlp).chain(more)));
    let has_span = |trace: u8| {
        let requests = receiver.received.lock().unwrap();
        requests.spans.iter().any(|(_, span)| span.trace_id == [trace; 16])
    };
    let get = |path: &str, trace: u8, parent: u8| {
        let hex = |byte: u8, count| format!("{byte:02x}").repeat(count);
        server
            .get_with(path, &format!("traceparent: 00-{}-{}-01\r\n", hex(trace, 16), hex(parent, 8)))
            .unwrap()
    };
    // The session has begun when it has the first span.
    let deadline = Instant::now() + PATIENCE;
    while !has_span(0xee) {
        assert!(Instant::now() < deadline, "no span comes");
        get("/ready", 0xee, 0xee);
        thread::sleep(Duration::from_millis(100));
    }
    for number in 1..=REQUESTS {
        let path = if number % 2 == 0 { "/nosuch/7?key=secret" } else { "/" };
        let status = get(path, number, number + 100);
        assert_eq!(status, if number % 2 == 0 { 404 } else { 406 });
    }
    // Everything collected by then is sent at its end.
    get("/last", 0xdd, 0xdd);
    let deadline = Instant::now() + PATIENCE;
    while !has_span(0xdd) {
        assert!(Instant::now() < deadline, "the last span does not come");
        thread::sleep(Duration::from_millis(20));
    }
    running.signal(Signal::INT);
    let finished = running.finish().with_code(0);
    assert!(finished.stderr.contains(" spans in "), "{}", finished.stderr);
    assert!(!finished.stderr.contains("dropped"), "{}", finished.stderr);

    let requests = receiver.received.lock().unwrap();
    for number in 1..=REQUESTS {
        let of_trace = requests.spans.iter().filter(|(_, span)| span.trace_id == [number; 16]);
        let [(scope, span)] = &of_trace.collect::<Vec<_>>()[..] else { panic!("{number}: one span") };
        assert_eq!(scope, "Microsoft.AspNetCore");
        assert_eq!((span.parent_span_id.as_slice(), span.kind()), (&[number + 100; 8][..], SpanKind::Server));
        assert!(span.span_id != [0; 8] && span.end_time_unix_nano > span.start_time_unix_nano);
        let (path, status) = if number % 2 == 0 { ("/nosuch/7", "404") } else { ("/", "406") };
        let attributes = attributes(&span.attributes);
        let get = |key| attributes.get(key).map_or("", String::as_str);
        assert_eq!((get("url.path"), get("http.response.status_code")), (path, status), "{attributes:?}");
        assert_eq!((get("http.request.method"), get("url.scheme")), ("GET", "http"), "{attributes:?}");
        assert_eq!(get("url.query"), if number % 2 == 0 { "key=Redacted" } else { "" });
        // The endpoint's name says the route of what is served.
        assert_eq!(span.name, if number % 2 == 0 { "GET" } else { "GET /" });
        let records: Vec<_> =
            requests.records.iter().filter(|(_, record)| record.trace_id == [number; 16]).collect();
        assert_eq!(records.len(), if number % 2 == 0 { 3 } else { 2 }, "{number}: {records:?}");
        for (scope, record) in records {
            assert_eq!(scope, "Microsoft.AspNetCore.Hosting.Diagnostics");
            assert_eq!(record.span_id, span.span_id);
            assert_eq!(
                (record.severity_number(), &*record.severity_text),
                (SeverityNumber::Info, "Information")
            );
            assert!(record.attributes.iter().any(|pair| pair.key == "{OriginalFormat}"), "{record:?}");
            assert!(record.attributes.iter().any(|pair| pair.key == "RequestPath"), "the scope: {record:?}");
            let Some(Value::StringValue(body)) = &record.body.as_ref().unwrap().value else { panic!() };
            assert!(body.starts_with("Request "), "{body}");
        }
    }
    let pid = server.pid().to_string();
    for (key, value) in [
        ("process.pid", &*pid),
        ("process.runtime.name", ".NET"),
        ("deployment.environment.name", "test"),
        ("service.name", "shop"),
        ("service.version", "1 beta"),
    ] {
        assert_eq!(requests.resource.get(key).map(String::as_str), Some(value), "{:?}", requests.resource);
    }
}

/// The kernel samples the machine, and each process has a profile with its own resource: a .NET program and a
/// native one.
#[test]
fn a_collector_gets_a_profile_of_each_process() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    if !may_sample_machine() {
        return say_not_run("the kernel does not permit samples of the machine");
    }
    workload.send("spin 600000");
    let mut native = Command::new("sh");
    native.args(["-c", "while :; do :; done"]).env("OTEL_SERVICE_NAME", "loop");
    let native = Native(native.spawn().unwrap());
    let receiver = Receiver::start();
    let folder = tempfile::tempdir().unwrap();
    let urls = format!("unix:{}", folder.path().join("http").display());
    let url = format!("http://{}", receiver.address);
    let monitor = ["monitor", "--urls", &urls, "--metrics", "false", "--keep", "0s"];
    let otlp = ["--otlp", &url, "--otlp-signals", "profiles", "--profile-segment", "1s"];
    let attribute = ["--otlp-attribute", "deployment.environment.name=test"];
    let running = Running::start(dipc(monitor.into_iter().chain(otlp).chain(attribute)));
    let of = |pid: u32| profiles_of(&receiver.received.lock().unwrap().profiles, pid);
    let has_hot = |profiles: &[ProcessProfile]| {
        let names = profiles.iter().flat_map(|profile| &profile.strings);
        names.into_iter().any(|text| text.contains("Spin.Fib"))
    };
    crate::monitor::await_that("both have a profile", || {
        has_hot(&of(workload.pid())) && !of(native.0.id()).is_empty()
    });
    running.signal(Signal::INT);
    let finished = running.finish().with_code(0);
    assert!(finished.stderr.contains(" profiles in "), "{}", finished.stderr);
    assert!(!finished.stderr.contains("dropped"), "{}", finished.stderr);
    let managed = of(workload.pid());
    let resource = &managed[0].resource;
    assert_eq!(resource["process.runtime.name"], ".NET");
    assert_eq!(resource["deployment.environment.name"], "test");
    // It cannot be more than the process has had, beyond the time that a sample stands for.
    let time: u64 = managed.iter().map(|profile| profile.time).sum();
    let stat = std::fs::read(format!("/proc/{}/stat", workload.pid())).unwrap();
    let used = linux_proc_stat::Stat::parse(&stat).unwrap().cpu_ns().unwrap();
    assert!(time > 0 && time <= used + used / 10 + 100_000_000, "{time} of {used}");
    let native = of(native.0.id());
    assert_eq!(native[0].resource["service.name"], "loop");
    assert!(!native[0].resource.contains_key("process.runtime.name"));
}

/// With a filter, other processes are not sampled: neither sent nor kept.
#[test]
fn only_chosen_processes_are_sampled() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    if !may_sample_machine() {
        return say_not_run("the kernel does not permit samples of the machine");
    }
    workload.send("spin 600000");
    let mut native = Command::new("sh");
    native.args(["-c", "while :; do :; done"]);
    let _native = Native(native.spawn().unwrap());
    let receiver = Receiver::start();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("http");
    let urls = format!("unix:{}", socket.display());
    let (filter, url) = (format!("ProcessId={}", workload.pid()), format!("http://{}", receiver.address));
    // The settings of the ring in a file.
    let ring = folder.path().join("ring").display().to_string();
    let settings = serde_json::json!({"ContinuousProfiling": {
        "Keep": "01:00:00", "DirectoryPath": ring, "SegmentDuration": "00:00:01", "Frequency": 97}});
    let file = folder.path().join("settings.json");
    std::fs::write(&file, settings.to_string()).unwrap();
    let monitor = ["monitor", "--urls", &urls, "--filter", &filter, "--metrics", "false", "--keep", "0s"];
    let settings = ["--configuration-file-path", file.to_str().unwrap()];
    let otlp = ["--otlp", &url, "--otlp-signals", "profiles"];
    let running = Running::start(dipc(monitor.into_iter().chain(settings).chain(otlp)));
    crate::monitor::await_that("profiles of two recordings arrive", || {
        receiver.received.lock().unwrap().profiles.len() >= 2
    });
    let answer = crate::monitor::get(&socket, "/profile?from=60&format=processes").unwrap();
    running.signal(Signal::INT);
    running.finish().with_code(0);
    let report: serde_json::Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let pids: Vec<_> =
        report["processes"].as_array().unwrap().iter().map(|row| row["pid"].as_u64().unwrap()).collect();
    assert_eq!(pids, [u64::from(workload.pid())], "{answer}");
    let requests = receiver.received.lock().unwrap();
    let resources = requests.profiles.iter().flat_map(|request| &request.resource_profiles);
    for resource in resources {
        let resource = attributes(&resource.resource.as_ref().unwrap().attributes);
        assert_eq!(resource["process.pid"], workload.pid().to_string());
    }
}

/// A program that ends with the test.
struct Native(std::process::Child);

impl Drop for Native {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct ProcessProfile {
    resource: BTreeMap<String, String>,
    /// The strings of its request.
    strings: Vec<String>,
    /// The sum of its samples, in nanoseconds.
    time: u64,
}

/// The profiles of a process, in order.
fn profiles_of(requests: &[ExportProfilesServiceRequest], pid: u32) -> Vec<ProcessProfile> {
    let mut found = Vec::new();
    for request in requests {
        for of_resource in &request.resource_profiles {
            let resource = attributes(&of_resource.resource.as_ref().unwrap().attributes);
            if resource["process.pid"] != pid.to_string() {
                continue;
            }
            let strings = request.dictionary.as_ref().unwrap().string_table.clone();
            let profile = &of_resource.scope_profiles[0].profiles[0];
            let time: i64 = profile.samples.iter().flat_map(|sample| &sample.values).sum();
            found.push(ProcessProfile { resource, strings, time: time.try_into().unwrap() });
        }
    }
    found
}

/// The eight series of a process, whose sum is its resident memory.
#[test]
fn a_collector_gets_memory_by_owner() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let receiver = Receiver::start();
    let folder = tempfile::tempdir().unwrap();
    let urls = format!("unix:{}", folder.path().join("http").display());
    let pid = workload.pid().to_string();
    let (filter, url) = (format!("ProcessId={pid}"), format!("http://{}", receiver.address));
    let metric_urls = format!("unix:{}", folder.path().join("metrics").display());
    let monitor = ["monitor", "--urls", &urls, "--metric-urls", &metric_urls, "--filter", &filter];
    let otlp = ["--otlp", &url, "--otlp-signals", "metrics", "--memory-interval", "1s"];
    let running = Running::start(dipc(monitor.into_iter().chain(otlp)));
    let series = || -> BTreeMap<String, (f64, String)> {
        let requests = receiver.received.lock().unwrap();
        let memory = requests
            .gauges
            .iter()
            .filter(|((of, name, _), _)| *of == pid && name.starts_with("dipc.process.memory"));
        memory.map(|((_, name, tags), value)| (format!("{name} {tags}"), value.clone())).collect()
    };
    crate::monitor::await_that("the series arrive", || series().len() == 8);
    running.signal(Signal::INT);
    running.finish().with_code(0);
    let series = series();
    let value = |name: &str| series.get(name).unwrap_or_else(|| panic!("{name}: {series:#?}")).0;
    let owners = ["gc-heap", "native-heap", "thread-stacks", "code", "files", "shared-memory", "unknown"];
    let values = owners.map(|owner| value(&format!("dipc.process.memory {owner}")));
    assert!(value("dipc.process.memory.native_heap.free ") <= values[1], "{series:#?}");
    assert!(values[0] > 0.0 && values[4] > 1e7 && values.iter().sum::<f64>() > 3e7, "{series:#?}");
    assert!(series.values().all(|(_, unit)| unit == "By"), "{series:#?}");
}

/// Measurements taken while the collector was away arrive when it is back.
#[test]
fn spans_wait_for_a_collector_that_is_away() {
    const REQUESTS: u8 = 30;
    let Some(server) = WebServer::start() else { return };
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("http");
    let (urls, url) = (format!("unix:{}", socket.display()), format!("http://{address}"));
    let filter = format!("ProcessId={}", server.pid());
    let running = Running::start(dipc([
        "monitor",
        "--urls",
        &urls,
        "--filter",
        &filter,
        "--metrics",
        "false",
        "--otlp",
        &url,
        "--otlp-signals",
        "traces",
    ]));
    let queued_bytes = || -> u64 {
        let answer = crate::monitor::get(&socket, "/health").unwrap_or_default();
        let json = answer.split_once("\r\n\r\n").map_or("null", |(_, body)| body);
        let health: serde_json::Value = serde_json::from_str(json).unwrap();
        let signals = health["otlp"].as_object().into_iter().flatten();
        signals.map(|(_, signal)| signal["queuedBytes"].as_u64().unwrap_or(0)).sum()
    };
    let request = |trace: u8| {
        let ids = format!("{}-{}", format!("{trace:02x}").repeat(16), "07".repeat(8));
        server.get_with("/", &format!("traceparent: 00-{ids}-01\r\n")).unwrap();
    };
    // The session has begun when something waits for the collector.
    crate::monitor::await_that("a span waits", || {
        request(0xee);
        queued_bytes() > 0
    });
    (1..=REQUESTS).for_each(&request);
    let before = queued_bytes();
    crate::monitor::await_that("they wait, too", || queued_bytes() > before);
    let collector = Receiver::at(address);
    crate::monitor::await_that("all have arrived", || {
        let received = collector.received.lock().unwrap();
        (1..=REQUESTS).all(|trace| received.spans.iter().any(|(_, span)| span.trace_id == [trace; 16]))
    });
    running.signal(Signal::INT);
    let finished = running.finish().with_code(0);
    assert!(!finished.stderr.contains("dropped"), "{}", finished.stderr);
    let received = collector.received.lock().unwrap();
    for trace in 1..=REQUESTS {
        let spans = received.spans.iter().filter(|(_, span)| span.trace_id == [trace; 16]);
        assert_eq!(spans.count(), 1, "{trace}");
    }
}

/// The library of the server links its own activity to that of the request: .NET 10 passes links on.
#[test]
fn a_collector_gets_the_links_of_activities() {
    const REQUEST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26",
        "capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
    let Some(server) = WebServer::start() else { return };
    let receiver = Receiver::start();
    let folder = tempfile::tempdir().unwrap();
    let urls = format!("unix:{}", folder.path().join("http").display());
    let (filter, url) = (format!("ProcessId={}", server.pid()), format!("http://{}", receiver.address));
    let monitor = ["monitor", "--urls", &urls, "--filter", &filter, "--metrics", "false", "--keep", "0s"];
    let running =
        Running::start(dipc(monitor.into_iter().chain(["--otlp", &url, "--otlp-signals", "traces"])));
    let headers = format!(
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\ntraceparent: 00-{}-{}-01\r\n",
        "ab".repeat(16),
        "cd".repeat(8)
    );
    let linked = || {
        let requests = receiver.received.lock().unwrap();
        let is_linked = |span: &&(String, Span)| !span.1.links.is_empty();
        let (_, span) = requests.spans.iter().find(is_linked)?.clone();
        let is_of = |other: &&(String, Span)| other.1.span_id == span.links[0].span_id;
        Some((span.clone(), requests.spans.iter().find(is_of)?.1.clone()))
    };
    crate::monitor::await_that("a span with a link comes, and the linked one", || {
        assert_eq!(server.post("/", &headers, REQUEST), Some(200));
        linked().is_some()
    });
    let (span, request) = linked().unwrap();
    assert_eq!((&span.links[0].trace_id, &request.trace_id), (&vec![0xab; 16], &vec![0xab; 16]));
    running.signal(Signal::INT);
    running.finish().with_code(0);
}

#[test]
fn metrics_that_are_switched_off_are_no_signal() {
    let monitor = ["monitor", "--urls", "http://127.0.0.1:0", "--metrics", "false"];
    let otlp = ["--otlp", "http://127.0.0.1:1", "--otlp-signals", "metrics"];
    let refused = run(monitor.into_iter().chain(otlp)).with_code(2);
    assert!(refused.stderr.contains("error: --otlp: there is nothing to send"), "{refused:?}");
    assert!(refused.stderr.contains("--metrics true"), "{refused:?}");
}
