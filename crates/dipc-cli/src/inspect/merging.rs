//! The events of many recordings, written into one V6 recording.

use std::io::Write as _;
use std::path::PathBuf;

use nettrace::{Events, ReadSource, Reader, TraceInfo};
use nettrace_edit::MergedRecording;
use nettrace_writer::{MergeOrder, MergerOptions};

use crate::exit::{Exit, Failure};
use crate::inspect::recording::{Input, Origin, Recording};
use crate::inspect::rewrite::cannot_write;
use crate::render::destination::Destination;

/// The bytes collected before they are written.
const BUFFER: usize = 256 * 1024;

/// Recordings to be merged.
pub(crate) struct Merging {
    pub(crate) merged: MergedRecording,
    pub(crate) order: MergeOrder<ReadSource<Input>>,
    /// The header of each recording, and its place in the merged one.
    pub(crate) infos: Vec<TraceInfo>,
    pub(crate) origins: Vec<Origin>,
}

impl Merging {
    /// Opens the recordings.
    pub(crate) fn open(files: &[PathBuf], options: MergerOptions) -> Result<Self, Failure> {
        let opened = files.iter().map(|file| Recording::open(file)).collect::<Result<_, _>>()?;
        Self::of(opened, options)
    }

    /// Merges open recordings.
    pub(crate) fn of(opened: Vec<Recording>, options: MergerOptions) -> Result<Self, Failure> {
        let (recordings, origins): (Vec<_>, Vec<_>) = opened.into_iter().map(Recording::into_parts).unzip();
        let infos: Vec<_> = recordings.iter().map(|events: &Reader<Input>| events.info().cloned()).collect();
        let Some(infos) = infos.into_iter().collect::<Option<Vec<_>>>() else {
            return Err(Failure::new(Exit::Failed, "read: a recording has no header"));
        };
        let merged = MergedRecording::new(&infos, options)
            .map_err(|error| Failure::new(Exit::Failed, format_args!("merge: {error}")))?;
        Ok(Self { merged, order: MergeOrder::new(recordings), infos, origins })
    }

    /// Writes the events of all recordings.
    pub(crate) fn write(&mut self, out: &mut Destination) -> Result<(), Failure> {
        let Self { merged, order, origins, .. } = self;
        let failed = |(source, error): (usize, nettrace::Error)| origins[source].failed(&error);
        while let Some((source, event)) = order.next(merged.merger()).map_err(failed)? {
            let outcome = merged.event(source, &event).and_then(|()| merged.drain_to(BUFFER, out));
            outcome.map_err(|error| cannot_write(&error, out))?;
        }
        let outcome = merged.finish(order.events().map(Events::threads), out);
        outcome.map_err(|error| cannot_write(&error, out))?;
        out.flush().map_err(|error| out.failed(&error))
    }
}
