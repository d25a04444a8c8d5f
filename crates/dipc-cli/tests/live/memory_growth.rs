//! Memory over time: `dipc memory --watch`, the difference of two snapshots, and what the monitor reads.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::monitor::{Monitor, await_that};
use crate::program::{Finished, Running, dipc, run};
use crate::runtime::Runtime;
use crate::workload::{Target, Workload};

/// The growth after which a leak is looked at: more than a start takes.
const LEAKED: u64 = 100_000_000;

/// A program that allocates 20 MB of native memory in a second, and frees none.
fn leak(runtime: Runtime) -> Option<Target> {
    let mut command = runtime.program("incidents/leak.dll")?;
    command.arg("native");
    Some(Target::start_waiting(command))
}

fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

fn snapshot(pid: u32, file: &Path) -> Value {
    let finished = run(["memory", "-p", &pid.to_string(), "--format", "json"]).with_code(0);
    fs::write(file, &finished.stdout).unwrap();
    finished.json()
}

fn diff(files: [&Path; 2], more: &[&str]) -> Finished {
    run(["diff"].into_iter().chain(files.map(|file| file.to_str().unwrap())).chain(more.iter().copied()))
}

#[test]
fn the_difference_of_two_snapshots_names_the_owner_that_grew() {
    for runtime in [Runtime::Net3_1, Runtime::Net8_0, Runtime::Net9_0] {
        let Some(target) = leak(runtime) else { continue };
        let folder = tempfile::tempdir().unwrap();
        let [before, after] = ["before.json", "after.json"].map(|name| folder.path().join(name));
        let first = snapshot(target.pid(), &before);
        let goal = first["rss_bytes"].as_u64().unwrap() + LEAKED;
        await_that("the leak", || resident(target.pid()) > goal);
        snapshot(target.pid(), &after);
        let text = diff([&before, &after], &[]).with_code(0).text();
        let line = text.lines().next().unwrap();
        assert!(line.starts_with("Native heap (malloc) grew by ") && line.contains(" a minute: "), "{text}");
        assert!(text.lines().skip(2).all(|line| line.chars().count() <= 80), "{text}");
        let report = diff([&before, &after], &["--format", "json"]).with_code(0).json();
        let grown = &report["owners"][0];
        assert_eq!((&grown["owner"], &report["answer"]), (&json!("native-heap"), &json!(line)), "{report:#}");
        let (change, rate) = (&grown["change_bytes"], grown["bytes_per_minute"].as_f64().unwrap());
        assert!(change.as_u64() > Some(LEAKED / 2), "{report:#}");
        let seconds = report["seconds"].as_f64().unwrap();
        assert!((rate * seconds / 60.0 - change.as_f64().unwrap()).abs() < 1.0, "{report:#}");
        // All owners, with those of the same size.
        let all = diff([&before, &after], &["--all"]).with_code(0).text();
        assert!(all.lines().count() >= text.lines().count() - 1, "{all}");
        let reversed = diff([&after, &before], &[]).with_code(0);
        assert!(reversed.stderr.contains("the order of the two"), "{}", reversed.stderr);
        assert!(!reversed.text().contains("a minute"), "{}", reversed.text());
    }
}

#[test]
fn a_watched_leak_is_named_until_its_process_ends() {
    let Some(mut target) = leak(Runtime::Net9_0) else { return };
    let mut watch = Running::start(dipc(["memory", "-p", &target.pid().to_string(), "--watch", "1s"]));
    watch.until_printed("  Native heap (malloc) grew by ");
    assert!(!watch.is_over());
    target.kill();
    let finished = watch.finish().with_code(0);
    let said = format!("Process ended  : {}", target.pid());
    assert!(finished.stderr.contains(&said), "{}", finished.stderr);
    let text = finished.text();
    // The first round has nothing to compare with.
    let time_of_day =
        |line: &str| line.as_bytes().get(2) == Some(&b':') && line.as_bytes().get(5) == Some(&b':');
    assert!(time_of_day(&text), "{text}");
    let rounds = text.lines().filter(|line| time_of_day(line)).count();
    assert!(rounds >= 2 && text.contains("A MINUTE"), "{text}");
}

