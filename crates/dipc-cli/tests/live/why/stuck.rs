//! Waits for what does not happen: semaphores, tasks, finalizers and static constructors.

use super::*;

#[test]
fn why_finds_the_semaphore_that_is_not_released() {
    let Some(target) = start("stuck", &["semaphore"]) else { return };
    until_found(&target, &["6 threads wait in Printer.Print for a semaphore of 3 that is not released"]);
}

#[test]
fn why_finds_the_semaphore_that_is_used_as_a_lock() {
    let Some(target) = start("signals", &["lock"]) else { return };
    until_found(&target, &["6 threads wait in Ledger.Book for a semaphore that is not released"]);
}

#[test]
fn why_finds_threads_that_wait_for_events() {
    for (incident, sentence) in [
        ("barrier", "3 threads wait in Simulation.Step for a Barrier"),
        ("countdown", "1 thread waits in Batch.Close for a CountdownEvent"),
        ("reply", "6 threads wait in Gateway.Call for a TaskCompletionSource"),
        ("mutex", "5 threads wait in Archive.Store for a Mutex that is not released"),
    ] {
        let Some(target) = start("signals", &[incident]) else { return };
        until_found(&target, &[sentence]);
    }
}

#[test]
fn why_finds_calls_that_await_what_is_not_completed() {
    let Some(target) = start("stuck", &["tcs"]) else { return };
    let parts =
        ["20 calls of Bank.ConfirmAsync await a TaskCompletionSource<bool>", "called by Orders.PayAsync"];
    until_found(&target, &parts);
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("tcs.dmp");
    let core = core.to_str().unwrap();
    run(["dump", "-p", &target.pid().to_string(), "-o", core]).with_code(0);
    let text = run(["why", core]).with_code(0).text();
    assert_begins_with(&text, &["Cause      likely: 20 calls of Bank.ConfirmAsync await"]);
}

#[test]
fn why_finds_calls_that_await_a_semaphore_next_to_a_deadlock() {
    let Some(target) = start("hang", &[]) else { return };
    until_found(&target, &["Deadlock: ", "Bank.Transfer"]);
    let causes = causes(&target);
    let has = |part: &str| causes.iter().any(|cause| cause["cause"].as_str().unwrap().contains(part));
    assert!(has("10 calls of Mail.AskAsync await a TaskCompletionSource<string>"), "{causes:?}");
    assert!(has("6 calls of Mail.LeakyAsync await a semaphore of 2 that is not released"), "{causes:?}");
}

#[test]
fn why_finds_the_finalizer_that_is_blocked_or_slow() {
    let Some(target) = start("finalizer", &["blocked"]) else { return };
    until_found(&target, &["The finalizer thread is blocked in Attachment.Close", "holds in Mailer.Deliver"]);
    let Some(target) = start("finalizer", &["slow"]) else { return };
    until_found(&target, &["The finalizer thread is slow: it is in Attachment.Close"]);
}

/// The program writes its line only after its constructor, in half a minute.
#[test]
fn why_finds_the_static_constructor_that_waits() {
    for runtime in [Runtime::Net9_0, Runtime::Net3_1] {
        let Some(mut command) = runtime.program("incidents/start.dll") else { continue };
        command.arg("sleep");
        let target = Target::start_waiting(command);
        until_found(&target, &["The static constructor of Shop.Catalog waits in Catalog.Connect"]);
    }
}

#[test]
fn why_finds_nothing_in_the_twins_that_wait() {
    let twins = [
        ("stuck", "semaphore"),
        ("stuck", "tcs"),
        ("finalizer", "slow"),
        ("signals", "lock"),
        ("signals", "mutex"),
        ("signals", "barrier"),
        ("signals", "idle"),
    ];
    for (program, incident) in twins {
        let Some(target) = start(program, &[incident, "healthy"]) else { return };
        assert_eq!(causes(&target), Vec::<Value>::new(), "{program} {incident}");
    }
}

/// `Thread.Join` has no frame there.
#[test]
fn why_finds_deadlocks_through_a_join_on_net_core_3_1() {
    let Some(mut command) = Runtime::Net3_1.program("incidents/stuck.dll") else { return };
    command.arg("join");
    let target = Target::start_waiting(command);
    target.line();
    until_found(&target, &["Deadlock: ", "Month.Post", "Month.Close"]);
}
