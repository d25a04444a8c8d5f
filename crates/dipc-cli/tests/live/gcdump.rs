//! `dipc gcdump`: heaps of real runtimes.

use std::path::Path;

use serde_json::Value;

use crate::program::{Finished, Running, dipc};
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::{McpServer, Workload};

on_each_runtime!(heap_contains_the_programs_objects, shows_only_growing_types);

fn run(arguments: &[&str]) -> Finished {
    Running::start(dipc(["gcdump"].into_iter().chain(arguments.iter().copied()))).finish()
}

fn json(arguments: &[&str]) -> Value {
    let finished = run(&[arguments, &["--format", "json"]].concat());
    assert_eq!(finished.code, Some(0), "{finished:?}");
    serde_json::from_slice(&finished.stdout).unwrap()
}

/// The row of a type.
fn row<'v>(report: &'v Value, name: &str) -> &'v Value {
    let rows = report["rows"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name} in {report}"))
}

/// NativeAOT accepts the session, and sends nothing.
fn assert_no_heap(workload: &Workload) {
    let refused = run(&["report", "-p", &workload.pid().to_string()]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("NativeAOT"), "{refused:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heap.gcdump");
    let refused = run(&["collect", "-p", &workload.pid().to_string(), "-o", file.to_str().unwrap()]);
    assert_eq!((refused.code, file.exists()), (Some(4), false), "{refused:?}");
}

fn heap_contains_the_programs_objects(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    if runtime == Runtime::NativeAot9 {
        return assert_no_heap(&workload);
    }
    workload.run("keep 20000");
    let folder = tempfile::tempdir().unwrap();
    let (file, pid) = (folder.path().join("heap.gcdump"), workload.pid().to_string());
    // The extension is added.
    let collected = run(&["collect", "-p", &pid, "-o", folder.path().join("heap").to_str().unwrap()]);
    assert_eq!(collected.code, Some(0), "{collected:?}");
    let report = json(&["report", file.to_str().unwrap()]);
    assert_eq!(report["complete"], true, "{}", report["missing"]);
    let node = row(&report, "Node");
    assert_eq!((&node["objects"], &node["bytes"]), (&20_000.into(), &800_000.into()), "{node}");
    assert_eq!(node["module"], "workload.dll");
    // Each holds an array of 64 bytes and a text of its own, and is held by the list of all.
    let list = row(&report, "System.Collections.Generic.List<Program+Node>");
    assert!(list["retained_bytes"].as_u64() > node["retained_bytes"].as_u64(), "{list} {node}");
    assert!(node["retained_bytes"].as_u64().unwrap() >= 20_000 * (40 + 88 + 22), "{node}");
    assert_paths(&file);
    assert_names(&pid);

    workload.run("keep 1000");
    let second = folder.path().join("second.gcdump");
    let collected = run(&["collect", "-n", "dotnet", "-p", &pid]);
    assert_eq!(collected.code, Some(2), "one process: {collected:?}");
    let collected = run(&["collect", "-p", &pid, "-o", second.to_str().unwrap()]);
    assert_eq!(collected.code, Some(0), "{collected:?}");
    let diff = json(&["diff", file.to_str().unwrap(), second.to_str().unwrap()]);
    let node = row(&diff, "Node");
    assert_eq!((&node["objects_before"], &node["objects_after"]), (&20_000.into(), &21_000.into()), "{node}");
}

/// Of a process the files of its modules say which type declares a static field, and which types are around
/// nested ones.
fn assert_names(pid: &str) {
    let paths = json(&["paths", "-p", pid, "--type", "Node"]);
    let steps: Vec<_> =
        paths["paths"][0]["csharp"].as_array().unwrap().iter().map(|step| step.as_str().unwrap()).collect();
    let field = "[static var Program.Kept: System.Collections.Generic.List<Program.Node>]";
    assert!(steps.contains(&field) && steps.last() == Some(&"Program.Node"), "{steps:?}");
    let report = json(&["report", "-p", pid]);
    let names: Vec<_> =
        report["rows"].as_array().unwrap().iter().map(|row| row["csharp"].as_str().unwrap()).collect();
    let is_entries = |name: &str| {
        name.starts_with("System.Collections.Generic.Dictionary<") && name.ends_with(">.Entry[]")
    };
    assert!(names.iter().any(|name| is_entries(name)), "{names:?}");
}

/// Nodes are held by a static field, through a list and its array.
fn assert_paths(file: &Path) {
    let paths = json(&["paths", file.to_str().unwrap(), "--type", "Node"]);
    let path = &paths["paths"][0];
    assert_eq!(path["objects"], 20_000, "{paths}");
    let steps: Vec<_> = path["steps"].as_array().unwrap().iter().map(|step| step.as_str().unwrap()).collect();
    assert_eq!(steps.last(), Some(&"Node"), "{steps:?}");
    assert!(steps.contains(&"Node[]"), "{steps:?}");
}

fn shows_only_growing_types(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    if runtime == Runtime::NativeAot9 {
        return assert_no_heap(&workload);
    }
    workload.run("keep 100");
    let pid = workload.pid().to_string();
    // The first one makes the runtime load types.
    run(&["report", "-p", &pid, "--no-retained"]).with_code(0);
    let watching = Running::start(dipc([
        "gcdump",
        "report",
        "-p",
        &pid,
        "--watch",
        "1s",
        "--count",
        "4",
        "--no-retained",
        "--format",
        "json",
    ]));
    let mut watching = watching;
    while !watching.is_over() {
        workload.run("keep 500");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let finished = watching.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let watched: Value = serde_json::from_slice(&finished.stdout).unwrap();
    assert_eq!(watched["dumps"], 4);
    let objects = row(&watched, "Node")["objects"].as_array().unwrap();
    assert!(objects.is_sorted_by(|a, b| a.as_u64() < b.as_u64()), "{objects:?}");
    // The runtime's own types, too, are shown only if they grew.
    for row in watched["rows"].as_array().unwrap() {
        let grew = ["objects", "bytes"].iter().any(|figures| {
            let figures = row[figures].as_array().unwrap();
            figures.last().unwrap().as_u64() > figures[0].as_u64()
        });
        assert!(grew, "{row}");
    }
    assert!(watched["rows"].as_array().unwrap().len() < 30, "{watched}");
}

#[test]
fn the_heap_of_a_server_of_net10_is_whole() {
    let Some(server) = McpServer::start() else { return };
    let report = json(&["report", "-p", &server.pid().to_string()]);
    assert_eq!(report["complete"], true, "{}", report["missing"]);
    assert!(report["objects"].as_u64() > Some(10_000), "{report}");
    assert!(row(&report, "System.String")["objects"].as_u64() > Some(1000));
    let unreachable = report["unreachable_bytes"].as_u64().unwrap();
    assert!(unreachable < report["bytes"].as_u64().unwrap() / 10, "{unreachable} bytes that no root reaches");
}

#[test]
fn a_program_that_is_started_is_dumped_and_its_exit_code_passed_on() {
    let Some(workload) = Runtime::Net9_0.workload() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heap.gcdump");
    let mut command = dipc(["gcdump", "collect", "--after", "2s", "-o", file.to_str().unwrap(), "--"]);
    command.arg(workload.get_program()).args(workload.get_args()).args(["keep 300", "hang 8000", "quit 7"]);
    let finished = Running::start(command).finish();
    assert_eq!(finished.code, Some(7), "{finished:?}");
    assert_eq!(row(&json(&["report", file.to_str().unwrap()]), "Node")["objects"], 300);
}
