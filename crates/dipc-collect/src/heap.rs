//! A heap, from a session that makes the runtime collect.

use std::convert::Infallible;
use std::time::Duration;

use dipc_client::{BufferMode, LiveReader, OptionalFeature, Rundown, Session, SessionConfig, Target};
use gcdump::{HeapGraph, HeapGraphBuilder};

use crate::live_stream::{EventConsumer, LiveStream};
use crate::module_types::ModuleTypes;
use crate::observer::{Note, Observer};
use crate::session::{self, StartError};
use crate::stream::{self, Ending, Limits, StreamEnd};

/// The wait for a runtime that is starting.
const SECOND_TRY: Duration = Duration::from_secs(1);

/// The heap to collect.
#[derive(Debug, Clone)]
pub struct HeapRequest {
    buffer_mb: u32,
    has_dependent_references: bool,
}

impl HeapRequest {
    /// Creates a request for the heap, with this size of the runtime's buffer. The buffer has to hold the
    /// whole heap in runtimes that do not wait when it is full: those before .NET 11.
    pub const fn new(buffer_mb: u32) -> Self {
        Self { buffer_mb, has_dependent_references: false }
    }

    /// Has keys of dependent handles reference their values.
    #[must_use]
    pub const fn with_dependent_references(self) -> Self {
        Self { has_dependent_references: true, ..self }
    }

    fn builder(&self) -> HeapGraphBuilder {
        let builder = HeapGraphBuilder::new();
        if self.has_dependent_references { builder.with_dependent_references() } else { builder }
    }

    /// The configuration of a session that makes the runtime collect and send its heap.
    fn session_config(&self) -> SessionConfig {
        let request = gcdump::request();
        SessionConfig::new([request])
            .with_buffer_mb(self.buffer_mb)
            .with_buffer_mode(BufferMode::BLOCK)
            .with_rundown(Rundown::Keyword(request.rundown_keyword.into()))
            .with_stackwalk(false)
            .with_optional(vec![
                OptionalFeature::BlockWhenFull,
                OptionalFeature::RundownKeyword,
                OptionalFeature::NoStacks,
            ])
    }
}

/// The outcome of the session that made the runtime collect.
#[derive(Debug)]
#[non_exhaustive]
pub struct CollectedHeap {
    /// The graph, if the runtime sent a heap.
    pub graph: Result<HeapGraph, HeapError>,
    /// The number of objects that arrived.
    pub object_count: usize,
    /// The end of the session's stream.
    pub end: StreamEnd,
}

/// Makes the runtime collect, and reads its heap. Blocks.
///
/// A runtime that is starting accepts the session, and collects nothing: it is asked once more after a second
/// ([`Note::NothingCollected`]). `limits` apply to each session. Names of static fields and of nested types
/// are read from `modules`.
///
/// # Errors
/// If a session cannot be started. Without a heap, the error is in the result.
///
/// # Source
/// `ETW::GCLog::ForceGC` in `eventtrace.cpp` of dotnet/runtime: without an initialized collector it returns.
pub fn collect(
    target: &Target,
    request: &HeapRequest,
    modules: &mut ModuleTypes,
    limits: &Limits,
    observer: &mut dyn Observer,
) -> Result<CollectedHeap, StartError> {
    let first = collect_once(target, request, modules, limits, observer)?;
    if !first.has_nothing() || matches!(first.end.ending, Ending::Silent { .. }) {
        return Ok(first);
    }
    observer.note(Note::NothingCollected { wait: SECOND_TRY });
    if limits.stop_signal().wait(SECOND_TRY) {
        return Ok(CollectedHeap { graph: Err(HeapError::Stopped), ..first });
    }
    let second = collect_once(target, request, modules, limits, observer)?;
    if second.has_nothing() {
        return Ok(CollectedHeap { graph: Err(HeapError::NothingCollected), ..second });
    }
    Ok(second)
}

fn collect_once(
    target: &Target,
    request: &HeapRequest,
    modules: &mut ModuleTypes,
    limits: &Limits,
    observer: &mut dyn Observer,
) -> Result<CollectedHeap, StartError> {
    let stop = limits.stop_signal();
    let session = session::start(target, &request.session_config(), || stop.is_stopped(), observer)?;
    observer.note(Note::SessionStarted { id: session.id(), command: session.command() });
    let (heap, end) = read(session, request.builder(), limits, observer);
    let object_count = heap.builder.object_count();
    Ok(CollectedHeap { graph: heap.finish(target, modules), object_count, end })
}

impl CollectedHeap {
    /// Returns true if the runtime did not collect. A further session may have a heap.
    const fn has_nothing(&self) -> bool {
        matches!(self.graph, Err(HeapError::NotSent(gcdump::Error::NoDump)))
    }
}

/// Reads the heap that a session sends, and returns how the stream ended.
fn read(
    session: Session,
    builder: HeapGraphBuilder,
    limits: &Limits,
    observer: &mut dyn Observer,
) -> (ReceivedHeap, StreamEnd) {
    // The runtime collects before it answers, or before it handles the stop; .NET Core 3.1 sends nothing
    // until then. A runtime that waits when its buffer is full is stopped when the heap has ended.
    let stops_at_once = session.dropped_features().contains(&OptionalFeature::BlockWhenFull);
    let heap = LiveHeap { builder, stops_at_once };
    let mut stream = LiveStream::new(LiveReader::in_whole_order(), heap);
    let Ok(end) = stream::run(session, &mut stream, limits, observer);
    let (reader, LiveHeap { builder, .. }) = stream.into_parts();
    (ReceivedHeap { reader, builder }, end)
}

/// The received events of a heap.
struct ReceivedHeap {
    reader: LiveReader,
    builder: HeapGraphBuilder,
}

impl ReceivedHeap {
    /// Builds the graph.
    fn finish(self, target: &Target, modules: &mut ModuleTypes) -> Result<HeapGraph, HeapError> {
        let lost = self.reader.events().loss().total();
        self.builder.finish_with(lost, |path| modules.read(path)).map_err(|error| {
            if let Some(error) = self.reader.unreadable() {
                return HeapError::Unreadable(error.to_string());
            }
            match target.is_native_aot() {
                Ok(true) => HeapError::NativeAot,
                _ => HeapError::NotSent(error),
            }
        })
    }
}

/// The reason why no heap was collected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeapError {
    /// The stream cannot be read.
    #[error("read the stream: {0}")]
    Unreadable(String),
    /// The process is a NativeAOT program.
    #[error(
        "the process is a NativeAOT program: its runtime accepts the session, but neither collects nor sends its heap"
    )]
    NativeAot,
    /// The collection was stopped while it waited for a runtime that was starting.
    #[error("stopped before the runtime collected")]
    Stopped,
    /// The runtime collected nothing in either session: it is still starting, about to end, or Mono.
    #[error("the runtime sent no heap dump: it collected nothing in two sessions")]
    NothingCollected,
    /// The runtime sent no heap, or only a part of it.
    #[error("the runtime sent no heap dump: {0}")]
    NotSent(gcdump::Error),
}

/// A heap with events that are still arriving.
struct LiveHeap {
    builder: HeapGraphBuilder,
    /// True if the session is stopped as soon as it runs.
    stops_at_once: bool,
}

impl EventConsumer for LiveHeap {
    type Error = Infallible;

    fn read(&mut self, reader: &mut LiveReader, _: bool) -> Result<(), Infallible> {
        reader.for_each(|event| self.builder.add(event));
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        self.stops_at_once || self.builder.has_ended()
    }
}
