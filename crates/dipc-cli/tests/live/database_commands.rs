//! Commands of clients of SQL Server in known states (`testdata/workload/commands`, `sqlclient`), by the
//! memory of the process and by a core dump: the rows of the view are the program's own account.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::run;
use crate::runtime::{self, Runtime, on_runtimes};
use crate::workload::Target;

/// Longer than a method takes on a loaded machine from sending a command to waiting for the answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program next to the client, which a package has: neither is a part of the other.
fn program(runtime: Runtime, folder: &Path) -> Option<Command> {
    let client = runtime::sql_client()?;
    let dotnet = runtime::installation(runtime)?.join("dotnet");
    let built = runtime::testdata().join("workload/commands");
    for name in ["commands.dll", "commands.runtimeconfig.json"] {
        fs::copy(built.join(name), folder.join(name)).unwrap();
    }
    fs::copy(&client, folder.join(client.file_name().unwrap())).unwrap();
    let mut command = Command::new(dotnet);
    command.arg(folder.join("commands.dll"));
    Some(command)
}

fn view(source: &[&str]) -> Value {
    run([&["dump", "analyze"], source, &["requests", "--format", "json"]].concat()).with_code(0).json()
}

/// The facts of the rows that the program states, too, by text.
fn rows(report: &Value, is_core: bool) -> BTreeMap<String, Value> {
    let row = |row: &Value| {
        let facts = json!({
            "state": row["state"], "server": row["server"], "database": row["database"],
            "code": row["in"].as_str().unwrap_or_default().split('(').next(),
            "aged": if is_core { row["started"].is_string() } else { row["age_ms"].is_u64() },
        });
        (row["text"].as_str().unwrap_or_default().to_owned(), facts)
    };
    report["commands"]["rows"].as_array().unwrap().iter().map(row).collect()
}

fn check(source: &[&str], account: &Value, is_core: bool) {
    let of_account = |row: &Value| {
        let mut facts = row.clone();
        let text = facts.as_object_mut().unwrap().remove("text").unwrap();
        (text.as_str().unwrap().to_owned(), facts)
    };
    let expected: BTreeMap<_, _> = account["commands"].as_array().unwrap().iter().map(of_account).collect();
    let deadline = Instant::now() + PATIENCE;
    let report = loop {
        let report = view(source);
        if rows(&report, is_core) == expected || Instant::now() >= deadline {
            break report;
        }
    };
    assert_eq!(rows(&report, is_core), expected, "{report:#}");
    assert_eq!((&report["unread_results"], &report["complete"]), (&account["unread"], &json!(true)));
    for row in report["commands"]["rows"].as_array().unwrap() {
        let is_blocked = row["in"].as_str().unwrap().contains("Now(");
        assert_eq!(row["tid"].is_u64(), is_blocked, "{row}");
        // A thread can wait for an asynchronous call.
        let has_chain = !is_blocked || row["in"].as_str().unwrap().starts_with("Store.WaitNow(");
        assert_eq!(!row["chain"].as_array().unwrap().is_empty(), has_chain, "{row}");
        assert!(row["age_ms"].as_u64().unwrap_or_default() < 3_600_000, "{row}");
    }
    // The secrets of a connection.
    let shown = report.to_string();
    assert!(!shown.contains("unsaid") && !shown.contains("clerk"), "{shown}");
}

/// Compares the rows with the program's account: those of the process, of a core dump and of a copy without
/// contents.
fn check_program(program: Command, first_line: &str) {
    let target = Target::start(program);
    let account: Value = serde_json::from_str(&target.line()).unwrap();
    let pid = target.pid().to_string();
    check(&["-p", &pid], &account, false);
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("commands.core");
    let core = core.to_str().unwrap();
    run(["dump", "-p", &pid, "--stream", "-o", core]).with_code(0);
    check(&[core], &account, true);
    let shown = run(["dump", "analyze", core, "requests"]).with_code(0).text();
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(first_line), "{shown}");
    let copy = folder.path().join("stripped.core");
    let copy = copy.to_str().unwrap();
    run(["dump", "strip", core, "-o", copy]).with_code(0);
    let shown = run(["dump", "analyze", copy, "requests", "--format", "json"]).text();
    let report: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(report["commands"]["requests"], account["commands"].as_array().unwrap().len());
    for part in ["SELECT", "127.0.0.1", "shop"] {
        assert!(!shown.contains(part), "{part}: {shown}");
    }
}

fn commands_are_the_account_of_the_program(runtime: Runtime) {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(runtime, folder.path()) else { return };
    check_program(program, "9 database commands (7 executing, 2 reading rows), 2 open results that nothing");
}

/// No package of Microsoft.Data.SqlClient could be had: a library of its name has its types and fields.
fn commands_of_a_stand_in_are_the_account_of_the_program(runtime: Runtime) {
    let Some(program) = runtime.program("sqlclient/standin.dll") else { return };
    check_program(program, "5 database commands (4 executing, 1 reading rows), 1 open result that nothing");
}

on_runtimes!(commands_are_the_account_of_the_program: net_3_1, net_9_0);
on_runtimes!(commands_of_a_stand_in_are_the_account_of_the_program: net_3_1, net_9_0);
