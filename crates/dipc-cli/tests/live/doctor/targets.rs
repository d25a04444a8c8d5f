//! Processes without problems, pids without processes, other programs, processes of other users; and all of
//! them at once.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::{Examined, examine, examined};
use crate::executable;
use crate::nobody::Nobody;
use crate::program::{Running, dipc, run};
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::{McpServer, Workload};

on_each_runtime!(a_process_without_problems);

fn a_process_without_problems(runtime: Runtime) {
    let Some(workload) = Workload::start(runtime) else { return };
    let examined = examine(workload.pid(), 0);
    examined.only_problems(&[]);
    for check in ["process", "user", "runtime", "settings", "socket", "answer"] {
        examined.finding(check, "ok");
    }
    examined.names("runtime", "ok", &[runtime.version()]);
    assert_eq!(examined.0["clr_version"].as_str().map(|it| it.starts_with(runtime.version())), Some(true));
    // Other tools would have to be told the folder.
    examined.names("tmpdir", "warning", &[&format!("TMPDIR={}", workload.folder().display())]);
    let mut with_its_folder = dipc(["doctor", "-p", &workload.pid().to_string(), "--format", "json"]);
    with_its_folder.env("TMPDIR", workload.folder());
    super::examined(&Running::start(with_its_folder).finish().with_code(0).json()).finding("tmpdir", "ok");
    match runtime {
        Runtime::Net3_1 => {
            examined.names("version", "warning", &["old", "trace", "info, env"]);
        }
        Runtime::Net8_0 | Runtime::Net9_0 | Runtime::NativeAot8 | Runtime::NativeAot9 => {
            examined.finding("version", "ok");
        }
    }
    // For people.
    let text = run(["doctor", "-p", &workload.pid().to_string()]).with_code(0).text();
    assert!(text.starts_with(&format!("Process {} (workload) can be reached", workload.pid())), "{text}");
}

#[test]
fn a_single_file() {
    let Some(server) = McpServer::start() else { return };
    let examined = examine(server.pid(), 0);
    examined.only_problems(&[]);
    examined.names("runtime", "ok", &[".NET 10.0.5", "as a single file", "azmcp"]);
}

/// The version of a silent runtime comes from its files.
#[test]
fn the_version_of_a_process_that_does_not_answer() {
    for (runtime, version) in [(Runtime::Net9_0, "9.0.1"), (Runtime::Net3_1, "3.1.23")] {
        let off = ("COMPlus_EnableDiagnostics", "0");
        let Some(workload) = Workload::start_with(runtime, &[off]) else { continue };
        assert_eq!(examine(workload.pid(), 3).0["clr_version"], version);
    }
}

#[test]
fn pids_that_are_not_processes() {
    examine(4_194_305, 3).names("process", "problem", &["process 4194305 does not exist", "has ended"]);
    let mut ended = Command::new("true").spawn().unwrap();
    while !fs::read_to_string(format!("/proc/{}/stat", ended.id())).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    examine(ended.id(), 3).names("process", "problem", &["has ended", "parent"]);
    ended.wait().unwrap();

    // A thread of ours.
    let ourselves = std::process::id();
    let threads =
        fs::read_dir("/proc/self/task").unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    let thread = threads.map(|it| it.parse().unwrap()).find(|it| *it != ourselves).unwrap();
    examine(thread, 3).names("process", "problem", &[&format!("use -p {ourselves}")]);
}

#[test]
fn a_process_that_is_not_dotnet() {
    let ourselves = std::process::id();
    let examined = examine(ourselves, 3);
    examined.only_problems(&["runtime"]);
    examined.names("runtime", "problem", &["no .NET runtime is in it"]);
    // The error of other commands names `doctor`.
    let failed = run(["info", "-p", &ourselves.to_string()]).with_code(3);
    assert!(failed.stderr.contains(&format!("dipc doctor -p {ourselves} looks")), "{}", failed.stderr);
}

