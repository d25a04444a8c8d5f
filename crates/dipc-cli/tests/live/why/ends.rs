//! Processes that end while they are watched, all processes at once, and the exit code for causes.

use rustix::process::Signal;
use serde_json::Value;

use super::{assert_begins_with, start};
use crate::program::{Running, dipc, run};
use crate::runtime::{Runtime, on_runtimes};

#[test]
fn why_says_that_a_process_has_ended() {
    // This test has not waited for them.
    let causes = [
        (Signal::TERM, Some(143), "The process exited with code 143"),
        (Signal::KILL, None, "The process was killed by SIGKILL"),
    ];
    for (signal, code, cause) in causes {
        let Some(target) = start("die", &["exit", "healthy"]) else { return };
        let folder = tempfile::tempdir().unwrap();
        let recording = folder.path().join("why.nettrace");
        let pid = target.pid().to_string();
        let arguments = ["why", "-p", &pid, "--duration", "10m", "--format", "json", "-o"];
        let mut why = Running::start(dipc(arguments.into_iter().chain(recording.to_str())));
        // Its header is not enough: what the kernel has sampled is merged into it.
        why.until_recorded(&recording, 10_000);
        target.signal(signal);
        let answer = why.finish().with_code(0).json();
        let first = &answer["findings"][0];
        assert_eq!(
            (first["kind"].as_str(), first["cause"].as_str()),
            (Some("death"), Some(cause)),
            "{answer}"
        );
        assert_eq!((&answer["healthy"], answer["end"]["exit_code"].as_i64()), (&false.into(), code));
    }
}

/// The runtime of .NET Core 3.1 does not connect to a port: the program is found by its own.
fn why_says_how_a_program_that_it_started_has_ended(runtime: Runtime) {
    for (incident, code, parts) in [
        ("exit", 3, &["Cause      The process exited with code 3"][..]),
        ("kill", 137, &["Cause      The process was killed by SIGKILL"]),
        ("unhandled", 134, &["System.InvalidOperationException: cannot charge 4711, in Billing.Charge"]),
        ("failfast", 134, &["ledger inconsistent: 42 != 43, in Ledger.Check"]),
    ] {
        let Some(program) = runtime.program("incidents/die.dll") else { return };
        let mut command = dipc(["why", "--duration", "10m", "--"]);
        command.arg(program.get_program()).args(program.get_args()).args([incident, "3000"]);
        command.env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
        let text = Running::start(command).finish().with_code(code).text();
        assert_begins_with(&text, parts);
    }
}
on_runtimes!(why_says_how_a_program_that_it_started_has_ended: net_3_1, net_9_0);

#[test]
fn a_profile_has_the_exit_code_of_its_program() {
    let Some(program) = Runtime::Net9_0.program("incidents/die.dll") else { return };
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("exit.nettrace");
    let mut command = dipc(["profile", "-o"]);
    command.arg(&recording).arg("--");
    command.arg(program.get_program()).args(program.get_args()).args(["exit", "1000"]);
    command.env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
    Running::start(command).finish().with_code(3);
    let recording = recording.to_str().unwrap();
    let text = run(["why", recording]).with_code(0).text();
    assert_begins_with(&text, &["Cause      The process exited with code 3"]);
    let report = run(["report", recording, "--format", "json"]).with_code(0).json();
    assert_eq!(report["findings"][0]["id"], "death", "{report}");
}

#[test]
fn why_judges_all_processes_and_fails_on_causes() {
    let Some(stuck) = start("stuck", &["rwlock"]) else { return };
    let Some(healthy) = start("stuck", &["rwlock", "healthy"]) else { return };
    let pid = |target: &crate::workload::Target| target.pid().to_string();
    super::until_found(&stuck, &["Deadlock: "]);
    let arguments = ["why", "-p", &pid(&stuck), "--duration", "1s", "--fail-on"];
    run(arguments.into_iter().chain(["regex,deadlock"])).with_code(8);
    run(arguments.into_iter().chain(["regex"])).with_code(0);
    run(arguments.into_iter().chain(["any"])).with_code(8);
    // Other tests' programs are among them.
    let answers = run(["why", "--all", "--duration", "1s", "--format", "json"]).with_code(0).json();
    let place = |target| {
        let answers = answers.as_array().unwrap();
        let is_it = |answer: &Value| answer["process"]["process_id"] == u64::from(target);
        answers.iter().position(is_it).unwrap_or_else(|| panic!("{target}: {answers:?}"))
    };
    assert!(place(stuck.pid()) < place(healthy.pid()), "{answers}");
}
