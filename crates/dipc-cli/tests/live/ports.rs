//! Ports that runtimes connect to, and programs that are started to be recorded.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Running, await_next_request, dipc, run, stat};
use crate::runtime::Runtime;
use crate::workload::Workload;

const ALL_EVENTS: &str = "Workload-Typed:FFFFFFFFFFFFFFFF:5";
const PATIENCE: Duration = Duration::from_secs(60);

/// The words of a command line.
pub(crate) fn words(command: &Command) -> Vec<&OsStr> {
    std::iter::once(command.get_program()).chain(command.get_args()).collect()
}

/// `dipc trace ARGUMENTS -- COMMAND MORE`.
fn launch(arguments: &[&str], command: &[&OsStr], more: &[&str]) -> Running {
    let mut dipc = dipc(["trace"].into_iter().chain(arguments.iter().copied()));
    dipc.arg("--").args(command).args(more).env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
    Running::start(dipc)
}

/// How many rounds of `emit` a recording has.
fn rounds(file: &Path) -> u64 {
    let stat = stat(file, 0);
    stat.assert_whole();
    assert_eq!(stat.lost(), 0);
    stat.count("Workload-Typed", "Nothing")
}

#[test]
fn a_program_is_recorded_from_its_first_moment_and_its_code_is_ours() {
    for runtime in [Runtime::NativeAot9, Runtime::Net9_0] {
        let Some(workload) = runtime.workload() else { continue };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out.nettrace");
        let arguments = ["-o", file.to_str().unwrap(), "--providers", ALL_EVENTS];
        launch(&arguments, &words(&workload), &["emit 500", "quit 7"]).finish().with_code(7);
        assert_eq!(rounds(&file), 500);

        if runtime == Runtime::Net9_0 {
            let arguments = ["-o", file.to_str().unwrap(), "--clrevents", "loader"];
            launch(&arguments, &words(&workload), &["quit"]).finish().with_code(0);
            let path = file.to_str().unwrap();
            let first = run(["events", path, "--format", "jsonl", "--head", "20"]).with_code(0);
            let ids: Vec<_> = first.json_lines().map(|event| event["id"].as_u64().unwrap()).collect();
            // The runtime says what it is, and loads its own library, before anything of the program.
            assert!(ids.contains(&187), "{ids:?}");
        }
    }
}

#[test]
fn a_program_that_talks_is_never_held_up_and_heard_only_on_request() {
    let Some(workload) = Runtime::NativeAot9.workload() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.nettrace");
    let script = "seq 1 300000; seq 1 300000 >&2; exec \"$0\" quit";
    let command: Vec<_> = [OsStr::new("sh"), OsStr::new("-c"), OsStr::new(script)]
        .into_iter()
        .chain(words(&workload))
        .collect();
    let arguments = ["-o", file.to_str().unwrap(), "--providers", ALL_EVENTS];
    let quiet = launch(&arguments, &command, &[]).finish().with_code(0);
    assert_eq!(quiet.text(), "");
    let shown = launch(&[&arguments[..], &["--show-child-io"]].concat(), &command, &[]).finish().with_code(0);
    assert!(shown.text().starts_with("1\n2\n3\n"), "{}", shown.text());
    assert!(shown.text().contains("\n300000\nready "), "the workload's own line comes last");
}

#[test]
fn resumes_or_records_other_programs_at_the_port() {
    let Some(workload) = Runtime::NativeAot9.workload() else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = "\"$0\" 'emit 10' quit; \"$0\" 'emit 20' quit; exit 5";
    let command: Vec<_> = [OsStr::new("sh"), OsStr::new("-c"), OsStr::new(script)]
        .into_iter()
        .chain(words(&workload))
        .collect();
    let file = folder.path().join("out.nettrace");
    let arguments = ["-o", file.to_str().unwrap(), "--providers", ALL_EVENTS];
    launch(&arguments, &command, &[]).finish().with_code(5);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

    launch(&[&arguments[..], &["--follow"]].concat(), &command, &[]).finish().with_code(5);
    let counts: BTreeSet<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| rounds(&entry.unwrap().path())).collect();
    assert_eq!(counts, BTreeSet::from([10, 20]));
}

