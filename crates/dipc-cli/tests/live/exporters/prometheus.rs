//! `dipc counters serve`, and a Prometheus that scrapes it.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{PATIENCE, until};
use crate::program::dipc;

/// `dipc counters serve`, running.
pub(super) struct Served {
    child: Child,
    /// Address and port.
    pub(super) address: String,
}

/// The end of [`Served`].
pub(super) struct Ended {
    pub(super) code: Option<i32>,
}

impl Served {
    /// Starts it, and waits until it listens.
    pub(super) fn start(arguments: &[&str]) -> Self {
        let mut command = dipc(["counters", "serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.args(arguments).stdout(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let listening =
            lines.find_map(|line| Some(line.split_once("http://")?.1.strip_suffix("/metrics")?.to_owned()));
        let address = listening.expect("it listens");
        // What it says later is read, so that it never waits for that.
        thread::spawn(move || lines.for_each(|line| eprintln!("{line}")));
        Self { child, address }
    }

    /// Its answer to a scrape: the head and the body.
    pub(super) fn get(&self, accept: &str) -> (String, String) {
        get(&self.address, "/metrics", accept)
    }

    /// Sends a signal if there is one, and waits for its end.
    pub(super) fn finish(mut self, signal: Option<Signal>) -> Ended {
        if let Some(signal) = signal {
            kill_process(Pid::from_child(&self.child), signal).unwrap();
        }
        let status = until("its end", || self.child.try_wait().unwrap());
        Ended { code: status.code() }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the head and the body of an HTTP answer.
fn get(address: &str, path: &str, accept: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\nAccept: {accept}\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&*answer, ""));
    (head.to_owned(), body.to_owned())
}

/// A program of Debian's package prometheus; none where it is missing, which is then said.
fn program(name: &str) -> Option<PathBuf> {
    static SAID: OnceLock<()> = OnceLock::new();
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file());
    if found.is_none() {
        let required =
            std::env::var("DIPC_REQUIRE_PROMETHEUS").is_ok_and(|it| !matches!(&*it, "" | "0" | "false"));
        let why = format!("{name} is missing (Debian: apt-get install prometheus)");
        assert!(!required, "{why}");
        SAID.get_or_init(|| {
            let _ = writeln!(std::io::stderr(), "!!! NOT RUN tests of exporters: {why}");
        });
    }
    found
}

/// Has promtool check the text that is served. It may dislike names that .NET chose.
pub(super) fn check_metrics(address: &str) {
    let Some(promtool) = program("promtool") else { return };
    let (head, text) = get(address, "/metrics", "text/plain;version=0.0.4");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    let mut checking = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    checking.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = checking.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let is_known = |line: &str| {
        line.ends_with("should not have \"_count\" suffix")
            || line.starts_with("x_TYPE_y metric names should")
    };
    assert!(said.lines().all(is_known), "{said}\n{text}");
    // 3: only remarks on style.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
}

/// A Prometheus that scrapes one address every second.
pub(super) struct Prometheus {
    child: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    /// Starts it; none where it is missing, which is then said.
    pub(super) fn start(target: &str, options: &[&str]) -> Option<Self> {
        let program = program("prometheus")?;
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("prometheus.yml");
        let text = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n- job_name: dipc\n  static_configs: [{{targets: ['{target}']}}]\n"
        );
        std::fs::write(&config, text).unwrap();
        // It cannot choose a free port.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let child = Command::new(program)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(&address).is_err()
            || !get(&address, "/-/ready", "*/*").0.starts_with("HTTP/1.0 200")
        {
            assert!(Instant::now() < deadline, "prometheus does not become ready");
            thread::sleep(Duration::from_millis(50));
        }
        Some(Self { child, address, _folder: folder })
    }

    fn api(&self, path: &str) -> Value {
        let (head, body) = get(&self.address, path, "application/json");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {head}\n{body}"))
    }

    fn query(&self, query: &str) -> Vec<Value> {
        let encoded = query.bytes().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "%{byte:02X}");
            text
        });
        let answer = self.api(&format!("/api/v1/query?query={encoded}"));
        assert_eq!(answer["status"], "success", "{answer}");
        answer["data"]["result"].as_array().unwrap().clone()
    }

    /// The number of the only series that a query has.
    pub(super) fn value(&self, query: &str) -> Option<f64> {
        let found = self.query(query);
        assert!(found.len() < 2, "{query}: {found:?}");
        found.first()?["value"][1].as_str()?.parse().ok()
    }

    /// Waits for more scrapes.
    pub(super) fn await_scrapes(&self, count: u32) {
        let scrapes = || self.value("count_over_time(up[1h])");
        let before = until("a scrape", scrapes);
        until("later scrapes", || scrapes().filter(|now| *now >= before + f64::from(count)));
    }

    /// A label of the only series of a name.
    pub(super) fn label(&self, query: &str, label: &str) -> Option<String> {
        let found = self.query(query);
        assert!(found.len() < 2, "{query}: {found:?}");
        Some(found.first()?["metric"][label].as_str()?.to_owned())
    }

    /// The last scrape went well, and so did all before.
    pub(super) fn assert_healthy(&self) {
        let answer = self.api("/api/v1/targets");
        let target = &answer["data"]["activeTargets"][0];
        assert_eq!((&target["health"], &target["lastError"]), (&"up".into(), &"".into()), "{target}");
        assert!(self.value("min_over_time(up[5m])").is_some_and(|up| up > 0.5));
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
