//! `dipc trace --all`, `--cgroup` and `--one-file`: many processes in one recording.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::nobody::Nobody;
use crate::program::{Finished, Running, dipc, run, stat};
use crate::runtime::{Runtime, on_runtimes, say_not_run};
use crate::workload::{Workload, await_providers};

on_runtimes!(methods_have_names_beside_other_processes: nativeaot_9, net_3_1, net_8_0, net_9_0);
on_runtimes!(events_of_a_process_are_beside_the_samples_of_all: nativeaot_9, net_3_1, net_8_0, net_9_0);

/// Starts a recording and waits until its samples are taken; `None` where the kernel does not permit those of
/// the machine.
fn start(file: &Path, arguments: &[&str]) -> Option<Running> {
    if !may_sample_machine() {
        say_not_run("the kernel does not permit samples of the machine");
        return None;
    }
    let trace = ["trace", "-o", file.to_str().unwrap()];
    let mut running = Running::start(dipc(trace.into_iter().chain(arguments.iter().copied())));
    running.until_said("Samples        : ");
    Some(running)
}

pub(crate) fn may_sample_machine() -> bool {
    rustix::process::geteuid().is_root()
        && Command::new(env!("CARGO_BIN_EXE_dipc"))
            .args(["doctor", "-p", &std::process::id().to_string()])
            .output()
            .is_ok_and(|doctor| String::from_utf8_lossy(&doctor.stdout).contains("ok       sampling"))
}

fn stop(running: Running) -> Finished {
    running.signal(Signal::INT);
    running.finish().with_code(0)
}

fn report(file: &Path, arguments: &[&str]) -> Value {
    let start = ["report", file.to_str().unwrap(), "topN", "--by", "cpu", "--format", "json"];
    run(start.into_iter().chain(arguments.iter().copied())).with_code(0).json()
}

fn process(report: &Value, pid: u32) -> Value {
    let processes = report["processes"].as_array().unwrap();
    let found = processes.iter().find(|row| row["pid"].as_u64() == Some(pid.into()));
    found.cloned().unwrap_or(Value::Null)
}

/// A shell that counts, and prints the nanoseconds that the kernel ran it when it is done.
struct Counter(Child);

