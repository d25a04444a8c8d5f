//! The events that name code, types and threads, kept from everything that the ring has dropped.

use nettrace::{Thread, TraceInfo};

use crate::error::Error;
use crate::segment::{Segment, SegmentStorage, SegmentWriter};

/// Maximum number of bytes of names to keep: enough for the methods of 250,000 compilations.
const MAX_BYTES: u64 = 64 << 20;

/// A store of naming events, with their times.
#[derive(Debug, Default)]
pub(crate) struct NamesStore {
    writer: Option<SegmentWriter>,
    /// The threads of the last part added.
    threads: Vec<Thread>,
    /// The number of events that did not fit.
    left_out: u64,
}

impl NamesStore {
    /// Adds the names of a dropped part of the ring.
    pub(crate) fn add(&mut self, info: &TraceInfo, part: &Segment) -> Result<(), Error> {
        let mut events = part.read()?;
        if self.bytes().saturating_add(part.bytes()) > MAX_BYTES {
            events.for_each(|_| self.left_out = self.left_out.saturating_add(1))?;
            return Ok(());
        }
        let is_first = self.writer.is_none();
        let writer = SegmentWriter::get_or_new(&mut self.writer, info, &SegmentStorage::Memory)?;
        if !is_first {
            writer.transcoder.continue_with(info, &self.threads)?;
        }
        while let Some(record) = events.next_record()? {
            writer.transcoder.write(&record)?;
            writer.collect()?;
        }
        self.threads = events.threads().to_vec();
        Ok(())
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.writer.as_ref().map_or(0, SegmentWriter::bytes)
    }

    pub(crate) const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns all names.
    pub(crate) fn segment(&mut self) -> Result<Option<Segment>, Error> {
        self.writer.as_mut().map(SegmentWriter::segment).transpose()
    }
}
