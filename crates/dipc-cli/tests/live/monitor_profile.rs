//! `dipc monitor --profile-keep`: the machine is sampled all the time, and asked afterwards.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use jiff::Timestamp;
use rustix::process::Signal;
use serde_json::Value;

use crate::machine::may_sample_machine;
use crate::monitor::{await_that, get};
use crate::nobody::Nobody;
use crate::program::{Running, dipc, run};
use crate::runtime::{Runtime, on_runtimes, say_not_run};
use crate::workload::Workload;

on_runtimes!(a_time_that_nobody_recorded_has_its_hot_method: nativeaot_9, net_3_1, net_8_0, net_9_0);

/// A monitor that has no sessions in any process, with a ring below a folder.
struct Monitor {
    running: Running,
    socket: PathBuf,
}

impl Monitor {
    fn start(folder: &Path, options: &[&str]) -> Self {
        let socket = folder.join("http");
        let mut running = Running::start(dipc(Self::arguments(folder, options).iter().map(String::as_str)));
        running.until_said("Profile        : ");
        running.until_said("Listening at   : ");
        Self { running, socket }
    }

    fn arguments(folder: &Path, options: &[&str]) -> Vec<String> {
        let urls = format!("unix:{}", folder.join("http").display());
        let directory = folder.join("ring").display().to_string();
        let fixed =
            ["monitor", "--urls", &urls, "--metrics", "false", "--keep", "0s", "--profile-keep", "1h"];
        let ring = ["--profile-directory", &directory, "--profile-segment", "1s"];
        fixed.iter().chain(&ring).chain(options).map(|text| (*text).to_owned()).collect()
    }

    fn get(&self, path: &str) -> String {
        get(&self.socket, path).expect("the monitor answers")
    }

    fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
        serde_json::from_str(body).unwrap()
    }

    /// Writes the body of an answer into a file.
    fn save(&self, path: &str, file: &Path) {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = b"\r\n\r\n";
        let head = answer.windows(end.len()).position(|bytes| bytes == end).unwrap();
        fs::write(file, &answer[head + end.len()..]).unwrap();
    }
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("ring")).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "nettrace"));
    paths.sort();
    paths
}

fn range(from: Timestamp, to: Timestamp) -> String {
    format!("from={from}&to={to}")
}

fn may_sample() -> bool {
    let may = may_sample_machine();
    if !may {
        say_not_run("the kernel does not permit samples of the machine");
    }
    may
}

