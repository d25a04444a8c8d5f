//! `dump`: the file is there, or it is said why not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use dipc_transport::{ProcessState, process_state};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{Running, dipc, run};
use crate::runtime::{Runtime, mcp_server, on_runtimes, program_of_10};
use crate::streamed_dump::trace_a_crash;
use crate::workload::{Target, Workload, crash};

const ELF: &[u8] = b"\x7fELF";

#[test]
fn a_mini_dump_is_a_core_file_of_the_process() {
    for runtime in [Runtime::Net3_1, Runtime::Net9_0] {
        let Some(workload) = Workload::start(runtime) else { continue };
        let file = workload.folder().join("core");
        let file = file.to_str().unwrap();
        let pid = workload.pid().to_string();
        let dump = run(["dump", "-p", &pid, "--type", "Mini", "-o", file, "--format", "json"]).with_code(0);
        let written = dump.json();
        let bytes = fs::read(file).unwrap();
        assert!(bytes.starts_with(ELF));
        assert_eq!(written["bytes"], bytes.len());
        assert_eq!((&written["path"], &written["type"]), (&file.into(), &"Normal".into()));
        let form = if runtime == Runtime::Net3_1 { "GenerateCoreDump" } else { "GenerateCoreDump3" };
        assert_eq!(written["command"], form);
        assert!(dump.stderr.contains("on the target's filesystem"), "{}", dump.stderr);
    }
}

/// A dump has all that the process knows.
#[test]
#[cfg(unix)]
fn a_dump_in_place_of_a_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let pid = workload.pid().to_string();
    let file = workload.folder().join("core");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    run(["dump", "-p", &pid, "--type", "mini", "-o", file.to_str().unwrap()]).with_code(0);
    assert!(fs::read(&file).unwrap().starts_with(ELF));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

/// The runtime would wait for a reader, and write no other dump meanwhile.
#[test]
#[cfg(unix)]
fn a_pipe_is_refused_for_a_dump() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let pid = workload.pid().to_string();
    let at = |name: &str| workload.folder().join(name).into_os_string().into_string().unwrap();
    let made = Command::new("mkfifo").arg(at("pipe")).status().unwrap();
    assert!(made.success());
    run(["dump", "-p", &pid, "--type", "mini", "-o", &at("pipe")])
        .with_code(2)
        .assert_error_names(&["pipe", "it is not a regular file"]);
    run(["dump", "-p", &pid, "--type", "mini", "-o", &at("core")]).with_code(0);
    assert!(fs::read(at("core")).unwrap().starts_with(ELF));
}

#[test]
fn a_createdump_that_does_not_end_is_named() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let pid = workload.pid().to_string();
    let file = workload.folder().join("core");
    let (dump, createdump) = stopped_createdump(&workload, &["-o", file.to_str().unwrap()]);
    let dump = dump.finish().with_code(5);
    dump.assert_error_names(&[&pid, &format!("its createdump, process {createdump}, did not end within 2")]);
    assert!(dump.stderr.contains(&format!("dipc dump --stream -p {pid}")), "{}", dump.stderr);
    // The commands that the message recommends.
    for (command, id, signal) in [("KILL", createdump, Signal::KILL), ("CONT", workload.pid(), Signal::CONT)]
    {
        assert!(dump.stderr.contains(&format!("kill -{command} {id} ")), "{}", dump.stderr);
        kill_process(Pid::from_raw(id.cast_signed()).unwrap(), signal).unwrap();
    }
    run(["info", "-p", &pid]).with_code(0);
    run(["dump", "-p", &pid, "--stream", "--pause", "60s", "-o", file.to_str().unwrap()]).with_code(0);
}

/// Starts a dump, and stops its createdump before it ends.
fn stopped_createdump(workload: &Workload, arguments: &[&str]) -> (Running, u32) {
    let pid = workload.pid().to_string();
    let arguments = [&["dump", "-p", &pid, "--timeout", "2s"], arguments].concat();
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        let mut dump = Running::start(dipc(arguments.iter().copied()));
        while !dump.is_over() {
            if let Ok(ProcessState::Dumping { createdump }) = process_state(workload.pid())
                && kill_process(Pid::from_raw(createdump.cast_signed()).unwrap(), Signal::STOP).is_ok()
                && process_state(createdump).is_ok_and(|state| state == ProcessState::Stopped)
            {
                return (dump, createdump);
            }
        }
    }
    panic!("no createdump could be stopped");
}

