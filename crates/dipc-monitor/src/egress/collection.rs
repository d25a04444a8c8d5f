//! The collection of a promised artifact into a file.

use std::io;
use std::path::PathBuf;

use dipc_collect::StopSignal;

use super::delivery::Places;
use super::part::{CompletePart, PartWriter};
use crate::artifact::{Artifact, ArtifactError, ArtifactSink};
use crate::operation::RunningOperation;
use crate::process::Watched;

/// Collects an artifact into its part, or into the file `spare` if that cannot be written. It is durable
/// afterwards.
pub(super) fn collect(
    places: &Places,
    spare: Option<PathBuf>,
    artifact: &Artifact,
    process: &Watched,
    operation: &RunningOperation,
) -> Result<CompletePart, ArtifactError> {
    let stop: StopSignal = operation.stop.clone();
    let mut sink = PartSink { places, spare, operation, writer: None };
    artifact.collect(process, &stop, &mut sink)?;
    let writer = sink.writer.ok_or_else(|| ArtifactError::Failed("there is nothing to write".to_owned()))?;
    writer.finish().map_err(ArtifactError::Sink)
}

/// The part of a job as the destination of an artifact.
struct PartSink<'s> {
    places: &'s Places,
    spare: Option<PathBuf>,
    operation: &'s RunningOperation,
    writer: Option<PartWriter>,
}

impl ArtifactSink for PartSink<'_> {
    fn begin(&mut self) -> io::Result<()> {
        let spare = self.spare.take();
        self.writer = Some(PartWriter::begin(&self.places.part, || self.places.create(), spare)?);
        self.operation.begun();
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.writer {
            Some(writer) => writer.write(bytes),
            None => Err(io::Error::other("the artifact has not begun")),
        }
    }
}
