//! The heap of a process.

use std::time::Duration;

use dipc_client::Startup;
use dipc_collect::heap::{self, HeapError, HeapRequest};
use dipc_collect::stream::Limits;
use dipc_collect::{ModuleTypes, StopSignal};

use super::stream::require_end;
use super::{ArtifactError, ArtifactSink, begin};
use crate::process::Watched;

/// The size of the runtime's buffer, into which the whole heap has to fit.
const BUFFER_MB: u32 = 1024;
/// The time limit for the whole heap.
const MAX_TIME: Duration = Duration::from_secs(600);
/// The bytes that are written at once.
const CHUNK: usize = 64 << 10;

pub(super) fn collect(
    process: &Watched,
    stop: &StopSignal,
    sink: &mut dyn ArtifactSink,
) -> Result<(), ArtifactError> {
    let target = process.target();
    if matches!(target.startup(), Ok(Startup::Suspended)) {
        return Err(ArtifactError::Unsupported("the process waits at its start and has no heap yet".into()));
    }
    let limits = Limits::new(stop.clone()).with_duration(Some(MAX_TIME)).with_pid(target.pid());
    let mut modules = ModuleTypes::of(target.pid());
    let heap = heap::collect(target, &HeapRequest::new(BUFFER_MB), &mut modules, &limits, &mut ())?;
    require_end(heap.end)?;
    let graph = heap.graph.map_err(|error| match error {
        HeapError::NativeAot => ArtifactError::Unsupported(error.to_string()),
        HeapError::Stopped if stop.is_cancelled() => ArtifactError::Cancelled,
        error => ArtifactError::Failed(error.to_string()),
    })?;
    let writer = gcdump::file::Writer::new(&graph);
    let writer = writer.map_err(|error| ArtifactError::Failed(error.to_string()))?;
    begin(sink)?;
    let mut out = std::io::BufWriter::with_capacity(CHUNK, SinkWriter(sink));
    writer.write(&mut out).map_err(ArtifactError::Sink)?;
    std::io::Write::flush(&mut out).map_err(ArtifactError::Sink)
}

/// A sink as a writer.
struct SinkWriter<'s>(&'s mut dyn ArtifactSink);

impl std::io::Write for SinkWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
