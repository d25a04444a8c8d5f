//! Copies of recordings.

use std::io::{Read, Write};
use std::ops::ControlFlow;

use nettrace::{Event, Events, Format, MetadataMap, Reader, Record, RelativeTime, Source, Thread, TraceInfo};
use nettrace_writer::{Omissions, REQUESTED_EVENTS, Transcoder, Version};

use crate::error::Error;
use crate::range::RecordedRange;
use crate::record_selector::{EventDecision, RecordSelector};

/// The pending bytes above which a copy writes them.
const PART: usize = 256 * 1024;

/// A recording that is copied.
///
/// The functions that copy take a function which writes the [pending bytes](Transcoder::bytes) of the new
/// recording; [`write_to`] returns a function that writes them to a [`Write`].
///
/// ```
/// # use nettrace::{Ticks, TraceInfo};
/// # use nettrace_writer::{EventKind, EventWriter, FieldKind};
/// # let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), vec![("ProcessId".into(), "7".into())]);
/// # let mut source = EventWriter::new(&info)?;
/// # let tick = source.define(&EventKind::new("Demo", 1, "Tick", &[("Path", FieldKind::Text)]))?;
/// # let thread = source.thread(7, 8, Some("main"))?;
/// # for second in 0..10 {
/// #     source.event(tick, Ticks(second * 1_000_000_000), thread, None, &[], &[2, 0, b'h', b'i'])?;
/// # }
/// # source.finish()?;
/// # let recording = source.bytes().to_vec();
/// use nettrace_edit::{Copier, Criteria, EventMatch, Slice, write_to};
/// use nettrace_writer::Version;
///
/// let mut output = Vec::new();
/// let mut write = write_to(&mut output);
/// let copier = Copier::new(nettrace::SliceReader::new(&recording)?, None)?;
/// assert_eq!(copier.version(), Version::V6);
/// let events = vec![EventMatch::new("Tick")];
/// let mut slice = Slice::new(Criteria::default().with_events(events));
/// let (copied, _) = copier.copy(&mut slice, &mut write)?.finish(&mut write)?;
/// assert_eq!(copied.kept, 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Copier<S> {
    events: Events<S>,
    info: TraceInfo,
    transcoder: Transcoder,
    read: u64,
    kept: u64,
    appended: u64,
    range: Ranges,
}

/// The time range of a copy.
#[derive(Debug, Default)]
struct Ranges {
    /// True for kinds of events that state the range of the recording.
    kinds: MetadataMap<bool>,
    /// The range that the recording states.
    stated: Option<RecordedRange>,
    /// The range to which the copy is limited.
    requested: Option<RecordedRange>,
    /// The time of the last event, for a requested range.
    last: Option<RelativeTime>,
}

impl Ranges {
    /// Looks at an event. Returns whether it states the range of the recording: it is not copied, and the
    /// copy states its own.
    #[inline]
    fn add(&mut self, event: &Event<'_>) -> bool {
        let is_stated = || RecordedRange::of(event).is_some();
        if !self.kinds.get_or_insert_with(event.metadata_index(), is_stated) {
            if self.requested.is_some() {
                self.last = self.last.max(Some(event.relative_time()));
            }
            return false;
        }
        self.stated = RecordedRange::of(event).or(self.stated);
        true
    }

    /// Returns the range that a copy of `events` states; `None` if it is not a part.
    fn of_copy<S: Source>(&self, events: &Events<S>) -> Option<RecordedRange> {
        let Some(requested) = self.requested else { return self.stated };
        let skipped = events.info().zip(events.skipped_times());
        let skipped = skipped.map(|(info, (_, last))| info.relative_time(last));
        let recorded = self.last.max(skipped).map_or(RecordedRange::ALL, RecordedRange::up_to);
        Some(requested.intersection(self.stated.unwrap_or(recorded)))
    }
}

/// The result of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopySummary {
    /// The number of events read. An event that states the range of the recording does not count: the copy
    /// states its own.
    pub read: u64,
    /// The number of events in the copy.
    pub kept: u64,
    /// The number of events in the copy: those kept, those [appended](Copier::append), and the event that
    /// states the range of a part.
    pub written: u64,
    /// The size of the new recording in bytes.
    pub bytes: u64,
    /// The content that the new version cannot represent.
    pub omissions: Omissions,
}