#[test]
fn reports_other_clients_of_a_port_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.nettrace");
    let arguments = ["-o", file.to_str().unwrap()];
    let command = [OsStr::new("sh"), OsStr::new("-c"), OsStr::new("exit 3")];
    let ended = launch(&arguments, &command, &[]).finish().with_code(1);
    ended.assert_error_names(&["sh", "code 3", "no .NET runtime had connected"]);
    let missing = launch(&arguments, &[OsStr::new("/nonexistent/program")], &[]).finish().with_code(1);
    missing.assert_error_names(&["/nonexistent/program"]);
    assert!(!file.exists());
    // Nothing of the private port is left.
    run(["trace", "--"]).with_code(2);
}

#[test]
fn a_started_program_has_the_limit_on_open_files_that_dipc_was_started_with() {
    let script = "ulimit -Sn 256; exec \"$0\" trace --show-child-io -- sh -c 'ulimit -Sn'";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_dipc")]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = Running::start(command).finish().with_code(1);
    assert_eq!(ended.text(), "256\n");
}

#[test]
fn the_second_interrupt_ends_the_program() {
    let Some(workload) = Runtime::NativeAot9.workload() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.nettrace");
    let arguments = ["-o", file.to_str().unwrap(), "--providers", ALL_EVENTS];
    let mut running = launch(&arguments, &words(&workload), &["emit 5", "hang 600000"]);
    running.until_recorded(&file, 1);
    running.signal(Signal::INT);
    let deadline = Instant::now() + PATIENCE;
    // The recording ends with the first.
    while run(["stat", file.to_str().unwrap()]).code != Some(0) {
        assert!(Instant::now() < deadline, "the recording does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    await_next_request();
    running.signal(Signal::INT);
    // 128 and SIGKILL, as shells have it.
    running.finish().with_code(137);
}

/// Returns true if a process is there and does something.
fn is_alive(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Two fast ones are one request; with the next the program goes, and with it what it has started.
#[test]
fn interrupts_leave_no_orphan_of_the_program() {
    let Some(workload) = Runtime::NativeAot9.workload() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (file, pid) = (folder.path().join("out.nettrace"), folder.path().join("pid"));
    // The shell is the child, the runtime a child of the shell.
    let script = "\"$0\" \"$@\" & echo $! > \"$PIDFILE\"; wait";
    let mut dipc =
        dipc(["trace", "-o", file.to_str().unwrap(), "--providers", ALL_EVENTS, "--", "sh", "-c", script]);
    dipc.args(words(&workload)).args(["emit 5", "hang 600000"]).env("PIDFILE", &pid);
    dipc.env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
    let mut running = Running::start(dipc);
    running.until_recorded(&file, 1);
    running.signal(Signal::INT);
    running.signal(Signal::INT);
    let pid = fs::read_to_string(&pid).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while run(["stat", file.to_str().unwrap()]).code != Some(0) {
        assert!(Instant::now() < deadline, "the recording does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(is_alive(pid.trim()), "the first request ends the recording only");
    await_next_request();
    running.signal(Signal::INT);
    running.finish().with_code(137);
    while is_alive(pid.trim()) {
        assert!(Instant::now() < deadline, "process {pid} is left");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A program is not left suspended if its recording cannot begin.
#[test]
fn a_program_that_cannot_be_recorded_is_ended() {
    let Some(workload) = Runtime::NativeAot9.workload() else { return };
    let ended = launch(&["-o", "/nonexistent/out.nettrace"], &words(&workload), &["quit"]).finish();
    ended.with_code(1).assert_error_names(&["/nonexistent/out.nettrace"]);
}

#[test]
fn a_port_takes_few_threads() {
    let folder = tempfile::tempdir().unwrap();
    let port = folder.path().join("port");
    let ports = Running::start(dipc(["ports", port.to_str().unwrap(), "--resume", "--format", "jsonl"]));
    let Some(mut workload) = start_with_ports(port.to_str().unwrap(), &["emit 5", "quit"]) else { return };
    assert!(workload.wait().unwrap().success(), "it was resumed");
    let threads = fs::read_dir(format!("/proc/{}/task", ports.pid())).unwrap().count();
    ports.signal(Signal::INT);
    ports.finish().with_code(0);
    assert!(threads <= 8, "{threads} threads");
}

/// Starts a workload with these ports, and without any output.
pub(crate) fn start_with_ports(ports: &str, arguments: &[&str]) -> Option<std::process::Child> {
    let mut command = Runtime::NativeAot9.workload()?;
    command
        .args(arguments)
        .env("DOTNET_DiagnosticPorts", ports)
        .env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
    command.stdin(Stdio::null()).stdout(Stdio::null());
    Some(command.spawn().unwrap())
}

#[test]
fn arrivals_and_departures_at_a_port_are_lines() {
    let folder = tempfile::tempdir().unwrap();
    let port = folder.path().join("port");
    let printed = folder.path().join("lines");
    let mut ports = dipc(["ports", port.to_str().unwrap(), "--resume", "--format", "jsonl"]);
    ports.stdout(fs::File::create(&printed).unwrap());
    let ports = Running::start(ports);
    // A runtime that ended at once might do so before it has answered.
    let Some(mut workload) = start_with_ports(port.to_str().unwrap(), &["hang 2000", "quit"]) else { return };
    assert!(workload.wait().unwrap().success(), "it was resumed");
    let deadline = Instant::now() + PATIENCE;
    let read = || fs::read_to_string(&printed).unwrap();
    while !(read().contains("gone") && read().contains("resumed")) {
        assert!(Instant::now() < deadline, "{}", read());
        std::thread::sleep(Duration::from_millis(20));
    }
    ports.signal(Signal::INT);
    ports.finish().with_code(0);
    let lines: Vec<Value> = read().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events.first(), Some(&"connected"), "{lines:?}");
    assert_eq!(events.iter().collect::<BTreeSet<_>>(), BTreeSet::from([&"connected", &"gone", &"resumed"]));
    for line in &lines {
        assert_eq!((&line["pid"], &line["cookie"]), (&workload.id().into(), &lines[0]["cookie"]));
        assert!(line["time"].as_str().unwrap().ends_with('Z'));
    }
    assert!(!port.exists(), "the socket goes with the program");
}

#[test]
fn records_connecting_and_listening_runtimes() {
    let folder = tempfile::tempdir().unwrap();
    let port = folder.path().join("port");
    let file = folder.path().join("out.nettrace");
    let output = ["-o", file.to_str().unwrap(), "--providers", ALL_EVENTS];

    let ours = ["trace", "--diagnostic-port", port.to_str().unwrap()];
    let running = Running::start(dipc(ours.into_iter().chain(output)));
    let Some(mut workload) = start_with_ports(port.to_str().unwrap(), &["emit 10", "quit"]) else { return };
    running.finish().with_code(0);
    assert!(workload.wait().unwrap().success());
    assert_eq!(rounds(&file), 10);

    let mut workload = Workload::start(Runtime::NativeAot9).unwrap();
    let theirs = format!("{},connect", workload.socket().display());
    fs::remove_file(&file).unwrap();
    let mut running = Running::start(dipc(["trace", "--diagnostic-port", &theirs].into_iter().chain(output)));
    running.until_recorded(&file, 1);
    workload.run("emit 10");
    running.signal(Signal::INT);
    running.finish().with_code(0);
    assert_eq!(rounds(&file), 10);
}

#[test]
fn other_machines_are_reached_on_request_only() {
    run(["info", "--endpoint", "192.0.2.1:9"]).with_code(2).assert_error_names(&["192.0.2.1"]);
    run(["ports", "0.0.0.0:0"]).with_code(2).assert_error_names(&["0.0.0.0"]);
    let nobody = run(["info", "--endpoint", "127.0.0.1:1"]);
    assert!(matches!(nobody.code, Some(1 | 3)), "{nobody:?}");
}

/// Passes every connection to a TCP port on to a socket, as `ssh -L` and dotnet-dsrouter do.
fn forward(socket: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = UnixStream::connect(&socket) else { continue };
            let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from_client, &mut to_server);
                let _ = to_server.shutdown(Shutdown::Write);
            });
            let (mut from_server, mut to_client) = (server, client);
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from_server, &mut to_client);
                let _ = to_client.shutdown(Shutdown::Both);
            });
        }
    });
    port
}

#[test]
fn a_forwarded_runtime_is_reached_over_tcp() {
    let Some(mut workload) = Workload::start(Runtime::NativeAot9) else { return };
    let address = format!("127.0.0.1:{}", forward(workload.socket()));
    let info = run(["info", "--endpoint", &address, "--format", "json"]).with_code(0).json();
    assert_eq!(
        info["namespace_pid"].as_u64().or(info["pid"].as_u64()),
        Some(workload.pid().into()),
        "{info}"
    );

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.nettrace");
    let arguments =
        ["trace", "--endpoint", &address, "-o", file.to_str().unwrap(), "--providers", ALL_EVENTS];
    let mut running = Running::start(dipc(arguments));
    running.until_recorded(&file, 1);
    workload.run("emit 10");
    running.signal(Signal::INT);
    running.finish().with_code(0);
    assert_eq!(rounds(&file), 10);
}
