//! `dipc monitor` over real runtimes: rules fire as often as they should, and their artifacts are readable.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Finished, Running, dipc, run, stat};
use crate::runtime::{Runtime, on_each_runtime};
use crate::web_server::WebServer;
use crate::workload::{Target, Workload};

/// Longer than anything takes on a loaded machine of two slow cores.
const PATIENCE: Duration = Duration::from_secs(120);

/// A monitor with rules, serving its routes at a Unix socket.
pub(crate) struct Monitor {
    running: Running,
    folder: tempfile::TempDir,
}

impl Monitor {
    /// Starts it with rules for one process. Artifacts are in [`artifacts`](Self::artifacts).
    pub(crate) fn start(pid: u32, rules: &Value) -> Self {
        Self::start_with(pid, rules, &[])
    }

    /// The same with more options.
    pub(crate) fn start_with(pid: u32, rules: &Value, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let configuration = json!({
            "Egress": {"FileSystem": {"files": {"DirectoryPath": folder.path().join("artifacts")}}},
            "CollectionRuleDefaults": {"Actions": {"Egress": "files"}},
            "GlobalCounter": {"IntervalSeconds": 1},
            "Metrics": {"Enabled": false},
            "CollectionRules": rules,
        });
        let file = folder.path().join("rules.json");
        fs::write(&file, configuration.to_string()).unwrap();
        let urls = format!("unix:{}", folder.path().join("http").display());
        let filter = format!("ProcessId={pid}");
        let file = file.to_str().unwrap();
        let metric_urls = format!("unix:{}", folder.path().join("metrics").display());
        let arguments = [
            "monitor",
            "--urls",
            &urls,
            "--metric-urls",
            &metric_urls,
            "--filter",
            &filter,
            "--configuration-file-path",
            file,
        ];
        let running = Running::start(dipc(arguments.into_iter().chain(options.iter().copied())));
        Self { running, folder }
    }

    fn artifacts(&self) -> PathBuf {
        self.folder.path().join("artifacts")
    }

    /// Returns an answer in JSON; `None` while there is none.
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        let answer = get(&self.folder.path().join("http"), path)?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    /// Returns an answer with its head.
    pub(crate) fn get_text(&self, path: &str) -> String {
        get(&self.folder.path().join("http"), path).expect("the monitor answers")
    }

    /// Waits until a rule is in a state, after some number of executions.
    pub(crate) fn await_rule(&self, name: &str, state: &str, executions: u64) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let rule = self.get(&format!("/collectionrules/{name}")).unwrap_or_default();
            if rule["state"] == state && rule["lifetimeOccurrences"].as_u64() >= Some(executions) {
                assert_eq!(rule["lifetimeOccurrences"], executions, "{rule}");
                return;
            }
            assert!(Instant::now() < deadline, "{name}: {rule}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn interrupt(self) -> (Finished, tempfile::TempDir) {
        self.running.signal(Signal::INT);
        (self.running.finish().with_code(0), self.folder)
    }
}

/// Returns an answer with its head, at a Unix socket; `None` while there is none.
pub(crate) fn get(socket: &Path, path: &str) -> Option<String> {
    get_with(socket, path, "")
}

/// The same with more lines in the head of the request.
pub(crate) fn get_with(socket: &Path, path: &str, head: &str) -> Option<String> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    Some(String::from_utf8_lossy(&answer).into_owned())
}