impl Counter {
    fn start(count: u32) -> Self {
        let script = format!(
            "i=0; while [ $i -lt {count} ]; do i=$((i+1)); done; read ns rest < /proc/$$/schedstat; echo $ns"
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits for the end, and returns the time that it ran.
    fn ran_ns(&mut self) -> u64 {
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        self.0.wait().unwrap();
        text.trim().parse().unwrap()
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The samples of a process that ran for this time, by a count with the standard error of its root, five of
/// which are allowed; of lost ones nobody knows whose they were.
fn assert_count(samples: u64, ran_ns: u64, hertz: f64, lost: u64) {
    let expected = Duration::from_nanos(ran_ns).as_secs_f64() * hertz;
    let allowed = 5.0 * expected.sqrt() + 5.0;
    let [samples, lost] = [samples, lost].map(|number| f64::from(u32::try_from(number).unwrap()));
    let is_right = samples <= expected + allowed && samples + lost >= expected - allowed;
    assert!(is_right, "{samples} samples of {expected:.0} ± {allowed:.0}, {lost} lost");
}

#[test]
fn shares_are_those_of_the_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.nettrace");
    let Some(running) = start(&file, &["--all"]) else { return };
    let mut counters = [400_000, 200_000].map(Counter::start);
    let ran = counters.each_mut().map(Counter::ran_ns);
    let pids = counters.each_ref().map(Counter::pid);
    let recorded = stop(running);
    let lost = stat(&file, 0).lost();
    let report = report(&file, &["--by-process"]);
    for (pid, ran) in pids.into_iter().zip(ran) {
        let row = process(&report, pid);
        assert_eq!(row["name"], "sh", "{row}");
        assert_count(row["samples"].as_u64().unwrap(), ran, 997.0, lost);
        // A sample stands for the time since the one before it.
        let each = row["weight"].as_u64().unwrap() / row["samples"].as_u64().unwrap();
        assert!((970_000..1_040_000).contains(&each), "{row}");
    }
    // The parts of all processes are the whole.
    let rows = report["processes"].as_array().unwrap();
    let sum: u64 = rows.iter().map(|row| row["weight"].as_u64().unwrap()).sum();
    assert_eq!(report["total"].as_u64(), Some(sum));
    assert!(recorded.stderr.contains("Processes      : "), "{}", recorded.stderr);
    // One process of it, as other reports select it.
    let one = self::report(&file, &["--pid", &pids[0].to_string()]);
    assert_eq!(one["samples"], process(&report, pids[0])["samples"]);
    let table = run(["report", file.to_str().unwrap(), "topN", "--by-process"]).with_code(0).text();
    assert!(table.contains("PROCESS") && table.contains("CPU time: "), "{table}");
    let overview = run(["report", file.to_str().unwrap()]).with_code(0).text();
    assert!(
        overview.lines().next().unwrap().ends_with(" processes; topN --by-process shows the part of each")
    );
}

fn methods_have_names_beside_other_processes(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let file = workload.folder().join("both.nettrace");
    workload.run("spin 500");
    workload.send("spin 60000");
    let other = Counter::start(u32::MAX);
    let both = format!("{},{}", workload.pid(), other.pid());
    let Some(running) = start(&file, &["-p", &both, "--one-file", "--duration", "2s"]) else { return };
    running.finish().with_code(0);
    let report = report(&file, &["--by-process"]);
    let pids: Vec<_> = report["processes"].as_array().unwrap().iter().map(|row| &row["pid"]).collect();
    assert_eq!(pids.len(), 2, "{report}");
    let row = process(&report, workload.pid());
    assert_eq!(row["name"], runtime.process_name(), "{row}");
    let shell = process(&report, other.pid());
    assert_eq!((&shell["name"], &shell["threads"]), (&"sh".into(), &1.into()));
    let frames = |pid: u32| -> Vec<String> {
        let report = self::report(&file, &["--pid", &pid.to_string()]);
        let rows = report["rows"].as_array().unwrap().iter();
        rows.map(|row| row["frame"].as_str().unwrap().to_owned()).collect()
    };
    if runtime != Runtime::NativeAot9 {
        assert!(frames(workload.pid()).iter().any(|frame| frame.contains("Spin.Hot(")));
    }
    assert!(!frames(other.pid()).iter().any(|frame| frame.contains("Spin.")));
    // Other readers take it as well.
    let out = workload.folder().join("both.speedscope.json");
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    run(["convert", file, "--format", "speedscope", "-o", out]).with_code(0);
    let page = workload.folder().join("both.html");
    run(["convert", file, "--format", "html", "-o", page.to_str().unwrap()]).with_code(0);
}

/// The processes of the starts of collections, one for each.
fn collections(file: &Path) -> Vec<u64> {
    let events = ["events", file.to_str().unwrap(), "--event", "GC/Start", "--format", "jsonl"];
    run(events).with_code(0).json_lines().map(|event| event["pid"].as_u64().unwrap()).collect()
}

fn events_of_a_process_are_beside_the_samples_of_all(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let file = workload.folder().join("both.nettrace");
    let other = Counter::start(u32::MAX);
    let pid = workload.pid();
    let both = format!("{pid},{}", other.pid());
    let Some(running) = start(&file, &["-p", &both, "--one-file", "--clrevents", "gc+exception"]) else {
        return;
    };
    await_providers(runtime);
    workload.run("gc 2 3");
    workload.run("throw 2");
    workload.run("spin 1000");
    let recorded = stop(running);
    assert!(recorded.stderr.contains("sampling it without the events of a runtime"));
    assert_eq!(collections(&file), [u64::from(pid); 3], "{}", recorded.stderr);
    // Both are of the process, and the shell has samples alone.
    let report = report(&file, &["--by-process"]);
    for pid in [pid, other.pid()] {
        assert!(process(&report, pid)["samples"].as_u64().unwrap() > 20, "{report}");
    }
    let path = file.to_str().unwrap();
    let one = run(["report", path, "gc", "--pid", &pid.to_string(), "--format", "json"]).with_code(0).json();
    assert_eq!(one["pauses"]["count"], 3, "{one}");
    let part = workload.folder().join("part.nettrace");
    let part_path = part.to_str().unwrap();
    run(["edit", path, "--pid", &pid.to_string(), "-o", part_path]).with_code(0);
    assert_eq!(collections(&part).len(), 3);
    let samples = self::report(&part, &["--by-process"]);
    assert_eq!(process(&samples, pid)["samples"], process(&report, pid)["samples"]);
    assert!(process(&samples, other.pid()).is_null(), "{samples}");
    if runtime != Runtime::NativeAot9 {
        // The session ends with the list of methods, so that no other is asked for.
        assert!(recorded.stderr.contains("of 1 process by their runtimes"), "{}", recorded.stderr);
        let rows = self::report(&file, &["--pid", &pid.to_string()]);
        let mut rows = rows["rows"].as_array().unwrap().iter();
        assert!(rows.any(|row| row["frame"].as_str().unwrap().contains("Spin.Hot(")));
    }
}

/// Two of them on one clock, of which one is killed: what it has sent is kept.
#[test]
fn events_of_a_process_that_is_killed_are_kept() {
    let (Some(mut stays), Some(mut dies)) =
        (Workload::start(Runtime::Net9_0), Workload::start(Runtime::Net8_0))
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.nettrace");
    let both = format!("{},{}", stays.pid(), dies.pid());
    let Some(running) = start(&file, &["--all", "-p", &both, "--profile", "gc-collect"]) else { return };
    dies.run("gc 2 4");
    stays.run("gc 2 1");
    // A batch of events is sent ten times a second.
    std::thread::sleep(Duration::from_secs(1));
    dies.kill();
    stays.run("gc 2 2");
    running.signal(Signal::INT);
    let recorded = running.finish().with_code(6);
    let mut expected = vec![u64::from(dies.pid()); 4];
    expected.insert(4, stays.pid().into());
    expected.extend([u64::from(stays.pid()); 2]);
    // In the order of time.
    assert_eq!(collections(&file), expected, "{}", recorded.stderr);
    let of_dead = format!("({})", dies.pid());
    for words in [&of_dead, "ended in the middle", "everything received before was kept"] {
        assert!(recorded.stderr.contains(words), "{words}: {}", recorded.stderr);
    }
}

/// Their memory is read while they run.
#[test]
fn methods_of_a_process_that_ends_early_have_names() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.nettrace");
    let other = Counter::start(u32::MAX);
    let pid = workload.pid();
    let both = format!("{pid},{}", other.pid());
    workload.run("spin 500");
    workload.send("spin 600000");
    let Some(running) = start(&file, &["-p", &both, "--one-file", "--off-cpu"]) else { return };
    // The unwinder has opened its memory, and so has the reader of names.
    let memory = PathBuf::from(format!("/proc/{pid}/mem"));
    let deadline = Instant::now() + Duration::from_secs(60);
    let opened = || {
        let descriptors = fs::read_dir(format!("/proc/{}/fd", running.pid())).into_iter().flatten().flatten();
        let links = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
        links.filter(|link| *link == memory).count()
    };
    while opened() < 2 {
        assert!(Instant::now() < deadline, "its memory is not read");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Samples of its work arrive after those of the waits before, which open the memory as well.
    std::thread::sleep(Duration::from_secs(3));
    workload.kill();
    drop(workload);
    let recorded = stop(running);
    let report = report(&file, &["--pid", &pid.to_string()]);
    let rows = report["rows"].as_array().unwrap();
    let hot = rows.iter().any(|row| row["frame"].as_str().unwrap().contains("Spin.Hot("));
    assert!(hot, "{}: {report}", recorded.stderr);
    let waits = run(["report", file.to_str().unwrap(), "topN", "--by", "off-cpu", "--by-process"]);
    assert!(waits.with_code(0).text().contains(&pid.to_string()));
}

#[test]
fn births_and_ends_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.nettrace");
    let Some(running) = start(&file, &["--all"]) else { return };
    // A shell does not start another for the last command.
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do env -i /bin/true; done; :";
    let mut shell = Command::new("sh").args(["-c", script]).spawn().unwrap();
    let pid = shell.id();
    assert!(shell.wait().unwrap().success());
    stop(running);
    let mut seen: HashMap<u64, Vec<String>> = HashMap::new();
    let mut children = Vec::new();
    for event in run(["events", file.to_str().unwrap(), "--format", "jsonl"]).with_code(0).json_lines() {
        let Some(id) = event["pid"].as_u64() else { continue };
        let name = event["name"].as_str().unwrap_or_default().to_owned();
        if event["provider"] == "Dipc-Machine" && event["fields"]["ParentId"].as_u64() == Some(pid.into()) {
            children.push(id);
        }
        if name.starts_with("Process") && event["provider"] == "Universal.System" {
            seen.entry(id).or_default().push(event["fields"]["Name"].as_str().unwrap_or("-").to_owned());
        }
    }
    children.sort_unstable();
    children.dedup();
    let lost = stat(&file, 0).lost();
    assert!(children.len() == 10 || lost > 0, "{children:?}");
    for child in &children {
        let names = &seen[child];
        assert!(names.iter().any(|name| name == "true") || lost > 0, "{names:?}");
    }
}

/// A program of short processes: none of its births and ends is missing.
#[test]
fn five_hundred_short_processes_are_counted() {
    const SHORT: usize = 500;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.nettrace");
    let Some(running) = start(&file, &["--all"]) else { return };
    // A shell starts each in a process of its own, five at a time.
    let script = format!(
        "i=0; while [ $i -lt {} ]; do for j in 1 2 3 4 5; do (:) & done; wait; i=$((i+1)); done",
        SHORT / 5
    );
    let mut shell = Command::new("sh").args(["-c", &script]).spawn().unwrap();
    let pid = u64::from(shell.id());
    assert!(shell.wait().unwrap().success());
    let recorded = stop(running);
    let lost = stat(&file, 0).lost();
    let (mut born, mut ended) = (HashSet::new(), HashSet::new());
    for event in run(["events", file.to_str().unwrap(), "--format", "jsonl"]).with_code(0).json_lines() {
        let Some(id) = event["pid"].as_u64() else { continue };
        if event["provider"] == "Dipc-Machine" && event["fields"]["ParentId"].as_u64() == Some(pid) {
            born.insert(id);
        }
        if event["provider"] == "Universal.System" && event["name"] == "ProcessExit" {
            ended.insert(id);
        }
    }
    let whole = (born.len(), born.intersection(&ended).count()) == (SHORT, SHORT);
    assert!(whole || lost > 0, "{} of {} ended: {}", born.len(), ended.len(), recorded.stderr);
}

/// A control group with the name of a container's, removed when dropped.
struct Group(PathBuf, String);

impl Group {
    /// The first twelve digits are of this test alone, by its number and this process.
    fn new(number: u32) -> Option<Self> {
        let id = format!("d1b{number}{:08x}{:052x}", std::process::id(), 0);
        let parents = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids", "/sys/fs/cgroup"];
        let folders = parents.iter().map(|parent| Path::new(parent).join(format!("docker-{id}.scope")));
        let made = folders
            .into_iter()
            .find(|folder| fs::create_dir(folder).is_ok() && folder.join("cgroup.procs").exists());
        if made.is_none() {
            say_not_run("no control group can be made");
        }
        Some(Self(made?, id))
    }

    fn add(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_container_is_recorded_by_its_id() {
    if !may_sample_machine() {
        return say_not_run("the kernel does not permit samples of the machine");
    }
    let Some(group) = Group::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("container.nettrace");
    let (inside, outside) = (Counter::start(u32::MAX), Counter::start(u32::MAX));
    group.add(inside.pid());
    let Some(running) = start(&file, &["--cgroup", &group.1[..12], "--duration", "1s"]) else { return };
    running.finish().with_code(0);
    let report = report(&file, &["--by-process"]);
    assert_eq!(process(&report, inside.pid())["container"], *group.1, "{report}");
    assert!(process(&report, outside.pid()).is_null(), "{report}");
    let containers = self::report(&file, &["--by-container"]);
    let rows = containers["containers"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["container"]), (1, &Value::from(&*group.1)), "{containers}");
    let by_path = group.0.to_str().unwrap();
    let again = folder.path().join("path.nettrace");
    let Some(running) = start(&again, &["--cgroup", by_path, "--duration", "1s"]) else { return };
    running.finish().with_code(0);
    assert!(!process(&self::report(&again, &["--by-process"]), inside.pid()).is_null());
    drop(inside);
    let gone = run(["trace", "--cgroup", &group.1[..12], "-o", by_path]).with_code(3);
    gone.assert_error_names(&["no process is in a container"]);
    assert!(gone.stderr.contains("/proc/PID/cgroup"), "{}", gone.stderr);
}

#[test]
fn processes_of_a_container_have_sessions() {
    if !may_sample_machine() {
        return say_not_run("the kernel does not permit samples of the machine");
    }
    let Some(group) = Group::new(2) else { return };
    let (Some(mut inside), Some(mut outside)) =
        (Workload::start(Runtime::Net9_0), Workload::start(Runtime::Net9_0))
    else {
        return;
    };
    group.add(inside.pid());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("container.nettrace");
    let options = ["--cgroup", &group.1[..12], "--profile", "gc-collect"];
    let Some(running) = start(&file, &options) else { return };
    outside.run("gc 2 3");
    inside.run("gc 2 2");
    let recorded = stop(running);
    assert_eq!(collections(&file), [u64::from(inside.pid()); 2], "{}", recorded.stderr);
    assert!(!recorded.stderr.contains(&format!("({})", outside.pid())), "{}", recorded.stderr);
}

#[test]
fn a_user_without_rights_records_their_own_processes() {
    let Some(user) = Nobody::new() else { return };
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if !matches!(level.trim(), "1" | "2") {
        return say_not_run("the kernel permits all, or nothing");
    }
    let file = user.folder().join("own.nettrace");
    let trace = |arguments: &[&str]| {
        let mut command = Command::new(user.program());
        command.args(["trace", "--duration", "1s", "-o"]).arg(&file).args(arguments);
        Running::start(user.run_with_output(command)).finish()
    };
    let other = Counter::start(u32::MAX);
    // None of them is this user's.
    let refused = trace(&["-p", &other.pid().to_string(), "--one-file"]);
    let refused = refused.with_code(3);
    if !refused.stderr.contains("belongs to another user") {
        return say_not_run("a filter refuses the call");
    }
    assert!(refused.stderr.contains("run dipc as"), "{}", refused.stderr);
    assert!(!file.exists());
    let mut own = Command::new("sh");
    own.args(["-c", "while :; do :; done"]);
    let mut own = user.run(own).spawn().unwrap();
    let recorded = trace(&["--all"]);
    own.kill().unwrap();
    own.wait().unwrap();
    let recorded = recorded.with_code(0);
    for words in ["this user's own processes only", "left out: ", "run dipc as root"] {
        assert!(recorded.stderr.contains(words), "{words}: {}", recorded.stderr);
    }
    let report = report(&file, &["--by-process"]);
    assert!(process(&report, other.pid()).is_null(), "{report}");
    assert!(!report["processes"].as_array().unwrap().is_empty(), "{report}");
}

#[test]
fn many_processes_need_a_file_and_chosen_processes() {
    run(["trace", "--all", "-o", "-"]).with_code(2).assert_error_names(&["--all", "-o"]);
    run(["trace", "--all", "--providers", "Demo"]).with_code(2).assert_error_names(&["--all", "-p"]);
    run(["trace", "--all", "-p", "1"]).with_code(2).assert_error_names(&["--profile"]);
    run(["trace", "--all", "--diagnostic-port", "/tmp/x"]).with_code(2);
    run(["trace", "-p", "1", "-n", "x"]).with_code(2);
    run(["trace", "--all", "-p", "4194304", "--profile", "gc-collect", "-o", "x"])
        .with_code(3)
        .assert_error_names(&["4194304"]);
    run(["trace", "--one-file", "--all"]).with_code(2);
    run(["trace", "--cgroup", "/no/such/group", "-o", "x"])
        .with_code(3)
        .assert_error_names(&["/no/such/group"]);
    run(["trace", "-p", "4194304,4194303", "--one-file"])
        .with_code(3)
        .assert_error_names(&["does not exist"]);
}
