//! A heap dump, from a session that makes the runtime collect.

use std::time::Duration;

use dipc_client::Startup;
use dipc_collect::ModuleTypes;
use dipc_collect::heap::{self, HeapError};

use crate::exit::{Exit, Failure};
use crate::inspect::heap::{GraphOfEvents, GraphSource, Heap, warn_of_missing};
use crate::interrupt::Interrupts;
use crate::record::notes::Messages;
use crate::record::recorder::Limits;
use crate::record::session::{resume, start_unless_interrupted};
use crate::record::source::Source;
use crate::render::{messages, units};

/// The wait for a runtime that is starting.
const SECOND_TRY: Duration = Duration::from_secs(1);

/// The settings of a heap dump.
#[derive(Debug, Clone)]
pub(crate) struct HeapRequest {
    /// The size of the runtime's buffer, into which the whole dump has to fit.
    pub(crate) buffer_mb: u32,
    /// The limit for the runtime's answer, which follows the collection, and for its silence afterwards.
    pub(crate) timeout: Duration,
    pub(crate) graph: GraphOfEvents,
    pub(crate) interrupts: Interrupts,
}

impl HeapRequest {
    /// Makes the runtime collect, and reads its heap. A runtime that is starting takes the session, and collects
    /// nothing: it is asked once more.
    ///
    /// # Source
    /// `ETW::GCLog::ForceGC` in `eventtrace.cpp` of dotnet/runtime: without an initialized collector it returns.
    pub(crate) fn dump(&self, source: &Source) -> Result<Heap, Failure> {
        if let Some(heap) = self.try_dump(source)? {
            return Ok(heap);
        }
        messages::note(
            "Waiting        : the runtime collected nothing; if it is still starting, it will now",
        );
        self.wait(SECOND_TRY)?;
        let heap = self.try_dump(source)?;
        heap.ok_or_else(|| {
            Failure::new(Exit::Failed, "the runtime sent no heap dump: it collected nothing in two sessions")
                .with_help("if it is still starting, collect again in a few seconds; the process may also have been about to end, or its runtime be Mono, which has no such dumps")
        })
    }

    /// Runs one session; `None` if the runtime did not collect.
    fn try_dump(&self, source: &Source) -> Result<Option<Heap>, Failure> {
        let config = heap::session_config(self.buffer_mb);
        let session = start_unless_interrupted(&source.target, &config, &self.interrupts)?;
        messages::detail(format_args!("Session        : {} by {}", session.id(), session.command()));
        let limits = Limits::new(&source.target, source.pid, self.timeout, &self.interrupts);
        let (heap, end) = heap::read(session, self.graph.builder(), &limits.stream, &mut Messages);
        let objects = heap.object_count();
        let exit =
            limits.end(end).report(&format!("{} objects came", units::count(objects as u64)), "used")?;
        let graph = match heap.finish(&source.target, &mut ModuleTypes::of(source.pid)) {
            Ok(graph) => graph,
            // A further session may have one.
            Err(HeapError::NotSent(gcdump::Error::NoDump)) => return Ok(None),
            Err(error) => return Err(no_dump(&error)),
        };
        let missing = warn_of_missing(graph.completeness(), GraphSource::Events);
        Ok(Some(Heap { graph, memory: None, exit: exit.join(missing) }))
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
            return Err(Failure::new(Exit::Failed, "interrupted before the dump; nothing was written"));
        }
        Ok(())
    }
}

/// The failure of a session without a dump, with the reason if known.
fn no_dump(error: &HeapError) -> Failure {
    let failure = |exit| Failure::new(exit, error);
    match error {
        HeapError::NativeAot => failure(Exit::Refused).with_help("dipc trace --profile gc-verbose shows what it allocates, dipc counters monitor how its heap grows"),
        HeapError::NotSent(_) => failure(Exit::Failed).with_help("collect again"),
        _ => failure(Exit::Failed),
    }
}
