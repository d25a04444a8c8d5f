//! From the records of a reader to the bytes of a new recording.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use hashbrown::HashMap;
use nettrace::{Event, Format, MetadataMap, PassedPoint, Record, Thread, ThreadId, Ticks, TraceInfo, Uuid};

use crate::encoder::Encoder;
use crate::error::Error;
use crate::event_block::RowHeader;
use crate::event_kind::EventKind;
use crate::labels;
use crate::metadata::{self, Properties};
use crate::omissions::Omissions;
use crate::thread_state::ThreadState;
use crate::version::{Version, is_v6};

/// Turns the records of one reader into a new recording, in memory.
///
/// Each record of [`nettrace::Events::next_record`] is passed once, in order: written, removed, or skipped.
/// The bytes of the new recording collect in [`bytes`](Self::bytes), where the caller takes them. If the
/// source has no sequence points (netperf), events may also be passed in time order: then
/// [`sequence_point`](Self::sequence_point) writes them.
///
/// Memory: a block of events, and the stacks and label lists between two sequence points.
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
/// use nettrace_writer::{Transcoder, Version};
///
/// let mut events = SliceReader::new(&recording)?;
/// let mut transcoder = Transcoder::new(Version::V6, &info)?;
/// while let Some(record) = events.next_record()? {
///     transcoder.write(&record)?;
/// }
/// transcoder.finish(events.threads())?;
/// let mut copied = 0;
/// SliceReader::new(transcoder.bytes())?.for_each(|_| copied += 1)?;
/// assert_eq!(copied, 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Transcoder {
    encoder: Encoder,
    process_id: Option<u64>,
    /// The process of the header.
    own_process_id: Option<u64>,
    /// The numbers of kinds of events.
    kinds: MetadataMap<u32>,
    /// The numbers of kinds of events with properties replaced by labels: V4 cannot express the replacement
    /// otherwise.
    relabelled: BTreeMap<(usize, Properties), u32>,
    /// V4: the kinds that were defined, without their numbers.
    defined: BTreeMap<Vec<u8>, u32>,
    /// By [`Event::thread_slot`].
    threads: Vec<ThreadState>,
    last_thread_index: u64,
    /// V6: the number of threads of the recording that is read which are described.
    described: usize,
    /// Slots of the threads that have not ended.
    live: Vec<usize>,
    /// From the numbers of the recording that is read.
    stacks: HashMap<u32, u32>,
    label_lists: HashMap<u32, u32>,
    /// V4 to V6: the last activities and their list.
    last_activities: (Option<Uuid>, Option<Uuid>, u32),
    /// True if events have the sequence numbers of the source recording. Otherwise they are in time order.
    is_numbered: bool,
    /// True if the events belong to another recording than the first, and have no time in this recording.
    is_appended: bool,
    /// True if the events belong to a later part of the first recording.
    is_continued: bool,
    /// The losses of threads that are written or left out, by slot, if the reader reports losses.
    reader_losses: Option<Vec<u64>>,
    /// The numbers of the last events of threads, of recordings before this one.
    last_numbers: BTreeMap<u64, u32>,
    /// V4 from V6: the last number of each id. Several threads of the source can have the same id, for
    /// example in a merged recording.
    numbers_by_id: BTreeMap<u64, u32>,
    newest: Ticks,
    /// True if an event was written since the last sequence point.
    is_point_due: bool,
}

impl Transcoder {
    /// Begins a recording like the recording with this header.
    ///
    /// # Errors
    /// If the header is larger than a block can be.
    pub fn new(version: Version, info: &TraceInfo) -> Result<Self, Error> {
        Ok(Self {
            encoder: Encoder::new(version, info)?,
            process_id: info.process_id.filter(|_| !is_v6(info)),
            own_process_id: info.process_id,
            kinds: MetadataMap::new(),
            relabelled: BTreeMap::new(),
            defined: BTreeMap::new(),
            threads: Vec::new(),
            last_thread_index: 0,
            described: 0,
            live: Vec::new(),
            stacks: HashMap::default(),
            label_lists: HashMap::default(),
            last_activities: (None, None, 0),
            is_numbered: info.format != Format::Netperf,
            is_appended: false,
            is_continued: false,
            reader_losses: None,
            last_numbers: BTreeMap::new(),
            numbers_by_id: BTreeMap::new(),
            newest: Ticks(0),
            is_point_due: false,
        })
    }