#[test]
fn rounds_of_a_watch_are_snapshots_of_a_line() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let pid = workload.pid().to_string();
    let arguments = ["memory", "-p", &pid, "--watch", "1s", "--duration", "2s", "--format", "json"];
    let finished = run(arguments).with_code(0);
    let text = finished.text();
    let rounds: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rounds.len() >= 2, "{text}");
    assert_eq!(rounds[0]["change_bytes"], Value::Null, "{text}");
    for round in &rounds {
        let owners = round["owners"].as_array().unwrap();
        let sum = owners.iter().map(|owner| owner["bytes"].as_u64().unwrap()).sum::<u64>();
        assert_eq!(Some(sum), round["rss_bytes"].as_u64(), "{round}");
    }
    let folder = tempfile::tempdir().unwrap();
    let [first, last] = [(0, "first"), (rounds.len() - 1, "last")].map(|(number, name)| {
        let file = folder.path().join(name);
        fs::write(&file, rounds[number].to_string()).unwrap();
        file
    });
    let report = diff([&first, &last], &["--format", "json"]).with_code(0).json();
    assert_eq!(report["after"]["rss_bytes"], rounds.last().unwrap()["rss_bytes"], "{report:#}");
    assert_eq!(report["bytes_per_minute"], rounds.last().unwrap()["bytes_per_minute"], "{report:#}");

    let mut watch = Running::start(dipc(["memory", "-p", &pid, "--watch", "1h"]));
    watch.until_printed("\n");
    watch.signal(Signal::INT);
    watch.finish().with_code(0);
    assert!(!watch_is_refused(&["memory", "-p", &pid, "--watch", "10ms"]).is_empty());
    assert!(!watch_is_refused(&["memory", first.to_str().unwrap(), "--watch", "1s"]).is_empty());
}

/// The message of a command line that makes no sense.
fn watch_is_refused(arguments: &[&str]) -> String {
    run(arguments.iter().copied()).with_code(2).stderr
}

#[test]
fn other_files_are_not_compared_with_snapshots() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let snapshot = |pid: &str, bytes: u64| {
        format!(
            "{{\"process_id\": {pid}, \"rss_bytes\": {bytes}, \"unattributed_bytes\": 0, \"owners\": \
             [{{\"owner\": \"x\", \"name\": \"\\u001b[2Jx\", \"bytes\": {bytes}}}]}}"
        )
    };
    let good = file("good.json", &snapshot("7", 5_000_000));
    for (name, text, part) in [
        ("other.json", "{\"rows\": []}", "it is not the JSON of dipc memory: missing field"),
        ("cut.json", "{\"owners\": [", "it is not the JSON of dipc memory: EOF while parsing"),
        ("trace.nettrace", "Nettrace", "it is not the JSON of dipc memory: expected"),
    ] {
        let other = file(name, text);
        let refused = diff([&good, &other], &[]).with_code(1);
        refused.assert_error_names(&[name, part]);
    }
    let text = folder.path().join("missing.json");
    diff([&good, &text], &[]).with_code(1).assert_error_names(&["missing.json"]);
    let dump = file("dump.json", "{\"dump_bytes\": 7, \"unattributed_bytes\": 0, \"owners\": []}");
    diff([&good, &dump], &[]).with_code(2).assert_error_names(&["core dump"]);
    for option in
        [["--per", "second"], ["--fail-if", "alloc > +1%"], ["--format", "markdown"], ["--from", "1s"]]
    {
        diff([&good, &good], &option).with_code(2).assert_error_names(&["diff: "]);
    }
    // Of another process, without times, and with a name that would clear the screen.
    let other = file("other-process.json", &snapshot("8", 9_000_000));
    let finished = diff([&good, &other], &[]).with_code(0);
    assert!(finished.stderr.contains("different processes"), "{}", finished.stderr);
    let text = finished.text();
    assert!(
        text.contains("x grew by 4.00 MB, to 9.00 MB of 9.00 MB") && !text.contains('\u{1b}'),
        "{text:?}"
    );
}

