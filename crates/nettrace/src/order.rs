//! Events in the order of time across threads.

use alloc::vec::Vec;

use crate::damage::Damage;
use crate::engine::Step;
use crate::error::Error;
use crate::event::{Event, Header};
use crate::events::{Events, Source};
use crate::info::TraceInfo;
use crate::loss::Loss;
use crate::tables::Defined;
use crate::time::Ticks;

/// Events are held back until this many have come, unless a sequence point lets them go earlier.
const BATCH: usize = 16 << 10;

/// Gives the events of all threads in time order; events of the same tick in file order.
///
/// A recording is sorted between its sequence points: what is held back is at most what lies between two of them, or
/// between an event that is marked as sorted and the events before it. In memory that is some 80 bytes for each event held
/// back, and for a [`Reader`](crate::Reader) or [`Decoder`](crate::Decoder) the bytes of their blocks. Runtimes write a
/// sequence point at least for every 10 MB of events and mark an event as sorted every 100 ms.
///
/// A recording that breaks its own promise, so that an older event comes behind such a point, loses nothing: that event is
/// given when it comes.
#[derive(Debug)]
pub struct TimeOrder<S> {
    events: Events<S>,
    /// Events that are not yet known to be in order.
    held: Vec<Held>,
    /// The blocks that they lie in.
    blocks: Vec<Block>,
    /// All that is held, by time as far as it was sorted.
    places: Vec<Place>,
    /// The places before this one have been given.
    given: usize,
    /// The places before this one may be given.
    ready: usize,
    /// Nothing that follows in the recording is older than this.
    sorted_up_to: Option<Ticks>,
    /// How many events may be held before it is tried to let some go.
    patience: usize,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    header: Header,
    block: u32,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    /// Offset in the recording.
    offset: u64,
    length: usize,
    defined: Defined,
}

/// Where an event is held, and what it is sorted by.
#[derive(Debug, Clone, Copy)]
struct Place {
    time: Ticks,
    held: u32,
}

impl<S: Source> Events<S> {
    /// The same events in the order of time across threads.
    pub fn in_time_order(self) -> TimeOrder<S> {
        TimeOrder {
            events: self,
            held: Vec::new(),
            blocks: Vec::new(),
            places: Vec::new(),
            given: 0,
            ready: 0,
            sorted_up_to: None,
            patience: BATCH,
        }
    }
}

