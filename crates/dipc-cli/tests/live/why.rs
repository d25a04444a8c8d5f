//! `dipc why` on programs with a planted cause (`testdata/workload/incidents`): the first three lines have
//! the cause and the user's method. A healthy twin has no finding.

mod ends;
mod free;
mod growth;
mod requests;
mod stuck;
mod unloading;

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::program::run;
use crate::runtime::Runtime;
use crate::workload::Target;

/// Starts a program, until it runs; none where the runtime is missing.
fn start(program: &str, arguments: &[&str]) -> Option<Target> {
    let mut command = Runtime::Net9_0.program(&format!("incidents/{program}.dll"))?;
    command.args(arguments);
    let target = Target::start_waiting(command);
    target.line();
    Some(target)
}

/// The lines that a reader sees first.
fn first_lines(text: &str) -> String {
    text.lines().take(3).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn assert_begins_with(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(first_lines(text).contains(part), "{part}: {text}");
    }
}

/// Causes that the machine of the tests has, or not.
const OF_MACHINE: [&str; 4] = ["throttled", "busy-neighbour", "page-faults", "memory-limit"];

/// Asks for the causes in a program.
#[track_caller]
fn causes(target: &Target) -> Vec<Value> {
    causes_within(target, "3s")
}

/// Asks for the causes in a program that is watched for a time.
#[track_caller]
fn causes_within(target: &Target, time: &str) -> Vec<Value> {
    let pid = target.pid().to_string();
    let report = run(["why", "-p", &pid, "--duration", time, "--format", "json"]).with_code(0).json();
    let mut findings = report["findings"].as_array().unwrap().clone();
    findings.retain(|finding| !OF_MACHINE.contains(&finding["kind"].as_str().unwrap()));
    findings
}

/// Asks for the cause until it is found: the program needs a moment for it. It is the first, and its sentence
/// and the next two have the parts. Returns it with the others.
#[track_caller]
fn until_found(target: &Target, parts: &[&str]) -> Vec<Value> {
    until_found_within(target, "3s", parts)
}

/// The same with the time for which the program is watched.
#[track_caller]
fn until_found_within(target: &Target, time: &str, parts: &[&str]) -> Vec<Value> {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let causes = causes_within(target, time);
        let first = causes.first().cloned().unwrap_or_default();
        let evidence = first["evidence"].as_array().into_iter().flatten().take(2);
        let sentences: Vec<_> =
            [&first["cause"]].into_iter().chain(evidence).filter_map(Value::as_str).collect();
        let found = sentences.join("\n");
        if parts.iter().all(|part| found.contains(part)) {
            return causes;
        }
        assert!(Instant::now() < deadline, "{parts:?}: {causes:?}");
    }
}

#[test]
fn why_finds_deadlocks() {
    let Some(target) = start("stuck", &["rwlock"]) else { return };
    until_found(&target, &["Deadlock: ", "Catalog.Reprice", "Catalog.Export"]);
    let Some(target) = start("stuck", &["join"]) else { return };
    until_found(&target, &["Deadlock: ", "Month.Post", "Month.Close"]);
}

#[test]
fn why_finds_the_holder_of_a_lock() {
    let Some(target) = start("stuck", &["chain"]) else { return };
    until_found(&target, &["a lock", "Ledger."]);
}

#[test]
fn why_finds_the_call_that_starves_the_pool() {
    let Some(target) = start("stuck", &["starve"]) else { return };
    until_found(&target, &["The thread pool is starved: ", "Checkout.Total"]);
}

#[test]
fn why_finds_the_method_that_compiles() {
    let Some(target) = start("busy", &["jit"]) else { return };
    until_found(&target, &["The JIT compiler takes ", "Rules.Compile"]);
}

#[test]
fn why_finds_the_method_that_asks_for_collections() {
    let Some(target) = start("memory", &["induced"]) else { return };
    until_found(&target, &["The program asks for collections in Cache.Trim"]);
}

