//! Processes that exist and do not answer.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::examine;
use crate::program::run;
use crate::runtime::Runtime::{NativeAot9, Net3_1, Net9_0};
use crate::runtime::say_not_run;
use crate::workload::{Target, Workload};

#[test]
fn a_process_that_is_stopped_by_a_signal() {
    let Some(workload) = Workload::start(NativeAot9) else { return };
    let pid = workload.pid();
    workload.halt();
    let examined = examine(pid, 3);
    examined.only_problems(&["state", "answer"]);
    examined.names("state", "problem", &["stopped by a signal", &format!("kill -CONT {pid}")]);

    // No command waits for it: the time-out is longer than this test's patience.
    let pid = pid.to_string();
    for command in [&["info"][..], &["env"], &["trace", "-o", "-"], &["resume"]] {
        let rest = ["-p", &pid, "--timeout", "600s"];
        let failed = run(command.iter().copied().chain(rest)).with_code(5);
        failed.assert_error_names(&["not sent", &format!("process {pid} is stopped by a signal")]);
        let help = format!("help: continue it (kill -CONT {pid})");
        assert!(failed.stderr.contains(&help), "{}", failed.stderr);
    }

    workload.signal(Signal::CONT);
    examine(workload.pid(), 0).only_problems(&[]);
}

#[test]
fn a_process_that_is_stopped_in_a_debugger() {
    let Some(workload) = Workload::start(NativeAot9) else { return };
    let pid = workload.pid();
    let mut command = Command::new("gdb");
    command.args(["-q", "-nx", "-p", &pid.to_string()]);
    let debugger = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(mut debugger) = debugger else { return say_not_run("there is no gdb") };
    let deadline = Instant::now() + Duration::from_secs(60);
    while !status(pid).contains("State:\tt") {
        assert!(Instant::now() < deadline && debugger.try_wait().unwrap().is_none(), "gdb does not attach");
        std::thread::sleep(Duration::from_millis(5));
    }
    let examined = examine(pid, 3);
    examined.only_problems(&["state", "answer"]);
    examined.names("state", "problem", &["stopped in a debugger, gdb", "detach"]);
    writeln!(debugger.stdin.take().unwrap(), "detach\nquit").unwrap();
    debugger.wait().unwrap();
    examine(pid, 0).only_problems(&[]);
}

/// A runtime that does not answer is judged by its memory: here that of a program with a deadlock.
#[test]
fn a_process_that_does_not_answer_has_a_diagnosis() {
    let Some(command) = Net9_0.program("incidents/hang.dll") else { return };
    let target = Target::start_waiting(command);
    assert_eq!(target.line(), "started");
    let pid = target.pid().to_string();
    assert!(examine(target.pid(), 0).0["diagnosis"].is_null());
    let discovery = dipc_transport::discover();
    let endpoint = discovery.endpoints.iter().find(|endpoint| endpoint.pid == target.pid()).unwrap();
    let _silent = UnixStream::connect(&endpoint.path).unwrap();
    let examined = examine(target.pid(), 3);
    examined.only_problems(&["answer"]);
    let diagnosis = examined.0["diagnosis"].as_str().unwrap_or_default();
    assert!(diagnosis.starts_with("Deadlock: ") && diagnosis.ends_with(" in Bank.Transfer"), "{diagnosis}");
    let text = run(["doctor", "-p", &pid]).with_code(3).text();
    assert!(text.contains(&format!("diagnosis      {diagnosis}\n")), "{text}");
    assert!(text.contains(&format!("fix: dipc why -p {pid} says more\n")), "{text}");
}

fn status(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap()
}

#[test]
fn a_process_that_is_kept_busy_by_another_client() {
    for runtime in [Net9_0, Net3_1, NativeAot9] {
        let Some(workload) = Workload::start(runtime) else { continue };
        // It says nothing: the one thread that serves waits for it.
        let silent = UnixStream::connect(workload.socket()).unwrap();
        let examined = examine(workload.pid(), 3);
        examined.only_problems(&["answer"]);
        examined.names(
            "answer",
            "problem",
            // Tests that ask all processes of the machine may have connected as well: the number is not
            // known.
            &["no answer after ", " other connection", "end the other client"],
        );
        let pid = workload.pid().to_string();
        let failed = run(["info", "-p", &pid, "--timeout", "300ms"]).with_code(5);
        assert!(failed.stderr.contains(&format!("dipc doctor -p {pid}")), "{}", failed.stderr);
        drop(silent);
        examine(workload.pid(), 0).only_problems(&[]);
    }
}
