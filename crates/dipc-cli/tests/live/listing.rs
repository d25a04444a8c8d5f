//! `ps`, `info`, `env`, and targets chosen by name.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::executable;
use crate::program::{Finished, run, stat};
use crate::runtime::{Runtime, on_each_runtime};
use crate::workload::{McpServer, Workload};

on_each_runtime!(info_shows_the_program, the_environment_is_the_targets_own, output_can_be_standard_output);

#[test]
fn ps_finds_all_runtimes_at_once() {
    let workloads: Vec<(Runtime, Workload)> =
        Runtime::ALL.into_iter().filter_map(|runtime| Some((runtime, Workload::start(runtime)?))).collect();
    let server = McpServer::start();
    let listed = run(["ps", "--format", "json"]).with_code(0).json();
    let row = |pid: u32| {
        let rows: Vec<&Value> = listed.as_array().unwrap().iter().filter(|row| row["pid"] == pid).collect();
        assert_eq!(rows.len(), 1, "{pid} in {listed}");
        rows[0].clone()
    };
    for (runtime, workload) in &workloads {
        let row = row(workload.pid());
        assert_eq!(row["namespace_pid"], workload.pid());
        assert_eq!(row["endpoint"].as_str().unwrap(), workload.socket().to_str().unwrap());
        assert!(row["command_line"].as_str().unwrap().contains("workload"), "{row}");
        if *runtime == Runtime::Net3_1 {
            // It knows none of the process commands; what /proc knows is there all the same.
            assert_eq!((&row["clr_version"], &row["cookie"]), (&"3.1.23".into(), &Value::Null));
            assert_eq!(row["entry_assembly"], "workload");
            assert!(row["error"].is_string(), "{row}");
        } else {
            assert!(row["clr_version"].as_str().unwrap().starts_with(runtime.version()), "{row}");
            assert_eq!((&row["os"], &row["arch"]), (&"Linux".into(), &"x64".into()), "{row}");
            assert_eq!(row["error"], Value::Null, "{row}");
        }
    }
    if let Some(server) = server {
        let row = row(server.pid());
        assert!(row["clr_version"].as_str().unwrap().starts_with("10.0.5"), "{row}");
        assert_eq!(row["runtime_identifier"], "linux-x64");
    }
}

fn info_shows_the_program(runtime: Runtime) {
    let Some(workload) = Workload::start(runtime) else { return };
    let pid = workload.pid().to_string();
    let info = run(["info", "-p", &pid, "--format", "json"]);
    if runtime == Runtime::Net3_1 {
        info.with_code(4).assert_error_names(&[&pid, "0x80131385"]);
        return;
    }
    let info = info.with_code(0).json();
    assert_eq!(info["pid"], workload.pid());
    assert!(info["clr_version"].as_str().unwrap().starts_with(runtime.version()), "{info}");
    assert_eq!(info["entry_assembly"], "workload");
    assert!(info["cookie"].as_str().is_some_and(|cookie| cookie.len() == 36), "{info}");
    let text = run(["info", "-p", &pid]).with_code(0).text();
    assert!(text.contains("Name            workload\n"), "{text}");
}

fn the_environment_is_the_targets_own(runtime: Runtime) {
    let Some(mut command) = runtime.workload() else { return };
    // Together more than one message holds.
    for number in 0..40 {
        command.env(format!("DIPC_TEST_{number}"), format!("ü😀={}", "x".repeat(2000)));
    }
    let workload = Workload::from_command(runtime, command);
    let pid = workload.pid().to_string();
    let environment = run(["env", "-p", &pid, "--format", "json"]);
    if runtime == Runtime::Net3_1 {
        environment.with_code(4).assert_error_names(&[&pid, "0x80131385"]);
        return;
    }
    let environment = environment.with_code(0).text();
    for number in 0..40 {
        assert!(environment.contains(&format!("DIPC_TEST_{number}")), "{environment}");
    }
    assert_eq!(environment.matches(&format!("ü😀={}", "x".repeat(2000))).count(), 40);
    assert!(environment.contains(workload.folder().to_str().unwrap()), "TMPDIR is in {environment}");
}

