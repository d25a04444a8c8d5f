//! `dipc memory`: programs with memory that is known (`testdata/workload/incidents`), and the sums of all
//! owners.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::run;
use crate::runtime::{Runtime, installation, not_run, on_each_runtime, testdata};
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

/// The resident bytes of the named parts of an owner.
fn parts(report: &Value, owner: &str) -> BTreeMap<String, u64> {
    let owners = report["owners"].as_array().unwrap();
    let of = owners.iter().find(|of| of["owner"] == owner);
    let parts = of.map(|of| of["parts"].as_array().unwrap().clone()).unwrap_or_default();
    let part = |part: &Value| Some((part["name"].as_str()?.to_owned(), bytes(&part["bytes"])));
    parts.iter().filter_map(part).collect()
}

fn is_native(runtime: Runtime) -> bool {
    matches!(runtime, Runtime::NativeAot8 | Runtime::NativeAot9)
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
    for name in ["gc-handles", "gc-tables", "thread-stacks", "native-heap", "native-libraries"] {
        assert!(owner(&report, name) > 0, "{name}: {report:#}");
    }
    // Programs that were compiled ahead of time have no code of others.
    let is_jitted = !is_native(runtime);
    for name in ["jit-code", "loader-heaps", "assemblies"] {
        assert_eq!(owner(&report, name) > 0, is_jitted, "{name}: {report:#}");
    }
    match runtime {
        Runtime::NativeAot8 | Runtime::NativeAot9 => assert!(parts(&report, "loader-heaps").is_empty()),
        // Each of these versions has kinds that the one before it does not have.
        Runtime::Net3_1 => check_loader_heaps(&report, &[]),
        Runtime::Net8_0 => check_loader_heaps(&report, &["precode heaps"]),
        Runtime::Net9_0 => check_loader_heaps(&report, &["precode heaps", "heap of static fields"]),
    }
    assert_eq!(report["missing"].as_array().unwrap().len(), 0, "{report:#}");
    // Each thread has a stack, by its stack pointer.
    let threads = std::fs::read_dir(format!("/proc/{}/task", workload.pid())).unwrap().count();
    let stacks =
        report["owners"].as_array().unwrap().iter().find(|of| of["owner"] == "thread-stacks").unwrap();
    let named = stacks["parts"].as_array().unwrap().iter().filter(|part| part["tid"].is_u64()).count();
    assert_eq!(named, threads, "{report:#}");
}

/// Nearly all memory of loader heaps is of a known kind, and of the contexts that are never unloaded.
fn check_loader_heaps(report: &Value, more: &[&str]) {
    let heaps = parts(report, "loader-heaps");
    let of = |name: &str| heaps.get(name).copied().unwrap_or_default();
    let kinds = ["low-frequency heap", "high-frequency heap", "stub heap"];
    let known: u64 = kinds.iter().chain(more).map(|name| of(name)).sum();
    for name in kinds.iter().chain(more) {
        assert!(of(name) > 0, "{name}: {report:#}");
    }
    let all = owner(report, "loader-heaps");
    assert!(known * 100 >= all * 70, "{known} of {all}: {report:#}");
}

