//! Concurrent queries of many runtimes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use dipc_client::Deadline;
use dipc_transport::Endpoint;

use crate::process::info::Process;

/// Maximum number of runtimes queried at the same time. Each takes a thread and a few of the 1,024
/// descriptors that most processes may have.
const AT_ONCE: usize = 128;
/// Minimum time for a runtime's answer, even if hung runtimes took all of the time before.
const MIN_ANSWER_TIME: Duration = Duration::from_millis(250);

/// Queries all runtimes at the same time, within `timeout` altogether. The answers are in the order of the
/// endpoints.
pub(crate) fn ask_all(endpoints: &[Endpoint], timeout: Duration) -> Vec<Process> {
    let deadline = Deadline::after(timeout);
    run_concurrently(endpoints, AT_ONCE, |endpoint| {
        let left = deadline.remaining().unwrap_or(timeout);
        Process::ask(endpoint, left.max(MIN_ANSWER_TIME.min(timeout)))
    })
}

/// Runs `work` on all items, `limit` at a time; the results are in the order of the items.
pub(crate) fn run_concurrently<T: Sync, R: Send>(
    items: &[T],
    limit: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let run = || {
        while let Some((index, item)) = take(&next, items) {
            let result = work(item);
            if let Ok(mut results) = results.lock() {
                results.push((index, result));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..items.len().min(limit) {
            // If the system allows no more threads, the existing ones do the work.
            if thread::Builder::new().spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn take<'a, T>(next: &AtomicUsize, items: &'a [T]) -> Option<(usize, &'a T)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    items.get(index).map(|item| (index, item))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Condvar;

    use super::*;

    /// Items that end when all have begun, or else at the deadline.
    #[test]
    fn a_hanging_process_does_not_delay_others() {
        let items: Vec<usize> = (0..100).collect();
        let (begun, changed) = (Mutex::new(0), Condvar::new());
        let results = run_concurrently(&items, AT_ONCE, |item| {
            let mut count = begun.lock().unwrap();
            *count += 1;
            changed.notify_all();
            let wait = changed.wait_timeout_while(count, Duration::from_secs(20), |count| *count < 100);
            (*item, !wait.unwrap().1.timed_out())
        });
        let expected: Vec<_> = items.iter().map(|item| (*item, true)).collect();
        assert_eq!(results, expected);
    }

    #[test]
    fn bounds_the_number_of_threads() {
        let threads = Mutex::new(BTreeSet::new());
        let items: Vec<usize> = (0..50).collect();
        let results = run_concurrently(&items, 3, |item| {
            threads.lock().unwrap().insert(format!("{:?}", thread::current().id()));
            *item
        });
        assert_eq!(results, items);
        assert!(threads.into_inner().unwrap().len() <= 3);
        assert_eq!(run_concurrently(&[0_usize; 0], 3, |item| *item), [0_usize; 0]);
    }
}