/// Writes the chosen records of a recording to `output`.
///
/// ```
/// # use nettrace::{Ticks, TraceInfo};
/// # use nettrace_writer::{EventKind, EventWriter, FieldKind};
/// # let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), vec![("ProcessId".into(), "7".into())]);
/// # let mut source = EventWriter::new(&info)?;
/// # let tick = source.define(&EventKind::new("Demo", 1, "Tick", &[("Path", FieldKind::Text)]))?;
/// # let thread = source.thread(7, 8, Some("main"))?;
/// # for second in 0..10 {
/// #     source.event(tick, Ticks(second * 1_000_000_000), thread, None, &[], &[2, 0, b'h', b'i'])?;
/// # }
/// # source.finish()?;
/// # let recording = source.bytes().to_vec();
/// use nettrace_edit::KeepAll;
///
/// let mut copy = Vec::new();
/// let copied = nettrace_edit::copy(&recording[..], &mut copy, &mut KeepAll)?;
/// assert_eq!((copied.kept, copied.bytes), (10, copy.len() as u64));
/// assert!(copied.omissions.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the input cannot be read as a recording, or the output not be written. Damage in the recording is not
/// an error: the copy has the records outside it, and the damaged part counts as lost.
pub fn copy(
    input: impl Read,
    output: &mut impl Write,
    chooser: &mut impl RecordSelector,
) -> Result<CopySummary, Error> {
    let mut write = write_to(output);
    let copier = Copier::new(Reader::new(input)?, None)?;
    Ok(copier.copy(chooser, &mut write)?.finish(&mut write)?.0)
}

/// Returns a function that writes the pending bytes of a new recording to `output`.
pub fn write_to<W: Write>(output: &mut W) -> impl FnMut(&mut Transcoder) -> Result<(), Error> + use<'_, W> {
    |transcoder| transcoder.drain_to(0, output).map_err(Error::Write)
}