#[test]
fn owners_of_a_server_of_net_10_sum_to_the_resident_memory() {
    let Some(server) = McpServer::start() else { return };
    let report = check_stopped(server.target());
    assert!(owner(&report, "assemblies") > 0 && owner(&report, "jit-code") > 0, "{report:#}");
    check_loader_heaps(&report, &["precode heaps", "heap of static fields"]);
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

/// Asks until an answer is as wanted: programs need a moment for their incident.
#[track_caller]
fn until(target: &Target, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let report = account(target.pid());
        if is_wanted(&report) {
            return report;
        }
        assert!(Instant::now() < deadline, "{report:#}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Asks until the first line has these parts.
#[track_caller]
fn until_answered(target: &Target, parts: &[&str]) -> Value {
    until(target, |report| {
        let answer = report["answer"].as_str().unwrap();
        parts.iter().all(|part| answer.contains(part))
    })
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
        let is_most = |report: &Value| owner(report, "native-heap") * 2 > bytes(&report["rss_bytes"]);
        let report = until(&target, is_most);
        let answer = report["answer"].as_str().unwrap();
        assert!(answer.starts_with("Native heap "), "{answer}");
        assert!(answer.ends_with(" are in use: native code has not freed them"), "{answer}");
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

on_each_runtime!(a_core_dump_has_the_same_owners_without_residency);

fn a_core_dump_has_the_same_owners_without_residency(runtime: Runtime) {
    let Some(workload) = Workload::start(runtime) else { return };
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core").into_os_string().into_string().unwrap();
    run(["dump", "-p", &workload.pid().to_string(), "--type", "full", "--stream", "-o", &core]).with_code(0);
    let report = run(["memory", &core, "--format", "json"]).with_code(0).json();
    assert_eq!((&report["rss_bytes"], &report["pss_bytes"]), (&Value::Null, &Value::Null));
    let owners = report["owners"].as_array().unwrap();
    let sum = owners.iter().map(|owner| bytes(&owner["bytes"])).sum::<u64>();
    let all = bytes(&report["dump_bytes"]);
    assert_eq!(sum, all, "{report:#}");
    for name in ["gc-tables", "thread-stacks", "native-heap", "native-libraries"] {
        assert!(owner(&report, name) > 0, "{name}: {report:#}");
    }
    // A program that was compiled ahead of time has stubs only, in pages that it did not touch.
    for name in ["loader-heaps", "jit-code"] {
        assert!(owner(&report, name) > 0 || is_native(runtime), "{name}: {report:#}");
    }
    // As small as that of the process: mappings that were copied in parts are whole.
    let unknown = bytes(&report["unattributed_bytes"]);
    assert!(unknown * 100 <= all * MAX_UNKNOWN_PERCENT, "{unknown} of {all}: {report:#}");
    let text = run(["memory", &core]).with_code(0).text();
    assert!(text.contains("which are not the memory that was resident"), "{text}");
    let view = run(["dump", "analyze", &core, "memory"]).with_code(0).text();
    assert_eq!(view, text);
}

/// Nearly all of a small program's memory is that of files, which the kernel can take back.
#[test]
fn files_of_a_small_program_are_not_the_answer() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let report = account(workload.pid());
    let images = owner(&report, "assemblies") + owner(&report, "native-libraries");
    assert!(images * 2 > bytes(&report["rss_bytes"]), "{report:#}");
    let answer = report["answer"].as_str().unwrap();
    assert!(!answer.starts_with("Assemblies") && answer.contains("; assemblies and libraries "), "{answer}");
}

#[test]
fn many_threads_are_the_answer() {
    let Some(target) = incident(Runtime::Net9_0, "grow", &["threads"]) else { return };
    let report = until_answered(&target, &["Stacks of ", " threads "]);
    assert!(parts(&report, "thread-stacks").len() > 200, "{report:#}");
}

#[test]
fn code_of_dynamic_methods_and_heaps_of_load_contexts_are_parts() {
    on_runtimes_of_incidents(|runtime| {
        let check = |name: &str, of: &str, part: &str| {
            let Some(target) = incident(runtime, "grow", &[name]) else { return };
            let is_wanted = |(name, bytes): (String, u64)| name.contains(part) && bytes > 0;
            until(&target, |report| parts(report, of).into_iter().any(is_wanted));
        };
        check("dynamic", "jit-code", "dynamic methods");
        // .NET Core 3.1 has no pointer from code to the heaps of a context, and a single file (8) loads no
        // assembly again.
        if runtime == Runtime::Net9_0 {
            check("contexts", "loader-heaps", "high-frequency heap of ");
        }
    });
}

/// Properties of `runtimeconfig.json` count as the environment's variables do, which precede them.
#[test]
fn limits_of_runtimeconfig_are_the_heaps() {
    let Some(folder) = installation(Runtime::Net9_0) else { return };
    let own = tempfile::tempdir().unwrap();
    let config = own.path().join("own.runtimeconfig.json");
    let text = r#"{"runtimeOptions": {"tfm": "net9.0",
        "framework": {"name": "Microsoft.NETCore.App", "version": "9.0.0"},
        "configProperties": {"System.GC.HeapHardLimit": 419430400, "System.GC.ConserveMemory": 5}}}"#;
    std::fs::write(&config, text).unwrap();
    let program = || {
        let mut command = Command::new(folder.join("dotnet"));
        command.arg("exec").arg("--runtimeconfig").arg(&config);
        command.arg(testdata().join("workload/incidents/leak.dll")).arg("native");
        command
    };
    // A runtime that listens may not have read its settings yet.
    let until_limit = |target, bytes: u64, source| {
        let limit = serde_json::json!({"bytes": bytes, "source": source});
        until(target, |report| report["gc_limit"] == limit)
    };
    let target = Target::start_waiting(program());
    let report = until_limit(&target, 419_430_400, "System.GC.HeapHardLimit");
    assert_eq!(report["settings"]["System.GC.ConserveMemory"], "5", "{report:#}");
    let mut command = program();
    command.env("DOTNET_GCHeapHardLimit", "10000000");
    let target = Target::start_waiting(command);
    until_limit(&target, 0x1000_0000, "GCHeapHardLimit");
}

/// A group of the first version's memory controller with a limit, where this user can make one.
struct LimitedGroup(PathBuf);

impl LimitedGroup {
    fn create(limit: u64) -> Option<Self> {
        let folder = Path::new("/sys/fs/cgroup/memory").join(format!("dipc-test-{}", std::process::id()));
        if !folder.parent()?.join("memory.limit_in_bytes").exists() || std::fs::create_dir(&folder).is_err() {
            not_run("no group with a limit of memory can be made here");
            return None;
        }
        let group = Self(folder);
        std::fs::write(group.0.join("memory.limit_in_bytes"), limit.to_string()).unwrap();
        Some(group)
    }
}

impl Drop for LimitedGroup {
    fn drop(&mut self) {
        // The last process may still be on its way out.
        let deadline = Instant::now() + Duration::from_secs(20);
        while std::fs::remove_dir(&self.0).is_err() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn a_control_group_with_a_limit_is_shown_with_the_heaps_part_of_it() {
    const LIMIT: u64 = 512 << 20;
    let Some(dotnet) = Runtime::Net9_0.program("incidents/leak.dll") else { return };
    let Some(group) = LimitedGroup::create(LIMIT) else { return };
    let mut command = Command::new("sh");
    command
        .args(["-c", "echo $$ > \"$GROUP\"; exec \"$@\"", "sh"])
        .env("GROUP", group.0.join("cgroup.procs"));
    command.arg(dotnet.get_program()).args(dotnet.get_args()).arg("native");
    let target = Target::start_waiting(command);
    // 1 MB after the other, so the group's memory grows.
    let report = until_answered(&target, &["Native heap "]);
    let of = &report["control_group"];
    assert_eq!((&of["limit_bytes"], &of["oom_kills"]), (&LIMIT.into(), &0.into()), "{report:#}");
    let (usage, working_set) = (bytes(&of["usage_bytes"]), bytes(&of["working_set_bytes"]));
    assert!(working_set > 0 && working_set <= usage && usage <= LIMIT, "{report:#}");
    assert!(bytes(&of["limited_bytes"]) <= LIMIT, "{report:#}");
    let default = "the runtime's default in a control group with a limit";
    assert_eq!(report["gc_limit"]["source"], default, "{report:#}");
    // In whole hundredths.
    assert_eq!(report["gc_limit"]["bytes"], LIMIT / 100 * 75);
    let text = run(["memory", "-p", &target.pid().to_string()]).with_code(0).text();
    assert!(text.contains(" of 537 MB (limit), working set "), "{text}");
    drop(target);
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
