//! `dipc counters serve` and `push`, against a real Prometheus and a receiver on the official OTLP messages.

mod collector;
mod prometheus;
mod recording;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::program::{Running, dipc, run};
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::{Target, WebServer, Workload};
use collector::Collector;
use prometheus::{Prometheus, Served, check_metrics};

on_each_runtime!(prometheus_scrapes_the_programs_counters, a_collector_receives_the_programs_counters);

const PATIENCE: Duration = Duration::from_secs(120);

/// Calls until there is an answer.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "it does not come: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn prometheus_scrapes_the_programs_counters(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    workload.run("counters 1");
    let pid = workload.pid().to_string();
    // One way of reporting only: on a busy machine, .NET's code for both waits for itself at times when both
    // are asked for first.
    let system =
        if runtime.has_runtime_meter() { r"Meter\System.Runtime" } else { r"EventCounters\System.Runtime" };
    let counters = format!("{system},Workload-Counters,Workload.Meter");
    let served = Served::start(&["-p", &pid, "--refresh-interval", "0.5", "--counters", &counters]);
    let Some(prometheus) = Prometheus::start(&served.address, &[]) else { return };
    let process = format!("process_pid=\"{pid}\"");
    let requests = format!("workload_counters_requests_req_total{{{process}}}");
    let before = until("a first value", || prometheus.value(&requests));
    workload.run("counters 700");
    workload.run("counters 300");
    until("what was counted", || prometheus.value(&requests).filter(|value| *value >= before + 1000.0));
    let exactly = |query: &str, expected: f64| {
        let value = until(query, || prometheus.value(query).filter(|value| *value >= expected));
        assert!((value - expected).abs() < 1e-9, "{query}: {value} and not {expected}");
    };
    exactly(&requests, before + 1000.0);
    exactly(&format!("workload_counters_total{{{process}}}"), before + 1000.0);
    if runtime != Runtime::Net3_1 {
        exactly(&format!("sum(orders_total{{{process},otel_scope_name=\"Workload.Meter\"}})"), 1000.0);
        // Of 300 a sixth is for Oslo at tier 0: 0, 6, 12 … ; of 700 117.
        exactly(&format!("orders_total{{{process},city=\"Oslo\",tier=\"0\"}}"), 167.0);
        exactly(&format!("order_size_kg_count{{{process}}}"), 1000.0);
        exactly(&format!("order_size_kg_sum{{{process}}}"), 49_500.0);
        exactly(&format!("temperature_C{{{process}}}"), 21.5);
    }
    // The counters of the runtime itself: its Meter from 9.0 on.
    let memory = if runtime.has_runtime_meter() {
        "dotnet_process_memory_working_set_bytes"
    } else {
        "system_runtime_working_set_bytes"
    };
    let memory = until(memory, || prometheus.value(memory));
    assert!((1e6..1e10).contains(&memory), "{memory}");
    prometheus.assert_healthy();
    let metrics = served.get("text/plain").1;
    let label = format!("process_name=\"workload\",process_pid=\"{pid}\"");
    assert!(metrics.contains(&label), "the entry assembly's name: {metrics}");
    check_metrics(&served.address);
    // The end of the process is the end of the program.
    workload.send("quit");
    assert_eq!(served.finish(None).code, Some(0));
}

/// A simulated runtime that sends values that no workload has: exponential histograms, and hostile texts.
struct Sim {
    _target: Target,
    endpoint: String,
    _folder: tempfile::TempDir,
}

impl Sim {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hostile.nettrace");
        std::fs::write(&file, recording::hostile()).unwrap();
        let mut sim = dipc(["sim", "--loop", "--replay", file.to_str().unwrap()]);
        sim.args(["--dir", folder.path().to_str().unwrap()]).stdin(Stdio::piped());
        let target = Target::start(sim);
        let endpoint = target.line().split(' ').nth(2).unwrap().to_owned();
        Self { _target: target, endpoint, _folder: folder }
    }
}

#[test]
fn prometheus_reads_native_histograms_and_hostile_strings() {
    let sim = Sim::start();
    let endpoint = &*sim.endpoint;
    for (options, is_native) in [(&[][..], false), (&["--enable-feature=native-histograms"][..], true)] {
        let arguments = ["--endpoint", endpoint, "--histograms", "exponential", "--counters", "*"];
        let served = Served::start(&arguments);
        until("values", || served.get("text/plain").1.contains("size_kg_count").then_some(()));
        check_metrics(&served.address);
        let Some(prometheus) = Prometheus::start(&served.address, options) else { return };
        let count = if is_native { "histogram_count(size_kg)" } else { "size_kg_count" };
        let count = until(count, || prometheus.value(count));
        assert!((count - 5.0).abs() < 1e-9, "{count}");
        // Three of five lie in (2, 4]: at power-of-two buckets nine tenths are reached at 11/3, and in finer
        // ones in (2^1.75, 4].
        let quantile = if is_native {
            "histogram_quantile(0.9, size_kg)"
        } else {
            "histogram_quantile(0.9, size_kg_bucket)"
        };
        let quantile = until(quantile, || prometheus.value(quantile));
        let expected = if is_native { 3.3..4.0 } else { 3.6..3.7 };
        assert!(expected.contains(&quantile), "{quantile}");
        let label = prometheus.label("x_TYPE_y", "tag_process_pid").expect("the hostile gauge");
        assert_eq!(label, "7\"\n\\u{1b}[31m\\");
        let seconds = if is_native { "histogram_count(seconds)" } else { "seconds_count" };
        assert!(prometheus.value(seconds).is_some_and(|count| count > 9e18), "{seconds}");
        prometheus.assert_healthy();
        assert_eq!(served.finish(Some(Signal::TERM)).code, Some(0));
    }
}