#[test]
fn why_finds_the_method_that_throws() {
    let Some(target) = start("busy", &["exceptions"]) else { return };
    until_found(&target, &[" exceptions per second", "FormatException in Importer.ParseLine"]);
}

#[test]
fn why_finds_failed_calls() {
    let Some(target) = start("calls", &["refused"]) else { return };
    until_found(&target, &[" of the calls ", " fail"]);
}

/// Records a program until the cause is in the recording: the incident takes a moment.
#[track_caller]
fn until_recorded(target: &Target, command: &[&str], recording: &str, parts: &[&str]) {
    let pid = target.pid().to_string();
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let recorded = run(command.iter().copied().chain(["-p", &pid, "--duration", "3s", "-o", recording]));
        recorded.with_code(0);
        let text = run(["why", recording]).with_code(0).text();
        if parts.iter().all(|part| first_lines(&text).contains(part)) {
            return;
        }
        assert!(Instant::now() < deadline, "{parts:?}: {text}");
    }
}

/// They have what was read of the process: objects that threads wait for, files that are open, memory that is
/// free.
#[test]
fn why_judges_recordings_of_profile() {
    let folder = tempfile::tempdir().unwrap();
    for (program, incident, parts) in [
        ("busy", "regex", ["Cause      Regular expressions take ", "Signup.IsValid"]),
        ("stuck", "semaphore", ["threads wait in Printer.Print for a semaphore", "Printer.Print"]),
        ("stuck", "join", ["Cause      Deadlock: ", "Month.Close"]),
        ("grow", "fds", ["Open files are not closed: ", "Journal.Append"]),
        ("fragments", "native", ["of the native heap are free and not given back", "Codec.open"]),
    ] {
        let Some(target) = start(program, &[incident]) else { return };
        let recording = folder.path().join(format!("{incident}.nettrace"));
        let recording = recording.to_str().unwrap();
        until_recorded(&target, &["profile"], recording, &parts);
        let report = run(["report", recording, "--format", "json"]).with_code(0).json();
        let start: Timestamp = report["start"].as_str().unwrap().parse().unwrap();
        assert!(Timestamp::now().duration_since(start) < SignedDuration::from_hours(1), "{start}");
    }
}

