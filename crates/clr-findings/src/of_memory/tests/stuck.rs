//! Waits for what does not happen.

use super::*;
use crate::memory_facts::{AwaitFacts, AwaitedFor, FrameworkAwaits, SemaphoreFacts};
use crate::of_memory::{Readings, finalizer, semaphores};

/// A thread of a method that waits for a semaphore.
fn clerk(tid: u64, maximum: Option<u64>) -> ThreadFacts {
    let mut thread = waiting(tid, "Printer.Print", WaitedFor::Semaphore, 0);
    thread.called = Some("SemaphoreSlim.Wait".to_owned());
    if let Some(wait) = &mut thread.wait {
        wait.owners.clear();
        wait.semaphore = Some(SemaphoreFacts { count: 0, maximum, is_guard: false });
    }
    thread
}

#[test]
fn threads_wait_for_a_semaphore_that_is_not_released() {
    let stuck = memory(vec![running(9, "Program.Main"), clerk(10, Some(3)), clerk(11, Some(3))]);
    let finding = cause(&[stuck.clone(), stuck]);
    assert_eq!((finding.kind, finding.confidence), (FindingKind::StuckWait, Confidence::Likely));
    assert_eq!(finding.cause, "2 threads wait in Printer.Print for a semaphore of 3 that is not released");
}

#[test]
fn idle_consumers_wait_for_a_semaphore_without_a_maximum() {
    let idle = memory(vec![clerk(10, None), clerk(11, None)]);
    assert_eq!(causes(&[idle.clone(), idle.clone()]), []);
    // A method that releases it, too, uses it as a lock.
    let mut stuck = idle;
    for semaphore in stuck.threads.iter_mut().filter_map(|thread| thread.wait.as_mut()?.semaphore.as_mut()) {
        semaphore.is_guard = true;
    }
    let finding = cause(&[stuck.clone(), stuck]);
    assert_eq!(finding.cause, "2 threads wait in Printer.Print for a semaphore that is not released");
}

#[test]
fn a_semaphore_of_a_framework_class_is_that_class_s_own() {
    let mut consumers = memory(vec![clerk(10, Some(3)), clerk(11, Some(3))]);
    for thread in &mut consumers.threads {
        thread.called = Some("BlockingCollection<int>.Take".to_owned());
    }
    assert_eq!(causes(&[consumers.clone(), consumers]), []);
}

#[test]
fn a_thread_past_its_wait_can_release_the_semaphore() {
    let busy = memory(vec![running(9, "Printer.Print"), clerk(10, Some(3)), clerk(11, Some(3))]);
    assert_eq!(causes(&[busy.clone(), busy.clone()]), []);
    // Its work takes longer than the time between the readings.
    let before = [busy.clone()];
    let readings =
        Readings { last: &busy, earlier: &before, runs: Some([(10, 0), (11, 0)].into()), seconds: 4.0 };
    let causes: Vec<_> =
        semaphores::stuck_waits(&readings).into_iter().map(|finding| finding.cause).collect();
    let sentence =
        "2 threads wait in Printer.Print for a semaphore of 3 that thread 9 may hold, past its wait";
    assert_eq!(causes, [sentence]);
    let readings = Readings { runs: Some([(10, 0), (11, 1)].into()), ..readings };
    assert!(semaphores::stuck_waits(&readings).is_empty());
}

/// A thread in a method of the framework.
fn in_call(tid: u64, method: &str, called: &str) -> ThreadFacts {
    ThreadFacts { called: Some(called.to_owned()), ..running(tid, method) }
}

#[test]
fn a_barrier_without_its_last_participant_is_stuck() {
    let at_barrier = |tid| in_call(tid, "Phase.Run", "Barrier.SignalAndWait");
    let main = in_call(1, "Program.Main", "Thread.Sleep");
    let stuck = memory(vec![main.clone(), at_barrier(2), at_barrier(3)]);
    let finding = cause(&[stuck.clone(), stuck.clone()]);
    assert_eq!(finding.kind, FindingKind::StuckWait);
    assert_eq!(
        finding.cause,
        "2 threads wait in Phase.Run for a Barrier that the other participants do not reach"
    );
    // The last participant computes, or is in the same method.
    for participant in [running(4, "Matrix.Invert"), in_call(4, "Phase.Run", "Thread.Sleep")] {
        let busy = memory(vec![main.clone(), at_barrier(2), at_barrier(3), participant]);
        assert_eq!(causes(&[busy.clone(), busy]), []);
    }
}