pub(crate) fn await_that(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "it does not happen: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A program that ends with an exception leaves a bundle: its events and counters, and what its runtime
/// wrote.
#[test]
fn a_crash_leaves_a_bundle() {
    let Some(mut program) = Runtime::Net9_0.program("crash/crash.dll") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    program.arg("unhandled").env("DOTNET_DbgEnableMiniDump", "1").env("DOTNET_DbgMiniDumpType", "1");
    program.env("DOTNET_DbgMiniDumpName", path("core.%p")).env("DOTNET_EnableCrashReport", "1");
    let mut target = Target::start(program);
    assert!(target.line().starts_with("ready "));
    let (filter, urls) = (format!("ProcessId={}", target.pid()), format!("unix:{}", path("http").display()));
    let bundles = path("bundles");
    let arguments = ["monitor", "--urls", &urls, "--metricUrls", "http://127.0.0.1:0", "--filter", &filter];
    let more = ["--refresh-interval", "0.5", "--bundles", bundles.to_str().unwrap()];
    let running = Running::start(dipc(arguments.into_iter().chain(more)));
    let answers = |route: &str, part: &str| {
        get(&path("http"), route).is_some_and(|it| it.starts_with("HTTP/1.1 200 ") && it.contains(part))
    };
    await_that("events are kept", || answers("/snapshot", "Nettrace"));
    await_that("counters come", || answers("/metrics", "gc"));
    target.send("go");
    target.wait();
    let bundle = || Some(fs::read_dir(&bundles).ok()?.flatten().next()?.path());
    await_that("the bundle is there", || {
        bundle().is_some_and(|path| path.extension() == Some("crash".as_ref()))
    });
    let bundle = bundle().unwrap();
    running.signal(Signal::INT);
    let finished = running.finish().with_code(0);
    let names: Vec<_> = files(&bundle).iter().map(|file| file.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["counters.json", "crashreport.json", "events.nettrace", "overview.txt"]);
    let report: Value = serde_json::from_slice(&fs::read(bundle.join("crashreport.json")).unwrap()).unwrap();
    let threads = report["payload"]["threads"].as_array().unwrap();
    let types: Vec<_> = threads.iter().filter_map(|it| it["managed_exception_type"].as_str()).collect();
    assert!(types.contains(&"System.InvalidOperationException"), "{types:?}");
    stat(&bundle.join("events.nettrace"), 0).assert_whole();
    let overview = fs::read_to_string(bundle.join("overview.txt")).unwrap();
    for part in [
        "\nReason         : the process has crashed or was killed\n",
        "\nCrash report   : crashreport.json\n",
        &format!("\nCore dump      : {}, ", path(&format!("core.{}", target.pid())).display()),
        "\nThe last counters:\n  System.Runtime/",
    ] {
        assert!(overview.contains(part), "{part}: {overview}");
    }
    assert!(
        finished.stderr.contains(&format!("Crash          : crash ({}): ", target.pid())),
        "{}",
        finished.stderr
    );
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    // The list of artifacts is not one.
    let mut files: Vec<_> = files.filter(|path| !path.ends_with(".dipc-recordings")).collect();
    files.sort();
    files
}

/// The trigger's window is two values long, and the limit two executions.
fn a_counter_rule_records_as_often_as_it_may(runtime: Runtime) {
    let Some(workload) = Workload::start(runtime) else { return };
    let monitor = Monitor::start(
        workload.pid(),
        &json!({"Memory": {
            "Trigger": {"Type": "EventCounter", "Settings": {"ProviderName": "System.Runtime",
                "CounterName": "working-set", "GreaterThan": 0.5, "SlidingWindowDuration": "00:00:02"}},
            "Actions": [{"Type": "CollectTrace", "Settings": {"Duration": "00:00:01",
                "ArtifactName": "$(Process.ProcessId).nettrace",
                "Providers": [{"Name": "System.Runtime", "Arguments": {"EventCounterIntervalSec": "1"}}]}}],
            "Limits": {"ActionCount": 2},
        }}),
    );
    monitor.await_rule("Memory", "Finished", 2);
    let (finished, folder) = monitor.interrupt();
    let files = files(&folder.path().join("artifacts"));
    let pid = workload.pid();
    let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, [format!("{pid}-2.nettrace"), format!("{pid}.nettrace")], "{}", finished.stderr);
    for file in &files {
        let stat = stat(file, 0);
        stat.assert_whole();
        assert!(stat.count("System.Runtime", "EventCounters") > 0, "{}", file.display());
    }
    assert!(
        finished.stderr.contains("fired for the second time: System.Runtime/working-set = "),
        "{}",
        finished.stderr
    );
}

on_each_runtime!(a_counter_rule_records_as_often_as_it_may);

/// The heap is collected, and a program gets its path.
#[test]
fn a_startup_rule_collects_a_heap_and_runs_a_program() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let monitor = Monitor::start(
        workload.pid(),
        &json!({"Heap": {"Trigger": {"Type": "Startup"}, "Actions": [
            {"Name": "Heap", "Type": "CollectGCDump", "Settings": {"ArtifactName": "heap.gcdump"}},
            {"Type": "Execute", "Settings": {"Path": "/bin/cp",
                "Arguments": "$(Actions.Heap.EgressPath) $(Actions.Heap.EgressPath)-copy"}},
        ]}}),
    );
    monitor.await_rule("Heap", "Finished", 1);
    let copy = monitor.artifacts().join("heap.gcdump-copy");
    let report = run(["gcdump", "report", copy.to_str().unwrap()]).with_code(0);
    assert!(report.text().contains("System.String") || report.text().contains("string"), "{}", report.text());
    monitor.interrupt();
}

