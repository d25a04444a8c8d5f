mod stuck;

use clr_dump::{Address, WaitedFor};

use crate::finding::*;
use crate::memory_facts::{MemoryFacts, ThreadFacts, WaitFacts};
use crate::{Evidence, diagnose};

/// A thread of the program that runs in a method.
fn running(tid: u64, method: &str) -> ThreadFacts {
    ThreadFacts {
        tid,
        method: Some(method.to_owned()),
        methods: vec![method.to_owned()],
        ..ThreadFacts::default()
    }
}

/// A thread that waits in a method for what the thread with an index has.
fn waiting(tid: u64, method: &str, kind: WaitedFor, owner: usize) -> ThreadFacts {
    let wait = WaitFacts {
        kind,
        object: Address::new(0x1000),
        type_name: None,
        owners: vec![owner],
        is_any: false,
        semaphore: None,
        is_promise: false,
    };
    ThreadFacts { wait: Some(wait), ..running(tid, method) }
}

fn worker(tid: u64, method: &str, called: &str) -> ThreadFacts {
    ThreadFacts { is_pool_worker: true, called: Some(called.to_owned()), ..running(tid, method) }
}

fn memory(threads: Vec<ThreadFacts>) -> MemoryFacts {
    MemoryFacts { threads, ..MemoryFacts::default() }
}

/// The kinds of the causes with their methods.
fn causes(readings: &[MemoryFacts]) -> Vec<(FindingKind, Option<String>)> {
    let findings = diagnose(&Evidence::default().with_memory(readings));
    findings.into_iter().map(|finding| (finding.kind, finding.method)).collect()
}

/// Returns the only cause.
fn cause(readings: &[MemoryFacts]) -> Finding {
    let mut findings = diagnose(&Evidence::default().with_memory(readings));
    assert_eq!(findings.len(), 1, "{findings:?}");
    findings.remove(0)
}

#[test]
fn a_chain_of_waits_leads_to_the_thread_that_waits_for_no_lock() {
    let chain = memory(vec![
        ThreadFacts { called: Some("Thread.Sleep".to_owned()), ..running(10, "Ledger.Archive") },
        waiting(11, "Ledger.Post", WaitedFor::Monitor, 0),
        waiting(12, "Report.Print", WaitedFor::ReaderWriterLock, 1),
    ]);
    let finding = cause(&[chain.clone(), chain]);
    assert_eq!((finding.kind, finding.method.as_deref()), (FindingKind::LockConvoy, Some("Ledger.Archive")));
    let sentence =
        "2 threads wait for a lock that thread 10 holds in Ledger.Archive, which is in Thread.Sleep";
    assert_eq!(finding.cause, sentence);
}

#[test]
fn a_single_waiter_is_not_a_convoy() {
    let pair = memory(vec![running(10, "A.Hold"), waiting(11, "A.Want", WaitedFor::Monitor, 0)]);
    assert_eq!(causes(&[pair]), []);
}

#[test]
fn a_deadlock_names_each_wait_and_hides_the_waits_for_its_threads() {
    let mut cycle = memory(vec![
        waiting(10, "Bank.Transfer", WaitedFor::Monitor, 1),
        waiting(11, "Bank.Refund", WaitedFor::Monitor, 0),
        waiting(12, "Bank.Audit", WaitedFor::Monitor, 0),
        waiting(13, "Bank.Audit", WaitedFor::Monitor, 0),
    ]);
    cycle.deadlocks = vec![vec![0, 1]];
    let finding = cause(&[cycle.clone(), cycle]);
    assert_eq!((finding.kind, finding.method.as_deref()), (FindingKind::Deadlock, Some("Bank.Transfer")));
    let waits = [
        "thread 10 in Bank.Transfer waits for a lock of thread 11",
        "thread 11 in Bank.Refund waits for a lock of thread 10",
    ];
    assert_eq!(finding.evidence, waits);
}

#[test]
fn a_cycle_through_a_task_and_a_join_is_a_deadlock() {
    let mut cycle = memory(vec![
        waiting(10, "Month.Post", WaitedFor::Task, 1),
        waiting(11, "Month.Close", WaitedFor::Thread, 0),
    ]);
    cycle.deadlocks = vec![vec![0, 1]];
    let finding = cause(&[cycle]);
    assert_eq!(finding.kind, FindingKind::Deadlock);
    let waits = [
        "thread 10 in Month.Post waits for a task of thread 11",
        "thread 11 in Month.Close waits for the end of thread 10",
    ];
    assert_eq!(finding.evidence, waits);
}

#[test]
fn a_cause_lasts_over_all_readings() {
    let mut cycle = memory(vec![
        waiting(10, "Bank.Transfer", WaitedFor::Monitor, 1),
        waiting(11, "Bank.Refund", WaitedFor::Monitor, 0),
    ]);
    let before = cycle.clone();
    cycle.deadlocks = vec![vec![0, 1]];
    assert_eq!(causes(&[before, cycle]), []);

    let convoy = |holder| {
        memory(vec![
            running(holder, "Cache.Get"),
            waiting(20, "Cache.Get", WaitedFor::Monitor, 0),
            waiting(21, "Cache.Get", WaitedFor::Monitor, 0),
        ])
    };
    assert_eq!(causes(&[convoy(10), convoy(11)]), []);
    assert_eq!(causes(&[convoy(10), convoy(10)]).len(), 1);

    let starved = |method| memory(vec![worker(10, method, "Task.Wait"), worker(11, method, "Task.Wait")]);
    assert_eq!(causes(&[starved("A.Load"), starved("B.Load")]), []);
    assert_eq!(causes(&[starved("A.Load"), starved("A.Load")]).len(), 1);
}

#[test]
fn starvation_gives_way_to_the_deadlock_that_blocks_the_workers() {
    let blocked = |tid, owner| ThreadFacts {
        is_pool_worker: true,
        ..waiting(tid, "Shop.Reserve", WaitedFor::Monitor, owner)
    };
    let mut starved = memory(vec![blocked(10, 1), blocked(11, 0)]);
    assert_eq!(
        causes(std::slice::from_ref(&starved)).first().map(|cause| cause.0),
        Some(FindingKind::Starvation)
    );
    starved.deadlocks = vec![vec![0, 1]];
    let finding = cause(&[starved]);
    assert_eq!(finding.kind, FindingKind::Deadlock);
    assert!(finding.evidence.iter().any(|effect| effect.starts_with("The thread pool is starved")));
}

#[test]
fn one_idle_worker_saves_the_pool() {
    let idle = ThreadFacts { method: None, ..worker(12, "", "LowLevelLifoSemaphore.WaitForSignal") };
    let workers = vec![worker(10, "A.Load", "Task.Wait"), worker(11, "A.Load", "Task.Wait")];
    assert_eq!(causes(&[memory(workers.clone())]), [(FindingKind::Starvation, Some("A.Load".to_owned()))]);
    assert_eq!(causes(&[memory([workers, vec![idle]].concat())]), []);
}
