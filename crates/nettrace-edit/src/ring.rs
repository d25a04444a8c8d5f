//! The last events of a stream, in memory.
//!
//! Each record is decoded once and written into the newest generation, a recording of its own with the kinds
//! of its events and their stacks. A generation is an eighth of the kept recording. The oldest is dropped as
//! a whole, and its names go to the names store. Reading all generations in sequence yields the records of
//! the stream again, from some point in its middle.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use clr_events::Provider;
use nettrace::{Event, MetadataMap, Record, RelativeTime, Thread, TraceInfo};

use crate::error::Error;
use crate::names_store::NamesStore;
use crate::receipt_clock::{ReceiptClock, TOLERANCE};
use crate::segment::{Segment, SegmentStorage, SegmentWriter};
use crate::slice::names_others;
use crate::snapshot::Snapshot;

/// The number of generations that the capacity is divided into.
const GENERATIONS: u8 = 8;
/// Further bytes for the runtime's list of its methods.
const LIST: u64 = 64 << 20;
/// Minimum time span of a generation.
const MIN_GENERATION: Duration = Duration::from_millis(100);

/// The limits on the time and the bytes kept; the smaller one applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on both")]
pub struct RingCapacity {
    /// The time to keep; `None` for no limit.
    pub time: Option<Duration>,
    /// The bytes to keep.
    pub bytes: u64,
}

/// A ring of the last events of a stream.
///
/// The ring holds at least the requested time or bytes, whichever is less, and at most an eighth more,
/// further the names of code, types and threads from everything dropped, at most 64 MiB, and the block that
/// is being written.
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
/// use nettrace_edit::{RingCapacity, Ring, SegmentStorage};
/// use std::time::{Duration, Instant};
///
/// let capacity = RingCapacity { time: Some(Duration::from_secs(30)), bytes: 64 << 20 };
/// let mut ring = Ring::new(capacity, SegmentStorage::Memory, &info, Instant::now())?;
/// let mut events = nettrace::SliceReader::new(&recording)?;
/// while let Some(record) = events.next_record()? {
///     ring.add(&record)?;
/// }
/// // Something has happened: the last events as a whole recording.
/// let mut file = Vec::new();
/// let written = ring.snapshot(events.threads())?.write(None, &mut file)?;
/// assert_eq!((written.events, written.bytes), (10, file.len() as u64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Ring {
    capacity: RingCapacity,
    info: TraceInfo,
    /// The complete generations, oldest first.
    generations: VecDeque<Generation>,
    current: GenerationWriter,
    storage: SegmentStorage,
    store: NamesStore,
    clock: ReceiptClock,
    /// True for kinds of events that name others, by metadata index.
    naming: MetadataMap<bool>,
    /// True if generations were dropped for their size before their time was over.
    is_cut_short: bool,
    /// True if any generation was dropped.
    has_dropped: bool,
    /// True if the runtime has begun to list its methods.
    is_listing: bool,
}

/// A part of the stream.
#[derive(Debug, Clone)]
struct Generation {
    events: Segment,
    /// A second copy of its events that name others.
    names: Option<Segment>,
    first: RelativeTime,
}

#[derive(Debug)]
struct GenerationWriter {
    events: SegmentWriter,
    names: Option<SegmentWriter>,
    first: Option<RelativeTime>,
    newest: RelativeTime,
}

impl RingCapacity {
    fn bytes_of_generation(&self) -> u64 {
        self.bytes.checked_div(GENERATIONS.into()).unwrap_or_default()
    }

    fn time_of_generation(&self) -> Option<Duration> {
        let time = self.time?.checked_div(GENERATIONS.into()).unwrap_or_default();
        Some(time.max(MIN_GENERATION))
    }
}

impl Ring {
    /// Creates the ring of a stream with this header, which arrives at `now`.
    ///
    /// # Errors
    /// If the folder of the storage cannot have a file.
    pub fn new(
        capacity: RingCapacity,
        storage: SegmentStorage,
        info: &TraceInfo,
        now: Instant,
    ) -> Result<Self, Error> {
        Ok(Self {
            capacity,
            info: info.clone(),
            generations: VecDeque::new(),
            current: GenerationWriter::new(SegmentWriter::new(info, &storage)?),
            storage,
            store: NamesStore::default(),
            clock: ReceiptClock::start(now),
            naming: MetadataMap::default(),
            is_cut_short: false,
            has_dropped: false,
            is_listing: false,
        })
    }

    /// Notes the arrival of a part of the stream. Its records are added next.
    pub fn receive(&mut self, now: Instant) {
        self.clock.receive(now);
    }

    /// Adds a record.
    ///
    /// # Errors
    /// If a record is larger than the format allows, or a file cannot be written. In the latter case the ring
    /// still holds the record; call [`keep_in_memory`](Self::keep_in_memory) next.
    pub fn add(&mut self, record: &Record<'_>) -> Result<(), Error> {
        let mut named = Ok(());
        if let Record::Event(event) = record {
            let time = event.relative_time();
            if self.is_of_now(time) {
                self.current.note_time(time);
            } else {
                self.current.first.get_or_insert(self.current.newest);
            }
            if self.is_naming(event) {
                named = self.current.add_name(&self.info, &self.storage, event);
            }
        }
        self.current.events.transcoder.write(record)?;
        self.current.events.collect().and(named)
    }

