//! `resume`, `set-env`, `startup-hook`, `profiler`, `perfmap`: changes take effect, and commands that would
//! end the process are blocked.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use dipc_client::Deadline;

use crate::program::run;
use crate::runtime::Runtime;
use crate::workload::{Target, Workload};

const GUID: &str = "11111111-2222-3333-4444-555555555555";

fn environment(pid: &str) -> Vec<String> {
    run(["env", "-p", pid]).with_code(0).text().lines().map(str::to_owned).collect()
}

#[test]
fn a_suspended_program_begins_when_it_is_resumed() {
    for runtime in [Runtime::NativeAot9, Runtime::Net9_0] {
        let Some(target) = Target::start_suspended(runtime) else { continue };
        let pid = target.pid().to_string();
        let info = run(["info", "-p", &pid, "--format", "json"]).with_code(0).json();
        assert_eq!(info["pid"], target.pid());
        run(["resume", "-p", &pid]).with_code(0);
        assert_eq!(target.line(), format!("ready {pid}"));
        // Once more is nothing.
        run(["resume", "-p", &pid]).with_code(0);
    }
}

/// The runtime answers before it has read the program's arguments; who waits gets them.
#[test]
fn shows_the_full_command_line_after_the_start() {
    let soon = || Deadline::after(Duration::from_millis(100));
    let patience = || Deadline::after(Duration::from_secs(60));
    for runtime in [Runtime::Net9_0, Runtime::NativeAot9] {
        let Some(mut command) = runtime.workload() else { continue };
        command.arg("hang 600000").env("DOTNET_DefaultDiagnosticPortSuspend", "1");
        let program = Target::start_waiting(command);
        let target = dipc_client::Target::from_pid(program.pid()).unwrap();
        let bare = target.info().unwrap().command_line;
        assert!(!bare.contains("hang 600000"), "{runtime:?}: {bare}");
        if runtime == Runtime::NativeAot9 {
            // It never tells more, so that nothing is waited for.
            assert_eq!(target.info_when_started(patience()).unwrap().command_line, bare);
            continue;
        }
        let waits = target.info_when_started(soon()).unwrap_err();
        assert!(matches!(waits, dipc_client::Error::NotStarted { .. }), "{waits:?}");
        target.resume().unwrap();
        let whole = target.info_when_started(patience()).unwrap().command_line;
        assert!(whole.starts_with(&bare) && whole.ends_with("workload.dll hang 600000"), "{whole}");
    }
}

#[test]
fn variables_are_set_and_removed() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let pid = workload.pid().to_string();
    run(["set-env", "-p", &pid, "DIPC_A=b=c ü", "DIPC_EMPTY="]).with_code(0);
    let variables = environment(&pid);
    assert!(variables.contains(&"DIPC_A=b=c ü".to_owned()), "{variables:?}");
    assert!(variables.contains(&"DIPC_EMPTY=".to_owned()), "{variables:?}");
    let unset = run(["set-env", "-p", &pid, "-u", "DIPC_A", "-u", "DIPC_NEVER_SET"]).with_code(0);
    assert!(unset.stderr.contains("DIPC_NEVER_SET was not set"), "{}", unset.stderr);
    let variables = environment(&pid);
    assert!(!variables.iter().any(|line| line.starts_with("DIPC_A=")), "{variables:?}");
    run(["set-env", "-p", &pid, "nameless"]).with_code(2);
    run(["set-env", "-p", &pid]).with_code(2);
}

#[test]
fn blocks_commands_that_would_end_the_process() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let pid = workload.pid().to_string();
    let hook = run(["startup-hook", "-p", &pid, "/nonexistent/hook.dll"]).with_code(1);
    hook.assert_error_names(&["ApplyStartupHook", "not sent", "/nonexistent/hook.dll"]);
    assert!(hook.stderr.contains("--force"), "{}", hook.stderr);
    run(["info", "-p", &pid]).with_code(0);
}

#[test]
fn profilers_that_are_not_there_are_refused() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let pid = workload.pid().to_string();
    let attach = run(["profiler", "attach", "-p", &pid, "--guid", GUID, "/nonexistent/profiler.so"]);
    attach.with_code(4).assert_error_names(&["AttachProfiler", "0x8007007e"]);
    run(["profiler", "startup", "-p", &pid, "--guid", GUID, "/nonexistent/profiler.so"]).with_code(0);
    run(["profiler", "attach", "-p", &pid, "--guid", "no-guid", "/x"]).with_code(2);
}

#[test]
fn perf_maps_are_begun_and_ended() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let pid = workload.pid().to_string();
    run(["perfmap", "on", "-p", &pid, "--type", "perfmap"]).with_code(0);
    let map = PathBuf::from(format!("/tmp/perf-{pid}.map"));
    let map = if map.exists() { map } else { workload.folder().join(format!("perf-{pid}.map")) };
    assert!(fs::metadata(&map).is_ok(), "{} is not there", map.display());
    run(["perfmap", "off", "-p", &pid]).with_code(0);
    fs::remove_file(map).unwrap();
}

#[test]
fn an_old_runtime_refuses_unknown_commands() {
    let Some(workload) = Workload::start(Runtime::Net3_1) else { return };
    let pid = workload.pid().to_string();
    for arguments in [&["resume"][..], &["set-env", "A=b"], &["perfmap", "off"]] {
        let (command, rest) = arguments.split_at(if arguments[0] == "perfmap" { 2 } else { 1 });
        let refused = run(command.iter().copied().chain(["-p", pid.as_str()]).chain(rest.iter().copied()));
        refused.with_code(4).assert_error_names(&[&pid, "0x80131385"]);
    }
}