#[test]
fn a_failed_dump_repeats_the_message_of_the_runtime() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let pid = workload.pid().to_string();
    let dump = run(["dump", "-p", &pid, "--type", "mini", "-o", "/nonexistent/core"]).with_code(4);
    dump.assert_error_names(&["GenerateCoreDump3", "0x80004005"]);
    assert!(dump.stderr.contains("runtime: [createdump] "), "{}", dump.stderr);
    assert!(dump.stderr.contains("/nonexistent/core"), "{}", dump.stderr);
}

#[test]
fn a_program_without_createdump_is_explained() {
    let Some(workload) = Workload::start(Runtime::NativeAot9) else { return };
    let pid = workload.pid().to_string();
    let file = workload.folder().join("core");
    let dump = run(["dump", "-p", &pid, "-o", file.to_str().unwrap()]);
    assert!(matches!(dump.code, Some(1 | 4)), "{dump:?}");
    dump.assert_error_names(&["GenerateCoreDump"]);
    assert!(!file.exists());
    run(["info", "-p", &pid]).with_code(0);
}

/// The child process that writes the dump does not end (dotnet/runtime pull request 117286).
#[test]
fn requests_no_dump_of_a_net_8_single_file() {
    let Some(mut workload) = Workload::start(Runtime::Net8_0) else { return };
    let pid = workload.pid().to_string();
    let file = workload.folder().join("core");
    let path = file.to_str().unwrap();
    let dump = run(["dump", "-p", &pid, "-o", path]).with_code(1);
    dump.assert_error_names(&["GenerateCoreDump", "a single file of .NET 8.0.28"]);
    assert!(dump.stderr.contains("dipc dump --stream") && dump.stderr.contains("--force"), "{}", dump.stderr);
    assert!(!file.exists());
    let warned = run(["doctor", "-p", &pid]).with_code(0).text();
    assert!(warned.contains("a single file of .NET 8.0.28"), "{warned}");

    run(["dump", "-p", &pid, "--stream", "-o", path]).with_code(0);
    assert!(fs::read(&file).unwrap().starts_with(ELF));
    workload.run("keep 1234");
    let heap = run(["gcdump", "report", "-p", &pid, "--format", "json"]).with_code(0).json();
    let is_node = |row: &&Value| row["name"] == "Node";
    let node = heap["rows"].as_array().unwrap().iter().find(is_node).unwrap_or_else(|| panic!("{heap}"));
    assert_eq!(node["objects"], 1234, "the program itself has answered");
}

#[test]
fn reports_commands_unknown_to_an_old_runtime() {
    let Some(workload) = Workload::start(Runtime::Net3_1) else { return };
    let pid = workload.pid().to_string();
    let file = workload.folder().join("core");
    let dump = run(["dump", "-p", &pid, "--crashreport", "-o", file.to_str().unwrap()]).with_code(4);
    dump.assert_error_names(&["GenerateCoreDump2", "a crash report"]);
    assert!(
        dump.stderr.ends_with("help: leave out --crashreport, which needs .NET 6 or later\n"),
        "{}",
        dump.stderr
    );
    assert!(!file.exists());
}

/// The frames of a thread: address and metadata token.
type Frames = Vec<(u64, u64)>;

/// The managed frames of createdump's own crash report, by thread. The report has no token for the runtime's
/// own code, and for some of its methods.
fn reported_frames(report: &Value) -> BTreeMap<u64, Frames> {
    let mut threads = BTreeMap::new();
    for thread in report["payload"]["threads"].as_array().unwrap() {
        let frames = thread["stack_frames"].as_array().unwrap().iter();
        let frames =
            frames.map(|frame| (hexadecimal(&frame["native_address"]), hexadecimal(&frame["token"])));
        let frames: Frames = frames.filter(|(_, token)| token & 0x00ff_ffff != 0).collect();
        threads.insert(hexadecimal(&thread["native_thread_id"]), frames);
    }
    threads
}

/// A number in hexadecimal; zero if there is none.
fn hexadecimal(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap_or("0x0").trim_start_matches("0x"), 16).unwrap()
}

