//! Profiles of other kinds than processor time, and exceptions of the past, by a monitor.

use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::Value;

use crate::monitor::{await_that, get};
use crate::program::{Running, dipc, run};
use crate::runtime::Runtime;
use crate::web_server::WebServer;
use crate::workload::Workload;

/// A monitor of a process.
struct Monitor {
    running: Running,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Monitor {
    fn start(pid: u32, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("http");
        let (urls, filter) = (format!("unix:{}", socket.display()), format!("ProcessId={pid}"));
        let fixed = ["monitor", "--urls", &urls, "--filter", &filter, "--metrics", "false"];
        let mut running = Running::start(dipc(fixed.iter().chain(options).copied()));
        running.until_said("Listening at   : ");
        await_that("the process is watched", || {
            get(&socket, "/processes").is_some_and(|answer| answer.contains(&format!("\"pid\":{pid}")))
        });
        Self { running, socket, _folder: folder }
    }

    fn json(&self, path: &str) -> Value {
        let answer = get(&self.socket, path).expect("the monitor answers");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
        // Between the lengths of chunks.
        let object = answer.find('{').zip(answer.rfind('}')).map(|(first, last)| &answer[first..=last]);
        serde_json::from_str(object.unwrap()).unwrap()
    }

    fn interrupt(self) {
        self.running.signal(Signal::INT);
        self.running.finish().with_code(0);
    }
}

#[test]
fn hot_methods_are_of_the_requested_kind() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let pid = workload.pid();
    let monitor = Monitor::start(pid, &["--keep", "0s"]);
    let top = std::thread::scope(|scope| {
        let top = scope.spawn(|| monitor.json(&format!("/top?pid={pid}&kind=exception&durationSeconds=3")));
        while !top.is_finished() {
            workload.run("throw 5");
        }
        top.join().unwrap()
    });
    assert_eq!(top["unit"], "count", "{top}");
    assert!(top["total"].as_u64() > Some(0), "{top}");
    for (path, part) in [
        (format!("/profile?pid={pid}&kind=alloc"), "samples of the machine are not kept"),
        (format!("/top?pid={pid}&kind=cpu"), "kind"),
    ] {
        let answer = get(&monitor.socket, &path).unwrap();
        assert!(!answer.starts_with("HTTP/1.1 200 ") && answer.contains(part), "{answer}");
    }
    monitor.interrupt();
}

#[test]
fn slow_requests_have_their_methods() {
    let Some(server) = WebServer::start() else { return };
    let pid = server.pid();
    let monitor = Monitor::start(pid, &["--keep", "0s"]);
    let answer = std::thread::scope(|scope| {
        let answer =
            scope.spawn(|| monitor.json(&format!("/requests?pid={pid}&slower_than=0ms&durationSeconds=4")));
        while !answer.is_finished() {
            server.get("/");
        }
        answer.join().unwrap()
    });
    assert!(answer["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{answer}");
    assert_eq!(answer["slower"]["unit"], "ns", "{answer}");
    let refused = get(&monitor.socket, &format!("/requests?pid={pid}&slower_than=5")).unwrap();
    assert!(refused.starts_with("HTTP/1.1 400 ") && refused.contains("slower_than"), "{refused}");
    monitor.interrupt();
}

/// Nothing was asked before the exceptions were thrown.
#[test]
fn the_last_exceptions_are_known_afterwards() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let pid = workload.pid().to_string();
    let filter = format!("ProcessId={pid}");
    let exceptions = |url: &str, options: &[&str]| {
        run(["exceptions", "-p", &pid, "--monitor", url].into_iter().chain(options.iter().copied()))
    };
    // Nothing listens at the first port.
    let refused = exceptions("http://127.0.0.1:1", &[]).with_code(3);
    refused.assert_error_names(&["the monitor at", "refused"]);
    assert!(refused.stderr.contains("help: 'dipc monitor' keeps"), "{}", refused.stderr);
    let socket = format!("unix:{}", workload.folder().join("http").display());
    let urls = format!("http://127.0.0.1:0;{socket}");
    let mut running = Running::start(dipc([
        "monitor",
        "--urls",
        &urls,
        "--filter",
        &filter,
        "--metrics",
        "false",
        "--keep",
        "10m",
    ]));
    running.until_said("Listening at   : ");
    let mut url = String::new();
    await_that("the whole line is there", || {
        let said = running.said();
        let line = said.split_once("Listening at   : ").and_then(|(_, rest)| rest.split_once('\n'));
        line.is_some_and(|(address, _)| {
            url = address.trim().to_owned();
            true
        })
    });
    let exceptions = |options: &[&str]| exceptions(&url, options);
    let list = || {
        let finished = exceptions(&["--format", "json"]);
        (finished.code == Some(0)).then(|| finished.json().as_array().cloned().unwrap_or_default())
    };
    await_that("the black box is asked", || list().is_some());
    await_that("exceptions are kept", || {
        workload.run("throw 1");
        list().is_some_and(|list| !list.is_empty())
    });
    let [first, ..] = &list().unwrap()[..] else { panic!() };
    assert!(first["typeName"].as_str().is_some_and(|name| name.contains("Exception")), "{first}");
    let at_socket = run(["exceptions", "-p", &pid, "--monitor", &socket, "--format", "json"]).with_code(0);
    assert_eq!(at_socket.json()[0], *first);
    let text = exceptions(&[]).with_code(0).text();
    assert!(text.contains(first["typeName"].as_str().unwrap()), "{text}");
    running.signal(Signal::INT);
    running.finish().with_code(0);
}
