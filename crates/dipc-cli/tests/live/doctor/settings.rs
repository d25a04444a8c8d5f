//! Settings in the environment of a runtime.

use std::os::unix::net::UnixListener;

use super::examine;
use crate::program::run;
use crate::runtime::Runtime::{self, NativeAot9, Net3_1, Net9_0};
use crate::workload::{Target, Workload};

#[test]
fn settings_that_disable_diagnostics() {
    for (runtime, variable, value) in [
        (Net9_0, "DOTNET_EnableDiagnostics", "0"),
        (Net9_0, "DOTNET_EnableDiagnostics", "0x0"),
        (Net9_0, "DOTNET_EnableDiagnostics_IPC", "0"),
        (Net9_0, "COMPlus_EnableDiagnostics", "0"),
        (Net3_1, "COMPlus_EnableDiagnostics", "0"),
        (NativeAot9, "DOTNET_EnableDiagnostics", "0"),
    ] {
        let Some(workload) = Workload::start_with(runtime, &[(variable, value)]) else { continue };
        let examined = examine(workload.pid(), 3);
        examined.only_problems(&["settings", "socket"]);
        examined.names(
            "settings",
            "problem",
            &[&format!("{variable}={value}"), &format!("without {variable}")],
        );
        examined.names("socket", "problem", &[variable]);
    }
}

/// Each runtime reads its own variables in its own way.
#[test]
fn settings_ignored_by_the_runtime_are_not_a_problem() {
    for (runtime, variable, value) in [
        (Net9_0, "DOTNET_EnableDiagnostics", "1"),
        (Net9_0, "DOTNET_EnableDiagnostics", "false"),
        (Net9_0, "DOTNET_EnableDiagnostics_Debugger", "0"),
        (Net3_1, "DOTNET_EnableDiagnostics", "0"),
        (NativeAot9, "COMPlus_EnableDiagnostics", "0"),
        (NativeAot9, "DOTNET_EnableDiagnostics", "0x0"),
    ] {
        let Some(workload) = Workload::start_with(runtime, &[(variable, value)]) else { continue };
        let examined = examine(workload.pid(), 0);
        examined.only_problems(&[]);
        examined.finding("settings", "ok");
    }
}

#[test]
fn a_program_that_has_not_begun() {
    for (runtime, status) in [(Net9_0, "warning"), (NativeAot9, "unknown")] {
        let Some(target) = Target::start_suspended(runtime) else { continue };
        let pid = target.pid();
        let resume = format!("dipc resume -p {pid}");
        let examined = examine(pid, 0);
        examined.names("startup", status, &["DOTNET_DefaultDiagnosticPortSuspend=1", &resume]);
        // As it says.
        run(["resume", "-p", &pid.to_string()]).with_code(0);
        assert_eq!(target.line(), format!("ready {pid}"));
        if runtime == Net9_0 {
            assert!(examine(pid, 0).find("startup").is_none());
        }
    }
}

fn waiting_for(runtime: Runtime, ports: &str) -> Option<Target> {
    let mut command = runtime.workload()?;
    command.env("DOTNET_DiagnosticPorts", ports);
    Some(Target::start_waiting(command))
}

/// The program that listened and started it was killed: by its own port alone the runtime cannot be resumed.
#[test]
fn a_runtime_without_its_listener_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gone");
    for (runtime, status) in [(Net9_0, "warning"), (NativeAot9, "unknown")] {
        // Its socket is left, as the kill leaves it.
        drop(UnixListener::bind(&path).unwrap());
        let Some(target) = waiting_for(runtime, path.to_str().unwrap()) else { continue };
        let pid = target.pid();
        let resume = format!("dipc resume -p {pid}");
        let words = examine(pid, 0).names("startup", status, &["no process listens on", &resume]);
        assert!(words.contains("trace --diagnostic-port"), "{words}");
        run(["resume", "-p", &pid.to_string()]).with_code(0);
        assert_eq!(target.line(), format!("ready {pid}"));
        let _ = std::fs::remove_file(&path);
    }
}

#[test]
fn a_port_without_a_listener() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("unserved-port");
    let path = path.to_str().unwrap();
    for (runtime, status) in [(Net9_0, "warning"), (NativeAot9, "unknown")] {
        let Some(target) = waiting_for(runtime, &format!("{path};/nonexistent/second,nosuspend")) else {
            continue;
        };
        let words =
            examine(target.pid(), 0).names("startup", status, &["no process listens on", path, "nosuspend"]);
        assert!(!words.contains("second"), "it does not wait for that one: {words}");
    }
    let Some(target) = waiting_for(Net9_0, path) else { return };
    let listener = UnixListener::bind(path).unwrap();
    let words = examine(target.pid(), 0).names("startup", "warning", &["has not resumed it", path]);
    assert!(!words.contains("nobody"), "{words}");
    drop(listener);
}
