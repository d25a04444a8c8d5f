//! The content of a black box.

use std::io::{self, Write};

use nettrace_edit::Snapshot;

use super::{ArtifactError, ArtifactSink, begin};
use crate::process::{SnapshotSource, Watched};

pub(super) fn collect(process: &Watched, sink: &mut dyn ArtifactSink) -> Result<(), ArtifactError> {
    let Some(last_seconds) = process.last_seconds.get() else {
        let text = "no events are kept: start without --keep 0s";
        return Err(ArtifactError::Unsupported(text.to_owned()));
    };
    let snapshot = take(&**last_seconds)?;
    begin(sink)?;
    write(&snapshot, &mut SinkWriter(sink))
}

/// Returns what is kept at this moment.
pub(super) fn take(last_seconds: &dyn SnapshotSource) -> Result<Snapshot, ArtifactError> {
    let snapshot = last_seconds.snapshot().ok_or_else(|| {
        ArtifactError::Failed("no events of the process are kept: its session has not begun".to_owned())
    })?;
    snapshot.map_err(|error| ArtifactError::Failed(error.to_string()))
}

/// Writes a snapshot as a recording.
pub(super) fn write(snapshot: &Snapshot, output: &mut impl Write) -> Result<(), ArtifactError> {
    snapshot.write(None, output).map_err(|error| match error {
        nettrace_edit::Error::Write(nettrace_edit::nettrace_writer::Error::Io { error, .. }) => {
            ArtifactError::Sink(error)
        }
        error => ArtifactError::Failed(error.to_string()),
    })?;
    Ok(())
}

struct SinkWriter<'s>(&'s mut dyn ArtifactSink);

impl Write for SinkWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
