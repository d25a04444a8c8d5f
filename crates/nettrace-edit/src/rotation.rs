//! Streams that are written as consecutive recordings, each of them whole and with names.

use std::io::Write;

use nettrace::{MetadataMap, Record, RelativeTime, Thread, TraceInfo};
use nettrace_writer::{Transcoder, Version};

use crate::error::Error;
use crate::names_store::NamesStore;
use crate::range::RecordedRange;
use crate::segment::{Segment, SegmentStorage, SegmentWriter};
use crate::slice::names_others;
use crate::snapshot::{Content, RecordingSummary, append_list};

/// The pending bytes above which they are written.
const PART: usize = 256 << 10;

/// A writer of a stream as consecutive parts of a size, each a recording of its own that begins with the
/// names of code, types and threads from the parts before it.
///
/// The caller [begins](Self::begin) a part, [adds](Self::add) records to it until it
/// [is full](Self::is_full), and [ends](Self::end) it. Between the end of a part and the beginning of the
/// next one no record may be left out.
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
/// use nettrace_edit::Rotation;
///
/// let (mut rotation, mut files) = (Rotation::new(100, &info), vec![Vec::new()]);
/// let mut events = nettrace::SliceReader::new(&recording)?;
/// rotation.begin(events.threads(), &mut files[0])?;
/// while let Some(record) = events.next_record()? {
///     rotation.add(&record, files.last_mut().ok_or("a file")?)?;
/// }
/// rotation.end(events.threads(), None, files.last_mut().ok_or("a file")?)?;
/// assert!(files[0].starts_with(b"Nettrace"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Rotation {
    size: u64,
    info: TraceInfo,
    version: Version,
    /// The names of the parts before the current one.
    store: NamesStore,
    /// True for kinds of events that name others.
    naming: MetadataMap<bool>,
    part: Option<Part>,
    before: Option<PartBefore>,
    /// The time of the last event of the parts before the current one.
    covered: RelativeTime,
}

/// The part that is being written.
#[derive(Debug)]
struct Part {
    transcoder: Transcoder,
    /// The bytes of the names carried over from earlier parts, which do not count toward the size.
    carried: u64,
    /// A second copy of its events that name others.
    names: Option<SegmentWriter>,
    content: Content,
}

/// A part that has ended.
#[derive(Debug)]
struct PartBefore {
    /// A transcoder at its end in the stream.
    end: Transcoder,
    names: Option<SegmentWriter>,
}

impl Rotation {
    /// Creates the writer of a stream with this header, as parts of about `size` bytes.
    pub fn new(size: u64, info: &TraceInfo) -> Self {
        Self {
            size,
            info: info.clone(),
            version: Version::of(info),
            store: NamesStore::default(),
            naming: MetadataMap::default(),
            part: None,
            before: None,
            covered: RelativeTime::MIN,
        }
    }

    /// The approximate size of the next part in bytes, names from earlier ones included.
    pub fn expected_bytes(&self) -> u64 {
        let before = self.before.as_ref().and_then(|before| before.names.as_ref());
        let names = before.map_or(0, SegmentWriter::bytes);
        self.size.saturating_add(self.store.bytes()).saturating_add(names)
    }

    /// The bytes of the current part so far.
    pub fn bytes(&self) -> u64 {
        self.part.as_ref().map_or(0, |part| part.transcoder.offset())
    }

    /// Returns true if the current part has an event, and its own content has reached the size.
    pub fn is_full(&self) -> bool {
        self.part.as_ref().is_some_and(|part| {
            part.content.events > 0 && part.transcoder.offset().saturating_sub(part.carried) >= self.size
        })
    }

    /// Begins a part with the names from the earlier ones. `threads` are the threads of the stream's reader,
    /// which must be out of records.
    ///
    /// # Errors
    /// If `output` cannot be written.
    pub fn begin(&mut self, threads: &[Thread], output: &mut impl Write) -> Result<(), Error> {
        let before = self.before.take();
        let before = match before {
            Some(PartBefore { end, names }) => {
                if let Some(mut names) = names {
                    self.store.add(&self.info, &names.segment()?)?;
                }
                Some(end)
            }
            None => None,
        };
        let mut transcoder = Transcoder::new(self.version, &self.info)?;
        if let Some(names) = self.store.segment()? {
            let mut events = names.read()?;
            while let Some(record) = events.next_record()? {
                transcoder.write(&record)?;
                transcoder.drain_to(PART, output)?;
            }
            transcoder.continue_with(&self.info, events.threads())?;
        }
        if let Some(before) = before {
            transcoder.resume_after(&before, threads);
        }
        transcoder.flush()?;
        transcoder.drain_to(0, output)?;
        let carried = transcoder.offset();
        self.part = Some(Part { transcoder, carried, names: None, content: Content::default() });
        Ok(())
    }

    /// Adds a record to the current part. Without one, it is left out.
    ///
    /// # Errors
    /// If a record is larger than the format allows, or `output` cannot be written.
    pub fn add(&mut self, record: &Record<'_>, output: &mut impl Write) -> Result<(), Error> {
        let Some(part) = &mut self.part else { return Ok(()) };
        part.content.add(record);
        if let Record::Event(event) = record
            && self.naming.get_or_insert_with(event.metadata_index(), || names_others(event.metadata()))
        {
            SegmentWriter::get_or_new(&mut part.names, &self.info, &SegmentStorage::Memory)?
                .add_name(event)?;
        }
        part.transcoder.write(record)?;
        Ok(part.transcoder.drain_to(PART, output)?)
    }

    /// Ends the current part, with a list of methods if the stream has not contained it; `None` without a
    /// current part. `threads` are the threads of the stream's reader, which must be out of records: any that
    /// it has read and not returned would count as lost.
    ///
    /// # Errors
    /// If `output` cannot be written.
    pub fn end(
        &mut self,
        threads: &[Thread],
        list: Option<&Segment>,
        output: &mut impl Write,
    ) -> Result<Option<RecordingSummary>, Error> {
        let Some(Part { mut transcoder, names, content, .. }) = self.part.take() else { return Ok(None) };
        // A transcoder loses its position when it is finished.
        let mut end = Transcoder::new(self.version, &self.info)?;
        end.resume_after(&transcoder, threads);
        self.before = Some(PartBefore { end, names });
        let listed = match list {
            Some(list) => Some(append_list(&mut transcoder, list, threads, output)?),
            None => None,
        };
        let threads = listed.as_deref().unwrap_or(threads);
        match content.range {
            Some((first, newest)) => {
                // Events of other threads may be older than the last event of the previous part.
                let range = RecordedRange { from: self.covered.min(first), ..RecordedRange::up_to(newest) };
                range.finish(&mut transcoder, threads)?;
                self.covered = self.covered.max(newest);
            }
            None => transcoder.finish(threads)?,
        }
        transcoder.drain_to(0, output)?;
        Ok(Some(content.written(transcoder.offset())))
    }
}
