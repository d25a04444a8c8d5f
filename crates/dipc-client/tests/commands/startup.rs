//! Commands before a program begins, and their effect on a running one.

use dipc_client::dipc_wire::{
    ApplyStartupHook, EnablePerfMap, PerfMapType, ProcessInfo2, ProcessInfo2Reply, ResumeRuntime,
    SetEnvironmentVariable,
};

use crate::Case;
use crate::forms::{NO_FILE, running, suspended};
use crate::runtime::{Runtime, testdata};
use crate::subject::{Subject, file};

pub(crate) const CASES: &[Case] = &[
    running("Startup state of one that runs", |it| format!("{:?}", it.target().startup().unwrap())),
    suspended("Startup state, suspended", |it| format!("{:?}", it.target().startup().unwrap())),
    suspended("ProcessInfo2, suspended", |it| {
        let text = |info: ProcessInfo2Reply| {
            let arguments = if info.command_line.contains(' ') { "with" } else { "without" };
            format!("ok: {}, command line {arguments} arguments", info.managed_entrypoint_assembly)
        };
        it.ask(&ProcessInfo2).map_or_else(|error| error, text)
    }),
    suspended("ResumeRuntime", |it| {
        it.spend();
        let answer = it.send_command(&ResumeRuntime);
        it.await_program();
        format!("{answer}, and runs")
    }),
    suspended("ApplyStartupHook, suspended; then resumed", |it| applied(it, &hook())),
    suspended("ApplyStartupHook, suspended, of a file that does not exist; then resumed", |it| {
        applied(it, NO_FILE)
    }),
    suspended("ApplyStartupHook, suspended, of a relative path; then resumed", |it| applied(it, "hook.dll")),
    running("ApplyStartupHook of one that runs", |it| {
        let answer = it.send_command(&ApplyStartupHook { path: hook() });
        if answer == "ok" { format!("ok; {}", ran(it)) } else { answer }
    }),
    running("ApplyStartupHook of one that runs, of a file that does not exist", |it| {
        it.send_command(&ApplyStartupHook { path: NO_FILE })
    }),
    suspended("EnablePerfMap, suspended", |it| {
        it.spend();
        let answer = it.send_command(&EnablePerfMap { kind: PerfMapType::PERF_MAP });
        if answer != "ok" {
            return answer;
        }
        let resumed = it.send_command(&ResumeRuntime);
        it.await_program();
        let map = it.path(&format!("perf-{}.map", it.pid()));
        format!("{answer}; {resumed}, and runs, perf-PID.map {}", file(&map))
    }),
];

pub(crate) fn hook() -> String {
    testdata().join("commands/hook/hook.dll").to_str().unwrap().to_owned()
}

/// Sets a variable for the hook to see, applies it, and resumes the runtime.
fn applied(it: &mut Subject, path: &str) -> String {
    it.spend();
    let set = it.send_command(&SetEnvironmentVariable { name: "SET_BY_CLIENT", value: Some("yes ü😀") });
    let answer = it.send_command(&ApplyStartupHook { path });
    if (set.as_str(), answer.as_str()) != ("ok", "ok") {
        return answer;
    }
    let resumed = it.send_command(&ResumeRuntime);
    it.await_program();
    let ran = ran(it);
    format!("ok; {resumed}, {ran}")
}

/// Whether the hook ran, and the value that it saw.
fn ran(it: &mut Subject) -> String {
    // The program has begun: a hook has run by then, and a failed hook has ended the process, or is about to.
    if matches!(it.runtime, Runtime::Net8_0 | Runtime::Net9_0) {
        it.settle(|it| std::fs::read(it.path("hook")).is_ok_and(|seen| !seen.is_empty()));
    }
    match std::fs::read_to_string(it.path("hook")) {
        Ok(seen) => format!("the hook ran, with the variable {seen:?}"),
        Err(_) => "the hook did not run".into(),
    }
}
