//! `dipc stack` of a process: every thread, with its name, state and frames.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::run;
use crate::runtime::{Runtime, on_each_runtime, say_not_run};
use crate::workload::{McpServer, Workload};

on_each_runtime!(
    threads_have_names_states_and_frames,
    watching_ends_with_an_interrupt,
    native_stacks_tell_running_threads_from_waiting_ones
);

fn threads_have_names_states_and_frames(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let pid = workload.pid().to_string();
    if runtime == Runtime::NativeAot9 {
        let refused = run(["stack", "-p", &pid]).with_code(4);
        refused.assert_error_names(&["no sampler"]);
        assert!(refused.stderr.contains("\nhelp: dipc stack --native"), "{}", refused.stderr);
        assert!(!refused.stderr.contains("dipc dump"), "NativeAOT writes none: {}", refused.stderr);
        return;
    }
    workload.run("park");
    let shown = run(["stack", "-p", &pid, "--format", "json"]).with_code(0).json();
    let threads = shown["threads"].as_array().unwrap();
    let main = threads.iter().find(|thread| thread["tid"] == workload.pid()).unwrap();
    assert_eq!((&main["name"], &main["samples"]), (&runtime.process_name().into(), &1.into()));
    assert!(main["kernel_state"].is_string(), "{main}");
    let frames = main["stacks"][0]["frames"].as_array().unwrap();
    assert!(frames.iter().any(|frame| frame["csharp"] == "workload!Program.Main(string[])"), "{main}");
    // Each of its threads stays in a method named after its wait.
    let parked: Vec<_> = threads
        .iter()
        .filter(|thread| thread.to_string().contains("workload!Parked"))
        .map(|thread| thread["stacks"][0]["state"].as_str().unwrap())
        .collect();
    // A lock on 3.1 and 9.0 has a frame that does not tell of it, or none: the kernel does.
    assert!(parked.len() >= 5 && !parked.contains(&"working"), "{parked:?}: {shown}");

    // Equal stacks are shown once, and all samples are somewhere. A busy machine may have time for one only.
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let many = run(["stack", "-p", &pid, "--count", "20", "--format", "json"]).with_code(0).json();
        let main = many["threads"].as_array().unwrap().iter().find(|thread| thread["tid"] == workload.pid());
        let main = main.unwrap();
        let stacks = main["stacks"].as_array().unwrap();
        let samples: u64 = stacks.iter().map(|stack| stack["samples"].as_u64().unwrap()).sum();
        assert_eq!(main["samples"], samples);
        assert!((1..=20).contains(&samples), "{main}");
        if samples > 1 {
            break;
        }
        assert!(Instant::now() < deadline, "{main}");
    }
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

/// The frames of a thread, in C# form.
fn frames(thread: &Value) -> Vec<&str> {
    thread["frames"].as_array().unwrap().iter().map(|frame| frame["csharp"].as_str().unwrap()).collect()
}

fn thread(shown: &Value, pid: u32) -> &Value {
    let threads = shown["threads"].as_array().unwrap();
    threads.iter().find(|thread| thread["tid"] == pid).unwrap_or_else(|| panic!("{shown}"))
}

fn native_stacks_tell_running_threads_from_waiting_ones(runtime: Runtime) {
    let Some(mut workload) = Workload::start(runtime) else { return };
    let pid = workload.pid().to_string();
    let show = || run(["stack", "-p", &pid, "--native", "--format", "json"]);
    // It waits for a command, in the kernel.
    let shown = show();
    if shown.code == Some(4) {
        return say_not_run("this user may not look into processes");
    }
    let waiting = shown.with_code(0).json();
    let main = thread(&waiting, workload.pid());
    assert_eq!(main["state"], "waiting", "{main}");
    assert!(main["system_call"].is_u64() && main["kernel_function"].is_string(), "{main}");
    let names = frames(main);
    assert!(names.iter().any(|name| name.starts_with("libc.so.6!")), "{main}");
    if runtime == Runtime::NativeAot9 {
        assert!(names.len() > 3, "{main}");
    } else {
        assert_eq!(
            names.iter().filter(|name| **name == "workload!Program.Main(string[])").count(),
            1,
            "{main}"
        );
    }
    // All of its other threads wait, each somewhere in the kernel.
    // One that the runtime wakes meanwhile may be seen running.
    let all_wait = |shown: &Value| {
        let threads = shown["threads"].as_array().unwrap();
        threads.len() > 2 && threads.iter().all(|thread| thread["state"] == "waiting")
    };
    assert!(all_wait(&waiting) || (0..20).any(|_| all_wait(&show().with_code(0).json())), "{waiting}");
    let text = run(["stack", "-p", &pid, "--native"]).with_code(0).text();
    assert!(text.contains("waits in the kernel, in ") && text.contains(" waiting\n"), "{text}");
    workload.send("spin 600000");
    let running = (0..20).map(|_| show().with_code(0)).find_map(|shown| {
        let json = shown.json();
        let main = thread(&json, workload.pid()).clone();
        // On a busy machine, it may be seen when it still compiles.
        let is_hot = main["frames"].as_array().is_some_and(|frames| {
            let is_found = |frame: &Value| frame["csharp"] == "workload!Spin.Hot(int)";
            if runtime == Runtime::NativeAot9 { !frames.is_empty() } else { frames.iter().any(is_found) }
        });
        if shown.stderr.contains("kernel's samples:") {
            return Some(None);
        }
        (main["state"] == "running" && is_hot).then_some(Some(main))
    });
    let Some(main) = running.expect("it runs") else {
        return say_not_run("the kernel does not permit samples");
    };
    if runtime != Runtime::NativeAot9 {
        assert!(frames(&main).contains(&"workload!Program.Main(string[])"), "{main}");
    }
}

#[test]
fn a_program_without_dotnet_has_native_stacks() {
    let mut sleeper = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = sleeper.id().to_string();
    let shown = run(["stack", "-p", &pid, "--native", "--format", "json"]);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    if shown.code == Some(4) {
        return say_not_run("this user may not look into processes");
    }
    let shown = shown.with_code(0);
    assert!(shown.stderr.contains("no managed frames"), "{}", shown.stderr);
    let json = shown.json();
    let main = thread(&json, sleeper.id());
    assert_eq!((&main["state"], &main["name"]), (&"waiting".into(), &"sleep".into()));
    assert!(frames(main).iter().any(|name| name.contains("sleep")), "{main}");
    let refused = run(["stack", "-p", &pid, "--native", "--format", "dotnet-stack"]).with_code(2);
    refused.assert_error_names(&["--native", "dotnet-stack"]);
}
