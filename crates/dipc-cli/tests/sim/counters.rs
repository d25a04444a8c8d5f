//! Sessions of dotnet-counters that were captured, replayed: `dipc counters collect` writes what that tool
//! wrote.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{Sim, dipc};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/counters").join(name)
}

/// Unpacks a recording, and returns its path.
fn unpacked(folder: &TempDir, recording: &str) -> String {
    let file = folder.path().join("replayed.nettrace");
    fs::write(&file, ::testdata::bytes_at(testdata(recording).as_ref())).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Collects the replay of a simulated runtime in this format.
fn collected(recording: &str, format: &str) -> String {
    let folder = TempDir::new().unwrap();
    let replayed = unpacked(&folder, recording);
    let sim = Sim::start(1, &["--replay", &replayed, "--speed", "max"]);
    let output = folder.path().join(format!("counters.{format}"));
    let arguments =
        ["counters", "collect", "--endpoint", sim.endpoint(), "--counters", "*", "--format", format];
    let mut command = dipc(&arguments);
    // The replay is over at once, and silence is not waited for; the session goes on until it is stopped.
    let finished = command.args(["--duration", "1s", "-o"]).arg(&output).env("TZ", "UTC").output().unwrap();
    assert_eq!(finished.status.code(), Some(0), "{finished:?}");
    fs::read_to_string(output).unwrap()
}

#[test]
fn a_mistyped_counter_lists_the_received_counters() {
    let folder = TempDir::new().unwrap();
    let recording = unpacked(&folder, "net10-csv.nettrace.xz");
    let sim = Sim::start(1, &["--replay", &recording, "--speed", "max"]);
    let counters = ["--counters", "System.Runtime[cpu-usag]"];
    let monitor = ["counters", "monitor", "--duration", "2s", "--endpoint", sim.endpoint()];
    for command in [&["counters", "read", &recording][..], &monitor] {
        let finished = dipc(&[command, &counters].concat()).output().unwrap();
        let stderr = String::from_utf8(finished.stderr).unwrap();
        assert_eq!(finished.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("\nhelp: none of the received counters was requested: "), "{stderr}");
        assert!(stderr.contains("System.Runtime["), "{stderr}");
    }
}

/// Counters that a runtime silently stops are requested again.
#[test]
fn silent_counters_are_requested_again() {
    let folder = TempDir::new().unwrap();
    let recording = unpacked(&folder, "net10-csv.nettrace.xz");
    // Everything arrives at once, and nothing afterwards.
    let sim = Sim::start(1, &["--replay", &recording, "--speed", "max"]);
    let arguments = ["counters", "monitor", "--refresh-interval", "0.1", "--endpoint", sim.endpoint()];
    let mut child = dipc(&arguments).spawn().unwrap();
    let mut messages = BufReader::new(child.stderr.take().unwrap()).lines();
    let silent = messages.find_map(|line| Some(line.unwrap()).filter(|line| line.contains("silent")));
    child.kill().unwrap();
    child.wait().unwrap();
    let silent = silent.expect("silence is said");
    assert!(silent.starts_with("warning: counters: the "), "{silent}");
    assert!(silent.ends_with("s, while the session runs: asking for them again"), "{silent}");
}

/// Idle connections make room for requests.
#[test]
fn silent_connections_do_not_delay_a_scrape() {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::time::Duration;

    let sim = Sim::start(1, &["--rate", "10"]);
    let mut command = dipc(&["counters", "serve", "--listen", "127.0.0.1:0", "--endpoint", sim.endpoint()]);
    let mut child = command.spawn().unwrap();
    let mut messages = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = messages.find_map(|line| {
        let line = line.unwrap();
        Some(line.split_once("http://")?.1.split_once('/')?.0.to_owned())
    });
    let address = address.unwrap();
    let silent: Vec<_> = (0..200).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let mut scrape = TcpStream::connect(&address).unwrap();
    // Before, they had five seconds each, eight at a time.
    scrape.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(scrape, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    scrape.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    drop(silent);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn csv_matches_the_tool_from_end_to_end() {
    let expected = fs::read_to_string(testdata("net10-csv.csv")).unwrap();
    assert_eq!(collected("net10-csv.nettrace.xz", "csv"), expected);
}

/// The tool writes when it received a value, which a replay does not repeat, and the name of the process,
/// which the stream lacks.
#[test]
fn json_matches_the_tool_from_end_to_end() {
    let expected = fs::read_to_string(testdata("net10-json.json")).unwrap();
    let without_times = |json: &str| -> Vec<String> {
        let (_, events) = json.split_once("\"Events\": ").unwrap();
        let mut parts = events.split("\"timestamp\": \"");
        let first = parts.next().unwrap().to_owned();
        let rest = parts.map(|part| part.split_once('"').unwrap().1.to_owned());
        [first].into_iter().chain(rest).collect()
    };
    let json = collected("net10-json.nettrace.xz", "json");
    assert!(json.starts_with("{ \"TargetProcess\": \"\", \"StartTime\": \"2026-11-21T09:19:3"), "{json}");
    assert_eq!(without_times(&json), without_times(&expected));
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&json).unwrap()["Events"].as_array().unwrap().len(),
        250
    );
}
