//! A heap dump, from a session that makes the runtime collect.

use std::time::Duration;

use dipc_client::{BufferMode, LiveReader, OptionalFeature, Rundown, SessionConfig, Startup};
use gcdump::HeapGraphBuilder;

use crate::exit::{Exit, Failure};
use crate::inspect::heap::{GraphOfEvents, GraphSource, Heap, warn_of_missing};
use crate::inspect::module_types::ModuleTypes;
use crate::interrupt::Interrupts;
use crate::record::live_stream::{EventConsumer, LiveStream};
use crate::record::recorder::{self, Limits};
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
    /// The limit for the runtime's answer, which comes when the collection is over, and for its silence
    /// afterwards.
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
        let request = gcdump::request();
        let config = SessionConfig::new([request])
            .with_buffer_mb(self.buffer_mb)
            .with_buffer_mode(BufferMode::BLOCK)
            .with_rundown(Rundown::Keyword(request.rundown_keyword.into()))
            .with_stackwalk(false)
            .with_optional(vec![
                OptionalFeature::BlockWhenFull,
                OptionalFeature::RundownKeyword,
                OptionalFeature::NoStacks,
            ]);
        let session = start_unless_interrupted(&source.target, &config, &self.interrupts)?;
        let blocks = !session.dropped_features().contains(&OptionalFeature::BlockWhenFull);
        messages::detail(format_args!("Session        : {} by {}", session.id(), session.command()));
        let limits = Limits {
            address: source.target.address().clone(),
            pid: source.pid,
            duration: None,
            silence: self.timeout,
            interrupts: self.interrupts.clone(),
        };
        let mut stream = LiveStream {
            reader: LiveReader::in_whole_order(),
            consumer: LiveHeap { builder: self.graph.builder(), stops_at_once: !blocks },
        };
        let end = recorder::run(session, &mut stream, &limits)?;
        let LiveStream { reader, consumer: LiveHeap { builder, .. } } = stream;
        let objects = builder.object_count();
        let exit = end.report(&format!("{} objects came", units::count(objects as u64)), "used")?;
        let lost = reader.events().loss().total();
        let mut modules = ModuleTypes::of(source.pid);
        let graph = match builder.finish_with(lost, |path| modules.read(path)) {
            Ok(graph) => graph,
            Err(error) => return Self::no_dump(source, reader.unreadable(), &error).map_or(Ok(None), Err),
        };
        let missing = warn_of_missing(graph.completeness(), GraphSource::Events);
        Ok(Some(Heap { graph, memory: None, exit: exit.join(missing) }))
    }

    /// The failure of a session without a dump; `None` if a further session may have one.
    fn no_dump(
        source: &Source,
        unreadable: Option<&nettrace::Error>,
        error: &gcdump::Error,
    ) -> Option<Failure> {
        if let Some(unreadable) = unreadable {
            return Some(Failure::new(Exit::Failed, format_args!("read the stream: {unreadable}")));
        }
        if matches!(source.target.is_native_aot(), Ok(true)) {
            let failure = Failure::new(
                Exit::Refused,
                "the process is a NativeAOT program: its runtime accepts the session, but neither collects nor sends its heap",
            );
            return Some(failure.with_help("dipc trace --profile gc-verbose shows what it allocates, dipc counters monitor how its heap grows"));
        }
        if matches!(error, gcdump::Error::NoDump) {
            return None;
        }
        Some(
            Failure::new(Exit::Failed, format_args!("the runtime sent no heap dump: {error}"))
                .with_help("collect again"),
        )
    }

    /// Resumes a process that was started for the dump. A process that waits at its start for another tool
    /// has no heap yet.
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

/// A heap whose events arrive.
struct LiveHeap {
    builder: HeapGraphBuilder,
    /// Whether the session is stopped as soon as it runs: the runtime collects before it answers, or before
    /// it handles the stop. .NET 3.1 sends nothing until then.
    stops_at_once: bool,
}

impl EventConsumer for LiveHeap {
    fn read(&mut self, reader: &mut LiveReader, _: bool) -> Result<(), Failure> {
        reader.for_each(|event| self.builder.add(event));
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        self.stops_at_once || self.builder.has_ended()
    }
}