    /// The version that is written.
    pub const fn version(&self) -> Version {
        self.encoder.version
    }

    /// The bytes of the recording that were not [cleared](Self::clear_bytes) yet.
    pub fn bytes(&self) -> &[u8] {
        &self.encoder.container.out
    }

    /// Drops the pending bytes.
    pub fn clear_bytes(&mut self) {
        self.encoder.container.clear();
    }

    /// Passes the pending bytes to `write` and drops them, if there are more than `most`. An error keeps
    /// them.
    #[inline]
    pub(crate) fn drain<E>(
        &mut self,
        most: usize,
        write: impl FnOnce(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.encoder.container.drain(most, write)
    }

    /// Writes the pending bytes to `out` and drops them, if there are more than `most`.
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
    /// use nettrace_writer::{Transcoder, Version};
    ///
    /// let (mut events, mut file) = (SliceReader::new(&recording)?, Vec::new());
    /// let mut transcoder = Transcoder::new(Version::V6, &info)?;
    /// while let Some(record) = events.next_record()? {
    ///     transcoder.write(&record)?;
    ///     // Parts of some size; the last one is written at the end.
    ///     transcoder.drain_to(64 << 10, &mut file)?;
    /// }
    /// transcoder.finish(events.threads())?;
    /// transcoder.drain_to(0, &mut file)?;
    /// assert_eq!(file.len() as u64, transcoder.offset());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`]; the bytes are kept then.
    #[cfg(feature = "std")]
    #[cfg_attr(docsrs, doc(cfg(feature = "std")))]
    #[inline]
    pub fn drain_to(&mut self, most: usize, out: &mut impl std::io::Write) -> Result<(), Error> {
        self.encoder.container.drain_to(most, out)
    }

    /// Exchanges the collected bytes for an empty buffer, which collects the next bytes.
    pub fn take_bytes(&mut self, buffer: Vec<u8>) -> Vec<u8> {
        self.encoder.container.take(buffer)
    }

    /// The number of bytes so far, including dropped bytes.
    pub fn offset(&self) -> u64 {
        self.encoder.container.offset()
    }

    /// The things that the version cannot say, so far.
    pub const fn omissions(&self) -> &Omissions {
        &self.encoder.omissions
    }

    /// Writes a record.
    ///
    /// # Errors
    /// If something in it is larger than the format can say.
    #[inline]
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        match record {
            Record::Event(event) => self.event(event),
            Record::SequencePoint(point) => self.point(point),
            _ => {
                self.end_ids();
                Ok(())
            }
        }
    }

