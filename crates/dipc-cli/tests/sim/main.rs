//! `dipc sim` as a script runs it.

#![cfg(unix)]

mod counters;
mod flight;
mod heap;
mod names;
mod top;
mod user_events;

use std::fs;
use std::io::{BufRead, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

fn dipc(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dipc"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = dipc(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// Simulated runtimes, which end when this is dropped.
struct Sim {
    child: Child,
    stdout: BufReader<ChildStdout>,
    folder: TempDir,
    /// The sockets, as the ready lines have them.
    endpoints: Vec<PathBuf>,
}

impl Sim {
    /// Starts `count` runtimes in a folder of their own.
    fn start(count: usize, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = dipc(&["sim", "--count", &count.to_string()]);
        command.args(arguments).env("TMPDIR", folder.path()).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let endpoints = (0..count).map(|_| ready(&mut stdout, child.id())).collect();
        Self { child, stdout, folder, endpoints }
    }

    fn endpoint(&self) -> &str {
        self.endpoints[0].to_str().unwrap()
    }

    /// Waits for the end: its outcome, and its messages besides the ready lines.
    fn end(&mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.child.stdin = None;
        let _ = self.child.wait();
    }
}

/// Reads a ready line: the endpoint.
fn ready(stdout: &mut impl BufRead, pid: u32) -> PathBuf {
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let endpoint = line.strip_prefix(&format!("ready {pid} ")).unwrap_or_else(|| panic!("{line:?}"));
    endpoint.trim_end().into()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_simulation_announces_its_endpoint_and_ends_with_standard_input() {
    let mut sim = Sim::start(3, &[]);
    let mut sockets = files(sim.folder.path());
    sockets.sort();
    let mut endpoints = sim.endpoints.clone();
    endpoints.sort();
    assert_eq!(sockets, endpoints);
    for endpoint in &endpoints {
        assert_eq!(fs::metadata(endpoint).unwrap().mode() & 0o777, 0o600);
        let (code, stderr, _) = run(&["info", "--format", "json", "--endpoint", endpoint.to_str().unwrap()]);
        assert_eq!(code, Some(0));
        assert!(stderr.contains("\"10.0.5\"") && stderr.contains(&sim.child.id().to_string()), "{stderr}");
    }
    let pid = sim.child.id().to_string();
    let (_, list, _) = run(&["ps"]);
    assert!(list.lines().any(|line| line.split_whitespace().next() == Some(&pid)), "{list}");

    sim.child.stdin = None;
    let folder = sim.folder.path().to_owned();
    assert_eq!(sim.child.wait().unwrap().code(), Some(0));
    assert!(files(&folder).is_empty());
}

/// As `dipc sim &` in a script has it.
#[test]
fn a_simulation_without_input_runs_until_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = dipc(&["sim", "--dir", folder.path().to_str().unwrap()]);
    let mut child = command.spawn().unwrap();
    let endpoint = ready(&mut BufReader::new(child.stdout.take().unwrap()), child.id());
    let (code, _, stderr) = run(&["info", "--endpoint", endpoint.to_str().unwrap()]);
    let ended = child.try_wait().unwrap();
    let _ = kill_process(Pid::from_child(&child), Signal::TERM);
    assert_eq!((code, ended, child.wait().unwrap().code()), (Some(0), None, Some(0)), "{stderr}");
    assert!(files(folder.path()).is_empty());
}

#[test]
fn a_signal_ends_the_simulation_and_removes_its_sockets() {
    for signal in [Signal::INT, Signal::TERM] {
        let elsewhere = tempfile::tempdir().unwrap();
        let mut sim = Sim::start(2, &["--dir", elsewhere.path().to_str().unwrap()]);
        assert_eq!(files(elsewhere.path()).len(), 2);
        kill_process(Pid::from_child(&sim.child), signal).unwrap();
        assert_eq!(sim.end(), (Some(0), String::new()));
        assert!(files(elsewhere.path()).is_empty());
    }
}

#[test]
fn the_runtime_has_the_version_and_the_faults_of_the_arguments() {
    for (arguments, timeout, code, error) in [
        (&["--version", "3.1"][..], "60s", 4, "0x80131385"),
        (&["--version", "11", "--fault", "error:0x80004005"], "60s", 4, "0x80004005"),
        (&["--fault", "never-answer"], "200ms", 5, "no answer"),
        (&["--fault", "stale-socket"], "60s", 3, "no process listens"),
        (&["--fault", "wrong-magic"], "60s", 1, "DOTNET_IPC_V9"),
        (&["--fault", "wrong-magic@ProcessInfo3#1"], "60s", 1, "DOTNET_IPC_V9"),
        (&["--fault", "wrong-magic@ProcessInfo3#2", "--fault", "wrong-magic@StopTracing"], "60s", 0, ""),
    ] {
        let sim = Sim::start(1, arguments);
        let (found, _, stderr) = run(&["info", "--timeout", timeout, "--endpoint", sim.endpoint()]);
        assert_eq!(found, Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(error), "{arguments:?}: {stderr}");
    }
}

#[test]
fn each_listed_fault_is_accepted() {
    let (code, list, _) = run(&["sim", "--list-faults"]);
    assert_eq!(code, Some(0));
    let names: Vec<_> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() >= 16);
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    for name in names {
        if name != "foreign-owner" || is_root {
            Sim::start(1, &["--fault", name]);
        }
    }
}

#[test]
fn an_invalid_argument_is_named_in_the_error() {
    for (arguments, error) in [
        (&["sim", "--fault", "explode"][..], "unknown fault \"explode\""),
        (&["sim", "--fault", "flood@Flood"], "\"Flood\" is not a command of the protocol"),
        (&["sim", "--version", "7"], "3.1, 6, 8, 9, 10, 11 or nativeaot-9"),
        (&["sim", "--connect", "/x,listen"], "--connect connects"),
        (&["sim", "--replay", "x", "--speed", "0"], "above 0"),
    ] {
        let (code, _, stderr) = run(arguments);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(error), "{stderr}");
    }
    let (code, _, stderr) = run(&["sim", "--replay", "/no/such/file"]);
    assert!(code == Some(1) && stderr.contains("/no/such/file"), "{stderr}");
}

#[test]
fn many_runtimes_connect_to_one_port() {
    const COUNT: usize = 200;
    let folder = tempfile::tempdir().unwrap();
    let port = folder.path().join("port");
    let listener = UnixListener::bind(&port).unwrap();
    let sim = Sim::start(COUNT, &["--connect", port.to_str().unwrap()]);
    assert!(sim.endpoints.iter().all(|endpoint| *endpoint == port));
    let mut cookies = std::collections::BTreeSet::new();
    let mut connections = Vec::new();
    while cookies.len() < COUNT {
        let (mut connection, _) = listener.accept().unwrap();
        let mut advertise = [0; 34];
        connection.read_exact(&mut advertise).unwrap();
        assert_eq!(&advertise[..8], b"ADVR_V1\0");
        assert_eq!(advertise[24..32], u64::from(sim.child.id()).to_le_bytes());
        cookies.insert(advertise[8..24].to_vec());
        connections.push(connection);
    }
    assert_eq!(connections.len(), COUNT);
}
