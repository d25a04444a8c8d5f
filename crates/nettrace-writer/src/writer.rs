//! Writing to a [`std::io::Write`].

use std::io::Write;

use nettrace::{Event, Record, Thread, TraceInfo};

use crate::error::Error;
use crate::omissions::Omissions;
use crate::transcoder::Transcoder;
use crate::version::Version;

/// The number of bytes to collect before a write.
const BUFFER: usize = 256 * 1024;

/// A [`Transcoder`] that writes to a [`Write`].
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
/// use nettrace_writer::{Version, Writer};
///
/// let mut events = SliceReader::new(&recording)?;
/// // A file, or any other `Write`.
/// let mut writer = Writer::new(Version::V6, &info, Vec::new())?;
/// while let Some(record) = events.next_record()? {
///     writer.write(&record)?;
/// }
/// let (copy, omissions) = writer.finish(events.threads())?;
/// assert!(copy.starts_with(b"Nettrace") && omissions.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    transcoder: Transcoder,
    out: W,
}

impl<W: Write> Writer<W> {
    /// Begins a recording like the recording with this header.
    ///
    /// # Errors
    /// As [`Transcoder::new`].
    pub fn new(version: Version, info: &TraceInfo, out: W) -> Result<Self, Error> {
        Ok(Self { transcoder: Transcoder::new(version, info)?, out })
    }

    /// Writes a record: see [`Transcoder::write`].
    ///
    /// # Errors
    /// As [`Transcoder::write`], and if writing failed.
    #[inline]
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        self.transcoder.write(record)?;
        self.transcoder.drain_to(BUFFER, &mut self.out)
    }

    /// Leaves a record out because of its time: see [`Transcoder::skip`].
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn skip(&mut self, record: &Record<'_>) -> Result<(), Error> {
        self.transcoder.skip(record)?;
        self.transcoder.drain_to(BUFFER, &mut self.out)
    }

    /// Leaves out the losses before an event that is written although its time is skipped: see
    /// [`Transcoder::skip_losses_before`].
    pub fn skip_losses_before(&mut self, event: &Event<'_>) {
        self.transcoder.skip_losses_before(event);
    }

    /// Leaves out an unwanted event: see [`Transcoder::remove`].
    pub fn remove(&mut self, event: &Event<'_>) {
        self.transcoder.remove(event);
    }

    /// Writes an event with another payload or without its stack: see [`Transcoder::event_with`].
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
    /// use nettrace::{Record, SliceReader};
    /// use nettrace_writer::{Version, Writer};
    ///
    /// let mut events = SliceReader::new(&recording)?;
    /// let mut writer = Writer::new(Version::V6, &info, Vec::new())?;
    /// while let Some(record) = events.next_record()? {
    ///     match &record {
    ///         // Another text of the same length, without the stack.
    ///         Record::Event(event) => writer.event_with(event, &[2, 0, b'x', b'x'], false)?,
    ///         _ => writer.write(&record)?,
    ///     }
    /// }
    /// let (copy, _) = writer.finish(events.threads())?;
    /// let mut events = SliceReader::new(&copy)?;
    /// assert_eq!(events.next()?.map(|event| event.payload().to_vec()), Some(vec![2, 0, b'x', b'x']));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn event_with(&mut self, event: &Event<'_>, payload: &[u8], with_stack: bool) -> Result<(), Error> {
        self.transcoder.event_with(event, payload, with_stack)?;
        self.transcoder.drain_to(BUFFER, &mut self.out)
    }

    /// Writes a sequence point: see [`Transcoder::sequence_point`].
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn sequence_point(&mut self, threads: &[Thread]) -> Result<(), Error> {
        self.transcoder.sequence_point(threads)?;
        self.transcoder.drain_to(BUFFER, &mut self.out)
    }

    /// Ends the recording: see [`Transcoder::finish`]. Returns the flushed output, and counts of the things
    /// that the version cannot express.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn finish(mut self, threads: &[Thread]) -> Result<(W, Omissions), Error> {
        self.transcoder.finish(threads)?;
        self.transcoder.drain_to(0, &mut self.out)?;
        self.out.flush().map_err(|error| Error::Io { offset: self.transcoder.offset(), error })?;
        Ok((self.out, *self.transcoder.omissions()))
    }

    /// The transcoder.
    pub const fn transcoder(&self) -> &Transcoder {
        &self.transcoder
    }
}
