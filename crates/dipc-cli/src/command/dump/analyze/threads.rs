//! `dipc dump analyze CORE threads`.

use serde::Serialize;

use crate::args::format::Format;
use crate::exit::Failure;
use crate::inspect::core_dump::{Analysis, ManagedThread};
use crate::render::output;
use crate::render::table::{Align, Columns};

/// Prints the threads; with `live` without ended and unstarted threads.
pub(super) fn print(analysis: &Analysis<'_>, live: bool, format: Format) -> Result<(), Failure> {
    let threads: Vec<_> = analysis.threads.iter().filter(|of| !live || of.thread.os_id != 0).collect();
    match format {
        Format::Json => output::print_json(&Report::new(analysis, &threads)),
        Format::Table => output::print(table(&threads)),
    }
}

fn table(threads: &[&ManagedThread]) -> String {
    use Align::{Left, Right};
    let mut columns = Columns::new([
        ("TID", Right),
        ("MANAGED", Right),
        ("FRAMES", Right),
        ("STATE", Left),
        ("NAME", Left),
    ]);
    for of in threads {
        let thread = &of.thread;
        columns.row([
            if thread.os_id == 0 { "-".to_owned() } else { thread.os_id.to_string() },
            if thread.managed_id == 0 { "-".to_owned() } else { thread.managed_id.to_string() },
            of.stack.managed().count().to_string(),
            states(thread).join(", "),
            of.name.clone().unwrap_or_default(),
        ]);
    }
    columns.fitted(&["MANAGED"])
}

/// The state of a thread in words.
pub(super) fn states(thread: &clr_dump::Thread) -> Vec<&'static str> {
    let state = thread.state;
    let words = [
        (state.is_unstarted(), "not started"),
        (thread.os_id == 0 && !state.is_unstarted(), "ended"),
        (state.is_pool_worker(), "pool"),
        (state.is_background(), "background"),
        (state.is_waiting(), "waiting"),
        (thread.is_cooperative, "in managed code"),
    ];
    words.into_iter().filter(|(is_true, _)| *is_true).map(|(_, word)| word).collect()
}

#[derive(Debug, Serialize)]
struct Report<'r> {
    runtime: &'r str,
    threads: Vec<Row<'r>>,
}

#[derive(Debug, Serialize)]
struct Row<'r> {
    /// The thread id in the system; missing for an unstarted or ended thread.
    tid: Option<u64>,
    managed_id: u32,
    name: Option<&'r str>,
    states: Vec<&'static str>,
    frames: usize,
}

impl<'r> Report<'r> {
    fn new(analysis: &'r Analysis<'_>, threads: &[&'r ManagedThread]) -> Self {
        let row = |of: &&'r ManagedThread| Row {
            tid: Some(of.thread.os_id).filter(|tid| *tid != 0),
            managed_id: of.thread.managed_id,
            name: of.name.as_deref(),
            states: states(&of.thread),
            frames: of.stack.managed().count(),
        };
        Self { runtime: analysis.dump.runtime().version(), threads: threads.iter().map(row).collect() }
    }
}