#[test]
fn prometheus_has_native_histograms_of_net10() {
    let Some(web) = WebServer::start() else { return };
    let pid = web.pid().to_string();
    let meter = r"Meter\Microsoft.AspNetCore.Hosting";
    let arguments =
        ["-p", &pid, "--histograms", "exponential", "--refresh-interval", "0.5", "--counters", meter];
    let served = Served::start(&arguments);
    until("the session", || {
        web.request();
        served.get("text/plain").1.contains("http_server_request_duration_seconds_bucket").then_some(())
    });
    let Some(prometheus) = Prometheus::start(&served.address, &["--enable-feature=native-histograms"]) else {
        return;
    };
    let duration = "http_server_request_duration_seconds";
    let counted = || prometheus.value(&format!("histogram_count({duration})"));
    // Those of the last interval may be on their way.
    let mut before = until("a first value", counted);
    until("no request left on its way", || {
        // Two scrapes later: a value applies to the next one only if nothing arrived between them.
        prometheus.await_scrapes(2);
        let now = counted()?;
        let is_settled = (now - before).abs() < 0.5;
        before = now;
        is_settled.then_some(())
    });
    (0..200).for_each(|_| web.request());
    let count = until("what was counted", || counted().filter(|count| *count >= before + 199.5));
    assert!((count - before - 200.0).abs() < 1e-9, "{count} after {before}");
    let quantile = |of: f64| prometheus.value(&format!("histogram_quantile({of}, {duration})")).unwrap();
    let mean = prometheus.value(&format!("histogram_sum({duration})")).unwrap() / count;
    assert!(quantile(0.0) <= mean && mean <= quantile(1.0), "{mean}");
    prometheus.assert_healthy();
    assert_eq!(served.finish(Some(Signal::INT)).code, Some(0));
}

fn a_collector_receives_the_programs_counters(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    workload.run("counters 1");
    for temporality in ["cumulative", "delta"] {
        let collector = Collector::start();
        let (pid, url) = (workload.pid().to_string(), collector.url());
        let arguments = ["counters", "push", "-p", &pid, "--refresh-interval", "0.5", "--interval", "700ms"];
        let options =
            ["--temporality", temporality, "--otlp", &url, "--counters", "Workload-Counters,Workload.Meter"];
        let more = ["--header", "X-Key=secret", "--resource", "deployment.environment=test"];
        let pushing = Running::start(dipc(arguments.into_iter().chain(options).chain(more)));
        let is_delta = temporality == "delta";
        let counted = |name: &str| collector.number(name, is_delta);
        let requests = until("a first value", || counted("requests"));
        let orders = counted("orders").unwrap_or_default();
        let sizes = collector.summary("order.size");
        workload.run("counters 700");
        workload.run("counters 300");
        until("what was counted", || counted("requests").filter(|value| *value >= requests + 999.5));
        if runtime != Runtime::Net3_1 {
            until("orders", || counted("orders").filter(|value| *value >= orders + 999.5));
            until("sizes", || (collector.summary("order.size").0 >= sizes.0 + 1000).then_some(()));
        }
        pushing.signal(Signal::INT);
        let finished = pushing.finish();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert!(finished.stderr.contains("Pushed         : "), "{finished:?}");
        let near = |value: Option<f64>, expected: f64| (value.unwrap() - expected).abs() < 1e-6;
        assert!(near(counted("requests"), requests + 1000.0), "{:?}", counted("requests"));
        if runtime != Runtime::Net3_1 {
            assert!(near(counted("orders"), orders + 1000.0), "{:?}", counted("orders"));
            assert_eq!(collector.summary("order.size"), (sizes.0 + 1000, sizes.1 + 49_500.0));
            assert!(near(collector.gauge("temperature"), 21.5));
        }
        collector.assert_headers(&["x-key: secret", "content-type: application/x-protobuf"]);
        let attributes = collector.resource();
        for (key, value) in [("process.pid", &*pid), ("deployment.environment", "test")] {
            assert_eq!(attributes.get(key).map(String::as_str), Some(value), "{attributes:?}");
        }
        // The entry assembly's, where `dotnet` runs it.
        assert_eq!(attributes.get("service.name").map(String::as_str), Some("workload"), "{attributes:?}");
        for key in ["service.instance.id", "host.name"] {
            assert!(attributes.get(key).is_some_and(|value| !value.is_empty()), "{key}: {attributes:?}");
        }
    }
}