/// They are one text with names and paths.
#[test]
fn redacted_recordings_have_no_readings() {
    let Some(target) = start("stuck", &["semaphore"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (whole, redacted, named) =
        (path("whole.nettrace"), path("redacted.nettrace"), path("named.nettrace"));
    until_recorded(&target, &["profile"], &whole, &["for a semaphore"]);
    run(["edit", &whole, "-o", &redacted, "--redact", "urls"]).with_code(0);
    let text = run(["why", &redacted]).with_code(0).text();
    assert!(!text.contains("for a semaphore"), "{text}");
    assert!(text.contains("it is redacted or damaged in the recording"), "{text}");
    // Fields that the user names are replaced alone.
    run(["edit", &whole, "-o", &named, "--redact", "Shop/Order.customer"]).with_code(0);
    let text = run(["why", &named]).with_code(0).text();
    assert_begins_with(&text, &["for a semaphore"]);
}

/// Their waits have no events: they begin before the recording, and do not end.
#[test]
fn why_finds_endless_waits_in_recordings() {
    let folder = tempfile::tempdir().unwrap();
    for (program, incident, parts) in [
        (
            "stuck",
            "rwlock",
            ["threads wait for locks all the time", "6 in Catalog.Price (ReaderWriterLockSlim."],
        ),
        (
            "finalizer",
            "blocked",
            ["Cause      The finalizer thread waits in Attachment.Close", "dipc report"],
        ),
    ] {
        let Some(target) = start(program, &[incident]) else { return };
        let recording = folder.path().join(format!("{incident}.nettrace"));
        let everything = ["trace", "--cpu", "--off-cpu", "--profile", "all"];
        until_recorded(&target, &everything, recording.to_str().unwrap(), &parts);
    }
}

#[test]
fn why_judges_cores() {
    let Some(target) = start("hang", &[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("hang.dmp");
    let core = core.to_str().unwrap();
    let pid = target.pid().to_string();
    // The tellers meet once both run.
    until_found(&target, &["Deadlock: ", "Bank.Transfer"]);
    run(["dump", "-p", &pid, "-o", core]).with_code(0);
    let text = run(["why", core]).with_code(0).text();
    assert_begins_with(&text, &["Cause      Deadlock: teller-1 (", "Bank.Transfer"]);
}

/// A moment shows who calls, and not how long it takes.
#[test]
fn cores_have_the_methods_that_call_others() {
    let Some(target) = start("calls", &["slow"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("calls.dmp");
    let (core, pid) = (core.to_str().unwrap(), target.pid().to_string());
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        run(["dump", "-p", &pid, "-o", core, "--force"]).with_code(0);
        let text = run(["why", core]).with_code(0).text();
        // Some of the callers are between two calls.
        if text.contains(" calls of Billing.ChargeAsync (HttpClient.GetStringAsync") {
            return;
        }
        assert!(Instant::now() < deadline, "{text}");
    }
}

/// The twins wait for locks, or compute, as the programs with a cause do.
#[test]
fn why_finds_nothing_in_healthy_programs() {
    for (program, incident) in [("stuck", "rwlock"), ("busy", "exceptions")] {
        let Some(target) = start(program, &[incident, "healthy"]) else { return };
        assert_eq!(causes(&target), Vec::<Value>::new(), "{program} {incident}");
    }
}

/// A recording of everything shows that nothing happened. A default one lacks the waits for locks: they are
/// unknown.
#[test]
fn why_knows_what_a_recording_was_asked_for() {
    let Some(target) = start("die", &["exit", "healthy"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let pid = target.pid().to_string();
    let judge = |command: &[&str], name: &str| {
        let path = folder.path().join(name);
        let path = path.to_str().unwrap();
        let recorded = run(command.iter().copied().chain(["-p", &pid, "--duration", "2s", "-o", path]));
        // Without them the recording stays as the runtime wrote it.
        let has_samples = !recorded.stderr.contains("kernel's samples:");
        has_samples.then(|| run(["why", path, "--format", "json"]).with_code(0).json())
    };
    let Some(whole) = judge(&["trace", "--cpu", "--profile", "all"], "whole.nettrace") else { return };
    let counts = ["lock_waits", "exceptions", "requests"].map(|name| whole["activity"][name].is_u64());
    assert_eq!(counts, [true; 3], "{whole}");
    assert!(!whole["missing"].to_string().contains("not recorded"), "{whole}");
    let default = judge(&["trace", "--cpu"], "default.nettrace").unwrap();
    assert_eq!((&default["activity"]["lock_waits"], &default["healthy"]), (&Value::Null, &false.into()));
    assert_eq!(default["activity"]["exceptions"], 0);
    assert!(default["missing"].to_string().contains("waits for locks"), "{default}");
}

/// `SemaphoreSlim.Wait()` has no frame pointer, and the kernel has no samples of threads that wait all the
/// time.
#[test]
fn a_recording_has_the_callers_of_small_methods_that_wait() {
    let Some(target) = start("stuck", &["semaphore"]) else { return };
    until_found(&target, &["a semaphore", "Printer.Print"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("waits.nettrace");
    let (path, pid) = (path.to_str().unwrap(), target.pid().to_string());
    let recorded = run(["trace", "--cpu", "--off-cpu", "-p", &pid, "--duration", "2s", "-o", path]);
    if recorded.stderr.contains("kernel's samples:") {
        return;
    }
    let report = run(["why", path, "--format", "json"]).with_code(0).json();
    let place = (&report["waiting"][0]["method"], &report["waiting"][0]["threads"]);
    assert_eq!(place, (&"Printer.Print".into(), &6.into()), "{report}");
}
