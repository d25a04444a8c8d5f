//! `dipc stack` of a process: every thread, with its name, state and frames.

use crate::program::run;
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::{McpServer, Workload};

on_each_runtime!(threads_have_names_states_and_frames, watching_ends_with_an_interrupt);

fn threads_have_names_states_and_frames(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let pid = workload.pid().to_string();
    if runtime == Runtime::NativeAot9 {
        let refused = run(["stack", "-p", &pid]).with_code(4);
        refused.assert_error_names(&["no sampler"]);
        assert!(refused.stderr.contains("\nhelp: gdb -p PID"), "{}", refused.stderr);
        assert!(!refused.stderr.contains("dipc dump"), "NativeAOT writes none: {}", refused.stderr);
        return;
    }
    workload.run("park");
    let shown = run(["stack", "-p", &pid, "--format", "json"]).with_code(0).json();
    let threads = shown["threads"].as_array().unwrap();
    let main = threads.iter().find(|thread| thread["tid"] == workload.pid()).unwrap();
    assert_eq!((&main["name"], &main["samples"]), (&"dotnet".into(), &1.into()));
    assert!(main["kernel_state"].is_string(), "{main}");
    let frames = main["stacks"][0]["frames"].as_array().unwrap();
    assert!(frames.iter().any(|frame| frame["csharp"] == "workload!Program.Main(string[])"), "{main}");
    // Each of its threads stays in a method that is named for what it waits for.
    let parked: Vec<_> = threads
        .iter()
        .filter(|thread| thread.to_string().contains("workload!Parked"))
        .map(|thread| thread["stacks"][0]["state"].as_str().unwrap())
        .collect();
    // A lock on 3.1 and 9.0 has a frame that does not tell of it, or none: the kernel does.
    assert!(parked.len() >= 5 && !parked.contains(&"working"), "{parked:?}: {shown}");

    // Equal stacks are shown once, and all samples are somewhere.
    let many = run(["stack", "-p", &pid, "--count", "20", "--format", "json"]).with_code(0).json();
    let main = many["threads"].as_array().unwrap().iter().find(|thread| thread["tid"] == workload.pid());
    let main = main.unwrap();
    let stacks = main["stacks"].as_array().unwrap();
    let samples: u64 = stacks.iter().map(|stack| stack["samples"].as_u64().unwrap()).sum();
    assert_eq!(main["samples"], samples);
    assert!((2..=20).contains(&samples), "{main}");
    let table = run(["stack", "-p", &pid]).with_code(0).text();
    assert!(table.contains("  Program.Main(string[])\n") && table.contains(" blocked, "), "{table}");
    let tools = run(["stack", "-p", &pid, "--format", "dotnet-stack"]).with_code(0).text();
    assert!(tools.starts_with("Thread (0x") && tools.contains("\n  [Native Frames]\n"), "{tools}");
}

fn watching_ends_with_an_interrupt(runtime: Runtime) {
    if runtime == Runtime::NativeAot9 {
        return;
    }
    let Some(workload) = Workload::start(runtime) else { return };
    let pid = workload.pid().to_string();
    let mut watching = crate::program::dipc(["stack", "-p", &pid, "--watch", "100ms"]).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(watching.stdout.take().unwrap()));
    let mut seen = 0;
    while seen < 2 {
        seen += usize::from(lines.next().unwrap().unwrap().contains(" threads: "));
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&watching), rustix::process::Signal::INT)
        .unwrap();
    lines.for_each(drop);
    assert_eq!(watching.wait().unwrap().code(), Some(0));
}

#[test]
fn stacks_of_net10() {
    let Some(server) = McpServer::start() else { return };
    let shown = run(["stack", "-p", &server.pid().to_string()]).with_code(0).text();
    assert!(shown.contains("idle") && shown.contains("Thread"), "{shown}");
}
