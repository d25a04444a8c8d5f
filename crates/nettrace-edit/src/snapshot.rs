//! Snapshots: whole recordings made from the content of a ring and the runtime's list of methods.

use std::io::Write;

use nettrace::{Record, RelativeTime, Thread, TraceInfo};
use nettrace_writer::{Transcoder, Version};

use crate::copy::{append_events, write_to};
use crate::error::Error;
use crate::range::RecordedRange;
use crate::segment::Segment;

/// The bytes written at once.
const PART: usize = 1 << 20;

/// The content of a ring at one time.
#[derive(Debug)]
pub struct Snapshot {
    pub(crate) info: TraceInfo,
    pub(crate) names: Option<Segment>,
    pub(crate) generations: Vec<Segment>,
    pub(crate) names_left_out: u64,
    pub(crate) is_cut_short: bool,
    /// True if the ring has dropped events.
    pub(crate) is_part: bool,
}

/// A recording that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordingSummary {
    /// The size of the snapshot in bytes.
    pub bytes: u64,
    /// The number of events, without events that only name others.
    pub events: u64,
    /// The times of the oldest and the newest of them.
    pub range: Option<(RelativeTime, RelativeTime)>,
}

impl Snapshot {
    /// The approximate maximum size of its recording in bytes, without a list.
    pub fn expected_bytes(&self) -> u64 {
        self.names.iter().chain(&self.generations).map(Segment::bytes).fold(0, u64::saturating_add)
    }

    /// The number of events with names that did not fit into the ring.
    pub const fn names_left_out(&self) -> u64 {
        self.names_left_out
    }

    /// Returns true if it covers less than the requested time, because of the limit on bytes.
    pub const fn is_cut_short(&self) -> bool {
        self.is_cut_short
    }

    /// Writes the recording: the names of dropped events, the kept events, and at the end, as in recordings
    /// of runtimes, a list of methods, if one was received otherwise.
    ///
    /// # Errors
    /// If the ring's files cannot be read, or `output` not be written.
    pub fn write(&self, list: Option<&Segment>, output: &mut impl Write) -> Result<RecordingSummary, Error> {
        let mut out = Transcoder::new(Version::of(&self.info), &self.info)?;
        let mut threads: Option<Vec<Thread>> = None;
        let mut content = Content::default();
        let parts =
            self.names.iter().map(|it| (it, false)).chain(self.generations.iter().map(|it| (it, true)));
        for (part, is_ring) in parts {
            let mut events = part.read()?;
            if let Some(threads) = &threads {
                out.continue_with(&self.info, threads)?;
            }
            while let Some(record) = events.next_record()? {
                if is_ring {
                    content.add(&record);
                }
                out.write(&record)?;
                out.drain_to(PART, output)?;
            }
            threads = Some(events.threads().to_vec());
        }
        let mut threads = threads.unwrap_or_default();
        if let Some(list) = list {
            threads = append_list(&mut out, list, &threads, output)?;
        }
        match content.range.filter(|_| self.is_part) {
            Some((from, newest)) => {
                RecordedRange { from, ..RecordedRange::up_to(newest) }.finish(&mut out, &threads)?;
            }
            None => out.finish(&threads)?,
        }
        out.drain_to(0, output)?;
        Ok(content.written(out.offset()))
    }
}

/// The events of a recording that is being written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Content {
    pub(crate) events: u64,
    pub(crate) range: Option<(RelativeTime, RelativeTime)>,
}

impl Content {
    pub(crate) fn add(&mut self, record: &Record<'_>) {
        let Record::Event(event) = record else { return };
        self.events = self.events.saturating_add(1);
        let time = event.relative_time();
        let (first, last) = self.range.unwrap_or((time, time));
        self.range = Some((first.min(time), last.max(time)));
    }

    pub(crate) const fn written(&self, bytes: u64) -> RecordingSummary {
        RecordingSummary { bytes, events: self.events, range: self.range }
    }
}

/// Adds the runtime's list of methods at the end, as far as it can be read. Returns the threads of its
/// reader.
pub(crate) fn append_list(
    out: &mut Transcoder,
    list: &Segment,
    threads: &[Thread],
    output: &mut impl Write,
) -> Result<Vec<Thread>, Error> {
    let Ok(mut events) = list.read() else { return Ok(threads.to_vec()) };
    if events.info().is_none() {
        return Ok(threads.to_vec());
    }
    // The list may be cut.
    let _ = append_events(out, threads, &mut events, |_| true, write_to(output))?;
    Ok(events.threads().to_vec())
}
