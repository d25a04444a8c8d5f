//! The last events of a stream, in memory.
//!
//! Each record is decoded once and written into the newest generation, a recording of its own with the kinds
//! of its events and their stacks. A generation is an eighth of what is kept. The oldest is dropped as a
//! whole, and its names go to the names store. Reading all generations in sequence yields the records of the
//! stream again, from some point in its middle.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use clr_events::Provider;
use nettrace::{Event, Record, RelativeTime, Thread, TraceInfo};
use nettrace_writer::{Error, Version};

use super::names_store::NamesStore;
use super::receipt_clock::{ReceiptClock, TOLERANCE};
use super::segment::{Segment, SegmentWriter, Storage};
use crate::duration;
use crate::inspect::slice::names_others;
use crate::render::units;

/// The number of generations that the capacity is divided into.
const GENERATIONS: u32 = 8;
/// Further bytes for the runtime's list of its methods.
const LIST: u64 = 64 << 20;
/// The shortest time span of a generation.
const SHORTEST: Duration = Duration::from_millis(100);

/// The limits on the time and the bytes kept; the smaller one applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub(crate) time: Option<Duration>,
    pub(crate) bytes: u64,
}

/// A ring of the last events.
#[derive(Debug)]
pub(crate) struct Ring {
    capacity: Capacity,
    info: TraceInfo,
    version: Version,
    /// The complete generations, oldest first.
    generations: VecDeque<Generation>,
    current: GenerationWriter,
    storage: Storage,
    store: NamesStore,
    clock: ReceiptClock,
    /// Whether events of a kind name others, by metadata index.
    naming: Vec<Option<bool>>,
    /// Whether generations were dropped for their size before their time was over.
    is_cut_short: bool,
    /// Whether the runtime has begun to list its methods.
    is_listing: bool,
}

/// A part of the stream.
#[derive(Debug, Clone)]
pub(crate) struct Generation {
    pub(crate) events: Segment,
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

/// All that the ring holds at one time.
#[derive(Debug)]
pub(crate) struct RingContent {
    pub(crate) info: TraceInfo,
    pub(crate) version: Version,
    pub(crate) names: Option<Segment>,
    pub(crate) generations: Vec<Segment>,
    /// The number of names that did not fit.
    pub(crate) names_left_out: u64,
    /// Whether it covers less than the requested time, because of the limit on bytes.
    pub(crate) is_cut_short: bool,
}

/// `the last 60.0 s, 256 MB at most`
impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = units::bytes(self.bytes);
        match self.time {
            Some(time) => write!(f, "the last {}, {bytes} at most", duration::display(time)),
            None => write!(f, "the last {bytes}"),
        }
    }
}

impl Ring {
    pub(crate) fn new(capacity: Capacity, storage: Storage, info: &TraceInfo) -> Result<Self, Error> {
        let version = Version::of(info);
        Ok(Self {
            capacity,
            info: info.clone(),
            version,
            generations: VecDeque::new(),
            current: GenerationWriter::new(SegmentWriter::new(version, info, &storage)?),
            storage,
            store: NamesStore::default(),
            clock: ReceiptClock::start(Instant::now()),
            naming: Vec::new(),
            is_cut_short: false,
            is_listing: false,
        })
    }

    /// Records that a part of the stream has arrived, whose records are added next.
    pub(crate) fn receive(&mut self) {
        self.clock.receive(Instant::now());
    }

    /// Adds a record. After an error of its files, the ring still holds the record; call
    /// [`keep_in_memory`](Self::keep_in_memory) next.
    pub(crate) fn add(&mut self, record: &Record<'_>) -> Result<(), Error> {
        let mut named = Ok(());
        if let Record::Event(event) = record {
            let time = event.relative_time();
            if self.is_of_now(time) {
                self.current.note_time(time);
            } else {
                self.current.first.get_or_insert(self.current.newest);
            }
            if self.is_naming(event) {
                named = self.current.add_name(self.version, &self.info, &self.storage, event);
            }
        }
        self.current.events.transcoder.write(record)?;
        self.current.events.collect().and(named)
    }

