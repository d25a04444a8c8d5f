//! Recordings as the sides of a comparison.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use nettrace_export::Selection;
use nettrace_export::diff::{Run, RunBuilder, RunOptions, is_pprof};
use nettrace_export::report;

use crate::exit::{Exit, Failure};
use crate::inspect::names::Names;
use crate::inspect::recording::Recording;
use crate::inspect::thread_times::kernel_times_beside;
use crate::inspect::time_range::TimeRange;
use crate::render::messages;

/// Bytes of a profile of pprof that are read.
const MAX_PPROF_SIZE: u64 = 256 << 20;

/// Reads a profile of pprof as a run; `None` if the file is not one.
fn read_pprof(path: &Path) -> Result<Option<Run>, Failure> {
    let mut bytes = Vec::new();
    let begins = File::open(path).and_then(|file| file.take(2).read_to_end(&mut bytes));
    if begins.is_err() || !is_pprof(&bytes) {
        return Ok(None);
    }
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Failed, format_args!("read: {}: {error}", path.display()))
    };
    bytes.clear();
    let read = File::open(path).and_then(|file| file.take(MAX_PPROF_SIZE + 1).read_to_end(&mut bytes));
    read.map_err(|error| failed(&error))?;
    Run::of_pprof(&bytes).map(Some).map_err(|error| failed(&error))
}

/// Reads a range of a recording, of these processes or all, or a profile of pprof, as a run. Warns if events
/// were lost.
pub(crate) fn read(file: &Path, range: TimeRange, processes: &[u64]) -> Result<(Run, Exit), Failure> {
    let is_file = file.as_os_str() != "-";
    let of_pprof = if is_file { read_pprof(file)? } else { None };
    if let Some(run) = of_pprof {
        if range.from.is_some() || range.to.is_some() || !processes.is_empty() {
            return Err(Failure::usage(format_args!(
                "diff: {}: a profile of pprof has neither times nor processes to choose from",
                file.display()
            )));
        }
        return Ok((run, Exit::Done));
    }
    let (from, to) = range.resolve_in_part(file)?.selected();
    let selection = Selection::of_time(from, to).with_processes(processes.to_vec());
    let (events, origin) = Recording::open(file)?.into_parts();
    let options = RunOptions::new(selection).with_kernel_times(kernel_times_beside(file));
    let mut builder = RunBuilder::new(options, events.info());
    if let Some(names) = Names::find(file) {
        builder.code_maps_mut().try_for_each(|code| names.add_to(code))?;
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