/// Appends the chosen events of a recording to another recording of the same process, in which `threads` have
/// ended. Returns their number, and the error that ended the reading early.
pub(crate) fn append_events<R: Source, E: From<Error>>(
    transcoder: &mut Transcoder,
    threads: &[Thread],
    added: &mut Events<R>,
    mut is_wanted: impl FnMut(&Event<'_>) -> bool,
    mut write: impl FnMut(&mut Transcoder) -> Result<(), E>,
) -> Result<(u64, Option<nettrace::Error>), E> {
    let Some(info) = added.info().cloned() else { return Ok((0, None)) };
    transcoder.next_source(&info, threads).map_err(Error::from)?;
    let mut count = 0_u64;
    let unreadable = loop {
        let event = match added.next() {
            Ok(Some(event)) => event,
            Ok(None) => break None,
            Err(error) => break Some(error),
        };
        if is_wanted(&event) {
            count = count.saturating_add(1);
            transcoder.event_at_end(&event).map_err(Error::from)?;
            if transcoder.bytes().len() > PART {
                write(transcoder)?;
            }
        }
    };
    transcoder.sequence_point(added.threads()).map_err(Error::from)?;
    Ok((count, unreadable))
}

impl<S: Source> Copier<S> {
    /// Begins a copy of a recording's remaining events. The version defaults to the recording's own, at least
    /// V4.
    ///
    /// # Errors
    /// [`Error::NoHeader`], or [`Error::OlderVersion`].
    pub fn new(events: Events<S>, version: Option<Version>) -> Result<Self, Error> {
        let mut info = events.info().cloned().ok_or(Error::NoHeader)?;
        info.key_values.retain(|(key, _)| key != REQUESTED_EVENTS);
        let version = version_of(&info, version)?;
        let transcoder = Transcoder::new(version, &info)?;
        Ok(Self { events, info, transcoder, read: 0, kept: 0, appended: 0, range: Ranges::default() })
    }

    /// The version that is written.
    pub const fn version(&self) -> Version {
        self.transcoder.version()
    }

    /// The reader of the recording.
    pub const fn events(&self) -> &Events<S> {
        &self.events
    }

    /// The number of events read so far.
    pub const fn read(&self) -> u64 {
        self.read
    }

    /// The number of events in the copy so far.
    pub const fn kept(&self) -> u64 {
        self.kept
    }

    /// Copies the records that are chosen.
    ///
    /// # Errors
    /// If reading or encoding failed, and errors of `write`.
    pub fn copy<E: From<Error>>(
        mut self,
        chooser: &mut impl RecordSelector,
        mut write: impl FnMut(&mut Transcoder) -> Result<(), E>,
    ) -> Result<Self, E> {
        if self.info.format == Format::Netperf {
            return self.copy_in_time_order(chooser, write);
        }
        let Self { events, info, transcoder, read, kept, range, .. } = &mut self;
        range.requested = chooser.range();
        if chooser.skip_blocks(events) {
            transcoder.take_losses_from_reader();
        }
        let keeps_all = chooser.keeps_all();
        let mut failed = None;
        let mut write = |transcoder: &mut Transcoder| match write(transcoder) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        };
        let write = &mut write;
        let mut copy =
            RecordCopy { info, transcoder, read, kept, range, chooser, keeps_all, write, error: None };
        let copied = copy.read_from(&mut |each| events.try_for_each_record(each));
        let not_encoded = copy.error;
        if let Some(error) = failed {
            return Err(error);
        }
        if let Some(error) = not_encoded {
            return Err(Error::from(error).into());
        }
        let _ = copied.map_err(Error::from)?;
        Ok(self)
    }

    /// Copies a recording without sequence points, and inserts them.
    fn copy_in_time_order<E: From<Error>>(
        self,
        chooser: &mut impl RecordSelector,
        mut write: impl FnMut(&mut Transcoder) -> Result<(), E>,
    ) -> Result<Self, E> {
        let Self { events, info, mut transcoder, mut read, mut kept, appended, mut range } = self;
        range.requested = chooser.range();
        let mut events = events.in_time_order();
        while let Some(event) = events.next().map_err(Error::from)? {
            if range.add(&event) {
                continue;
            }
            read = read.saturating_add(1);
            let choice = chooser.event(&event);
            kept = kept.saturating_add(choice.is_written().into());
            write_event(&mut transcoder, &event, choice, chooser).map_err(Error::from)?;
            if transcoder.bytes().len() > PART {
                write(&mut transcoder)?;
            }
            if transcoder.is_large_since_point() {
                let threads = events.events().threads();
                transcoder.sequence_point(threads).map_err(Error::from)?;
            }
        }
        Ok(Self { events: events.into_events(), info, transcoder, read, kept, appended, range })
    }

    /// Appends the events of another recording of the same process that `is_wanted` chooses. Returns their
    /// number. `added` is then at its end.
    ///
    /// ```
    /// # use nettrace::{Ticks, TraceInfo};
    /// # use nettrace_writer::{EventKind, EventWriter, FieldKind};
    /// # let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), vec![("ProcessId".into(), "7".into())]);
    /// # let mut source = EventWriter::new(&info)?;
    /// # let tick = source.define(&EventKind::new("Demo", 1, "Tick", &[("Path", FieldKind::Text)]))?;
    /// # let thread = source.thread(7, 8, Some("main"))?;
    /// # for second in 0..10 {
    /// #     source.event(tick, Ticks(second * 1_000_000_000), thread, None, &[], &[2, 0, b'h', b'i'])?;
    /// # }
    /// # source.finish()?;
    /// # let recording = source.bytes().to_vec();
    /// use nettrace::SliceReader;
    /// use nettrace_edit::{Copier, KeepAll, write_to};
    ///
    /// let mut output = Vec::new();
    /// let mut write = write_to(&mut output);
    /// let copier = Copier::new(SliceReader::new(&recording)?, None)?;
    /// let mut copier = copier.copy(&mut KeepAll, &mut write)?;
    /// // The list of methods that another session has recorded, for example; here the first second.
    /// let mut other = SliceReader::new(&recording)?;
    /// let appended = copier.append(&mut other, |event| event.time().0 < 1_000_000_000, &mut write)?;
    /// let (copied, _) = copier.finish(&mut write)?;
    /// assert_eq!((appended, copied.written), (1, 11));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn append<R: Source, E: From<Error>>(
        &mut self,
        added: &mut Events<R>,
        is_wanted: impl FnMut(&Event<'_>) -> bool,
        write: impl FnMut(&mut Transcoder) -> Result<(), E>,
    ) -> Result<u64, E> {
        let Self { transcoder, events, appended, .. } = self;
        let (count, unreadable) = append_events(transcoder, events.threads(), added, is_wanted, write)?;
        *appended = appended.saturating_add(count);
        unreadable.map_or(Ok(count), |error| Err(Error::from(error).into()))
    }

    /// Completes the new recording. Returns the reader of the copied one at its end.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn finish<E: From<Error>>(
        self,
        mut write: impl FnMut(&mut Transcoder) -> Result<(), E>,
    ) -> Result<(CopySummary, Events<S>), E> {
        let Self { events, mut transcoder, read, kept, appended, range, .. } = self;
        let range = range.of_copy(&events);
        match range {
            Some(range) => range.finish(&mut transcoder, events.threads())?,
            None => transcoder.finish(events.threads()).map_err(Error::from)?,
        }
        if !transcoder.bytes().is_empty() {
            write(&mut transcoder)?;
        }
        let (bytes, omissions) = (transcoder.offset(), *transcoder.omissions());
        let written = kept.saturating_add(appended).saturating_add(range.is_some().into());
        Ok((CopySummary { read, kept, written, bytes, omissions }, events))
    }
}