#[test]
fn the_monitor_reads_memory_by_owner() {
    let Some(target) = leak(Runtime::Net9_0) else { return };
    let rule = |condition: &str| {
        json!({"Trigger": {"Type": "Condition", "Settings": {"Condition": condition}},
            "Actions": [{"Type": "Execute", "Settings": {"Path": "/bin/true"}}], "Limits": {"ActionCount": 1}})
    };
    let rules = json!({
        "Leak": rule("native memory > 50MB for 2s"),
        "Never": rule("native memory > 100GB for 2s"),
    });
    let monitor =
        Monitor::start_with(target.pid(), &rules, &["--metrics", "true", "--memory-interval", "1s"]);
    monitor.await_rule("Leak", "Finished", 1);
    assert_eq!(monitor.get("/collectionrules/Never").unwrap()["state"], "Running");
    // The answer has the members of the program's JSON.
    let pid = target.pid().to_string();
    let answer = monitor.get_text(&format!("/memory?pid={pid}"));
    assert!(answer.contains(".memory.json") && answer.contains("application/json"), "{answer}");
    // In one chunk.
    let (start, end) = (answer.find('{').unwrap(), answer.rfind('}').unwrap());
    let report: Value = serde_json::from_str(&answer[start..=end]).unwrap();
    let owners = report["owners"].as_array().unwrap_or_else(|| panic!("{report}"));
    let sum = owners.iter().map(|owner| owner["bytes"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(Some(sum), report["rss_bytes"].as_u64(), "{report:#}");
    assert!(report["answer"].as_str().unwrap().starts_with("Native heap "), "{report:#}");
    let printed = run(["memory", "-p", &pid, "--format", "json"]).with_code(0).json();
    let members = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(members(&report), members(&printed));
    // Eight series of the process.
    let series = || {
        let text = monitor.get_text("/metrics");
        let lines = text.lines().filter(|line| line.starts_with("dipc_process_memory_"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    await_that("the series", || series().len() == 8);
    let series = series();
    let value = |owner: &str| {
        let line = series.iter().find(|line| line.contains(&format!("owner=\"{owner}\"")));
        let line = line.unwrap_or_else(|| panic!("{owner}: {series:#?}"));
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(value("native-heap") > 5e7 && value("gc-heap") > 0.0 && value("files") > 1e7, "{series:#?}");
    let (finished, _folder) = monitor.interrupt();
    let said = &finished.stderr;
    assert!(said.contains("fired for the first time: native memory = ") && said.contains(" for "), "{said}");
    assert!(!said.contains("is unknown"), "{said}");
}

/// Without readings, a condition over them is said to be met never.
#[test]
fn conditions_over_memory_that_is_not_read_are_said() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let rules = json!({"Memory": {
        "Trigger": {"Type": "Condition", "Settings": {"Condition": "native memory > 1MB"}},
        "Actions": [{"Type": "Execute", "Settings": {"Path": "/bin/true"}}],
    }});
    let monitor = Monitor::start_with(workload.pid(), &rules, &["--memory-interval", "0s"]);
    let texts = || {
        let overview = monitor.get("/overview").unwrap_or_default();
        overview["ruleEvents"].to_string()
    };
    await_that("the message", || texts().contains("native memory is unknown"));
    monitor.interrupt();
}

#[test]
fn pages_show_owners_and_growth() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).into_os_string().into_string().unwrap();
    let [page, growth] = ["memory.html", "growth.html"].map(path);
    run(["memory", "-p", &workload.pid().to_string(), "--format", "html", "-o", &page]).with_code(0);
    let html = fs::read_to_string(&page).unwrap();
    for part in ["<!doctype html>", "GC heap: generation 0", "Native heap (malloc)", "<details>", "</html>"] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let snapshot = path("before.json");
    let first = run(["memory", "-p", &workload.pid().to_string(), "--format", "json"]).with_code(0);
    fs::write(&snapshot, first.text().replace("\"bytes\": ", "\"bytes\": 9")).unwrap();
    let after = path("after.json");
    fs::write(&after, first.text()).unwrap();
    diff([Path::new(&snapshot), Path::new(&after)], &["--format", "html", "-o", &growth]).with_code(0);
    let html = fs::read_to_string(&growth).unwrap();
    assert!(html.contains("class=\"bar\"") && html.contains("No owner grew by "), "{html}");
    // Inputs stay.
    diff([Path::new(&snapshot), Path::new(&after)], &["--format", "html", "-o", &after]).with_code(2);
    assert_eq!(fs::read_to_string(&after).unwrap(), first.text());
}
