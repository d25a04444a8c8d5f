//! The heap of a process.

use std::time::Duration;

use dipc_client::{BufferMode, LiveReader, OptionalFeature, Rundown, SessionConfig, Startup};
use gcdump::HeapGraphBuilder;

use super::stream::{self, Piece};
use super::{ArtifactError, ArtifactSink, begin};
use crate::process::Watched;
use crate::stop::StopSignal;

/// The size of the runtime's buffer, into which the whole heap has to fit.
const BUFFER_MB: u32 = 1024;
/// The time limit for the whole heap.
const LONGEST: Duration = Duration::from_secs(600);
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
    let request = gcdump::request();
    let config = SessionConfig::new([request])
        .with_buffer_mb(BUFFER_MB)
        .with_buffer_mode(BufferMode::BLOCK)
        .with_rundown(Rundown::Keyword(request.rundown_keyword.into()))
        .with_stackwalk(false)
        .with_optional(vec![
            OptionalFeature::BlockWhenFull,
            OptionalFeature::RundownKeyword,
            OptionalFeature::NoStacks,
        ]);
    let session = target.start_session(&config)?;
    // The runtime collects before it answers, or before it handles the stop; .NET Core 3.1 sends nothing
    // until then. One that blocks when its buffer is full is stopped when the heap has ended.
    let stops_at_once = session.dropped_features().contains(&OptionalFeature::BlockWhenFull);
    let mut reader = LiveReader::in_whole_order();
    let mut builder = HeapGraphBuilder::new();
    stream::read(session, Some(LONGEST), stop, |piece| {
        if let Piece::Bytes(bytes) = piece {
            reader.feed(bytes);
            reader.for_each(|event| builder.add(event));
        }
        Ok(stops_at_once || builder.has_ended())
    })?;
    reader.end_of_input();
    reader.for_each(|event| builder.add(event));
    let lost = reader.events().loss().total();
    let graph = match builder.finish(lost) {
        Ok(graph) => graph,
        Err(_) if matches!(target.is_native_aot(), Ok(true)) => {
            let what = "the process is a NativeAOT program: its runtime does not send its heap";
            return Err(ArtifactError::Unsupported(what.to_owned()));
        }
        Err(error) => return Err(ArtifactError::Failed(format!("the runtime sent no heap: {error}"))),
    };
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