/// In place of a program without EventSource support: one in whose file the name of the socket is changed.
#[test]
fn a_program_compiled_ahead_of_time_without_a_port() {
    let Some(command) = Runtime::NativeAot9.workload() else { return };
    let mut program = fs::read(command.get_program()).unwrap();
    let name = b"dotnet-diagnostic";
    let places: Vec<_> =
        (0..program.len() - name.len()).filter(|&at| program[at..].starts_with(name)).collect();
    for &place in &places {
        program[place] = b'x';
    }
    assert!(!places.is_empty());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("portless");
    executable::write(&path, &program, 0o755);
    let workload = Workload::from_command(Runtime::NativeAot9, Command::new(path));
    let examined = examine(workload.pid(), 3);
    examined.only_problems(&["runtime"]);
    examined.names("runtime", "problem", &["NativeAOT", "without a diagnostic port", "EventSourceSupport"]);
}

#[test]
fn a_process_of_another_user() {
    let Some(user) = Nobody::new() else { return };
    let Some(workload) = Workload::start(Runtime::NativeAot9) else { return };
    let as_other = |arguments: &[&str]| {
        let mut command = Command::new(user.program());
        command.args(arguments);
        Running::start(user.run_with_output(command)).finish().with_code(3)
    };
    let pid = workload.pid().to_string();
    let report: Examined = examined(&as_other(&["doctor", "-p", &pid, "--format", "json"]).json());
    report.only_problems(&["user", "socket"]);
    let parts = ["of user 0, dipc of user 65534", "environ: Permission denied", "sudo -u '#0' dipc"];
    report.names("user", "problem", &parts);
    report.finding("runtime", "unknown");
}

#[test]
fn targets_are_all_processes_or_selected_by_name() {
    let Some(well) = Workload::start(Runtime::NativeAot9) else { return };
    let off = [("DOTNET_EnableDiagnostics", "0")];
    let Some(ill) = Workload::start_with(Runtime::NativeAot9, &off) else { return };
    // One that crashed leaves its socket in the folder of the other.
    let folder = well.folder().to_str().unwrap().to_owned();
    let Some(mut crashed) = Workload::start_with(Runtime::NativeAot9, &[("TMPDIR", &folder)]) else { return };
    crashed.kill();

    let all = run(["doctor", "--format", "json"]).with_code(3).json();
    let row = |pid: u32| -> Value {
        let mut rows = all["processes"].as_array().unwrap().iter();
        rows.find(|row| row["pid"] == pid).cloned().unwrap_or_else(|| panic!("{pid} in {all:#}"))
    };
    assert_eq!(row(well.pid())["reachable"], true);
    assert_eq!(row(ill.pid())["reachable"], false);
    let rows = all["processes"].as_array().unwrap();
    assert!(
        rows.iter().all(|row| row["pid"] != std::process::id() && row["pid"] != crashed.pid()),
        "{all:#}"
    );
    let surroundings = all["surroundings"].as_array().unwrap();
    let of = |check: &str| surroundings.iter().find(|finding| finding["check"] == check).unwrap();
    assert!(of("tmpdir")["seen"].as_str().unwrap().contains("/tmp"));
    assert!(of("stale-sockets")["seen"].as_str().unwrap().contains("have ended: "));
    let text = run(["doctor"]).with_code(3).text();
    assert!(text.contains(&format!("Process {} (workload) cannot be reached", ill.pid())), "{text}");

    let named = run(["doctor", "-n", "workload", "--format", "json"]).with_code(3).json();
    let pids: Vec<_> = named["processes"].as_array().unwrap().iter().map(|row| &row["pid"]).collect();
    assert!([well.pid(), ill.pid()].iter().all(|pid| pids.contains(&&Value::from(*pid))), "{pids:?}");
    run(["doctor", "-n", "no-such-name"]).with_code(3).assert_error_names(&["no-such-name"]);
    run(["doctor", "-n", "x", "-p", "1"]).with_code(2);
}