fn a_time_that_nobody_recorded_has_its_hot_method(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    if !may_sample() {
        return;
    }
    let folder = workload.folder().to_owned();
    let pid = workload.pid();
    workload.run("spin 500");
    let monitor = Monitor::start(&folder, &[]);
    let before = Timestamp::now();
    workload.run("spin 4000");
    let after = Timestamp::now();
    let times = range(before, after);
    await_that("the time is kept", || {
        let to = monitor.json("/health")["profile"]["to"].as_str().map(|to| to.parse::<Timestamp>().unwrap());
        to > Some(after)
    });
    let top = monitor.json(&format!("/profile?{times}&pid={pid}&format=json&number=100"));
    // On a busy machine it runs for a part of the time.
    assert!(top["samples"].as_u64() > Some(0), "{top}");
    let rows = top["rows"].as_array().unwrap();
    // The program of NativeAOT is stripped, and has the name of its image.
    let hot = if runtime == Runtime::NativeAot9 { "workload" } else { "Spin.Fib(" };
    let has_hot = |rows: &[Value]| rows.iter().any(|row| row["frame"].as_str().unwrap().contains(hot));
    assert!(has_hot(rows), "{top}");
    // The processes of the machine, and the same as a table.
    let all = monitor.json(&format!("/profile?{times}&format=processes"));
    let rows = all["processes"].as_array().unwrap();
    let own = rows.iter().find(|row| row["pid"].as_u64() == Some(pid.into()));
    assert_eq!(own.map(|row| &row["name"]), Some(&Value::from(runtime.process_name())), "{all}");
    let table = monitor.get(&format!("/profile?{times}&format=text"));
    assert!(table.contains("PROCESS") && table.contains("METHOD") && table.contains(hot), "{table}");
    for (format, part) in [("svg", "<svg"), ("html", "<!DOCTYPE html>")] {
        let answer = monitor.get(&format!("/profile?{times}&pid={pid}&format={format}"));
        let answer = answer.to_ascii_lowercase();
        assert!(answer.contains(&part.to_ascii_lowercase()), "{format}: {answer:.300}");
    }
    // The recording, by the other commands.
    let file = folder.join("range.nettrace");
    monitor.save(&format!("/profile?{times}&pid={pid}"), &file);
    let report = ["report", file.to_str().unwrap(), "topN", "--by", "cpu", "--format", "json"];
    let report = run(report).with_code(0).json();
    assert_eq!(report["samples"], top["samples"]);
    // Times of which nothing is kept say which are.
    let long_ago = monitor.get("/profile?from=7200&to=7100");
    assert!(
        long_ago.starts_with("HTTP/1.1 404 ") && long_ago.contains("samples are kept from"),
        "{long_ago}"
    );
    let health = monitor.json("/health");
    assert!(health["profile"]["recordings"].as_u64() > Some(0), "{health}");
    assert_eq!(
        (&health["profile"]["error"], &health["profile"]["droppedRecordings"]),
        (&Value::Null, &0.into())
    );
    monitor.running.signal(Signal::INT);
    monitor.running.finish().with_code(0);
    // The ring without its monitor, in the place of a recording.
    let ring = folder.join("ring").display().to_string();
    let top = |from: &str, to: &str| {
        run([
            "report",
            &ring,
            "topN",
            "--by",
            "cpu",
            "--from",
            from,
            "--to",
            to,
            "--pid",
            &pid.to_string(),
            "--format",
            "json",
        ])
    };
    let of_ring = top(&before.to_string(), &after.to_string()).with_code(0).json();
    assert_eq!(of_ring["samples"], report["samples"]);
    let by_process = ["report", &ring, "topN", "--by", "cpu", "--by-process", "--format", "json"];
    let by_process = run(by_process).with_code(0).json();
    let rows = by_process["processes"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["pid"].as_u64() == Some(pid.into())), "{by_process}");
    let of_day = |time: Timestamp| time.strftime("%H:%M:%SZ").to_string();
    let seconds = top(&of_day(before), &of_day(after)).with_code(0).json();
    assert!(seconds["samples"].as_u64() > Some(0), "{seconds}");
    let part = folder.join("part.nettrace").display().to_string();
    run(["edit", &ring, "--from", &before.to_string(), "--to", &after.to_string(), "-o", &part]).with_code(0);
    let of_part =
        run(["report", &part, "topN", "--by", "cpu", "--pid", &pid.to_string(), "--format", "json"]);
    assert_eq!(of_part.with_code(0).json()["samples"], report["samples"]);
    let nothing = top("2020-01-01T00:00:00Z", "2020-01-01T01:00:00Z").with_code(1);
    nothing.assert_error_names(&["nothing was kept of this time"]);
    assert!(nothing.stderr.contains("help: it has samples from"), "{}", nothing.stderr);
    // Each segment is a recording.
    let hot = segments(&folder).into_iter().filter(|segment| {
        let arguments = ["report", segment.to_str().unwrap(), "topN", "--by", "cpu", "--format", "json"];
        // The last ones are short, and may be without a sample.
        let finished = run(arguments);
        finished.code == Some(0) && has_hot(finished.json()["rows"].as_array().unwrap())
    });
    assert!(hot.count() > 1);
}

