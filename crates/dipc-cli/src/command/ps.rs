//! `dipc ps`: the .NET processes that can be reached.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use dipc_client::Deadline;
use dipc_transport::{Discovery, Endpoint};

use crate::args::{Format, PsArgs};
use crate::exit::{Exit, Outcome};
use crate::process::info::Process;
use crate::render::output::{self, Align, Columns};
use crate::render::report;

/// Runtimes that are asked at the same time. Each takes a thread and a few descriptors; most processes may have 1,024 of these.
const AT_ONCE: usize = 128;
/// The columns to do without on a narrow terminal.
pub(crate) const SPARE: &[&str] = &["UID", "ARCH"];
/// The least time for a runtime's answer, even if hung ones before it took all the time.
const LEAST: Duration = Duration::from_millis(250);

pub(crate) fn run(args: &PsArgs) -> Outcome {
    let discovery = dipc_transport::discover();
    for skipped in &discovery.skipped {
        report::detail(skipped);
    }
    let processes = ask_all(&discovery.endpoints, args.timeout);
    match args.format {
        Format::Json => output::print_json(&processes)?,
        Format::Table => {
            for process in &processes {
                tell_error(process);
            }
            if processes.is_empty() {
                report::note("No .NET process was found that can be reached.");
            } else {
                output::print(table(&processes).fitted(SPARE))?;
            }
            if !report::is_quiet() {
                tell_unreachable(unreachable(&discovery, &processes));
            }
        }
    }
    Ok(Exit::Done)
}

fn tell_error(process: &Process) {
    if let (Some(pid), Some(error)) = (process.pid, &process.error) {
        let text = format!("process {pid}: {error}");
        // What .NET Core 3.1 does not know keeps nobody from recording it.
        if process.reached { report::detail(text) } else { report::warning(text) }
    }
}

/// Returns the number of .NET processes that were not reached.
fn unreachable(discovery: &Discovery, processes: &[Process]) -> usize {
    let reached: BTreeSet<_> =
        processes.iter().filter(|process| process.reached).filter_map(|process| process.pid).collect();
    let asked: BTreeSet<_> = discovery.endpoints.iter().map(|endpoint| endpoint.pid).collect();
    dipc_doctor::find_candidates(discovery)
        .into_iter()
        .filter(|pid| !reached.contains(pid) && dipc_transport::process_name(*pid).is_ok())
        // One that has just started may have its socket by now.
        .filter(|pid| asked.contains(pid) || dipc_transport::find(*pid).is_err())
        .count()
}

fn tell_unreachable(count: usize) {
    match count {
        0 => {}
        1 => report::note("1 .NET process cannot be reached; dipc doctor says why."),
        _ => report::note(format_args!("{count} .NET processes cannot be reached; dipc doctor says why.")),
    }
}

/// Asks every runtime at the same time, in `timeout` altogether. The answers are in the order of the endpoints.
pub(crate) fn ask_all(endpoints: &[Endpoint], timeout: Duration) -> Vec<Process> {
    let deadline = Deadline::after(timeout);
    at_once(endpoints, AT_ONCE, |endpoint| {
        let left = deadline.remaining().unwrap_or(timeout);
        Process::ask(endpoint, left.max(LEAST.min(timeout)))
    })
}

/// Does the work for all items, `limit` at a time; the results are in the order of the items.
pub(crate) fn at_once<T: Sync, R: Send>(items: &[T], limit: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
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
            // Where the system gives no more threads, those there are do the work.
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

/// The table of processes.
pub(crate) fn table(processes: &[Process]) -> Columns {
    let mut columns = Columns::new([
        ("PID", Align::Right),
        ("NAME", Align::Left),
        ("UID", Align::Right),
        ("RUNTIME", Align::Left),
        ("ARCH", Align::Left),
        ("COMMAND LINE", Align::Left),
    ]);
    for process in processes {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let number = |number: Option<u32>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        columns.row([
            number(process.pid),
            text(&process.name),
            number(process.uid),
            text(&process.clr_version),
            text(&process.arch),
            text(&process.command_line),
        ]);
    }
    columns
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;

    use super::*;

    /// Items that end when all have begun, or, where that does not happen, at the deadline.
    #[test]
    fn one_that_hangs_delays_no_other() {
        let items: Vec<usize> = (0..100).collect();
        let (begun, changed) = (Mutex::new(0), Condvar::new());
        let results = at_once(&items, AT_ONCE, |item| {
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
    fn there_are_no_more_threads_than_allowed() {
        let threads = Mutex::new(BTreeSet::new());
        let items: Vec<usize> = (0..50).collect();
        let results = at_once(&items, 3, |item| {
            threads.lock().unwrap().insert(format!("{:?}", thread::current().id()));
            *item
        });
        assert_eq!(results, items);
        assert!(threads.into_inner().unwrap().len() <= 3);
        assert_eq!(at_once(&[0_usize; 0], 3, |item| *item), [0_usize; 0]);
    }
}