#[test]
fn core_stacks_match_the_report_of_createdump() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    workload.run("park");
    let pid = workload.pid().to_string();
    for kind in ["mini", "triage"] {
        let core = workload.folder().join(kind);
        let core = core.to_str().unwrap();
        run(["dump", "-p", &pid, "--type", kind, "--crashreport", "-o", core]).with_code(0);
        let report = fs::read(format!("{core}.crashreport.json")).unwrap();
        let expected = reported_frames(&serde_json::from_slice(&report).unwrap());
        let count: usize = expected.values().map(Vec::len).sum();
        assert!(count > 30, "{kind}: the report has {count} managed frames");
        let stacks = run(["dump", "analyze", core, "stacks", "--format", "json"]).with_code(0).json();
        assert_eq!(stacks["runtime"], "9.0.1");
        let mut found = BTreeMap::new();
        for thread in stacks["threads"].as_array().unwrap() {
            let frames = thread["frames"].as_array().unwrap().iter();
            let frames = frames.inspect(|frame| assert!(frame["method"].is_string(), "{kind}: {frame}"));
            let frames = frames.map(|frame| (hexadecimal(&frame["address"]), hexadecimal(&frame["token"])));
            found.insert(thread["tid"].as_u64().unwrap(), frames.collect::<Frames>());
        }
        for (thread, expected) in &expected {
            // Between the report's frames are only such that it has no token for.
            let mut rest = found.get(thread).into_iter().flatten();
            for frame in expected {
                assert!(
                    rest.any(|found| found == frame),
                    "{kind}: thread {thread}: {frame:x?} is missing or out of order: {:x?}",
                    found.get(thread)
                );
            }
        }
        let text = run(["dump", "analyze", core, "clrstack"]).with_code(0).text();
        assert!(text.contains("\n  Thread.Sleep(int)\n"), "{text}");
    }
}

#[test]
fn rejects_files_other_than_core_dumps() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("core");
    for (bytes, expected) in [
        (&b"short"[..], "it is shorter than a header"),
        (&[b'x'; 100], "it does not begin as an ELF file"),
        (&fs::read(env!("CARGO_BIN_EXE_dipc")).unwrap(), "it is an ELF file of another kind"),
    ] {
        fs::write(&file, bytes).unwrap();
        run(["dump", "analyze", file.to_str().unwrap()]).with_code(1).assert_error_names(&[expected]);
    }
    run(["dump", "analyze"]).with_code(2);
}

/// Objects and bytes by type and module, of a report in JSON.
fn amounts(rows: &Value) -> BTreeMap<(String, String), (u64, u64)> {
    let mut types = BTreeMap::new();
    for row in rows.as_array().unwrap() {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        let sum: &mut (u64, u64) = types.entry((text("name"), text("module"))).or_default();
        sum.0 += row["objects"].as_u64().unwrap();
        sum.1 += row["bytes"].as_u64().unwrap();
    }
    types
}

fn check_heap(runtime: Runtime, variables: &[(&str, &str)]) {
    let Some(mut workload) = Workload::start_with(runtime, variables) else { return };
    workload.run("keep 1000");
    workload.run("park");
    let pid = workload.pid().to_string();
    let at = |name: &str| workload.folder().join(name).into_os_string().into_string().unwrap();
    let (snapshot, core) = (at("heap.gcdump"), at("core"));
    // The first one loads what the runtime needs for it. A thread may allocate between the two.
    let mut differences = Vec::new();
    for _ in 0..4 {
        run(["gcdump", "collect", "-p", &pid, "-o", &snapshot]).with_code(0);
        // The dumps of 3.1 lack the names of the framework's types, and a single file has no createdump.
        let stream = (runtime != Runtime::Net9_0).then_some("--stream");
        let dump = ["dump", "-p", &pid, "--type", "heap", "-o", &core].into_iter().chain(stream);
        run(dump).with_code(0);
        let report = run(["gcdump", "report", &snapshot, "--format", "json", "--no-retained"]).with_code(0);
        let expected = amounts(&report.json()["rows"]);
        let heap = run(["dump", "analyze", &core, "heap", "--format", "json"]).with_code(0).json();
        assert_eq!(heap["complete"], true, "{}", heap["missing"]);
        let live = run(["heap", "-p", &pid, "--stop", "60s", "--format", "json"]).with_code(0).json();
        assert_eq!(live["complete"], true, "{}", live["missing"]);
        let nodes = heap["rows"].as_array().unwrap().iter().find(|of| of["csharp"] == "Program.Node");
        assert_eq!(nodes.unwrap()["objects"], 1000);
        assert!(expected.len() > 130, "{} types", expected.len());
        differences = Vec::new();
        for found in [amounts(&heap["rows"]), amounts(&live["rows"])] {
            let others = expected.iter().filter(|(name, amount)| found.get(*name) != Some(amount));
            differences.extend(
                others.map(|(name, amount)| format!("{name:?}: {amount:?} and {:?}", found.get(name))),
            );
        }
        if differences.is_empty() {
            break;
        }
    }
    assert!(differences.is_empty(), "{differences:?}");
    let locks = run(["dump", "analyze", &core, "locks", "--format", "json"]).with_code(0).json();
    let gate = locks["locks"].as_array().unwrap().iter().find(|lock| lock["waiters"] == 1);
    let gate = gate.unwrap_or_else(|| panic!("{locks}"));
    assert_eq!((&gate["type"], &gate["owner_tid"]), (&"System.Object".into(), &workload.pid().into()));
    let threads = run(["dump", "analyze", &core, "threads", "--format", "json"]).with_code(0).json();
    let threads = threads["threads"].as_array().unwrap();
    let waiting = threads.iter().find(|thread| thread["tid"] == gate["waiting_tids"][0]).unwrap();
    assert_eq!(waiting["name"], "parked-lock");
    assert_eq!(locks["deadlocks"], serde_json::json!([]));
    if runtime != Runtime::Net9_0 {
        // Those of 9.0.1 are compared with createdump's report.
        check_stacks(&pid, &core);
    }
}

