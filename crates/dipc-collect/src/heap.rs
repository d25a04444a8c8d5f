//! A heap, from a session that makes the runtime collect.

use std::convert::Infallible;

use dipc_client::{BufferMode, LiveReader, OptionalFeature, Rundown, Session, SessionConfig, Target};
use gcdump::{HeapGraph, HeapGraphBuilder};

use crate::live_stream::{EventConsumer, LiveStream};
use crate::module_types::ModuleTypes;
use crate::observer::Observer;
use crate::stream::{self, Limits, StreamEnd};

/// Returns the configuration of a session that makes the runtime collect and send its heap. The buffer has to
/// hold the whole heap in runtimes that do not wait when it is full.
pub fn session_config(buffer_mb: u32) -> SessionConfig {
    let request = gcdump::request();
    SessionConfig::new([request])
        .with_buffer_mb(buffer_mb)
        .with_buffer_mode(BufferMode::BLOCK)
        .with_rundown(Rundown::Keyword(request.rundown_keyword.into()))
        .with_stackwalk(false)
        .with_optional(vec![
            OptionalFeature::BlockWhenFull,
            OptionalFeature::RundownKeyword,
            OptionalFeature::NoStacks,
        ])
}

/// Reads the heap that a session of [`session_config`] sends, and returns how the stream ended. Blocks.
pub fn read(
    session: Session,
    builder: HeapGraphBuilder,
    limits: &Limits,
    observer: &mut dyn Observer,
) -> (ReceivedHeap, StreamEnd) {
    // The runtime collects before it answers, or before it handles the stop; .NET Core 3.1 sends nothing until
    // then. A runtime that waits when its buffer is full is stopped when the heap has ended.
    let stops_at_once = session.dropped_features().contains(&OptionalFeature::BlockWhenFull);
    let heap = LiveHeap { builder, stops_at_once };
    let mut stream = LiveStream::new(LiveReader::in_whole_order(), heap);
    let Ok(end) = stream::run(session, &mut stream, limits, observer);
    let (reader, LiveHeap { builder, .. }) = stream.into_parts();
    (ReceivedHeap { reader, builder }, end)
}

/// The received events of a heap.
#[derive(Debug)]
pub struct ReceivedHeap {
    reader: LiveReader,
    builder: HeapGraphBuilder,
}

impl ReceivedHeap {
    /// Returns the number of objects that have arrived.
    pub fn object_count(&self) -> usize {
        self.builder.object_count()
    }

    /// Builds the graph. Names of static fields and of nested types are read from `modules`.
    ///
    /// # Errors
    /// [`HeapError`] if the stream lacks a heap.
    pub fn finish(self, target: &Target, modules: &mut ModuleTypes) -> Result<HeapGraph, HeapError> {
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

/// The reason why a session brought no heap.
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