/// A function that passes the records of a recording to another one until that breaks.
type RecordReader<'r> = dyn FnMut(&mut dyn FnMut(&Record<'_>) -> ControlFlow<()>) -> Result<ControlFlow<()>, nettrace::Error>
    + 'r;

/// The loop of a copy. Not generic: it is compiled in this crate, as it is optimized.
struct RecordCopy<'c> {
    info: &'c TraceInfo,
    transcoder: &'c mut Transcoder,
    read: &'c mut u64,
    kept: &'c mut u64,
    range: &'c mut Ranges,
    chooser: &'c mut dyn RecordSelector,
    keeps_all: bool,
    /// Writes the pending bytes.
    write: &'c mut dyn FnMut(&mut Transcoder) -> ControlFlow<()>,
    /// The error that ended the copy.
    error: Option<nettrace_writer::Error>,
}

impl RecordCopy<'_> {
    fn read_from(&mut self, records: &mut RecordReader<'_>) -> Result<ControlFlow<()>, nettrace::Error> {
        records(&mut |record| self.add(record))
    }

    fn add(&mut self, record: &Record<'_>) -> ControlFlow<()> {
        if let Err(error) = self.encode(record) {
            self.error = Some(error);
            return ControlFlow::Break(());
        }
        if self.transcoder.bytes().len() > PART {
            return (self.write)(self.transcoder);
        }
        ControlFlow::Continue(())
    }

    fn encode(&mut self, record: &Record<'_>) -> Result<(), nettrace_writer::Error> {
        match record {
            Record::Event(event) if self.range.add(event) => {
                self.transcoder.remove(event);
                Ok(())
            }
            Record::Event(event) if self.keeps_all => {
                *self.read = self.read.saturating_add(1);
                *self.kept = self.kept.saturating_add(1);
                self.transcoder.event(event)
            }
            Record::Event(event) => {
                *self.read = self.read.saturating_add(1);
                let choice = self.chooser.event(event);
                *self.kept = self.kept.saturating_add(choice.is_written().into());
                write_event(self.transcoder, event, choice, self.chooser)
            }
            Record::SequencePoint(point) if !self.chooser.keeps_point(point, self.info) => {
                self.transcoder.skip(record)
            }
            _ => self.transcoder.write(record),
        }
    }
}

fn write_event(
    transcoder: &mut Transcoder,
    event: &Event<'_>,
    choice: EventDecision,
    chooser: &mut dyn RecordSelector,
) -> Result<(), nettrace_writer::Error> {
    let with_stack = chooser.keeps_stacks();
    match choice {
        EventDecision::Keep => transcoder.event_with(event, chooser.payload(event), with_stack),
        EventDecision::KeepBeyond => {
            transcoder.skip_losses_before(event);
            transcoder.event_with(event, chooser.payload(event), with_stack)
        }
        EventDecision::Remove => {
            transcoder.remove(event);
            Ok(())
        }
        EventDecision::Skip => transcoder.skip(&Record::Event(*event)),
    }
}

/// Returns the version to write. Versions older than the recording's cannot represent its content.
fn version_of(info: &TraceInfo, wanted: Option<Version>) -> Result<Version, Error> {
    let own = Version::of(info);
    match wanted {
        Some(Version::V4) if own == Version::V6 => Err(Error::OlderVersion),
        Some(wanted) => Ok(wanted),
        None => Ok(own),
    }
}