    /// Whether an event that arrives now can have this time. A single wild time stamp would make all other
    /// events old.
    fn is_of_now(&mut self, time: RelativeTime) -> bool {
        let age = self.current.newest.saturating_duration_since(time);
        let oldest = self.capacity.time.map_or(Duration::MAX, |time| time.saturating_add(TOLERANCE));
        self.clock.admits(time) && age <= oldest
    }

    /// Continues in memory, so that the data held can be read.
    pub(crate) fn keep_in_memory(&mut self) {
        self.storage = Storage::Memory;
        self.current.events.keep_in_memory();
        self.current.names.iter_mut().for_each(SegmentWriter::keep_in_memory);
    }

    fn is_naming(&mut self, event: &Event<'_>) -> bool {
        let index = event.metadata_index();
        if let Some(Some(known)) = self.naming.get(index) {
            return *known;
        }
        let found = names_others(event.metadata());
        if !self.is_listing && Provider::of(event.metadata()) == Some(Provider::Rundown) {
            // The runtime lists its methods at the end of the session; the list must not push out other
            // events.
            self.is_listing = true;
            self.capacity.bytes = self.capacity.bytes.saturating_add(LIST);
        }
        if self.naming.len() <= index {
            self.naming.resize(index + 1, None);
        }
        self.naming[index] = Some(found);
        found
    }

    /// Begins a new generation if the newest has reached its limit, and drops the oldest ones that are no
    /// longer needed. `threads` are those of the stream's reader.
    pub(crate) fn turn_if_due(&mut self, threads: &[Thread]) -> Result<(), Error> {
        let most = self.capacity.bytes / u64::from(GENERATIONS);
        let longest = self.capacity.time.map(|time| (time / GENERATIONS).max(SHORTEST));
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
        let next = self.current.events.behind(&self.info, threads)?;
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
            let held: u64 = self.generations.iter().map(Generation::bytes).sum();
            let is_large = held + self.capacity.bytes / u64::from(GENERATIONS) > self.capacity.bytes;
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
            if let Some(names) = &oldest.names {
                self.store.add(self.version, &self.info, names)?;
            }
        }
    }

    /// Returns everything that the ring holds now, and continues with a new generation.
    pub(crate) fn content(&mut self, threads: &[Thread]) -> Result<RingContent, Error> {
        self.turn(threads)?;
        Ok(RingContent {
            info: self.info.clone(),
            version: self.version,
            names: self.store.segment()?,
            generations: self.generations.iter().map(|it| it.events.clone()).collect(),
            names_left_out: self.store.left_out(),
            is_cut_short: self.is_cut_short,
        })
    }

    /// The bytes that it holds.
    pub(crate) fn bytes(&self) -> u64 {
        self.generations.iter().map(Generation::bytes).sum::<u64>()
            + self.current.bytes()
            + self.store.bytes()
    }

    /// The time of the newest event.
    pub(crate) const fn newest(&self) -> RelativeTime {
        self.current.newest
    }
}

impl Generation {
    fn bytes(&self) -> u64 {
        self.events.bytes() + self.names.as_ref().map_or(0, Segment::bytes)
    }
}

impl GenerationWriter {
    const fn new(events: SegmentWriter) -> Self {
        Self { events, names: None, first: None, newest: RelativeTime::START }
    }

    fn note_time(&mut self, time: RelativeTime) {
        // Events of other threads may be older than those before them.
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.newest = self.newest.max(time);
    }

    fn add_name(
        &mut self,
        version: Version,
        info: &TraceInfo,
        storage: &Storage,
        event: &Event<'_>,
    ) -> Result<(), Error> {
        let names = match &mut self.names {
            Some(names) => names,
            none => none.insert(SegmentWriter::new(version, info, storage)?),
        };
        names.add_name(event)
    }

    fn duration(&self) -> Duration {
        self.first.map_or(Duration::ZERO, |first| self.newest.saturating_duration_since(first))
    }

    fn bytes(&self) -> u64 {
        self.events.bytes() + self.names.as_ref().map_or(0, SegmentWriter::bytes)
    }
}
