//! `dipc memory`: programs with memory that is known (`testdata/workload/incidents`), and the sums of all owners.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::run;
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::{McpServer, Target, Workload};

/// Maximum share of memory without a known owner.
const MAX_UNKNOWN_PERCENT: u64 = 2;

/// The account of a process in JSON, with the sums checked.
fn account(pid: u32) -> Value {
    let report = run(["memory", "-p", &pid.to_string(), "--format", "json"]).with_code(0).json();
    let owners = report["owners"].as_array().unwrap();
    let sum = owners.iter().map(|owner| bytes(&owner["bytes"])).sum::<u64>();
    assert_eq!(sum, bytes(&report["rss_bytes"]), "{report}");
    let swap = owners.iter().map(|owner| bytes(&owner["swap_bytes"])).sum::<u64>();
    assert_eq!(swap, bytes(&report["swap_bytes"]), "{report}");
    assert_eq!(owner(&report, "unknown"), bytes(&report["unattributed_bytes"]));
    report
}

fn bytes(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// The resident bytes of an owner; zero of one that has none.
fn owner(report: &Value, owner: &str) -> u64 {
    let owners = report["owners"].as_array().unwrap();
    owners.iter().find(|of| of["owner"] == owner).map_or(0, |of| bytes(&of["bytes"]))
}

/// The kernel's own sum.
fn resident(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// The account of a process that stands still: its sum is the kernel's, and nearly all has an owner.
fn check_stopped(target: &Target) -> Value {
    target.halt();
    // The first reading maps pages of files that the process itself has not touched, such as headers.
    account(target.pid());
    let before = resident(target.pid());
    let report = account(target.pid());
    assert_eq!((bytes(&report["rss_bytes"]), resident(target.pid())), (before, before));
    let unknown = bytes(&report["unattributed_bytes"]);
    assert!(unknown * 100 <= before * MAX_UNKNOWN_PERCENT, "{unknown} of {before}: {report:#}");
    report
}

on_each_runtime!(owners_sum_to_the_resident_memory);

fn owners_sum_to_the_resident_memory(runtime: Runtime) {
    let Some(workload) = Workload::start(runtime) else { return };
    let report = check_stopped(&workload);
    for name in ["gc-handles", "thread-stacks", "native-heap", "native-libraries"] {
        assert!(owner(&report, name) > 0, "{name}: {report:#}");
    }
    // Programs that were compiled ahead of time have no code of others, and do not say where the collector's tables are.
    let is_jitted = !matches!(runtime, Runtime::NativeAot8 | Runtime::NativeAot9);
    for name in ["jit-code", "loader-heaps", "assemblies", "gc-tables"] {
        assert_eq!(owner(&report, name) > 0, is_jitted, "{name}: {report:#}");
    }
    assert_eq!(report["missing"].as_array().unwrap().is_empty(), is_jitted, "{report:#}");
    // Each thread has a stack, by its stack pointer.
    let threads = std::fs::read_dir(format!("/proc/{}/task", workload.pid())).unwrap().count();
    let stacks =
        report["owners"].as_array().unwrap().iter().find(|of| of["owner"] == "thread-stacks").unwrap();
    let named = stacks["parts"].as_array().unwrap().iter().filter(|part| part["tid"].is_u64()).count();
    assert_eq!(named, threads, "{report:#}");
}

#[test]
fn owners_of_a_server_of_net_10_sum_to_the_resident_memory() {
    let Some(server) = McpServer::start() else { return };
    let report = check_stopped(server.target());
    assert!(owner(&report, "assemblies") > 0 && owner(&report, "jit-code") > 0, "{report:#}");
}

#[test]
fn the_heap_of_a_server_collector_has_owners() {
    let variables =
        [("DOTNET_gcServer", "1"), ("DOTNET_GCHeapCount", "2"), ("DOTNET_GCHeapHardLimit", "0x20000000")];
    let Some(workload) = Workload::start_with(Runtime::Net9_0, &variables) else { return };
    let report = check_stopped(&workload);
    assert_eq!(report["gc_limit"]["bytes"], 0x2000_0000, "{report:#}");
    assert_eq!(report["settings"]["DOTNET_gcServer"], "1");
}

fn incident(runtime: Runtime, program: &str, arguments: &[&str]) -> Option<Target> {
    let mut command: Command = runtime.program(&format!("incidents/{program}.dll"))?;
    command.args(arguments);
    Some(Target::start_waiting(command))
}

/// The same, once the program says that it has started: its work is done.
fn done_incident(runtime: Runtime, program: &str, arguments: &[&str]) -> Option<Target> {
    let target = incident(runtime, program, arguments)?;
    assert_eq!(target.line(), "started");
    Some(target)
}

/// Asks until the first line has these parts: programs need a moment for their incident.
#[track_caller]
fn until_answered(target: &Target, parts: &[&str]) -> Value {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let report = account(target.pid());
        let answer = report["answer"].as_str().unwrap();
        if parts.iter().all(|part| answer.contains(part)) {
            return report;
        }
        assert!(Instant::now() < deadline, "{parts:?}: {report:#}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn on_runtimes_of_incidents(check: impl Fn(Runtime)) {
    for runtime in [Runtime::Net3_1, Runtime::Net8_0, Runtime::Net9_0] {
        check(runtime);
    }
}

/// Blocks of 1 MB, each with a mapping of its own.
#[test]
fn a_native_leak_is_in_use_by_native_code() {
    on_runtimes_of_incidents(|runtime| {
        let Some(target) = incident(runtime, "leak", &["native"]) else { return };
        let report =
            until_answered(&target, &["Native heap ", " are in use: native code has not freed them"]);
        assert!(owner(&report, "native-heap") * 2 > bytes(&report["rss_bytes"]) / 2, "{report:#}");
    });
}

#[test]
fn free_memory_of_malloc_is_named_with_the_way_to_return_it() {
    on_runtimes_of_incidents(|runtime| {
        let Some(target) = done_incident(runtime, "fragments", &["native"]) else { return };
        let end = " are free and not returned: malloc_trim, MALLOC_ARENA_MAX";
        let report = until_answered(&target, &["Native heap ", end]);
        assert!(bytes(&report["native_heap"]["free_bytes"]) > 250_000_000, "{report:#}");
        // The table has the same line first, and fits a screen.
        let text = run(["memory", "-p", &target.pid().to_string(), "--parts"]).with_code(0).text();
        assert!(text.starts_with("Native heap ") && text.lines().next().unwrap().ends_with(end), "{text}");
        let table = text.lines().skip(2).take_while(|line| !line.is_empty());
        assert!(table.clone().count() > 5 && table.clone().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("Native heap (malloc)") && text.contains("\nThread stacks\n"), "{text}");
    });
}

#[test]
fn free_memory_between_large_objects_is_named() {
    on_runtimes_of_incidents(|runtime| {
        let Some(target) = done_incident(runtime, "fragments", &["loh"]) else { return };
        let report = until_answered(&target, &["GC heap ", " are free between objects (large objects)"]);
        assert!(owner(&report, "gc-large-objects") > 400_000_000, "{report:#}");
    });
}

/// Arrays of 1 to 3 MB, some hundred a second: regions come and go while they are read.
#[test]
fn large_objects_that_are_allocated_meanwhile_are_of_the_heap() {
    on_runtimes_of_incidents(|runtime| {
        let Some(target) = incident(runtime, "memory", &["loh"]) else { return };
        until_answered(&target, &["GC heap "]);
        for _ in 0..5 {
            account(target.pid());
        }
    });
}

#[test]
fn stacks_have_the_names_of_their_threads() {
    let Some(target) = incident(Runtime::Net9_0, "grow", &["threads"]) else { return };
    assert_eq!(target.line(), "started");
    let deadline = Instant::now() + Duration::from_secs(120);
    let has_names = || {
        let report = account(target.pid());
        let owners = report["owners"].as_array().unwrap();
        let stacks = owners.iter().find(|of| of["owner"] == "thread-stacks").unwrap();
        let parts = stacks["parts"].as_array().unwrap();
        let named = parts
            .iter()
            .filter(|part| part["name"].as_str().is_some_and(|name| name.starts_with("mailbox-")));
        named.count() >= 50
    };
    while !has_names() {
        assert!(Instant::now() < deadline, "{}", account(target.pid()));
    }
}

#[test]
fn a_core_dump_has_the_same_owners_without_residency() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core").into_os_string().into_string().unwrap();
    run(["dump", "-p", &workload.pid().to_string(), "--type", "full", "--stream", "-o", &core]).with_code(0);
    let report = run(["memory", &core, "--format", "json"]).with_code(0).json();
    assert_eq!((&report["rss_bytes"], &report["pss_bytes"]), (&Value::Null, &Value::Null));
    let owners = report["owners"].as_array().unwrap();
    let sum = owners.iter().map(|owner| bytes(&owner["bytes"])).sum::<u64>();
    assert_eq!(sum, bytes(&report["dump_bytes"]), "{report:#}");
    for name in ["gc-tables", "loader-heaps", "thread-stacks", "native-heap", "jit-code"] {
        assert!(owner(&report, name) > 0, "{name}: {report:#}");
    }
    let text = run(["memory", &core]).with_code(0).text();
    assert!(text.contains("which are not the memory that was resident"), "{text}");
}

#[test]
fn a_process_without_a_runtime_has_owners() {
    let mut sleeping = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = sleeping.id();
    let deadline = Instant::now() + Duration::from_secs(60);
    // Before it runs its program, it is a copy of this one.
    let name = || std::fs::read(format!("/proc/{pid}/comm")).unwrap();
    while name() != b"sleep\n" {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
    let report = account(pid);
    sleeping.kill().unwrap();
    sleeping.wait().unwrap();
    assert_eq!(report["runtime"], Value::Null);
    assert!(report["missing"][0].as_str().unwrap().starts_with("the managed heap and code: "), "{report}");
    assert!(owner(&report, "native-libraries") > 0, "{report:#}");
    let gone = run(["memory", "-p", &pid.to_string()]).with_code(3);
    gone.assert_error_names(&["read the memory of process"]);
}