/// The kernel's account of a process that works, and of a control group whose memory is nearly used up.
#[test]
fn rules_compare_usage_counted_by_the_kernel() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let group = MemoryGroup::create(workload.pid(), 400 << 20);
    let rule = |condition: &str| {
        json!({"Trigger": {"Type": "Condition", "Settings": {"Condition": condition}},
            "Actions": [{"Type": "Execute", "Settings": {"Path": "/bin/true"}}], "Limits": {"ActionCount": 1}})
    };
    let mut rules = json!({
        "Idle": rule("process cpu > 1000%"),
        "Busy": rule("process cpu > 20% and process memory > 1MB"),
    });
    if group.is_some() {
        rules["Full"] = rule("container memory > 1MB and container memory < 100%");
        rules["Beyond"] = rule("container memory > 101%");
    }
    let monitor = Monitor::start(workload.pid(), &rules);
    let deadline = Instant::now() + PATIENCE;
    let state = |name: &str| monitor.get(&format!("/collectionrules/{name}")).unwrap_or_default();
    while state("Busy")["state"] != "Finished" {
        assert!(Instant::now() < deadline, "{}", state("Busy"));
        workload.send("spin 1000");
        workload.done("spin 1000");
    }
    assert_eq!(state("Idle")["state"], "Running");
    if group.is_some() {
        monitor.await_rule("Full", "Finished", 1);
        assert_eq!(state("Beyond")["state"], "Running");
    }
    let (finished, _folder) = monitor.interrupt();
    let said = &finished.stderr;
    assert!(said.contains("fired for the first time: process cpu = "), "{said}");
    assert!(!said.contains("is not known"), "{said}");
    if group.is_some() {
        assert!(said.contains("fired for the first time: container memory = "), "{said}");
    }
}

/// The program is stuck before its rule fires: the diagnosis is that of its memory.
#[test]
fn a_rule_that_fires_has_a_diagnosis() {
    let Some(mut command) = Runtime::Net9_0.program("incidents/hang.dll") else { return };
    command.stdin(std::process::Stdio::null());
    let target = Target::start_waiting(command);
    assert_eq!(target.line(), "started");
    let monitor = Monitor::start(
        target.pid(),
        &json!({"Memory": {
            "Trigger": {"Type": "Condition", "Settings": {"Condition": "process memory > 1MB"}},
            "Actions": [{"Type": "Execute", "Settings": {"Path": "/bin/true"}}],
            "Limits": {"ActionCount": 1},
        }}),
    );
    let texts = || -> Vec<String> {
        let overview = monitor.get("/overview").unwrap_or_default();
        let events = overview["ruleEvents"].as_array().cloned().unwrap_or_default();
        events.iter().filter_map(|event| event["text"].as_str().map(str::to_owned)).collect()
    };
    await_that("the diagnosis", || texts().iter().any(|text| text.starts_with("diagnosis: ")));
    let texts = texts();
    let diagnosis = texts.iter().find(|text| text.starts_with("diagnosis: ")).unwrap();
    assert!(diagnosis.contains("Deadlock: ") && diagnosis.contains("Bank.Transfer"), "{texts:?}");
    let (finished, _folder) = monitor.interrupt();
    assert!(finished.stderr.contains("diagnosis: Deadlock: "), "{}", finished.stderr);
}

/// A control group with a limit on memory, removed when it is dropped.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// Moves a process into a new group; `None` where this user may not, or the kernel has no such groups.
    fn create(pid: u32, limit: u64) -> Option<Self> {
        let roots = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        let (root, file) = roots.into_iter().find(|(root, file)| {
            file.contains("limit") && Path::new(root).exists()
                || Path::new(root).join("cgroup.subtree_control").exists()
        })?;
        let folder = Path::new(root).join(format!("dipc-test-{pid}"));
        fs::create_dir(&folder).ok()?;
        let group = Self(folder);
        let write = |name: &str, text: String| fs::write(group.0.join(name), text).ok();
        let is_made = write(file, limit.to_string()).and_then(|()| write("cgroup.procs", pid.to_string()));
        if is_made.is_none() {
            eprintln!("control groups are not tested: this user may not make one");
        }
        is_made.map(|()| group)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // Its processes move to the group above.
        let pids = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        if let Some(parent) = self.0.parent() {
            for pid in pids.lines() {
                let _ = fs::write(parent.join("cgroup.procs"), pid);
            }
        }
        let _ = fs::remove_dir(&self.0);
    }
}

/// An exception starts the collection of the next ones, and of all stacks.
#[test]
fn a_rule_collects_exceptions_and_stacks() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    let monitor = Monitor::start(
        workload.pid(),
        &json!({"Trouble": {
            "Trigger": {"Type": "Condition", "Settings": {"Condition": "exception *InvalidOperationException"}},
            "Actions": [
                {"Type": "CollectStacks", "Settings": {"Format": "PlainText", "ArtifactName": "stacks.txt"}},
                {"Type": "CollectExceptions", "Settings": {"Duration": "00:00:05",
                    "Format": "NewlineDelimitedJson", "ArtifactName": "exceptions.json",
                    "Filters": {"Exclude": [{"ExceptionType": "System.ArgumentException"}]}}},
            ],
            "Limits": {"ActionCount": 1},
        }}),
    );
    let deadline = Instant::now() + PATIENCE;
    let state = || monitor.get("/collectionrules/Trouble").unwrap_or_default()["state"].clone();
    while state() != "Finished" {
        assert!(Instant::now() < deadline, "{}", state());
        workload.send("throw 1");
        workload.done("throw 1");
        std::thread::sleep(Duration::from_millis(100));
    }
    let (finished, folder) = monitor.interrupt();
    let read = |name: &str| {
        let path = folder.path().join("artifacts").join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}: {}", finished.stderr))
    };
    let stacks = read("stacks.txt");
    assert!(stacks.contains("Program.Main"), "{stacks}");
    let exceptions = read("exceptions.json");
    let exceptions: Vec<Value> = exceptions.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!exceptions.is_empty());
    for exception in &exceptions {
        assert_eq!(exception["typeName"], "System.InvalidOperationException", "{exception}");
    }
}

