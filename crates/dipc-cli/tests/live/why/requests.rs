//! Calls and output of programs: where the time of callers goes.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::{assert_begins_with, causes, first_lines, start, until_found};
use crate::program::run;
use crate::runtime::Runtime;

#[test]
fn why_finds_slow_calls_with_the_phase_that_takes_their_time() {
    let Some(target) = start("calls", &["slow"]) else { return };
    until_found(&target, &["/charge take ", "Billing.ChargeAsync", "waiting for the answer"]);
    let Some(target) = start("calls", &["pool"]) else { return };
    until_found(&target, &["/charge take ", "Billing.ChargeAsync", "a free connection of the pool"]);
}

#[test]
fn why_finds_calls_that_do_not_connect() {
    let Some(target) = start("calls", &["connect"]) else { return };
    // In a recording that is shorter than a call, they have not failed yet; an attempt to connect that began
    // before it is a wait for a connection.
    until_found(&target, &["/charge ", "Billing.ChargeAsync", "connecti"]);
}

#[test]
fn why_judges_the_calls_of_recordings() {
    let Some(target) = start("calls", &["pool"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("calls.nettrace");
    let recording = recording.to_str().unwrap();
    let pid = target.pid().to_string();
    run(["profile", "-p", &pid, "--duration", "5s", "-o", recording]).with_code(0);
    let text = run(["why", recording]).with_code(0).text();
    assert_begins_with(&text, &["Calls to http://", "Billing.ChargeAsync", "a free connection of the pool"]);
}

#[test]
fn why_finds_nothing_in_healthy_calls() {
    let Some(target) = start("calls", &["pool", "healthy"]) else { return };
    let is_of_calls = |kind: &str| matches!(kind, "slow-calls" | "failed-requests");
    let mut causes = causes(&target);
    causes.retain(|cause| is_of_calls(cause["kind"].as_str().unwrap()));
    assert_eq!(causes, Vec::<serde_json::Value>::new());
}

/// A program with output that nothing reads.
struct Unread {
    child: Child,
    _folder: tempfile::TempDir,
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn why_finds_a_slow_reader_of_the_console() {
    let Some(mut command) = Runtime::Net9_0.program("incidents/busy.dll") else { return };
    let folder = tempfile::tempdir().unwrap();
    command.arg("console").env("TMPDIR", folder.path()).env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let target = Unread { child, _folder: folder };
    let pid = target.child.id().to_string();
    let deadline = Instant::now() + Duration::from_secs(120);
    // It starts, and the pipe fills up.
    loop {
        let text = run(["why", "-p", &pid, "--duration", "3s"]).text();
        if first_lines(&text).contains("The reader of standard output is slow") {
            return assert_begins_with(&text, &["a thread waits for it ", "in Audit.Log"]);
        }
        assert!(Instant::now() < deadline, "{text}");
    }
}
