//! A starved thread pool, timers and tasks that are known (`testdata/workload/pool`), by the memory of the
//! process and by a core dump: each view's rows are the program's own account.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::program::run;
use crate::runtime::{Runtime, on_runtimes};
use crate::workload::Target;

/// A view of a source, `-p PID` or a core dump, as JSON.
fn view(source: &[&str], name: &str) -> Value {
    run([&["dump", "analyze"], source, &[name, "--format", "json"]].concat()).with_code(0).json()
}

/// The numbers of the rows of a view by some of their fields.
fn rows(report: &Value, list: &str, fields: &[&str], number: &str) -> BTreeMap<String, u64> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let key = |row: &Value| fields.iter().map(|field| text(&row[field])).collect::<Vec<_>>().join(", ");
    let rows = report[list].as_array().unwrap().iter();
    rows.map(|row| (key(row), row[number].as_u64().unwrap())).collect()
}

fn expected<const N: usize>(rows: [(&str, u64); N]) -> BTreeMap<String, u64> {
    rows.map(|(key, number)| (key.to_owned(), number)).into()
}

fn check_pool(source: &[&str], account: &Value) {
    let report = view(source, "threadpool");
    let number = |name: &str| account[name].as_u64().unwrap();
    // .NET Core 3.1 has work of native code, too.
    let waiting = number("pending") - account["unmanaged"].as_u64().unwrap_or_default();
    assert_eq!(report["waiting"], waiting, "{report}");
    let workers = &report["workers"];
    for (name, of_account) in [("existing", "threads"), ("min", "min"), ("max", "max"), ("blocked", "busy")] {
        assert_eq!(workers[name], number(of_account), "{name}: {report}");
    }
    assert_eq!((&workers["active"], &workers["idle"]), (&json!(0), &json!(0)), "{report}");
    assert_eq!((&report["starved"], &report["complete"]), (&json!(true), &json!(true)), "{report}");
    let all = number("busy");
    let answer =
        format!("{waiting} work items wait, all {all} workers are blocked: {all} of them in Worker.Block");
    assert_eq!(report["answer"], answer);
    let queued = rows(&report, "queued", &["queue", "work"], "items");
    let of_program = expected([
        ("global, Mail.Send(object)", 7),
        ("global, Pool.LoadAsync", 3),
        ("global, Report.Print()", 4),
        ("local, Stock.Count()", 5),
    ]);
    assert_eq!(queued, of_program);
    let local = report["queued"].as_array().unwrap().iter().find(|row| row["queue"] == "local").unwrap();
    assert_eq!(local["tids"].as_array().unwrap().len(), 1, "{local}");
    assert!(report["hill_climbing"]["goal"].as_u64() >= Some(all), "{report}");
}

fn check_timers(source: &[&str], account: &Value) -> Value {
    let report = view(source, "timers");
    assert_eq!((&report["timers"], &report["read"]), (&account["timers"], &account["timers"]));
    let of_program = expected([
        ("Clock.Ring(object), null, null", 2),
        ("Clock.Tick(object), string, 60000", 3),
        ("Task.Delay, System.Threading.Tasks.Task.DelayPromise, null", 1),
    ]);
    assert_eq!(rows(&report, "rows", &["callback", "argument", "period_ms"], "timers"), of_program);
    report
}

fn check_tasks(source: &[&str], account: &Value) {
    let report = view(source, "tasks");
    for state in ["Running", "WaitingToRun", "WaitingForActivation", "Faulted"] {
        assert_eq!(report["states"][state], account["tasks"][state], "{state}: {report}");
    }
    let tasks = rows(&report, "rows", &["state", "method"], "tasks");
    let row = |key: &str| tasks.get(key).copied();
    assert_eq!(row("Faulted, Pool.FailAsync"), Some(2), "{tasks:?}");
    assert_eq!(row("WaitingForActivation, Pool.LoadAsync"), Some(3), "{tasks:?}");
    assert_eq!(row("WaitingToRun, Report.Print()"), Some(4), "{tasks:?}");
    assert_eq!(row("WaitingToRun, Stock.Count()"), Some(5), "{tasks:?}");
}

fn views_are_the_account_of_the_program(runtime: Runtime) {
    let Some(program) = runtime.program("pool/pool.dll") else { return };
    let target = Target::start(program);
    let account: Value = serde_json::from_str(&target.line()).unwrap();
    let pid = target.pid().to_string();
    let live = ["-p", &pid];
    check_pool(&live, &account);
    let timers = check_timers(&live, &account);
    assert_eq!(timers["late"], 0, "{timers}");
    check_tasks(&live, &account);
    let shown = run(["dump", "analyze", "-p", &pid, "-c", "tpq", "-c", "timerinfo"]).with_code(0).text();
    assert!(shown.contains("in Worker.Block (starvation)\n") && shown.contains("Clock.Tick"), "{shown}");

    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("pool.core");
    let core = core.to_str().unwrap();
    run(["dump", "-p", &pid, "--stream", "-o", core]).with_code(0);
    check_pool(&[core], &account);
    let timers = check_timers(&[core], &account);
    // A core dump lacks the time at which it was written, and .NET Core 3.1 that of ticks.
    assert_eq!(timers["late"], Value::Null, "{timers}");
    for row in timers["rows"].as_array().unwrap() {
        assert_eq!(row["due_in_ms"], Value::Null, "{row}");
        assert_eq!(row["first_due"].is_string(), runtime != Runtime::Net3_1, "{row}");
    }
    check_tasks(&[core], &account);
}

on_runtimes!(views_are_the_account_of_the_program: net_3_1, net_8_0, net_9_0);