/// Each request to a server of .NET 10 counts, and no other.
#[test]
fn a_request_rule_fires_after_exactly_as_many_requests() {
    let Some(server) = WebServer::start() else { return };
    let execute = json!([{"Type": "Execute", "Settings": {"Path": "/bin/true"}}]);
    let monitor = Monitor::start(
        server.pid(),
        &json!({
            // It says that the session runs: its first request counts.
            "Ready": {"Trigger": {"Type": "AspNetRequestCount", "Settings": {"RequestCount": 1,
                "IncludePaths": ["/ready"]}}, "Actions": execute, "Limits": {"ActionCount": 1}},
            "Missing": {"Trigger": {"Type": "AspNetResponseStatus", "Settings": {"ResponseCount": 5,
                "StatusCodes": ["404"], "IncludePaths": ["/nosuch/**/*"], "SlidingWindowDuration": "01:00:00"}},
                "Actions": execute},
            "Count": {"Trigger": {"Type": "AspNetRequestCount", "Settings": {"RequestCount": 15,
                "ExcludePaths": ["/ready"], "SlidingWindowDuration": "01:00:00"}}, "Actions": execute},
        }),
    );
    let deadline = Instant::now() + PATIENCE;
    while monitor.get("/collectionrules/Ready").unwrap_or_default()["state"] != "Finished" {
        assert!(Instant::now() < deadline, "the first request does not count");
        server.get("/ready");
        std::thread::sleep(Duration::from_millis(100));
    }
    let state = |name: &str| {
        let rule = monitor.get(&format!("/collectionrules/{name}")).unwrap();
        rule["lifetimeOccurrences"].as_u64().unwrap()
    };
    for number in 0..4 {
        assert_eq!(server.get(&format!("/nosuch/{number}")), Some(404));
    }
    for _ in 0..10 {
        assert_eq!(server.get("/"), Some(406));
    }
    // Whatever was counted wrongly would have been by the end of the next one.
    assert_eq!((state("Missing"), state("Count")), (0, 0));
    assert_eq!(server.get("/nosuch/a/b"), Some(404));
    monitor.await_rule("Missing", "Running", 1);
    monitor.await_rule("Count", "Running", 1);
    monitor.interrupt();
}

/// What cannot be run is refused by `check` and at the start, with its place.
#[test]
fn rules_that_cannot_be_run_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.json");
    let file = file.to_str().unwrap();
    fs::write(
        file,
        r#"{
  "Egress": {"FileSystem": {"files": {"DirectoryPath": "/tmp"}}},
  "CollectionRules": {"R": {"Trigger": {"Type": "Startup"}, "Actions": [
    {"Type": "CollectStacks", "Settings": {"Egress": "files", "Format": "Picture"}},
    {"Type": "CollectDumps"}
  ]}}
}"#,
    )
    .unwrap();
    for (arguments, code) in
        [(vec!["monitor", "check", file], 1), (vec!["monitor", "--configuration-file-path", file], 2)]
    {
        let refused = run(arguments).with_code(code);
        let text = format!("{}{}", refused.text(), refused.stderr);
        assert!(text.contains(&format!("{file}:4:")) && text.contains("Picture"), "{text}");
        assert!(text.contains("did you mean CollectDump?"), "{text}");
        assert!(text.ends_with('\n'), "{text}");
    }
}

#[test]
fn access_control_of_a_configuration_that_would_not_hold_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.json");
    let azure = json!({"TenantId": "t", "ClientId": "c", "RequiredRole": "r"});
    fs::write(&file, json!({"Authentication": {"AzureAd": azure}}).to_string()).unwrap();
    let urls = format!("unix:{}", folder.path().join("http").display());
    let refused =
        run(["monitor", "--urls", &urls, "--configuration-file-path", file.to_str().unwrap()]).with_code(2);
    for part in ["Authentication:AzureAd: Entra ID", "--token-file", "--temp-api-key", "--no-auth"] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    assert!(!folder.path().join("http").exists());
}
