use super::text::{answer, table};
use super::*;

/// A pool of four workers.
fn pool(working: u64, blocked: u64, waiting: u64) -> Pool {
    let mut workers = PoolWorkers::default();
    (workers.existing, workers.working, workers.min, workers.max) = (4, working, 2, 8);
    let mut queues = PoolQueues::default();
    queues.count = waiting;
    let mut of_blocked = BlockedWorkers::default();
    (of_blocked.workers, of_blocked.blocked) = (4, blocked);
    of_blocked.method = (blocked > 0).then(|| ("Shop.Load".to_owned(), blocked));
    Pool {
        is_unused: false,
        workers: Some(workers),
        blocked: of_blocked,
        queues: Some(queues),
        rows: Vec::new(),
        changes: Vec::new(),
        idle_for: None,
        last_dispatch: None,
    }
}

#[test]
fn the_first_sentence_is_the_answer() {
    for (pool, expected) in [
        (pool(0, 0, 0), "No work waits; 0 of 4 workers run work"),
        (pool(4, 4, 1204), "1,204 work items wait, all 4 workers are blocked: 4 of them in Shop.Load"),
        (
            pool(3, 1, 1),
            "1 work item waits; of 4 workers, 2 run work and 1 is blocked: 1 of them in Shop.Load",
        ),
    ] {
        assert_eq!(answer(&pool), expected);
    }
    let mut full = pool(4, 0, 7);
    full.workers.as_mut().unwrap().max = 4;
    assert_eq!(answer(&full), "7 work items wait; 4 of 4 workers run work, as many as may be");
    full.queues = None;
    assert!(answer(&full).starts_with("The queues cannot be read; "));
    assert!(!full.is_complete());
    full.is_unused = true;
    assert_eq!(answer(&full), "No work was ever queued to the thread pool");
    assert!(full.is_complete());
}

#[test]
fn a_pool_is_starved_if_work_waits_and_almost_all_workers_are_blocked() {
    let is_starved = |blocked, waiting| pool(4, blocked, waiting).is_starved();
    assert_eq!([is_starved(4, 9), is_starved(3, 9), is_starved(4, 0)], [true, false, false]);
}

#[test]
fn times_that_are_not_known_are_said_to_be_unknown() {
    let text = table(&pool(4, 4, 2), 30, None);
    assert!(text.contains("(starvation)\n"), "{text}");
    assert!(text.contains("Last work  taken at an unknown time; the age"), "{text}");
}