impl<S: Source> TimeOrder<S> {
    /// The next event in time order. `None` at the end; in the push form also when more bytes are needed.
    ///
    /// # Errors
    /// As [`Events::next`].
    #[inline]
    #[allow(
        clippy::should_implement_trait,
        reason = "an event borrows from its reader, which an Iterator's items cannot"
    )]
    pub fn next(&mut self) -> Result<Option<Event<'_>>, Error> {
        if self.given >= self.ready && !self.prepare()? {
            return Ok(None);
        }
        let place = self.places.get(self.given).copied();
        self.given = self.given.saturating_add(1);
        Ok(place.and_then(|place| self.show(place)))
    }

    #[inline]
    fn show(&self, place: Place) -> Option<Event<'_>> {
        let held = self.held.get(place.held as usize)?;
        let &Block { offset, length, defined } = self.blocks.get(held.block as usize)?;
        let engine = &self.events.engine;
        let start = usize::try_from(offset.checked_sub(engine.base())?).ok()?;
        let block = self.events.source.bytes().get(start..start.checked_add(length)?)?;
        engine.event_at(&held.header, block, offset, defined)
    }

    /// Reads on until events can be given; says whether there are any.
    #[inline(never)]
    fn prepare(&mut self) -> Result<bool, Error> {
        self.drop_given();
        loop {
            let source = &self.events.source;
            match self.events.engine.advance(source.bytes(), source.is_complete())? {
                Step::Event => {
                    self.hold_block();
                    if self.held.len() >= self.patience && self.let_go(self.sorted_up_to) {
                        return Ok(true);
                    }
                }
                // What becomes invalid is forgotten only when reading goes on: these events are given before.
                step @ (Step::SequencePoint | Step::Forgets) => {
                    if step == Step::SequencePoint {
                        self.sorted_up_to = None;
                    }
                    if self.let_go(Some(Ticks(u64::MAX))) {
                        return Ok(true);
                    }
                }
                Step::End => return Ok(self.let_go(Some(Ticks(u64::MAX)))),
                Step::NeedMore(wanted) => {
                    let hold_from = self.blocks.iter().map(|block| block.offset).min();
                    if !self.events.more_but_keep(wanted, hold_from)? {
                        return Ok(self.let_go(self.sorted_up_to));
                    }
                }
            }
        }
    }

    /// Holds the current event and those that follow it in its block.
    fn hold_block(&mut self) {
        let (content, offset, _) = self.events.engine.open_block(self.events.source.bytes());
        // A block that was left at damage within it goes on being the same block.
        if self.blocks.last().is_none_or(|last| last.offset != offset) {
            let defined = self.events.engine.tables.defined();
            self.blocks.push(Block { offset, length: content.len(), defined });
        }
        let block = u32::try_from(self.blocks.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let mut place = u32::try_from(self.held.len()).unwrap_or(u32::MAX);
        self.events.rest_of_block(|event| {
            let header = *event.header;
            if header.is_sorted {
                self.sorted_up_to = Some(header.time);
            }
            self.places.push(Place { time: header.time, held: place });
            self.held.push(Held { header, block });
            place = place.saturating_add(1);
        });
    }

    /// Makes the events up to a time ready; says whether there are any.
    fn let_go(&mut self, up_to: Option<Ticks>) -> bool {
        // If few can go, the next try waits until there are many more: trying costs a pass over all that is held.
        self.patience = self.held.len().saturating_mul(2).max(BATCH);
        let Some(up_to) = up_to else { return false };
        // Each thread's events come as runs in order, of which this sort makes use; and it keeps the order of equals.
        self.places.sort_by_key(|place| place.time);
        self.ready = self.places.partition_point(|place| place.time <= up_to);
        self.ready > 0
    }

    /// Forgets the events that have been given, and the blocks that held none of the others.
    fn drop_given(&mut self) {
        let given = core::mem::take(&mut self.ready);
        self.given = 0;
        if given == self.places.len() {
            self.held.clear();
            self.blocks.clear();
            self.places.clear();
            return;
        }
        // What stays is held in the order of its places: among equals that is still the order of the file.
        self.places.drain(..given);
        self.held =
            self.places.iter().filter_map(|place| self.held.get(place.held as usize).copied()).collect();
        let first = self.held.iter().map(|held| held.block).min().unwrap_or(0);
        self.blocks.drain(..(first as usize).min(self.blocks.len()));
        for (index, (place, held)) in self.places.iter_mut().zip(&mut self.held).enumerate() {
            place.held = u32::try_from(index).unwrap_or(u32::MAX);
            held.block = held.block.saturating_sub(first);
        }
    }

    /// What the recording says about itself; `None` while its header is not there.
    pub fn info(&self) -> Option<&TraceInfo> {
        self.events.info()
    }

    /// What the runtime dropped, as far as it has been read.
    pub fn loss(&self) -> &Loss {
        self.events.loss()
    }

    /// What could not be read so far; only the first 1024 are listed.
    pub fn damage(&self) -> &[Damage] {
        self.events.damage()
    }

    /// The reader in file order, for everything else that it knows.
    pub const fn events(&self) -> &Events<S> {
        &self.events
    }
}

impl TimeOrder<crate::Pushed> {
    /// Adds bytes behind those that were fed before.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.events.feed(bytes);
    }

    /// No more bytes will come.
    pub fn end_of_input(&mut self) {
        self.events.end_of_input();
    }
}