/// Compares the frames of a core dump with those of the runtime's own sampler, by thread and method.
fn check_stacks(pid: &str, core: &str) {
    let sampled = run(["stack", "-p", pid, "--format", "json"]).with_code(0).json();
    let mut expected = BTreeMap::new();
    for thread in sampled["threads"].as_array().unwrap() {
        let frames = thread["stacks"][0]["frames"].as_array().unwrap().iter();
        let names = frames.map(|frame| frame["csharp"].as_str().unwrap());
        // With the name of the module.
        let names: Vec<_> = names.map(|name| name.rsplit('!').next().unwrap().to_owned()).collect();
        expected.insert(thread["tid"].as_u64().unwrap(), names);
    }
    let stacks = run(["dump", "analyze", core, "stacks", "--format", "json"]).with_code(0).json();
    let mut found = BTreeMap::new();
    for thread in stacks["threads"].as_array().unwrap() {
        let frames = thread["frames"].as_array().unwrap().iter();
        // The sampler leaves out methods that were made in memory.
        let names: Vec<_> = frames.filter_map(|frame| frame["method"].as_str().map(str::to_owned)).collect();
        if !names.is_empty() {
            found.insert(thread["tid"].as_u64().unwrap(), names);
        }
    }
    // From .NET 6 on, the thread pool has threads of its own. Workers without work come and go between the
    // two.
    let has_work =
        |frames: &Vec<String>| !frames.iter().any(|frame| frame.contains("LowLevelLifoSemaphore.Wait("));
    expected.retain(|_, frames| has_work(frames));
    found.retain(|_, frames| has_work(frames));
    assert!(expected.len() >= 7, "{sampled}");
    assert_eq!(found, expected);
}

fn heap_and_stacks_of_a_core_match_the_runtime(runtime: Runtime) {
    check_heap(runtime, &[]);
}

on_runtimes!(heap_and_stacks_of_a_core_match_the_runtime: net_3_1, net_8_0, net_9_0);

fn heap_and_stacks_of_a_server_match_the_runtime(runtime: Runtime) {
    check_heap(runtime, &[("DOTNET_gcServer", "1"), ("DOTNET_GCHeapCount", "2")]);
}

on_runtimes!(heap_and_stacks_of_a_server_match_the_runtime: net_8_0, net_9_0);

on_runtimes!(the_exception_that_ended_a_program_is_in_its_core: net_3_1, net_9_0);

fn the_exception_that_ended_a_program_is_in_its_core(runtime: Runtime) {
    let (prefix, type_name) = match runtime {
        // Its dump lacks the metadata of the framework, which has the type's name.
        Runtime::Net3_1 => ("COMPlus", Value::Null),
        _ => ("DOTNET", "System.InvalidOperationException".into()),
    };
    let Some(mut program) = runtime.program("crash/crash.dll") else { return };
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core");
    let variable = |name: &str| format!("{prefix}_Dbg{name}");
    program.arg("unhandled").env(variable("EnableMiniDump"), "1").env(variable("MiniDumpType"), "1");
    program.env(variable("MiniDumpName"), &core);
    crash(runtime, program, &core);
    let core = core.to_str().unwrap();
    let report = run(["dump", "analyze", core, "exceptions", "--format", "json"]).with_code(0).json();
    let exception = &report["exceptions"][0]["chain"][0];
    assert_eq!(exception["type"], type_name);
    assert_eq!(exception["message"], "the last straw");
    assert_eq!(exception["hresult"], "0x80131509");
    let frames: Vec<_> =
        exception["frames"].as_array().unwrap().iter().map(|frame| &frame["method"]).collect();
    assert_eq!(frames, ["Crash.Unhandled()", "Crash.Main(string[])"]);
    let overview = run(["dump", "analyze", core]).with_code(0).text();
    let signal = (runtime == Runtime::Net9_0).then_some("Signal  : SIGABRT");
    for part in signal.into_iter().chain([": the last straw", "Crash.Unhandled()"]) {
        assert!(overview.contains(part), "{part}: {overview}");
    }
}