    /// Returns true if an event that arrives now can have this time. A single wild time stamp would make all
    /// other events old.
    fn is_of_now(&mut self, time: RelativeTime) -> bool {
        let age = self.current.newest.saturating_duration_since(time);
        let oldest = self.capacity.time.map_or(Duration::MAX, |time| time.saturating_add(TOLERANCE));
        self.clock.admits(time) && age <= oldest
    }

    /// Continues in memory after an error of its files, so that the data held can be read.
    pub fn keep_in_memory(&mut self) {
        self.storage = SegmentStorage::Memory;
        self.current.events.keep_in_memory();
        self.current.names.iter_mut().for_each(SegmentWriter::keep_in_memory);
    }

    fn is_naming(&mut self, event: &Event<'_>) -> bool {
        let Self { naming, is_listing, capacity, .. } = self;
        naming.get_or_insert_with(event.metadata_index(), || {
            if !*is_listing && Provider::of(event.metadata()) == Some(Provider::Rundown) {
                // The runtime lists its methods at the end of the session; the list must not push out other
                // events.
                *is_listing = true;
                capacity.bytes = capacity.bytes.saturating_add(LIST);
            }
            names_others(event.metadata())
        })
    }

    /// Begins a new generation if the newest has reached its limit, and drops the oldest generations if they
    /// are not needed any more. Called when the stream's reader is out of records; `threads` are the reader's
    /// threads.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn turn_if_due(&mut self, threads: &[Thread]) -> Result<(), Error> {
        let most = self.capacity.bytes_of_generation();
        let longest = self.capacity.time_of_generation();
        if self.current.bytes() >= most || longest.is_some_and(|longest| self.current.duration() >= longest) {
            self.turn(threads)?;
        }
        Ok(())
    }

    /// Begins a new generation.
    fn turn(&mut self, threads: &[Thread]) -> Result<(), Error> {
        let Some(first) = self.current.first else { return Ok(()) };
        self.current.events.store()?;
        self.current.names.iter_mut().try_for_each(SegmentWriter::store)?;
        let next = self.current.events.writer_after(&self.info, threads)?;
        let newest = self.current.newest;
        let mut before = std::mem::replace(&mut self.current, GenerationWriter::new(next));
        self.current.newest = newest;
        let names = before.names.as_mut().map(SegmentWriter::segment).transpose()?;
        self.generations.push_back(Generation { events: before.events.segment()?, names, first });
        self.drop_oldest(newest)
    }

    /// Drops the oldest generations while they exceed the limit on time or bytes.
    fn drop_oldest(&mut self, newest: RelativeTime) -> Result<(), Error> {
        loop {
            let held = sum(self.generations.iter().map(Generation::bytes));
            let is_large = held.saturating_add(self.capacity.bytes_of_generation()) > self.capacity.bytes;
            // The generation is too old if the next one reaches back far enough.
            let is_old = self.capacity.time.is_some_and(|time| {
                let next = self.generations.get(1);
                next.is_some_and(|next| newest.saturating_duration_since(next.first) >= time)
            });
            if !is_large && !is_old || self.generations.len() <= 1 {
                return Ok(());
            }
            if self.capacity.time.is_some() {
                self.is_cut_short = !is_old;
            }
            let Some(oldest) = self.generations.pop_front() else { return Ok(()) };
            self.has_dropped = true;
            if let Some(names) = &oldest.names {
                self.store.add(&self.info, names)?;
            }
        }
    }

    /// Returns everything that the ring holds now, and continues with a new generation. The snapshot shares
    /// the data with the ring, and can be written by another thread.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn snapshot(&mut self, threads: &[Thread]) -> Result<Snapshot, Error> {
        self.turn(threads)?;
        Ok(Snapshot {
            info: self.info.clone(),
            names: self.store.segment()?,
            generations: self.generations.iter().map(|it| it.events.clone()).collect(),
            names_left_out: self.store.left_out(),
            is_cut_short: self.is_cut_short,
            is_part: self.has_dropped,
        })
    }

    /// Changes the limit on bytes. It applies when the next generation begins.
    pub const fn limit_bytes(&mut self, bytes: u64) {
        let list = if self.is_listing { LIST } else { 0 };
        self.capacity.bytes = bytes.saturating_add(list);
    }

    /// The bytes that it holds.
    pub fn bytes(&self) -> u64 {
        let generations = self.generations.iter().map(Generation::bytes);
        sum(generations.chain([self.current.bytes(), self.store.bytes()]))
    }

    /// The time of the newest event.
    pub const fn newest(&self) -> RelativeTime {
        self.current.newest
    }
}

impl Generation {
    fn bytes(&self) -> u64 {
        self.events.bytes().saturating_add(self.names.as_ref().map_or(0, Segment::bytes))
    }
}

impl GenerationWriter {
    const fn new(events: SegmentWriter) -> Self {
        Self { events, names: None, first: None, newest: RelativeTime::START }
    }

    fn note_time(&mut self, time: RelativeTime) {
        // Events of other threads may be older than earlier events in the stream.
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.newest = self.newest.max(time);
    }

    fn add_name(
        &mut self,
        info: &TraceInfo,
        storage: &SegmentStorage,
        event: &Event<'_>,
    ) -> Result<(), Error> {
        SegmentWriter::get_or_new(&mut self.names, info, storage)?.add_name(event)
    }

    fn duration(&self) -> Duration {
        self.first.map_or(Duration::ZERO, |first| self.newest.saturating_duration_since(first))
    }

    fn bytes(&self) -> u64 {
        self.events.bytes().saturating_add(self.names.as_ref().map_or(0, SegmentWriter::bytes))
    }
}

fn sum(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}
