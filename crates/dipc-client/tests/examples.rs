//! The examples, run against a simulated runtime.
#![cfg(target_os = "linux")]

#[path = "../examples/agent.rs"]
#[expect(dead_code, reason = "its main")]
mod agent;
#[path = "../examples/async_port.rs"]
#[expect(dead_code, reason = "its main")]
mod async_port;
#[path = "../examples/async_tokio.rs"]
#[expect(dead_code, reason = "its main")]
mod async_tokio;
#[path = "../examples/collect.rs"]
#[expect(dead_code, reason = "its main")]
mod collect;
#[path = "../examples/exceptions.rs"]
#[expect(dead_code, reason = "its main")]
mod exceptions;
#[path = "../examples/heap_types.rs"]
#[expect(dead_code, reason = "its main")]
mod heap_types;
#[path = "../examples/info.rs"]
#[expect(dead_code, reason = "its main")]
mod info;
#[path = "../examples/methods.rs"]
#[expect(dead_code, reason = "its main")]
mod methods;

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dipc_sim::{Runtime, Version};

/// One at a time: examples that take a pid find the socket where the runtime of this very process would have
/// it.
static TURN: Mutex<()> = Mutex::new(());

struct Simulation {
    runtime: Runtime,
    _turn: MutexGuard<'static, ()>,
}

/// A runtime that sends a recording with five thrown exceptions in each session.
fn simulation(version: Version) -> Simulation {
    simulation_of(version, recording())
}

fn simulation_of(version: Version, recording: Vec<u8>) -> Simulation {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = Runtime::builder().version(version).replay(recording);
    let runtime = runtime.start_in(&std::env::temp_dir()).unwrap();
    Simulation { runtime, _turn: turn }
}

fn recording() -> Vec<u8> {
    testdata::bytes("traces/net10-all.nettrace.xz")
}

fn strings<const N: usize>(arguments: [&str; N]) -> [String; N] {
    arguments.map(str::to_owned)
}

#[test]
fn info_describes_the_process() {
    let simulation = simulation(Version::NET9);
    let mut out = Vec::new();
    info::run(&strings([&simulation.runtime.pid().to_string()]), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(out.contains(&format!("pid {}, runs on Linux", std::process::id())), "{out}");
    assert!(out.ends_with(".NET 9.0.1\n"), "{out}");
}

#[test]
fn collect_records_the_stream_of_the_runtime() {
    for (version, command) in [(Version::NET3_1, "CollectTracing2"), (Version::NET9, "CollectTracing4")] {
        let simulation = simulation(version);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("recorded.nettrace");
        let pid = simulation.runtime.pid().to_string();
        let arguments = strings([&pid, "Workload-Typed:1:5", "0.1", file.to_str().unwrap()]);
        let mut out = Vec::new();
        collect::run(&arguments, &mut out).unwrap();
        let expected = recording();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!("{} bytes, started by {command}\n", expected.len())
        );
        assert!(fs::read(file).unwrap() == expected, "the file is what was sent");
        assert_eq!(simulation.runtime.session_count(), 0);
    }
}

#[test]
fn exceptions_are_printed() {
    for version in [Version::NET3_1, Version::NET9] {
        let simulation = simulation(version);
        let mut out = Vec::new();
        exceptions::run(&strings([&simulation.runtime.pid().to_string(), "0.1"]), &mut out).unwrap();
        let expected = "System.InvalidOperationException: boom\n".repeat(5);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

#[test]
fn the_types_of_a_heap_are_listed() {
    for version in [Version::NET3_1, Version::NET9] {
        let simulation = simulation_of(version, testdata::bytes("gcdump/recordings/small.nettrace"));
        let mut out = Vec::new();
        heap_types::run(&strings([&simulation.runtime.pid().to_string()]), &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        // As in the `.gcdump` file of the same heap.
        assert!(out.starts_with("     20000      1 byte[]\n"), "{out}");
        assert_eq!(simulation.runtime.session_count(), 0);
    }
}

#[test]
fn methods_are_listed_while_the_process_runs() {
    for version in [Version::NET3_1, Version::NET9] {
        let simulation = simulation(version);
        let mut out = Vec::new();
        methods::run(&strings([&simulation.runtime.pid().to_string()]), &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        // The recording's rundown, as in testdata/traces/net10-all.txt.
        assert!(out.contains("Program.Main\n") && out.lines().count() > 100, "{out}");
        assert!(out.ends_with(" methods\n"), "{out}");
        assert_eq!(simulation.runtime.session_count(), 0);
    }
}

#[test]
fn an_async_program_needs_no_io_of_ours() {
    let simulation = simulation(Version::NET9);
    let socket = simulation.runtime.endpoint_path().to_str().unwrap();
    let mut out = Vec::new();
    async_tokio::run(strings([socket, "Workload-Typed", "0.1"]).to_vec(), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    // `emit 20`, `throw 5` and `emit 5` in testdata/traces/facts.jsonl; 80 is an exception.
    for line in ["      25 Workload-Typed/Strings\n", "       5 Microsoft-Windows-DotNETRuntime/80\n"] {
        assert!(out.contains(line), "{line:?} is not in\n{out}");
    }
    assert_eq!(simulation.runtime.session_count(), 0);
}

#[test]
fn an_agent_records_each_runtime_that_comes() {
    let folder = tempfile::tempdir().unwrap();
    let port = dipc_client::PortServer::bind(folder.path().join("port")).unwrap();
    let address = port.address().to_string().parse().unwrap();
    let runtimes: Vec<_> = (1..4)
        .map(|cookie| {
            let builder = Runtime::builder().suspended().rate(1000);
            builder.cookie(dipc_client::Uuid::from_u128(cookie)).connect(&address).unwrap()
        })
        .collect();
    agent::serve(&port, folder.path()).unwrap();
    for runtime in &runtimes {
        assert!(!runtime.state().suspended, "it was resumed");
        let file = folder.path().join(format!("{}.nettrace", runtime.identity().runtime_cookie));
        assert!(fs::read(file).unwrap().starts_with(b"Nettrace"));
    }
}

#[test]
fn an_async_port_counts_the_events_of_each_runtime_that_comes() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("port");
    let config = socket.to_str().unwrap().parse().unwrap();
    // They wait for the port, like programs that were started before it.
    let runtimes: Vec<_> = (1..4)
        .map(|cookie| {
            let builder = Runtime::builder().suspended().replay(recording());
            builder.cookie(dipc_client::Uuid::from_u128(cookie)).connect(&config).unwrap()
        })
        .collect();
    let mut out = Vec::new();
    async_port::run(strings([socket.to_str().unwrap(), "Workload-Typed"]).to_vec(), &mut out).unwrap();
    let mut count = 0_u64;
    nettrace::SliceReader::new(&recording()).unwrap().for_each(|_| count += 1).unwrap();
    let mut lines: Vec<_> = std::str::from_utf8(&out).unwrap().lines().collect();
    lines.sort_unstable();
    let expected = runtimes.iter().map(|it| format!("{count:>8} events of {}", it.identity().runtime_cookie));
    assert_eq!(lines, expected.collect::<Vec<_>>());
    assert!(runtimes.iter().all(|it| !it.state().suspended), "they were resumed");
}