/// Cores of a disk that was full.
#[test]
fn reads_a_truncated_core_up_to_its_end() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    workload.run("park");
    let pid = workload.pid().to_string();
    let core = workload.folder().join("core");
    run(["dump", "-p", &pid, "--type", "mini", "-o", core.to_str().unwrap()]).with_code(0);
    let bytes = fs::read(&core).unwrap();
    let cut = workload.folder().join("cut");
    let mut codes = [0_usize; 2];
    for part in 1..20 {
        fs::write(&cut, &bytes[..bytes.len() * part / 20]).unwrap();
        let read = run(["dump", "analyze", cut.to_str().unwrap(), "stacks", "--format", "json"]);
        match read.code {
            // What is left has the runtime.
            Some(6) if read.stderr.is_empty() => codes[0] += 1,
            Some(6) => {
                read.assert_error_names(&["the core dump is truncated: it has "]);
                codes[1] += 1;
            }
            other => panic!("{other:?}: {}", read.stderr),
        }
    }
    assert!(codes[0] > 0, "{codes:?}");
}

#[test]
fn a_deadlock_of_a_running_program_is_found() {
    for runtime in [Runtime::Net8_0, Runtime::Net9_0] {
        if let Some(program) = runtime.program("deadlock/deadlock.dll") {
            check_deadlock(program);
        }
    }
}

/// The same program on .NET 10.0.5.
#[test]
fn a_deadlock_of_a_running_program_of_net_10_is_found() {
    if let Some(program) = program_of_10("deadlock/deadlock10.dll") {
        check_deadlock(program);
    }
}