#[test]
fn a_monitor_that_is_killed_loses_the_current_recording_alone() {
    if !may_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let monitor = Monitor::start(folder.path(), &[]);
    await_that("two recordings are kept", || segments(folder.path()).len() >= 2);
    monitor.running.signal(Signal::KILL);
    monitor.running.finish();
    let kept = segments(folder.path());
    let part = kept[0].with_file_name(format!(".{}.part", kept[0].file_name().unwrap().to_str().unwrap()));
    fs::write(&part, "Nettr").unwrap();
    fs::remove_file(folder.path().join("http")).unwrap();
    let monitor = Monitor::start(folder.path(), &[]);
    assert!(!part.exists() && kept.iter().all(|path| path.exists()), "{:?}", segments(folder.path()));
    await_that("the ring goes on", || segments(folder.path()).len() > kept.len());
    // A second monitor does not write into it.
    let other = tempfile::tempdir().unwrap();
    let mut arguments = Monitor::arguments(folder.path(), &[]);
    arguments[2] = format!("unix:{}", other.path().join("http").display());
    let refused = Running::start(dipc(arguments.iter().map(String::as_str))).finish().with_code(1);
    refused.assert_error_names(&["another monitor uses it", "ring"]);
    monitor.running.signal(Signal::INT);
    monitor.running.finish().with_code(0);
}

/// In a mount namespace of its own the ring is on a file system that is full, until it is not.
#[test]
fn samples_wait_for_a_full_disk() {
    const SCRIPT: &str = r#"mount -t tmpfs -o size=1m none "$1" || exit 99
head -c 2000000 /dev/zero > "$1/filler"
shift; exec "$@""#;
    if !may_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mount = folder.path().join("ring");
    fs::create_dir(&mount).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", SCRIPT, "sh", mount.to_str().unwrap()]);
    command.arg(env!("CARGO_BIN_EXE_dipc")).args(Monitor::arguments(folder.path(), &[]));
    command.stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut running = Running::start(command);
    running.until_said("wait in memory until they can be written");
    let socket = folder.path().join("http");
    let waiting = || {
        let answer = get(&socket, "/health")?;
        let health: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
        health["profile"]["waitingRecordings"].as_u64()
    };
    await_that("recordings wait", || waiting() > Some(1));
    // The file system as that process sees it.
    let filler = format!("/proc/{}/root{}/filler", running.pid(), mount.display());
    fs::remove_file(filler).unwrap();
    running.until_said("that waited are written");
    await_that("nothing waits", || waiting() == Some(0));
    let answer = get(&socket, "/profile?from=60&format=processes").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    running.signal(Signal::INT);
    running.finish().with_code(0);
}

/// A program that keeps a processor busy until it is dropped.
struct Busy(Child);

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The processes of a user that has no right to others, also those that start later.
#[test]
fn without_rights_a_monitor_samples_the_processes_of_its_user() {
    let Some(user) = Nobody::new() else { return };
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if !matches!(level.trim(), "1" | "2") {
        return say_not_run("the kernel permits samples of the machine, or none at all");
    }
    let mut command = Command::new(user.program());
    command.args(Monitor::arguments(user.folder(), &[]));
    let mut running = Running::start(user.run_with_output(command));
    running.until_said("only processes of this user");
    running.until_said("Listening at   : ");
    let mut busy = Command::new("sh");
    busy.args(["-c", "while :; do :; done"]);
    let busy = Busy(user.run(busy).spawn().unwrap());
    let socket = user.folder().join("http");
    let samples = || {
        let answer = get(&socket, "/profile?from=60&format=processes")?;
        let report: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
        let own = |row: &&Value| row["pid"].as_u64() == Some(busy.0.id().into());
        report["processes"].as_array()?.iter().find(own)?["samples"].as_u64()
    };
    await_that("a process that was started later is sampled", || samples() > Some(0));
    drop(busy);
    running.signal(Signal::INT);
    running.finish().with_code(0);
}