fn output_can_be_standard_output(runtime: Runtime) {
    let Some(workload) = Workload::start(runtime) else { return };
    let pid = workload.pid().to_string();
    let recorded =
        run(["trace", "-p", &pid, "-o", "-", "--duration", "1s", "--rundown", "true"]).with_code(0);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("piped.nettrace");
    fs::write(&file, &recorded.stdout).unwrap();
    let from_file = stat(&file, 0);
    from_file.assert_whole();
    assert_eq!(from_file.0["bytes"], recorded.stdout.len());
    let from_input = crate::program::run_with_input(["stat", "-", "--format", "json"], &recorded.stdout);
    assert_eq!(from_input.with_code(0).json(), from_file.0);
}

/// A copy of the workload under a name of its own; none where it cannot run.
fn named(folder: &Path, name: &str) -> Option<Command> {
    let program = Runtime::NativeAot9.workload()?.get_program().to_owned();
    let copy = folder.join(name);
    executable::copy(program, &copy);
    Some(Command::new(copy))
}

#[test]
fn a_target_is_found_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("wl-{}", std::process::id());
    let Some(command) = named(folder.path(), &name) else { return };
    let by_name = || -> Finished { run(["info", "-n", &name, "--format", "json"]) };
    by_name().with_code(3).assert_error_names(&[&name]);

    let first = Workload::from_command(Runtime::NativeAot9, command);
    assert_eq!(by_name().with_code(0).json()["pid"], first.pid());

    let second = Workload::from_command(Runtime::NativeAot9, Command::new(folder.path().join(&name)));
    let ambiguous = by_name();
    assert!(!matches!(ambiguous.code, Some(0) | None), "{ambiguous:?}");
    ambiguous.assert_error_names(&[&name, &first.pid().to_string(), &second.pid().to_string()]);
}

/// `dotnet workload.dll` is a process named dotnet; a copy gives the assembly a name that no other test's
/// has.
#[test]
fn a_target_is_found_by_its_entry_assembly() {
    let folder = tempfile::tempdir().unwrap();
    for runtime in [Runtime::Net3_1, Runtime::Net9_0] {
        let Some(command) = runtime.workload() else { continue };
        let program = Path::new(command.get_args().next().unwrap());
        let name = format!("assembly-{}-{}", runtime.version(), std::process::id());
        let renamed = folder.path().join(format!("{name}.dll"));
        fs::copy(program, &renamed).unwrap();
        fs::copy(
            program.with_extension("runtimeconfig.json"),
            folder.path().join(format!("{name}.runtimeconfig.json")),
        )
        .unwrap();
        let mut renamed_command = Command::new(command.get_program());
        renamed_command.arg(&renamed);
        run(["doctor", "-n", &name]).with_code(3).assert_error_names(&[&name]);
        let mut second = Command::new(renamed_command.get_program());
        second.arg(&renamed);
        let workload = Workload::from_command(runtime, renamed_command);
        let pid = workload.pid().to_string();
        let found = run(["doctor", "-n", &name, "--format", "json"]).json();
        assert_eq!(found["processes"][0]["pid"], workload.pid(), "{found}");
        // Its title differs from every other process.
        let listed = run(["ps"]).with_code(0).text();
        let row = listed.lines().find(|line| line.trim_start().starts_with(&pid)).unwrap();
        // .NET 9 says what the assembly calls itself, whatever its file is named.
        let assembly = if runtime == Runtime::Net3_1 { &*name } else { "workload" };
        assert_eq!(row.split_whitespace().skip(1).take(2).collect::<Vec<_>>(), ["dotnet", assembly]);
        let recorded = workload.record(&["--duration", "10ms", "--rundown", "false"]);
        let recorded = recorded.finish().program;
        assert!(recorded.stderr.contains(&format!("{name} ({pid})")), "{recorded:?}");
        // Candidates have their command lines.
        let second = Workload::from_command(runtime, second);
        let ambiguous = run(["info", "-n", &name]).with_code(2);
        for pid in [workload.pid(), second.pid()] {
            let line =
                ambiguous.stderr.lines().find(|line| line.trim_start().starts_with(&format!("{pid}  ")));
            assert!(
                line.is_some_and(|line| line.contains(&*name) && line.contains("dotnet ")),
                "{ambiguous:?}"
            );
        }
        drop(second);
        if runtime == Runtime::Net3_1 {
            // It is found, and then refuses to say what it is.
            run(["info", "-n", &name]).with_code(4).assert_error_names(&[&pid]);
        } else {
            let info = run(["info", "-n", &name, "--format", "json"]).with_code(0).json();
            assert_eq!(info["pid"], workload.pid(), "{info}");
        }
    }
}