fn check_deadlock(program: Command) {
    let mut target = Target::start(program);
    assert!(target.line().starts_with("ready"));
    let pid = target.pid().to_string();
    let locks = || run(["dump", "analyze", "-p", &pid, "locks", "--format", "json"]).with_code(0).json();
    assert_eq!(locks()["deadlocks"], serde_json::json!([]));
    target.send("");
    assert_eq!(target.line(), "locked");
    // The threads are on their way.
    let deadline = Instant::now() + Duration::from_secs(60);
    let cycle = loop {
        let locks = locks();
        if let [cycle] = &locks["deadlocks"].as_array().unwrap()[..] {
            break cycle.clone();
        }
        assert!(Instant::now() < deadline, "{locks}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let threads = run(["dump", "analyze", "-p", &pid, "threads", "--format", "json"]).with_code(0).json();
    let name = |row: &Value| {
        let threads = threads["threads"].as_array().unwrap();
        threads.iter().find(|thread| thread["tid"] == row["tid"]).unwrap()["name"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let mut names: Vec<_> = cycle.as_array().unwrap().iter().map(name).collect();
    names.sort();
    assert_eq!(names, ["transfer-1", "transfer-2"]);
    let overview = run(["dump", "analyze", "-p", &pid]).with_code(0).text();
    let [first, second] = [
        "transfer-1 in Bank.Transfer1() waits for object 0x",
        "transfer-2 in Bank.Transfer2() waits for object 0x",
    ];
    for part in ["\nDeadlock:\n", first, second, "Bank.Transfer1()"] {
        assert!(overview.contains(part), "{part}: {overview}");
    }
}

/// The methods of a chain's links, each by its name or else by the type or the kind of the link.
fn chain(group: &Value) -> String {
    let links = group["links"].as_array().unwrap().iter().map(|link| {
        let text = |name: &str| link[name].as_str().unwrap().to_owned();
        match &*text("kind") {
            "method" => text("method").replace("Awaits.", ""),
            "thread" => "thread".to_owned(),
            "task" if link["method"].is_string() => format!("task of {}", text("method")),
            _ => text("type").rsplit('.').next().unwrap().to_owned(),
        }
    });
    links.collect::<Vec<_>>().join(" < ")
}

/// The chains of `awaits.cs`, with their number.
const AWAITS: [(&str, u64); 8] = [
    ("AwaitableSocketAsyncEventArgs < Receive < Serve", 1),
    ("DelayPromise < Sleep < Nap < Night", 1),
    ("DelayPromise < task of Awaits.Main.AnonymousMethod__0(Task)", 1),
    ("Task<int> < Load < Request", 50),
    ("Task<int> < Part < WhenAllPromise < All", 2),
    ("TaskNode < Enter", 1),
    ("Tie < Tie", 1),
    ("task of Awaits.Work.AnonymousMethod__0() < Work < thread", 1),
];

/// Checks what `async` and `threads` say of the program.
fn check_awaits(report: &Value, threads: &Value) {
    let groups = report["groups"].as_array().unwrap();
    let mut found: Vec<(String, u64)> =
        groups.iter().map(|group| (chain(group), group["chains"].as_u64().unwrap())).collect();
    found.sort();
    assert_eq!(found, AWAITS.map(|(chain, count)| (chain.to_owned(), count)));
    assert_eq!((&report["methods"], &report["chains"]), (&112.into(), &58.into()));
    assert_eq!((&report["complete"], &report["missing"]), (&true.into(), &serde_json::json!([])));
    let group = |name: &str| groups.iter().find(|group| chain(group).starts_with(name)).unwrap();
    let cycle = group("Tie");
    assert_eq!((&cycle["end"], &cycle["cycle_to"]), (&"cycle".into(), &0.into()));
    assert!(groups.iter().all(|group| group["end"] == "whole" || group == cycle));
    assert_eq!(group("DelayPromise < Sleep")["links"][0]["delay_ms"], 3_600_000);
    // Mono's compiler counts from one; Load is at its only await, Request at its second.
    let load = &group("Task<int> < Load")["links"];
    assert_eq!((&load[1]["state"], &load[2]["state"]), (&1.into(), &2.into()));
    assert_eq!(group("task of Awaits.Work")["links"][0]["is_running"], true);
    // The waiting thread is the one named by the program.
    let threads = threads["threads"].as_array().unwrap();
    let waiting = threads.iter().find(|thread| thread["name"] == "waits-for-work").unwrap();
    let links = groups.iter().flat_map(|of| of["links"].as_array().unwrap());
    let tids: Vec<_> = links.filter(|link| link["kind"] == "thread").map(|link| &link["tid"]).collect();
    assert_eq!(tids, [&waiting["tid"]]);
}

#[test]
fn async_methods_are_found_with_the_awaited_operations() {
    check_awaits_of(Runtime::Net9_0, None);
}

#[test]
fn async_methods_of_net_8_that_wait_for_known_things_are_found() {
    check_awaits_of(Runtime::Net8_0, Some("--stream"));
}

fn check_awaits_of(runtime: Runtime, stream: Option<&str>) {
    let Some(program) = runtime.program("awaits/awaits.dll") else { return };
    let target = Target::start(program);
    assert_eq!(target.line(), format!("ready {}", target.pid()));
    let pid = target.pid().to_string();
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core").into_os_string().into_string().unwrap();
    run(["dump", "-p", &pid, "--type", "heap", "-o", &core].into_iter().chain(stream)).with_code(0);
    for source in [&["-p", &*pid][..], &[&*core]] {
        let awaits = |more: &[&str]| run([&["dump", "analyze"], source, more].concat()).with_code(0);
        let view = |name: &str| awaits(&[name, "--format", "json"]).json();
        check_awaits(&view("async"), &view("threads"));
        let text = awaits(&["dumpasync", "--type", "Night"]).text();
        let chain: Vec<_> = text.lines().skip(3).collect();
        assert_eq!(
            chain,
            [
                "  System.Threading.Tasks.Task.DelayPromise: a delay of 3600 s",
                "  Awaits.Sleep, await 1",
                "  Awaits.Nap, await 1",
                "  Awaits.Night, await 1"
            ]
        );
    }
    let mini = folder.path().join("mini").into_os_string().into_string().unwrap();
    run(["dump", "-p", &pid, "--type", "mini", "-o", &mini].into_iter().chain(stream)).with_code(0);
    run(["dump", "analyze", &mini, "async"])
        .with_code(6)
        .assert_error_names(&["the heap is not in the dump"]);
}

/// The same program on .NET 10.0.5.
#[test]
fn async_methods_of_net_10_are_found_with_the_awaited_operations() {
    let Some(program) = program_of_10("awaits/awaits10.dll") else { return };
    let folder = tempfile::tempdir().unwrap();
    let target = Target::start(program);
    assert_eq!(target.line(), "ready");
    let pid = target.pid().to_string();
    let core = folder.path().join("core").into_os_string().into_string().unwrap();
    run(["dump", "-p", &pid, "--stream", "--type", "heap", "-o", &core]).with_code(0);
    for source in [&["-p", &*pid][..], &[&*core]] {
        let view = |name: &str| {
            run([&["dump", "analyze"], source, &[name, "--format", "json"]].concat()).with_code(0).json()
        };
        check_awaits(&view("async"), &view("threads"));
    }
}

/// The state machines of Roslyn, of the workload.
#[test]
fn the_chain_of_a_recursive_async_method_ends_at_the_thread_that_waits_for_it() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    workload.run("park");
    let pid = workload.pid().to_string();
    let report = run(["dump", "analyze", "-p", &pid, "async", "--format", "json"]).with_code(0).json();
    assert_eq!((&report["methods"], &report["chains"]), (&4.into(), &1.into()), "{report}");
    let links = report["groups"][0]["links"].as_array().unwrap();
    let of = |name: &str| links.iter().map(|link| link[name].clone()).collect::<Vec<_>>();
    assert_eq!(of("kind"), ["task", "method", "method", "method", "method", "thread"]);
    let method = Value::from("Parked.Waits");
    assert_eq!(of("method")[1..5], [method.clone(), method.clone(), method.clone(), method]);
    // The innermost one is at the second await of the source.
    assert_eq!(of("state")[1..5], [Value::from(1), 0.into(), 0.into(), 0.into()]);
    let threads = run(["dump", "analyze", "-p", &pid, "threads", "--format", "json"]).with_code(0).json();
    let threads = threads["threads"].as_array().unwrap();
    let waiting = threads.iter().find(|thread| thread["name"] == "parked-task").unwrap();
    assert_eq!(links[5]["tid"], waiting["tid"]);
}

/// The program of .NET 10 is sent requests that it fails to read. It is stopped for each look: a thread
/// handles an exception for less time than a view takes.
#[test]
#[cfg(target_os = "linux")]
fn the_exceptions_of_threads_of_net_10_are_found() {
    use std::io::{Read as _, Write as _};
    use std::process::Stdio;

    use rustix::process::{Pid, Signal, kill_process};
    let Some(mut command) = mcp_server() else { return };
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    let mut requests = server.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let request = "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/call\",\"params\":{\"name\":5}}\n";
        while requests.write_all(request.repeat(20).as_bytes()).is_ok() {}
    });
    let mut replies = server.stdout.take().unwrap();
    // A loaded machine takes long until the first request is read.
    replies.read_exact(&mut [0]).unwrap();
    let reader = std::thread::spawn(move || std::io::copy(&mut replies, &mut std::io::sink()));
    let process = Pid::from_child(&server);
    let pid = server.id().to_string();
    let deadline = Instant::now() + Duration::from_secs(300);
    let expected = "Cannot get the value of a token type 'Number' as a string.";
    let mut found = None;
    while found.is_none() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(100));
        kill_process(process, Signal::STOP).unwrap();
        // The runtime is not there from the first moment on.
        let report = run(["dump", "analyze", "-p", &pid, "exceptions", "--format", "json"]);
        kill_process(process, Signal::CONT).unwrap();
        if report.code == Some(0) {
            let report = report.json();
            let rows = report["exceptions"].as_array().unwrap().iter();
            let mut chain = rows.flat_map(|row| row["chain"].as_array().unwrap());
            // An exception that is being thrown has no frames yet.
            let is_thrown = |of: &&Value| of["message"] == expected && of["frames"] != serde_json::json!([]);
            found = chain.find(is_thrown).cloned();
        }
    }
    server.kill().unwrap();
    server.wait().unwrap();
    writer.join().unwrap();
    reader.join().unwrap().unwrap();
    let found = found.expect("no thread handled the expected exception");
    assert_eq!(found["type"], "System.InvalidOperationException");
    assert_eq!(found["hresult"], "0x80131509");
    assert_eq!(
        found["frames"][0]["method"],
        "System.Text.Json.ThrowHelper.ThrowInvalidOperationException_ExpectedString(JsonTokenType)"
    );
}

