//! The events of many recordings as one.

use std::io::Write;

use nettrace::{Event, Events, Source, Thread, TraceInfo};
use nettrace_writer::{Merger, MergerOptions};

use crate::error::Error;
use crate::mapping_ids::MappingIds;
use crate::range::RecordedRange;

/// The pending bytes above which they are written.
const PART: usize = 256 * 1024;

/// A recording of the events of many, whose mapped files keep numbers of their own.
///
/// ```
/// # use nettrace::{Ticks, TraceInfo};
/// # use nettrace_writer::{EventKind, EventWriter};
/// # let recording = |start_ms: u64, time: u64| -> Result<Vec<u8>, nettrace_writer::Error> {
/// #     let info = TraceInfo::new_v6(start_ms, Ticks(time), vec![("ProcessId".into(), "7".into())]);
/// #     let mut source = EventWriter::new(&info)?;
/// #     let tick = source.define(&EventKind::new("Demo", 1, "Tick", &[]))?;
/// #     let thread = source.thread(7, 8, Some("main"))?;
/// #     source.event(tick, Ticks(time), thread, None, &[], &[])?;
/// #     source.finish()?;
/// #     Ok(source.bytes().to_vec())
/// # };
/// # let (first, second) = (recording(1_795_251_731_000, 0)?, recording(1_795_251_732_000, 1_000_000_000)?);
/// use nettrace::SliceReader;
/// use nettrace_edit::MergedRecording;
/// use nettrace_writer::MergerOptions;
///
/// // Two recordings that follow one another.
/// let infos = [&first, &second].map(|bytes| SliceReader::new(bytes).map(|events| events.info().cloned()));
/// let infos: Vec<_> = infos.into_iter().collect::<Result<Option<_>, _>>()?.ok_or("without a header")?;
/// let mut merged = MergedRecording::new(&infos, MergerOptions::default().with_same_processes(true))?;
/// let mut out = Vec::new();
/// let mut threads = Vec::new();
/// for (source, bytes) in [&first, &second].into_iter().enumerate() {
///     let mut events = SliceReader::new(bytes)?;
///     merged.append(source, &mut events, &mut out)?;
///     threads.push(events.threads().to_vec());
/// }
/// merged.finish(threads.iter().map(Vec::as_slice), &mut out)?;
/// let mut times = Vec::new();
/// SliceReader::new(&out)?.for_each(|event| times.push(event.time().0))?;
/// assert_eq!(times, [0, 1_000_000_000]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MergedRecording {
    merger: Merger,
    mapping_ids: MappingIds,
}

impl MergedRecording {
    /// Begins the recording of these.
    ///
    /// # Errors
    /// As [`Merger::new`].
    pub fn new(infos: &[TraceInfo], options: MergerOptions) -> Result<Self, nettrace_writer::Error> {
        Ok(Self { merger: Merger::new(infos, options)?, mapping_ids: MappingIds::new(infos.len()) })
    }

    /// The encoder of the events.
    pub const fn merger(&self) -> &Merger {
        &self.merger
    }

    /// Writes an event of a recording, unless it states the range of a part: the new recording is not one.
    ///
    /// # Errors
    /// As [`Merger::event`].
    pub fn event(&mut self, source: usize, event: &Event<'_>) -> Result<(), nettrace_writer::Error> {
        if RecordedRange::of(event).is_some() {
            return Ok(());
        }
        let part_of = self.merger.part_of(source);
        let payload = self.mapping_ids.payload(source, part_of, event);
        self.merger.event_with(source, event, payload)
    }

    /// Writes the events of a recording that follows the ones before it.
    ///
    /// # Errors
    /// If the recording cannot be read, and as [`Merger::event`].
    pub fn append<S: Source>(
        &mut self,
        source: usize,
        events: &mut Events<S>,
        out: &mut impl Write,
    ) -> Result<(), Error> {
        while let Some(event) = events.next()? {
            self.event(source, &event)?;
            self.drain_to(PART, out)?;
        }
        Ok(())
    }

    /// Writes the pending bytes to `out`, if there are more than `most`.
    ///
    /// # Errors
    /// As [`Merger::drain_to`].
    pub fn drain_to(&mut self, most: usize, out: &mut impl Write) -> Result<(), nettrace_writer::Error> {
        self.merger.drain_to(most, out)
    }

    /// Ends the recording: see [`Merger::finish`].
    ///
    /// # Errors
    /// As [`Merger::finish`].
    pub fn finish<'t>(
        &mut self,
        threads: impl IntoIterator<Item = &'t [Thread]>,
        out: &mut impl Write,
    ) -> Result<(), nettrace_writer::Error> {
        self.merger.finish(threads)?;
        self.drain_to(0, out)
    }
}