    /// Leaves a record out because of its time, together with the losses that it shows. The order of events
    /// and the threads that have ended are still written.
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
    /// use nettrace_writer::{Transcoder, Version};
    ///
    /// // The events from the sixth second on.
    /// let mut events = SliceReader::new(&recording)?;
    /// let mut transcoder = Transcoder::new(Version::V6, &info)?;
    /// while let Some(record) = events.next_record()? {
    ///     match &record {
    ///         Record::Event(event) if event.time() < Ticks(5_000_000_000) => transcoder.skip(&record)?,
    ///         _ => transcoder.write(&record)?,
    ///     }
    /// }
    /// transcoder.finish(events.threads())?;
    /// let mut part = SliceReader::new(transcoder.bytes())?;
    /// assert_eq!(part.next()?.map(|event| event.time()), Some(Ticks(5_000_000_000)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn skip(&mut self, record: &Record<'_>) -> Result<(), Error> {
        match record {
            Record::Event(event) => {
                let slot = event.capture_thread_slot();
                self.new_losses(slot, event.capture_thread());
                self.thread_mut(slot).skip_to(event.sequence());
                Ok(())
            }
            Record::SequencePoint(point) => {
                for (slot, thread, sequence) in point.threads() {
                    self.new_losses(slot, Some(thread));
                    self.thread_mut(slot).skip_to(Some(sequence));
                }
                if self.is_point_due {
                    self.point(point)
                } else {
                    self.end_ids();
                    Ok(())
                }
            }
            _ => self.write(record),
        }
    }

    /// Leaves out the losses before an event that is written although its time is [skipped](Self::skip).
    pub fn skip_losses_before(&mut self, event: &Event<'_>) {
        let before = event.sequence().map(|sequence| sequence.wrapping_sub(1));
        let slot = event.capture_thread_slot();
        self.new_losses(slot, event.capture_thread());
        self.thread_mut(slot).skip_to(before);
    }

    /// Takes the losses of threads from the reader from now on, instead of from the gaps in their sequence
    /// numbers. This is for a reader that [skips blocks](nettrace::Events::skip_blocks_outside): the gaps
    /// that it leaves are not losses.
    pub fn take_losses_from_reader(&mut self) {
        self.reader_losses.get_or_insert_default();
    }

    /// Goes on with the events of another recording, which [`event_at_end`](Self::event_at_end) takes.
    /// `threads` are [those](nettrace::Events::threads) of the reader so far. In V4 the sequence numbers of
    /// the same threads continue.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn next_source(&mut self, info: &TraceInfo, threads: &[Thread]) -> Result<(), Error> {
        self.describe_all(threads)?;
        self.sequence_point(threads)?;
        self.leave_source(info, threads);
        self.is_numbered = false;
        self.is_appended = true;
        self.is_continued = false;
        Ok(())
    }

    /// Begins in the middle of a recording, after the records that another transcoder was given: earlier
    /// losses are left out. `threads` are [those](nettrace::Events::threads) of the reader.
    pub fn resume_after(&mut self, before: &Self, threads: &[Thread]) {
        for (slot, state) in before.threads.iter().enumerate() {
            if let Some(thread) = threads.get(slot).filter(|_| self.is_continued) {
                self.continue_thread(slot, thread.id().0);
            }
            self.thread_mut(slot).skip_to(Some(state.last_read()));
        }
    }

    /// Continues with a later part of the same recording, which [began](Self::resume_after) in its middle and
    /// has a reader of its own. Times, stacks and losses are kept. Only sequence points order the parts.
    /// `threads` are [those](nettrace::Events::threads) of the reader so far.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn continue_with(&mut self, info: &TraceInfo, threads: &[Thread]) -> Result<(), Error> {
        self.describe_all(threads)?;
        self.leave_source(info, threads);
        self.end_ids();
        self.is_numbered = info.format != Format::Netperf;
        self.is_appended = false;
        // V6 describes threads anew in each part, with numbers of their own.
        self.is_continued = self.encoder.version == Version::V4;
        Ok(())
    }

    /// Moves everything held to the [bytes](Self::bytes), which are then a recording without an end.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn flush(&mut self) -> Result<(), Error> {
        self.encoder.flush()
    }

    /// Drops the state of the recording read so far.
    fn leave_source(&mut self, info: &TraceInfo, threads: &[Thread]) {
        for (thread, state) in threads.iter().zip(&self.threads) {
            if *state != ThreadState::default() {
                self.last_numbers.insert(thread.id().0, state.last_written());
            }
        }
        self.last_numbers.extend(self.numbers_by_id.iter());
        self.encoder.from_v6 = is_v6(info);
        self.process_id = info.process_id.filter(|_| !is_v6(info));
        self.kinds.clear();
        self.relabelled.clear();
        self.threads.clear();
        self.live.clear();
        self.described = 0;
        self.reader_losses = None;
    }

    /// Writes an event of the [next recording](Self::next_source), without its stack, at the time of the last
    /// event that was written.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn event_at_end(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let slot = event.capture_thread_slot();
        if slot >= self.threads.len() || self.threads.get(slot) == Some(&ThreadState::default()) {
            // V6 describes the thread anew, and its numbers begin anew.
            let last = match self.encoder.version {
                Version::V4 => self.last_numbers.get(&event.capture_thread_id().0).copied().unwrap_or(0),
                Version::V6 => 0,
            };
            self.thread_mut(slot).go_on_from(last);
        }
        self.event_with(event, event.payload(), false)
    }

    /// Leaves out an unwanted event, which does not count as lost.
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
    /// use nettrace_writer::{Transcoder, Version};
    ///
    /// let mut events = SliceReader::new(&recording)?;
    /// let mut transcoder = Transcoder::new(Version::V6, &info)?;
    /// while let Some(record) = events.next_record()? {
    ///     match &record {
    ///         Record::Event(event) if event.time().0 % 2_000_000_000 != 0 => transcoder.remove(event),
    ///         _ => transcoder.write(&record)?,
    ///     }
    /// }
    /// transcoder.finish(events.threads())?;
    /// let mut copy = SliceReader::new(transcoder.bytes())?;
    /// let mut kept = 0;
    /// copy.for_each(|_| kept += 1)?;
    /// assert_eq!((kept, copy.loss().total()), (5, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove(&mut self, event: &Event<'_>) {
        self.thread_mut(event.capture_thread_slot()).remove(event.sequence());
    }

    /// Writes an event.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    #[inline]
    pub fn event(&mut self, event: &Event<'_>) -> Result<(), Error> {
        self.event_with(event, event.payload(), true)
    }

    /// Writes an event with another payload, and without its stack if `with_stack` is false.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn event_with(&mut self, event: &Event<'_>, payload: &[u8], with_stack: bool) -> Result<(), Error> {
        let is_v4 = self.encoder.version == Version::V4;
        let metadata_id = self.kind(event)?;
        let capture_slot = event.capture_thread_slot();
        let slot = event.thread_slot();
        let number = event.sequence().filter(|_| self.is_numbered);
        if self.is_continued {
            self.continue_thread(capture_slot, event.capture_thread_id().0);
        }
        if let Some(number) = number {
            self.skip_unread(capture_slot, event.capture_thread(), number.wrapping_sub(1));
        }
        let (sequence, _) =
            self.advance(capture_slot, event.capture_thread_id().0, |state| state.write(number));
        let (thread, capture_thread) = if is_v4 {
            self.note_unsaid_threads(event);
            (event.thread_id().0, event.capture_thread_id().0)
        } else {
            let thread = self.thread_index(slot, event.thread())?;
            let same = capture_slot == slot;
            (thread, if same { thread } else { self.thread_index(capture_slot, event.capture_thread())? })
        };
        let mut row = RowHeader {
            metadata_id,
            sequence,
            capture_thread,
            processor: event.capture_processor().unwrap_or(u32::MAX),
            thread,
            stack_id: if with_stack { self.stack(event)? } else { 0 },
            time: if self.is_appended { self.newest } else { event.time() },
            is_sorted: event.is_sorted() || !self.is_numbered,
            ..RowHeader::default()
        };
        if is_v4 {
            row.activity = event.activity();
            row.related = event.related_activity();
        } else {
            row.label_list = self.label_list(event)?;
        }
        self.newest = self.newest.max(row.time);
        self.is_point_due = true;
        self.encoder.push(&row, payload)
    }

    /// Writes a sequence point after the events so far, for a recording without sequence points. No later
    /// event may be older than they are.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn sequence_point(&mut self, threads: &[Thread]) -> Result<(), Error> {
        let is_numbered = self.is_numbered;
        let mut numbers = Vec::new();
        for (slot, thread) in threads.iter().enumerate() {
            if thread.has_ended() || slot >= self.threads.len() && thread.last_sequence() == 0 {
                continue;
            }
            if is_numbered {
                self.skip_unread(slot, Some(thread), thread.last_sequence());
            }
            let (last, _) = self.advance(slot, thread.id().0, |state| {
                if is_numbered { state.up_to(thread.last_sequence()) } else { state.last_written() }
            });
            if last > 0 {
                numbers.push((self.thread_number(slot, thread)?, last));
            }
        }
        self.write_point(self.newest, numbers, threads)
    }

    /// Ends the recording. `threads` are [those](nettrace::Events::threads) of the reader: if events follow
    /// the last sequence point, as in a cut recording, a sequence point is written after them.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn finish(&mut self, threads: &[Thread]) -> Result<(), Error> {
        self.end_point(threads)?;
        self.encoder.end()
    }

    /// Ends the recording as [`finish`](Self::finish) does, with an event of the caller's own as the last
    /// one: at the time of the last event before it, of a thread with the id 0, and without a stack.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn finish_with(
        &mut self,
        threads: &[Thread],
        kind: &EventKind<'_>,
        payload: &[u8],
    ) -> Result<(), Error> {
        self.end_point(threads)?;
        let metadata_id = self.encoder.define_kind(kind)?;
        // Copies of a copy have one such thread, the last one.
        let is_known = |(_, thread): &(usize, &Thread)| thread.id().0 == 0 && !thread.has_ended();
        let known = threads.iter().enumerate().rfind(is_known);
        let last = known.and_then(|(slot, _)| self.threads.get(slot)).map_or(0, ThreadState::last_written);
        let last = self.number_of_id(0, last, last);
        let thread = match (self.encoder.version, known) {
            (Version::V4, _) => 0,
            (Version::V6, Some((slot, thread))) => self.thread_index(slot, Some(thread))?,
            (Version::V6, None) => {
                self.last_thread_index = self.last_thread_index.saturating_add(1);
                self.encoder.describe_thread(self.last_thread_index, None, self.own_process_id, 0, [])?;
                self.last_thread_index
            }
        };
        let row = RowHeader {
            metadata_id,
            sequence: last.wrapping_add(1),
            capture_thread: thread,
            processor: u32::MAX,
            thread,
            time: self.newest.max(self.encoder.start),
            is_sorted: true,
            ..RowHeader::default()
        };
        self.encoder.push(&row, payload)?;
        self.encoder.end()
    }

    /// Writes the sequence point that may be due at the end.
    fn end_point(&mut self, threads: &[Thread]) -> Result<(), Error> {
        self.describe_all(threads)?;
        let is_numbered = self.is_numbered;
        let is_behind = |(slot, thread): (usize, &Thread)| {
            self.threads.get(slot).copied().unwrap_or_default().is_behind(thread.last_sequence())
        };
        if self.is_point_due || is_numbered && threads.iter().enumerate().any(is_behind) {
            self.sequence_point(threads)?;
        }
        Ok(())
    }

    /// Returns true if a recording without sequence points of its own is due for one: it holds the maximum
    /// number of stacks.
    pub fn is_large_since_point(&self) -> bool {
        self.is_point_due && self.encoder.stacks.len() >= MAX_STACKS
    }

    /// Writes a point of the recording that is read.
    fn point(&mut self, point: &PassedPoint<'_>) -> Result<(), Error> {
        // A damaged point says nothing about the order of events.
        let Some(time) = point.time() else {
            self.end_ids();
            return Ok(());
        };
        let mut numbers = Vec::new();
        for (slot, thread, sequence) in point.threads() {
            if self.is_continued {
                self.continue_thread(slot, thread.id().0);
            }
            self.skip_unread(slot, Some(thread), sequence);
            let number = self.thread_number(slot, thread)?;
            let (last, _) = self.advance(slot, thread.id().0, |state| state.up_to(sequence));
            numbers.push((number, last));
        }
        self.write_point(time, numbers, point.all_threads())
    }

    fn write_point(
        &mut self,
        time: Ticks,
        mut numbers: Vec<(u64, u32)>,
        threads: &[Thread],
    ) -> Result<(), Error> {
        self.describe_all(threads)?;
        let ended = self.ended(threads)?;
        if self.encoder.version == Version::V4 && self.encoder.from_v6 {
            // V4 does not record the end of a thread, so a last number that shows a loss is written here.
            numbers.extend(ended.iter().filter(|end| end.is_loss).map(|end| (end.number, end.sequence)));
            // Of several threads with one id, the last number counts for the id.
            let mut last: BTreeMap<u64, u32> = numbers.iter().copied().collect();
            numbers.retain_mut(|(id, number)| last.remove(id).map(|last| *number = last).is_some());
        }
        if self.encoder.version == Version::V6 {
            let mut ends: Vec<_> = ended.iter().map(|end| (end.number, end.sequence)).collect();
            ends.sort_unstable();
            self.encoder.remove_threads(&ends)?;
        }
        self.encoder.sequence_point(time, &numbers)?;
        self.end_ids();
        self.is_point_due = false;
        Ok(())
    }

    /// V6: describes the threads that no event has referred to.
    fn describe_all(&mut self, threads: &[Thread]) -> Result<(), Error> {
        if !self.encoder.from_v6 || self.encoder.version != Version::V6 {
            return Ok(());
        }
        for (slot, thread) in threads.iter().enumerate().skip(self.described) {
            self.thread_index(slot, Some(thread))?;
        }
        self.described = threads.len();
        Ok(())
    }

    /// Returns the threads that have ended since the last call.
    fn ended(&mut self, threads: &[Thread]) -> Result<Vec<EndedThread>, Error> {
        let mut ended = Vec::new();
        if !self.encoder.from_v6 {
            return Ok(ended);
        }
        if threads.len() > self.threads.len() {
            self.thread_mut(threads.len().saturating_sub(1));
        }
        let mut live = core::mem::take(&mut self.live);
        let before = live.len();
        let mut outcome = Ok(());
        live.retain(|slot| {
            let Some(thread) = threads.get(*slot).filter(|thread| thread.has_ended()) else { return true };
            self.skip_unread(*slot, Some(thread), thread.last_sequence());
            let is_described = self.thread_mut(*slot).index != 0;
            let last = thread.last_sequence();
            let (sequence, is_loss) = self.advance(*slot, thread.id().0, |state| state.up_to(last));
            if is_loss || is_described {
                match self.thread_number(*slot, thread) {
                    Ok(number) => ended.push(EndedThread { number, sequence, is_loss }),
                    Err(error) => outcome = Err(error),
                }
            }
            false
        });
        if !self.numbers_by_id.is_empty() && live.len() < before {
            // The numbers of a thread that reuses the id of an ended thread begin anew.
            let ids: BTreeSet<_> =
                live.iter().filter_map(|slot| threads.get(*slot)).map(Thread::id).collect();
            self.numbers_by_id.retain(|id, _| ids.contains(&ThreadId(*id)));
        }
        self.live = live;
        outcome.map(|()| ended)
    }

    /// Steps the numbers of a thread. Returns the number in the new recording, and whether it is another than
    /// before. In V4 it is a number of the thread's id: threads with one id have one sequence of numbers.
    #[inline]
    fn advance(&mut self, slot: usize, id: u64, step: impl FnOnce(&mut ThreadState) -> u32) -> (u32, bool) {
        let state = self.thread_mut(slot);
        let before = state.last_written();
        let last = step(state);
        (self.number_of_id(id, before, last), last != before)
    }

    /// Returns the number of a thread's id for that of the thread, `last`, which followed `before`.
    #[inline]
    fn number_of_id(&mut self, id: u64, before: u32, last: u32) -> u32 {
        if self.encoder.version == Version::V6 || !self.encoder.from_v6 {
            return last;
        }
        let number = self.numbers_by_id.entry(id).or_insert(before);
        *number = number.wrapping_add(last.wrapping_sub(before));
        *number
    }

    /// Leaves out the unread events up to a number of a thread. A gap remains for the events that the reader
    /// knows to be lost since the last number.
    #[inline]
    fn skip_unread(&mut self, slot: usize, thread: Option<&Thread>, sequence: u32) {
        if self.reader_losses.is_some() {
            let lost = self.new_losses(slot, thread);
            self.thread_mut(slot).skip_to(Some(sequence.wrapping_sub(lost as u32)));
        }
    }

    /// Returns the number of events that a thread has lost since the last call; 0 where the reader is not
    /// asked.
    fn new_losses(&mut self, slot: usize, thread: Option<&Thread>) -> u64 {
        let (Some(losses), Some(thread)) = (&mut self.reader_losses, thread) else { return 0 };
        if losses.len() <= slot {
            losses.resize(slot.saturating_add(1), 0);
        }
        let Some(known) = losses.get_mut(slot) else { return 0 };
        thread.lost().saturating_sub(core::mem::replace(known, thread.lost()))
    }

    /// Continues the numbers of a thread where the previous part's numbers ended.
    fn continue_thread(&mut self, slot: usize, id: u64) {
        if (slot >= self.threads.len() || self.threads.get(slot) == Some(&ThreadState::default()))
            && let Some(last) = self.last_numbers.get(&id).copied()
        {
            self.thread_mut(slot).continue_from(last);
        }
    }

    /// Ends the meaning of the numbers in the recording that is read.
    fn end_ids(&mut self) {
        self.stacks.clear();
        self.label_lists.clear();
        self.last_activities = (None, None, 0);
    }

    #[inline]
    fn thread_mut(&mut self, slot: usize) -> &mut ThreadState {
        if slot >= self.threads.len() {
            self.live.extend(self.threads.len()..=slot);
            self.threads.resize(slot.saturating_add(1), ThreadState::default());
        }
        #[expect(clippy::indexing_slicing, reason = "the table was made long enough")]
        &mut self.threads[slot]
    }

    /// Returns the number of a thread in the new recording: that of the operating system, in V6 an index.
    fn thread_number(&mut self, slot: usize, thread: &Thread) -> Result<u64, Error> {
        match self.encoder.version {
            Version::V4 => Ok(thread.id().0),
            Version::V6 => self.thread_index(slot, Some(thread)),
        }
    }

    /// V6: returns the index of a thread, which is described if it is new.
    #[inline]
    fn thread_index(&mut self, slot: usize, thread: Option<&Thread>) -> Result<u64, Error> {
        let index = self.thread_mut(slot).index;
        match thread {
            Some(thread) if index == 0 => self.new_thread_index(slot, thread),
            _ => Ok(index),
        }
    }

    #[inline(never)]
    fn new_thread_index(&mut self, slot: usize, thread: &Thread) -> Result<u64, Error> {
        let index = self.last_thread_index.saturating_add(1);
        self.last_thread_index = index;
        self.thread_mut(slot).index = index;
        self.encoder.describe(index, thread, thread.process_id().or(self.process_id))?;
        Ok(index)
    }

    /// Counts descriptions of threads that V4 cannot say.
    fn note_unsaid_threads(&mut self, event: &Event<'_>) {
        if !self.encoder.from_v6 {
            return;
        }
        if let Some(thread) = event.thread() {
            let is_new = core::mem::replace(&mut self.thread_mut(event.thread_slot()).index, 1) == 0;
            if is_new
                && (thread.name().is_some()
                    || thread.process_id().is_some()
                    || !thread.key_values().is_empty())
            {
                let count = &mut self.encoder.omissions.thread_descriptions;
                *count = count.saturating_add(1);
            }
        }
    }

    /// Returns the number of the event's kind, which is defined if it is new.
    #[inline]
    fn kind(&mut self, event: &Event<'_>) -> Result<u32, Error> {
        let index = event.metadata_index();
        if self.encoder.from_v6 && self.encoder.version == Version::V4 && event.label_list_id() != 0 {
            let properties = Properties {
                version: event.version(),
                level: event.level(),
                keywords: event.keywords(),
                opcode: event.opcode(),
            };
            if !event.labels().all(|label| labels::is_in_v4(&label)) {
                let count = &mut self.encoder.omissions.labels;
                *count = count.saturating_add(1);
            }
            if properties != Properties::of(event.metadata()) {
                return self.relabelled_kind(event, properties);
            }
        }
        match self.kinds.get(index) {
            Some(id) => Ok(*id),
            None => self.new_kind(event),
        }
    }

    #[inline(never)]
    fn new_kind(&mut self, event: &Event<'_>) -> Result<u32, Error> {
        let id = self.define(event)?;
        self.kinds.insert(event.metadata_index(), id);
        Ok(id)
    }

    /// Defines the event's kind. Parts of a recording define the same kinds, each of which is defined once.
    fn define(&mut self, event: &Event<'_>) -> Result<u32, Error> {
        let properties = Properties::of(event.metadata());
        if self.encoder.version != Version::V4 {
            return self.encoder.define(event.metadata(), &properties);
        }
        let mut omissions = Omissions::default();
        let definition = metadata::v4(0, event.metadata(), &properties, self.encoder.from_v6, &mut omissions);
        match self.defined.get(&definition) {
            Some(id) if self.is_continued => Ok(*id),
            _ => {
                let id = self.encoder.define(event.metadata(), &properties)?;
                self.defined.insert(definition, id);
                Ok(id)
            }
        }
    }

    #[inline(never)]
    fn relabelled_kind(&mut self, event: &Event<'_>, properties: Properties) -> Result<u32, Error> {
        let key = (event.metadata_index(), properties);
        if let Some(id) = self.relabelled.get(&key) {
            return Ok(*id);
        }
        let id = self.encoder.define(event.metadata(), &properties)?;
        self.relabelled.insert(key, id);
        Ok(id)
    }

    /// Returns the number of the event's stack, 0 for none.
    #[inline]
    fn stack(&mut self, event: &Event<'_>) -> Result<u32, Error> {
        match event.stack_id() {
            // A block may give that number to a stack.
            Some(0) if event.stack().is_empty() => Ok(0),
            Some(id) => match self.stacks.get(&id) {
                Some(written) => Ok(*written),
                None => self.new_stack(event, Some(id)),
            },
            None => self.new_stack(event, None),
        }
    }

    #[inline(never)]
    fn new_stack(&mut self, event: &Event<'_>, id: Option<u32>) -> Result<u32, Error> {
        let bytes = event.stack().as_bytes();
        let written = if bytes.is_empty() { 0 } else { self.encoder.stacks.intern(bytes)? };
        // A number that means nothing yet may be given to a stack later.
        if let Some(id) = id.filter(|_| written != 0) {
            self.stacks.insert(id, written);
        }
        Ok(written)
    }

    /// V6: returns the number of the event's labels, 0 for none.
    #[inline]
    fn label_list(&mut self, event: &Event<'_>) -> Result<u32, Error> {
        if self.encoder.from_v6 {
            let id = event.label_list_id();
            if id == 0 {
                return Ok(0);
            }
            if let Some(written) = self.label_lists.get(&id) {
                return Ok(*written);
            }
            let written = self.labels(&labels::list(event.labels()))?;
            if written != 0 {
                self.label_lists.insert(id, written);
            }
            return Ok(written);
        }
        let (activity, related) = (event.activity(), event.related_activity());
        let (last_activity, last_related, list) = self.last_activities;
        if activity == last_activity && related == last_related {
            return Ok(list);
        }
        let list = self.labels(&labels::of_activities(activity, related))?;
        self.last_activities = (activity, related, list);
        Ok(list)
    }

    fn labels(&mut self, list: &[u8]) -> Result<u32, Error> {
        if list.is_empty() { Ok(0) } else { self.encoder.labels.intern(list) }
    }
}

/// Maximum number of stacks held for a recording without sequence points before a sequence point is due.
const MAX_STACKS: usize = 16_384;

/// A thread that has ended.
#[derive(Debug, Clone, Copy)]
struct EndedThread {
    number: u64,
    sequence: u32,
    /// True if the sequence number shows lost events.
    is_loss: bool,
}