/// A runtime without its socket, and a reachable one.
#[test]
fn ps_counts_the_processes_that_cannot_be_reached() {
    let counted = |text: &str| -> usize {
        let line = text.lines().find(|line| line.contains("cannot be reached; dipc doctor says why."));
        line.map_or(0, |line| line.split(' ').next().unwrap().parse().unwrap())
    };
    let Some(workload) = Workload::start(Runtime::NativeAot9) else { return };
    fs::remove_file(workload.socket()).unwrap();
    let listed = run(["ps"]).with_code(0);
    // Processes of other tests may be among them.
    assert!(counted(&listed.stderr) >= 1, "{}", listed.stderr);
    assert!(listed.stderr.trim_end().ends_with("dipc doctor says why."), "{}", listed.stderr);
    assert!(!run(["ps", "-q"]).with_code(0).stderr.contains("doctor"));
}

/// A process is excluded by the signals that it catches, before its files are read: no runtime may be.
#[test]
fn finds_runtimes_with_a_disabled_port() {
    let off = [("DOTNET_EnableDiagnostics", "0"), ("COMPlus_EnableDiagnostics", "0")];
    let workloads: Vec<_> =
        Runtime::ALL.into_iter().filter_map(|runtime| Workload::start_with(runtime, &off)).collect();
    let mut pids: Vec<_> = workloads.iter().map(|workload| workload.pid()).collect();
    let server = crate::runtime::mcp_server().map(|mut command| {
        command.envs(off).stdin(std::process::Stdio::piped());
        crate::program::Running::start(command)
    });
    pids.extend(server.as_ref().map(crate::program::Running::pid));
    // The server may still be starting.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let all = run(["doctor", "--format", "json"]).json();
        let found = |pid: &u32| all["processes"].as_array().unwrap().iter().any(|row| row["pid"] == *pid);
        if pids.iter().all(found) {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{pids:?} in {all:#}");
    }
    if let Some(server) = server {
        server.signal(rustix::process::Signal::KILL);
        server.finish();
    }
}

#[test]
fn a_recording_without_a_name_is_called_after_the_process_its_pid_and_the_time() {
    let Some(workload) = Workload::start(Runtime::NativeAot9) else { return };
    let folder = tempfile::tempdir().unwrap();
    let pid = workload.pid().to_string();
    let mut command =
        crate::program::dipc(["trace", "-p", &pid, "--duration", "500ms", "--rundown", "false"]);
    command.current_dir(folder.path());
    crate::program::Running::start(command).finish().with_code(0);
    let entries: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(entries.len(), 1);
    let name = entries[0].file_name().into_string().unwrap();
    let time = name
        .strip_prefix(&format!("workload_{pid}_"))
        .and_then(|rest| rest.strip_suffix(".nettrace"))
        .unwrap_or_else(|| panic!("{name}"));
    assert!(time.len() == 15 && time.as_bytes()[8] == b'_', "{name}");
    stat(&entries[0].path(), 0).assert_whole();
}

#[test]
fn two_sessions_of_one_target_do_not_disturb_each_other() {
    let Some(mut workload) = Workload::start(Runtime::NativeAot9) else { return };
    let arguments = ["--providers", crate::counts::WORKLOAD, "--rundown", "false"];
    let first = workload.record(&arguments);
    workload.run("emit 10");
    let second = workload.record(&arguments);
    workload.run("emit 100");
    let first = first.interrupt().stat(0);
    workload.run("emit 1");
    let second = second.interrupt().stat(0);
    let nested = [&first, &second].map(|stat| stat.provider("Workload-Nested"));
    assert_eq!(nested, [110, 101]);
}