/// The methods of the program of each thread, the innermost first.
fn program_methods(stacks: &Value) -> BTreeSet<Vec<String>> {
    let of_program = |frame: &Value| {
        let method = frame["method"].as_str()?;
        ["Parked.", "Spin.", "Program."].iter().any(|of| method.starts_with(of)).then(|| method.to_owned())
    };
    let threads = stacks["threads"].as_array().unwrap().iter();
    let methods = threads.map(|thread| thread["frames"].as_array().unwrap().iter().filter_map(of_program));
    methods.map(Iterator::collect).filter(|methods: &Vec<_>| !methods.is_empty()).collect()
}

on_runtimes!(a_program_of_native_aot_is_read_with_the_names_of_its_own: nativeaot_8, nativeaot_9);

/// Its symbols were removed, and its runtime sends no heap: what is known is what its source does.
fn a_program_of_native_aot_is_read_with_the_names_of_its_own(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    workload.run("keep 1000");
    workload.run("park");
    let pid = workload.pid().to_string();
    let core = workload.folder().join("core").into_os_string().into_string().unwrap();
    let deep = "Spin.Deep(int, Action)";
    let lambda = [vec!["Parked.Start.AnonymousMethod__7_3()"], vec![deep; 6]].concat();
    let expected = [
        vec!["Parked.Sleeper()"],
        vec!["Parked.Blocked()"],
        vec!["Parked.Box<T>.Wait<T>(T, T, ref int, int[])", "Parked.GenericWait()"],
        lambda,
        vec!["Parked.Start.AnonymousMethod__7_2()"],
        vec!["Parked.Waits.AnonymousMethod__6_0()"],
        vec!["Program.Main(string[])"],
    ];
    let expected: BTreeSet<Vec<String>> =
        expected.into_iter().map(|methods| methods.into_iter().map(str::to_owned).collect()).collect();
    for kind in ["mini", "heap"] {
        run(["dump", "-p", &pid, "--stream", "--type", kind, "-o", &core]).with_code(0);
        let stacks = run(["dump", "analyze", &core, "stacks", "--format", "json"]).with_code(0).json();
        assert_eq!(program_methods(&stacks), expected, "{kind}");
    }
    let live = run(["stack", "--exact", "-p", &pid, "--stop", "60s", "--format", "json"]).with_code(0).json();
    assert_eq!(program_methods(&live), expected);
    let heap = run(["dump", "analyze", &core, "heap", "--format", "json"]).with_code(0).json();
    let live = run(["heap", "-p", &pid, "--stop", "60s", "--format", "json"]).with_code(0).json();
    for heap in [heap, live] {
        assert_eq!(heap["complete"], true, "{}", heap["missing"]);
        let nodes = heap["rows"].as_array().unwrap().iter().find(|of| of["csharp"] == "Program.Node");
        let nodes = nodes.unwrap_or_else(|| panic!("{heap}"));
        // A header, a type, and three references.
        assert_eq!((&nodes["objects"], &nodes["bytes"]), (&1000.into(), &40_000.into()));
        assert_eq!(nodes["module"], "workload");
    }
    let strings = run(["dump", "analyze", &core, "strings", "--grep", "node", "--format", "json"]);
    // Each has one of its own, made of a text and a number.
    assert_eq!(strings.with_code(0).json()["matching"], 1001);
    run(["dump", "analyze", &core, "locks"]).with_code(1).assert_error_names(&["monitors are not known"]);
}