#[test]
fn a_countdown_is_stuck_if_no_operation_can_signal_it() {
    let main = in_call(1, "Batch.Close", "CountdownEvent.Wait");
    let idle = in_call(2, "Program.Main", "Thread.Sleep");
    let stuck = memory(vec![main, idle]);
    let finding = cause(&[stuck.clone(), stuck.clone()]);
    let sentence = "1 thread waits in Batch.Close for a CountdownEvent that is not signaled often enough";
    assert_eq!(finding.cause, sentence);
    let calling = MemoryFacts {
        framework_awaits: vec![FrameworkAwaits { calls: 1, ..FrameworkAwaits::default() }],
        ..stuck
    };
    assert_eq!(causes(&[calling.clone(), calling]), []);
}

#[test]
fn threads_wait_for_tasks_that_no_code_completes() {
    let blocked = |tid| {
        let mut thread = waiting(tid, "Gateway.Call", WaitedFor::Task, 0);
        if let Some(wait) = &mut thread.wait {
            wait.owners.clear();
            wait.is_promise = true;
        }
        thread
    };
    let stuck = memory(vec![blocked(2), blocked(3)]);
    let finding = cause(&[stuck.clone(), stuck]);
    assert_eq!(
        finding.cause,
        "2 threads wait in Gateway.Call for a TaskCompletionSource that is not completed"
    );
    // In a single moment, timers can be about to complete them.
    let replying =
        MemoryFacts { awaits: calls(AwaitedFor::Other, 0..2).awaits, ..memory(vec![blocked(2), blocked(3)]) };
    assert_eq!(causes(&[replying]), []);
    // The main thread waits for the end of the program.
    assert_eq!(causes(&[memory(vec![blocked(1)]), memory(vec![blocked(1)])]), []);
}

fn calls(awaited: AwaitedFor, addresses: std::ops::Range<u64>) -> MemoryFacts {
    let facts = AwaitFacts {
        method: "Bank.ConfirmAsync".to_owned(),
        state: Some(0),
        awaited,
        type_name: "System.Threading.Tasks.Task<bool>".to_owned(),
        semaphore: Some(SemaphoreFacts { count: 0, maximum: Some(2), is_guard: false }),
        calls: addresses.map(Address::new).collect(),
        callers: vec!["Orders.PayAsync".to_owned()],
    };
    MemoryFacts { awaits: vec![facts], ..MemoryFacts::default() }
}

#[test]
fn many_calls_await_what_no_code_completes() {
    let stuck = calls(AwaitedFor::Promise, 0..20);
    let finding = cause(&[stuck.clone(), stuck]);
    assert_eq!((finding.kind, finding.confidence), (FindingKind::StuckWait, Confidence::Likely));
    let sentence = "20 calls of Bank.ConfirmAsync await a TaskCompletionSource<bool> that is not completed";
    assert_eq!(finding.cause, sentence);
    assert_eq!(finding.evidence, ["called by Orders.PayAsync", "they are the same as before"]);
}

#[test]
fn calls_that_change_or_are_few_make_progress_or_are_idle() {
    let at = |addresses| calls(AwaitedFor::Promise, addresses);
    assert_eq!(causes(&[at(0..20), at(20..40)]), []);
    assert_eq!(causes(&[at(0..7), at(0..7)]), []);
    assert_eq!(causes(&[calls(AwaitedFor::Other, 0..20), calls(AwaitedFor::Other, 0..20)]), []);
    // Few that become more.
    assert_eq!(causes(&[at(0..3), at(0..5)]).len(), 1);
}

#[test]
fn a_single_reading_has_stuck_calls_if_most_calls_are() {
    let mut calls_of_core = calls(AwaitedFor::Promise, 0..20);
    assert_eq!(causes(std::slice::from_ref(&calls_of_core)).len(), 1);
    calls_of_core.awaits.extend(calls(AwaitedFor::Other, 100..121).awaits);
    assert_eq!(causes(&[calls_of_core]), []);
}

#[test]
fn calls_await_a_semaphore_that_is_not_released() {
    let mut stuck = calls(AwaitedFor::Semaphore, 0..6);
    let finding = cause(&[stuck.clone(), stuck.clone()]);
    assert_eq!(finding.cause, "6 calls of Bank.ConfirmAsync await a semaphore of 2 that is not released");
    // A call that has entered awaits something else.
    stuck.awaits.extend(calls(AwaitedFor::Other, 100..101).awaits);
    assert_eq!(causes(&[stuck.clone(), stuck]), []);
}

