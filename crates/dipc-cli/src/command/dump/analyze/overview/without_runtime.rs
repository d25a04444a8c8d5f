//! The overview of a core dump that lacks the runtime's data: the contents of its notes.

use std::fmt::Write as _;

use clr_dump::CoreFile;

use super::{facts, limited};
use crate::args::format::Format;
use crate::command::dump::analyze::overview::report::Remains;
use crate::command::dump::analyze::stacks::{self, Shown};
use crate::exit::{Exit, Outcome};
use crate::inspect::core_advice;
use crate::inspect::core_dump::{NativeThread, native_threads};
use crate::inspect::core_source::Source;
use crate::render::table::heading;
use crate::render::{output, units, width};

/// Maximum number of threads to show.
const THREADS: usize = 12;

/// Prints the overview without the runtime's data. `reason` explains why they are missing.
pub(super) fn print(
    source: &Source,
    core: &CoreFile,
    written: Option<&str>,
    reason: &str,
    format: Format,
) -> Outcome {
    let threads = native_threads(core);
    match format {
        Format::Json => output::print_json(&Remains::new(core, written, &threads, reason)),
        Format::Table => output::print(text(source, core, written, &threads, reason)),
    }?;
    Ok(Exit::Incomplete)
}

fn text(
    source: &Source,
    core: &CoreFile,
    written: Option<&str>,
    threads: &[NativeThread],
    reason: &str,
) -> String {
    let width = width::of_output();
    let mut text = facts::text(source, None, written);
    text.push('\n');
    text.push_str(&heading("Threads"));
    let signalled = core.signalled_thread();
    let mut sorted: Vec<_> = threads.iter().collect();
    sorted.sort_by_key(|thread| signalled != Some(thread.tid.into()));
    for thread in sorted.iter().take(THREADS) {
        let died = if signalled == Some(thread.tid.into()) { ", which got the signal" } else { "" };
        let _ = writeln!(text, "Thread {}{died}", thread.tid);
        text.push_str(&limited(&stacks::frames(&thread.stack, &thread.frames, Shown::Folded, width), None));
    }
    let left = threads.len().saturating_sub(THREADS) as u64;
    if left > 0 {
        let _ = writeln!(text, "({})", units::counted(left, "more thread", "more threads"));
    }
    if threads.is_empty() {
        text.push_str("None: the part of the file with them is missing\n");
    }
    text.push('\n');
    text.push_str(&heading("Missing"));
    let missing = format!(
        "{reason}. The runtime's data is in the missing part: managed frames, exceptions, locks and heap are not known; {}\n",
        core_advice::better(source)
    );
    text.push_str(&width::wrapped(&missing, width));
    text
}