on_runtimes!(the_exception_that_ended_a_program_of_native_aot_is_in_its_core: nativeaot_8, nativeaot_9);

/// Compared with what the runtime itself writes: the same frames in the same order.
fn the_exception_that_ended_a_program_of_native_aot_is_in_its_core(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.nettrace");
    let _ = trace_a_crash(workload.pid(), &output, || workload.send("keep abc"));
    let mut files = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let core = files.find(|path| path.extension().is_some_and(|of| of == "core")).unwrap();
    let core = core.to_str().unwrap();
    let report = run(["dump", "analyze", core, "exceptions", "--format", "json"]).with_code(0).json();
    let row = &report["exceptions"][0];
    assert_eq!((&row["tid"], &row["current"]), (&workload.pid().into(), &true.into()), "{report}");
    let exception = &row["chain"][0];
    assert_eq!(exception["type"], "System.FormatException");
    assert_eq!(exception["message"], "The input string 'abc' was not in a correct format.");
    assert_eq!(exception["hresult"], "0x80131537");
    let frames = exception["frames"].as_array().unwrap().iter();
    let methods: Vec<_> = frames.filter_map(|frame| frame["method"].as_str()).collect();
    let expected = [
        "System.Number.ThrowFormatException<T>(ReadOnlySpan<T>)",
        "Program.Run(string[])",
        "Program.Say(string)",
        "Program.Main(string[])",
    ];
    assert_eq!(methods, expected);
}
