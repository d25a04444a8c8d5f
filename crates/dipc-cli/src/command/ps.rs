//! `dipc ps`: the .NET processes that can be reached.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use dipc_transport::Endpoint;

use crate::args::{Format, PsArgs};
use crate::exit::{Exit, Outcome};
use crate::output::{self, Align, Columns};
use crate::process::Process;
use crate::report;

/// Runtimes that are asked at the same time: one that hangs must not hold up the rest, and a crowd must not cost a thread each.
const AT_ONCE: usize = 16;

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
                if let (Some(pid), Some(error)) = (process.pid, &process.error) {
                    report::warning(format_args!("process {pid}: {error}"));
                }
            }
            if processes.is_empty() {
                report::note("No .NET process was found that can be reached.");
                return Ok(Exit::Done);
            }
            output::print(table(&processes))?;
        }
    }
    Ok(Exit::Done)
}

/// Asks every runtime, in the order of the endpoints.
pub(crate) fn ask_all(endpoints: &[Endpoint], timeout: Duration) -> Vec<Process> {
    at_once(endpoints, |endpoint| Process::ask(endpoint, timeout))
}

/// Does the work for all items, some at a time; the results are in the order of the items.
pub(crate) fn at_once<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    thread::scope(|scope| {
        for _ in 0..items.len().min(AT_ONCE) {
            scope.spawn(|| {
                while let Some((index, item)) = take(&next, items) {
                    let result = work(item);
                    if let Ok(mut results) = results.lock() {
                        results.push((index, result));
                    }
                }
            });
        }
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