#[test]
fn a_monitor_that_may_not_sample_says_so_and_goes_on() {
    let Some(user) = Nobody::new() else { return };
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if !matches!(level.trim(), "3" | "4") {
        return say_not_run("the kernel permits samples of a user's own processes");
    }
    let mut command = Command::new(user.program());
    command.args(Monitor::arguments(user.folder(), &[]));
    let mut running = Running::start(user.run_with_output(command));
    running.until_said("the machine is not sampled");
    running.until_said("Listening at   : ");
    let socket = user.folder().join("http");
    let answer = get(&socket, "/profile").unwrap();
    assert!(answer.starts_with("HTTP/1.1 404 ") && answer.contains("nothing was kept"), "{answer}");
    assert!(get(&socket, "/health").unwrap().contains("\"recordings\":0"));
    running.signal(Signal::INT);
    running.finish().with_code(0);
}

/// The section `ContinuousProfiling` is applied when its file changes, and no recording is lost.
#[test]
fn settings_of_samples_apply_while_the_monitor_runs() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    if !may_sample() {
        return;
    }
    workload.send("spin 600000");
    let folder = workload.folder().to_owned();
    let file = folder.join("settings.json");
    let write =
        |settings: Value| fs::write(&file, serde_json::json!({"ContinuousProfiling": settings}).to_string());
    write(serde_json::json!({})).unwrap();
    let socket = folder.join("http");
    let urls = format!("unix:{}", socket.display());
    let fixed = ["monitor", "--urls", &urls, "--metrics", "false", "--keep", "0s"];
    let settings = ["--configuration-file-path", file.to_str().unwrap()];
    let mut running = Running::start(dipc(fixed.into_iter().chain(settings)));
    running.until_said("Listening at   : ");
    let monitor = Monitor { running, socket };
    assert!(monitor.get("/profile?from=60").starts_with("HTTP/1.1 404 "));
    assert_eq!(monitor.json("/health")["profile"], Value::Null);
    // Neither a recording nor its time ends by itself.
    let directory = folder.join("ring").display().to_string();
    let mut settings = serde_json::json!({"Keep": "01:00:00", "DirectoryPath": directory,
        "SegmentDuration": "00:10:00", "Frequency": 97});
    write(settings.clone()).unwrap();
    let samples = || monitor.json("/health")["profile"]["samples"].as_u64().unwrap_or(0);
    await_that("the machine is sampled", || samples() >= 10);
    assert!(segments(&folder).is_empty());
    // Other settings complete the recording.
    let before = samples();
    settings["Frequency"] = 49.into();
    settings["Filters"] = serde_json::json!([{"Key": "ProcessId", "Value": workload.pid().to_string()}]);
    write(settings.clone()).unwrap();
    await_that("the recording is complete", || segments(&folder).len() == 1);
    await_that("one process is sampled", || samples() >= before + 10);
    // The limits of the ring, and the time of a recording, are those of the one that goes on.
    settings["SegmentDuration"] = "00:00:01".into();
    write(settings.clone()).unwrap();
    await_that("recordings of a second", || segments(&folder).len() >= 4);
    let report = |from: &Path| -> Value {
        let report = run(["report", from.to_str().unwrap(), "topN", "--by-process", "--format", "json"]);
        serde_json::from_slice(&report.with_code(0).stdout).unwrap()
    };
    let rows = |file: &Path| report(file)["processes"].as_array().unwrap().len();
    let (first, last) = (segments(&folder)[0].clone(), segments(&folder)[2].clone());
    assert!(rows(&first) >= 1 && rows(&last) == 1, "{} {}", report(&first), report(&last));
    settings["Keep"] = "00:00:00".into();
    write(settings).unwrap();
    await_that("nothing is sampled", || monitor.json("/health")["profile"] == Value::Null);
    monitor.running.signal(Signal::INT);
    let finished = monitor.running.finish().with_code(0);
    for text in ["97 samples a second", "49 samples a second", "all of it applies"] {
        assert!(finished.stderr.contains(text), "{}", finished.stderr);
    }
}