fn finalizing(wait: Option<WaitedFor>, called: &str, finalizable: u64) -> MemoryFacts {
    let mut thread = running(5, "Attachment.Close");
    thread.called = Some(called.to_owned());
    if let Some(kind) = wait {
        thread.wait = waiting(5, "Attachment.Close", kind, 1).wait;
    }
    thread.is_finalizer = true;
    let mailer = ThreadFacts { name: Some("mailer".to_owned()), ..running(6, "Mailer.Deliver") };
    MemoryFacts { finalizable: Some(finalizable), ..memory(vec![thread, mailer]) }
}

#[test]
fn a_blocked_finalizer_names_the_holder_of_its_lock() {
    let at = |count| finalizing(Some(WaitedFor::Monitor), "Monitor.Enter", count);
    let finding = cause(&[at(1_000), at(3_000)]);
    assert_eq!((finding.kind, finding.confidence), (FindingKind::Finalizer, Confidence::Certain));
    let sentence = "The finalizer thread is blocked in Attachment.Close, waiting for a lock that mailer (6) holds in \
                    Mailer.Deliver: 3,000 objects wait for it";
    assert_eq!(finding.cause, sentence);
    assert_eq!(finding.evidence, ["2,000 more than before"]);
}

#[test]
fn a_slow_finalizer_is_behind_its_queue() {
    let at = |count| finalizing(None, "Thread.Sleep", count);
    let finding = cause(&[at(1_000), at(3_000)]);
    let sentence = "The finalizer thread is slow: it is in Attachment.Close, in Thread.Sleep, while 3,000 objects wait for it";
    assert_eq!(finding.cause, sentence);
    // It keeps up.
    assert_eq!(causes(&[at(3_000), at(1_000)]), []);
    assert_eq!(causes(&[at(0), at(99)]), []);
    let (before, last) = ([at(0)], at(0));
    let readings = Readings { last: &last, earlier: &before, runs: Some([(5, 0)].into()), seconds: 4.0 };
    assert!(finalizer::finalizer(&readings).is_some(), "blocked without a queue");
}

#[test]
fn a_static_constructor_that_waits_is_a_cause() {
    let starts = |called: &str| {
        let initialized_type = Some("Shop.Catalog".to_owned());
        let called = Some(called.to_owned());
        memory(vec![ThreadFacts { initialized_type, called, ..running(1, "Catalog.Connect") }])
    };
    let finding = cause(&[starts("Thread.Sleep"), starts("Thread.Sleep")]);
    assert_eq!(
        (finding.kind, finding.method.as_deref()),
        (FindingKind::StaticConstructor, Some("Catalog.Connect"))
    );
    let sentence = "The static constructor of Shop.Catalog waits in Catalog.Connect, in Thread.Sleep: the code that uses it \
                    waits, too";
    assert_eq!(finding.cause, sentence);
    assert_eq!(causes(&[starts("Enumerable.Sum"), starts("Thread.Sleep")]), []);
    // The wait is inlined.
    let mut inlined = starts("Catalog.Open");
    inlined.threads[0].is_waiting = true;
    assert_eq!(causes(&[inlined.clone(), inlined]).len(), 1);
}

#[test]
fn a_mutex_that_stays_taken_and_a_collection_that_stays_full_are_stuck() {
    let on_mutex = |tid, type_name: &str| {
        let mut thread = waiting(tid, "Export.Write", WaitedFor::Mutex, 0);
        if let Some(wait) = &mut thread.wait {
            wait.owners.clear();
            wait.type_name = Some(type_name.to_owned());
        }
        thread
    };
    let with = |type_name| memory(vec![on_mutex(2, type_name), on_mutex(3, type_name)]);
    let stuck = with("System.Threading.Mutex");
    let finding = cause(&[stuck.clone(), stuck.clone()]);
    assert_eq!(finding.cause, "2 threads wait in Export.Write for a Mutex that is not released");
    // At a moment it is taken, and other objects can stand for work.
    assert_eq!(causes(&[stuck]), []);
    let idle = with("System.Threading.AutoResetEvent");
    assert_eq!(causes(&[idle.clone(), idle]), []);

    let full = memory(vec![in_call(4, "Outbox.Send", "BlockingCollection<int>.Add")]);
    let finding = cause(&[full.clone(), full]);
    assert_eq!(
        finding.cause,
        "1 thread waits in Outbox.Send for a place in a BlockingCollection that is full"
    );
}