#[test]
fn clients_that_misbehave_are_cut_off_and_others_are_served() {
    let sim = Sim::start();
    let served = Served::start(&["--endpoint", &sim.endpoint, "--counters", "*"]);
    until("values", || served.get("text/plain").1.contains("size_kg").then_some(()));
    let request = |text: &[u8]| {
        let mut stream = TcpStream::connect(&served.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // It may have hung up by then.
        let _ = stream.write_all(text);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    };
    let long =
        [b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ".as_slice(), &b"x".repeat(100_000)].concat();
    let many = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: y\r\n".repeat(100));
    let rows: [(&[u8], &str); 8] = [
        (b"\0\x01\x02garbage\r\n\r\n", "HTTP/1.1 400 "),
        (&long, "HTTP/1.1 431 "),
        (many.as_bytes(), "HTTP/1.1 431 "),
        (b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999999\r\n\r\n", "HTTP/1.1 405 "),
        (b"GET /metrics HTTP/1.1\r\nHost: attacker.example\r\n\r\n", "HTTP/1.1 421 "),
        (b"GET /../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 404 "),
        (b"HEAD /metrics HTTP/1.1\r\nHost: [::1]:1\r\n\r\n", "HTTP/1.1 200 "),
        (b"GET /metrics?x=y HTTP/1.1\r\nHost: localhost:9464\r\n\r\n", "HTTP/1.1 200 "),
    ];
    for (text, expected) in rows {
        let answer = request(text);
        let start = String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned();
        // What was not read of a request may have the answer thrown away on the way.
        let is_lost = answer.is_empty() && text.len() > 16 << 10;
        assert!(is_lost || answer.starts_with(expected), "{start:?}: {answer}");
    }
    // More than there may be at once, none of which ever says anything.
    let silent: Vec<_> = (0..12).map(|_| TcpStream::connect(&served.address).unwrap()).collect();
    assert!(served.get("text/plain").1.contains("size_kg"));
    drop(silent);
    assert_eq!(served.finish(Some(Signal::INT)).code, Some(0));
}

#[test]
fn a_collector_that_misbehaves_costs_neither_memory_nor_time() {
    let sim = Sim::start();
    let endless = b"x".repeat(1 << 20);
    let answers: [(&[u8], &str); 3] = [
        (&endless, "were dropped: "),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nabc", "Pushed         : "),
        (b"HTTP/1.1 400 Bad\r\nContent-Length: 4\r\n\r\n\x1b[3m", "were dropped: HTTP 400 Bad Request"),
    ];
    for (answer, expected) in answers {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/otlp", listener.local_addr().unwrap());
        let answer = answer.to_vec();
        // The thread ends with the test.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = [0; 64];
                let _ = stream.read(&mut head).and_then(|_| stream.write_all(&answer));
                assert!(head.starts_with(b"POST /otlp HTTP/1.1\r\n"));
            }
        });
        let arguments = ["counters", "push", "--endpoint", &sim.endpoint, "--counters", "*", "--otlp", &url];
        let limits = ["--interval", "200ms", "--duration", "1s"];
        let finished = run(arguments.into_iter().chain(limits));
        assert!(finished.stderr.contains(expected), "{finished:?}");
        assert!(!finished.stderr.contains('\u{1b}'), "{finished:?}");
    }
}

#[test]
fn reports_a_missing_collector_without_waiting() {
    let Some(mut workload) = Workload::start(Runtime::NativeAot9) else { return };
    workload.run("counters 1");
    let pid = workload.pid().to_string();
    // Nobody listens at port 1.
    let arguments = ["--otlp", "http://127.0.0.1:1", "--interval", "300ms", "--duration", "1500ms"];
    let fixed =
        ["counters", "push", "-p", &pid, "--refresh-interval", "0.2", "--counters", "Workload-Counters"];
    let finished = run(fixed.into_iter().chain(arguments));
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.stderr.contains("were dropped: Connection refused"), "{finished:?}");
    assert_eq!(finished.stderr.matches("warning: http://127.0.0.1:1/v1/metrics").count(), 1, "{finished:?}");
}

#[test]
fn rejects_unusable_addresses_at_once() {
    let rows: [(&[&str], i32, &str); 5] = [
        (&["serve", "-p", "1", "--listen", "0.0.0.0:9464"], 2, "neither passwords nor encryption"),
        (&["serve", "-p", "1", "--listen", "localhost"], 2, "invalid"),
        (&["push", "-p", "1", "--otlp", "https://127.0.0.1:4318"], 2, "no TLS"),
        (&["push", "-p", "1", "--otlp", "http://h", "--header", "a b=c"], 2, "not a valid header name"),
        (&["push", "-p", "1"], 2, "--otlp"),
    ];
    for (arguments, code, part) in rows {
        let finished = run(["counters"].into_iter().chain(arguments.iter().copied()));
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert!(finished.stderr.contains(part), "{part}: {finished:?}");
    }
}
