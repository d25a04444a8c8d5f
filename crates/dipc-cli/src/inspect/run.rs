//! Recordings as the sides of a comparison.

use std::path::Path;

use nettrace_export::Selection;
use nettrace_export::diff::{Run, RunBuilder, RunOptions};
use nettrace_export::report;

use crate::exit::{Exit, Failure};
use crate::inspect::names::Names;
use crate::inspect::recording::Recording;
use crate::inspect::thread_times::kernel_times_beside;
use crate::inspect::time_range::TimeRange;
use crate::render::messages;

/// Reads a range of a recording, of these processes or all, as a run. Warns if events were lost.
pub(crate) fn read(file: &Path, range: TimeRange, processes: &[u64]) -> Result<(Run, Exit), Failure> {
    let (from, to) = range.resolve_in_part(file)?.selected();
    let selection = Selection::of_time(from, to).with_processes(processes.to_vec());
    let (events, origin) = Recording::open(file)?.into_parts();
    let options = RunOptions::new(selection).with_kernel_times(kernel_times_beside(file));
    let mut builder = RunBuilder::new(options, events.info());
    if let Some(names) = Names::find(file) {
        names.add_to(builder.code_mut())?;
    }
    let read = report::read(events, |event| builder.add(event));
    let events = read.map_err(|error| origin.failed(&error))?;
    let lost = events.loss().total();
    if lost > 0 {
        messages::warning(format_args!(
            "{}: {lost} events were lost, which the comparison does not have",
            file.display()
        ));
    }
    let exit = origin.report_damage(&events);
    Ok((builder.finish(events.info()), exit))
}
