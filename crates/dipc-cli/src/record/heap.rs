//! A heap dump, from a session that makes the runtime collect.

use std::time::Duration;

use dipc_client::Startup;
use dipc_collect::ModuleTypes;
use dipc_collect::heap::{self, HeapError};

use crate::exit::{Exit, Failure};
use crate::inspect::heap::{GraphSource, Heap, warn_of_missing};
use crate::interrupt::Interrupts;
use crate::record::notes::Messages;
use crate::record::recorder::Limits;
use crate::record::session::resume;
use crate::record::source::Source;
use crate::render::units;

/// The settings of a heap dump.
#[derive(Debug, Clone)]
pub(crate) struct HeapRequest {
    pub(crate) heap: heap::HeapRequest,
    /// The limit for the runtime's answer, which follows the collection, and for its silence afterwards.
    pub(crate) timeout: Duration,
    pub(crate) interrupts: Interrupts,
}

impl HeapRequest {
    /// Makes the runtime collect, and reads its heap.
    pub(crate) fn dump(&self, source: &Source) -> Result<Heap, Failure> {
        let limits = Limits::new(&source.target, source.pid, self.timeout, &self.interrupts);
        let mut modules = ModuleTypes::of(source.pid);
        let collected =
            heap::collect(&source.target, &self.heap, &mut modules, &limits.stream, &mut Messages)?;
        let objects = units::count(collected.object_count as u64);
        let exit = limits.end(collected.end).report(&format!("{objects} objects came"), "used")?;
        let graph = collected.graph.map_err(|error| no_dump(&error))?;
        let missing = warn_of_missing(graph.completeness(), GraphSource::Events);
        Ok(Heap { graph, memory: None, contents: None, exit: exit.join(missing) })
    }

    /// Resumes a process that was started for the dump. A process that waits at its start for another tool
    /// lacks a heap.
    pub(crate) fn resume(source: &Source) -> Result<(), Failure> {
        if source.port.is_some() {
            resume(&source.target);
        } else if matches!(source.target.startup(), Ok(Startup::Suspended)) {
            return Err(Failure::new(
                Exit::Failed,
                format_args!(
                    "{}: the process waits at its start, and has no heap yet",
                    source.target.address()
                ),
            )
            .with_help("dipc resume -p PID resumes it"));
        }
        Ok(())
    }

    /// Waits, unless the user interrupts it.
    pub(crate) fn wait(&self, time: Duration) -> Result<(), Failure> {
        if self.interrupts.wait(time) {
            return Err(interrupted());
        }
        Ok(())
    }
}

/// The failure of a session without a dump, with the reason if known.
fn no_dump(error: &HeapError) -> Failure {
    let failure = |exit| Failure::new(exit, error);
    match error {
        HeapError::NativeAot => failure(Exit::Refused).with_help("dipc trace --profile gc-verbose shows what it allocates, dipc counters monitor how its heap grows"),
        HeapError::Stopped => interrupted(),
        HeapError::NothingCollected => failure(Exit::Failed).with_help("if it is still starting, collect again in a few seconds; the process may also have been about to end, or its runtime be Mono, which has no such dumps"),
        HeapError::NotSent(_) => failure(Exit::Failed).with_help("collect again"),
        _ => failure(Exit::Failed),
    }
}

fn interrupted() -> Failure {
    Failure::new(Exit::Failed, "interrupted before the dump; nothing was written")
}
