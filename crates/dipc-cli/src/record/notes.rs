//! Remarks about a collection that goes on, in words.

use std::io;
use std::path::Path;

use dipc_collect::{CREATEDUMP_LIMIT, Note, Observer};

use crate::render::{messages, units};

/// Prints remarks as messages.
pub(crate) struct Messages;

impl Observer for Messages {
    fn note(&mut self, note: Note) {
        match note {
            Note::UserModeOnly { off_cpu } => messages::warning(format_args!(
                "the kernel permits samples of user mode only: no time in the kernel{}; root, CAP_PERFMON or kernel.perf_event_paranoid of at most 1 gives them",
                if off_cpu { ", and no stacks of waits" } else { "" }
            )),
            Note::ChildrenIncluded => {
                messages::warning("kernel's samples: before Linux 5.13 they include the child processes");
            }
            Note::RunningStacksMissing { reason } => {
                messages::warning(format_args!("running threads have no stacks: kernel's samples: {reason}"));
            }
            Note::SamplesEnded { reason } => {
                messages::warning(format_args!("kernel's samples: {reason}"));
            }
            Note::CreatedumpRuns { pid, createdump, .. } => warn_of_createdump(pid, createdump),
            Note::RundownLeftOut => messages::note(
                "The runtime cannot choose the keywords of its rundown: recording without rundown.",
            ),
            Note::SessionStarted { id, command } => {
                messages::detail(format_args!("Session        : {id} by {command}"));
            }
            Note::NothingCollected { .. } => messages::note(
                "Waiting        : the runtime collected nothing; if it is still starting, it will now",
            ),
            Note::SettingsAdopted { settings } => messages::detail(format_args!(
                "The Meters' shared session has other settings; asking again: {settings:?}"
            )),
            _ => {}
        }
    }
}

/// Names the createdump of a process that has not ended within the limit.
pub(crate) fn warn_of_createdump(pid: u32, createdump: u32) {
    messages::warning(format_args!(
        "process {pid}: its createdump, process {createdump}, did not end within {}",
        units::time(CREATEDUMP_LIMIT)
    ));
    messages::help(format_args!(
        "it may still write, or hang, as for a stack overflow: kill -KILL {createdump} ends it, kill -CONT {pid} lets \
         process {pid} run on; one that has crashed then ends without its dump"
    ));
}

/// Reports that a file was removed because of the limits on kept files.
pub(crate) fn report_removal(path: &Path, result: io::Result<()>) {
    match result {
        Ok(()) => messages::detail(format_args!("Removed        : {}", path.display())),
        Err(error) => messages::warning(format_args!("remove: {}: {error}", path.display())),
    }
}
