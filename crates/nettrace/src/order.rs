//! Events in the order of time across threads.

use alloc::vec::Vec;

use crate::damage::Damage;
use crate::engine::Step;
use crate::error::Error;
use crate::event::{Event, Header};
use crate::events::{Events, Source};
use crate::info::TraceInfo;
use crate::loss::Loss;
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
    /// Events that are not yet known to be in order, in file order.
    held: Vec<Held>,
    /// The blocks that they lie in: offset in the recording, length.
    blocks: Vec<(u64, usize)>,
    /// What of `held` may go, in time order: of these the ones before `given` are gone.
    ready: Vec<Place>,
    given: usize,
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
            ready: Vec::new(),
            given: 0,
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
        if self.given >= self.ready.len() && !self.prepare()? {
            return Ok(None);
        }
        let place = self.ready.get(self.given).copied();
        self.given = self.given.saturating_add(1);
        Ok(place.and_then(|place| self.show(place)))
    }

    #[inline]
    fn show(&self, place: Place) -> Option<Event<'_>> {
        let held = self.held.get(place.held as usize)?;
        let &(offset, length) = self.blocks.get(held.block as usize)?;
        let engine = &self.events.engine;
        let start = usize::try_from(offset.checked_sub(engine.base())?).ok()?;
        let block = self.events.source.bytes().get(start..start.checked_add(length)?)?;
        engine.event_at(&held.header, block, offset)
    }

    /// Reads on until events can be given; says whether there are any.
    #[inline(never)]
    fn prepare(&mut self) -> Result<bool, Error> {
        self.drop_given();
        loop {
            if self.events.engine.carry_on(self.events.source.bytes()) {
                self.hold();
                continue;
            }
            // Only between runs of events is it worth a look whether some can go.
            if self.held.len() >= self.patience && self.let_go(self.sorted_up_to) {
                return Ok(true);
            }
            let source = &self.events.source;
            match self.events.engine.advance(source.bytes(), source.is_complete())? {
                Step::Event => {
                    self.note_block();
                    self.hold();
                }
                // What the point makes invalid is forgotten only when reading goes on: these events are given before.
                Step::SequencePoint => {
                    self.sorted_up_to = None;
                    if self.let_go(Some(Ticks(u64::MAX))) {
                        return Ok(true);
                    }
                }
                Step::End => return Ok(self.let_go(Some(Ticks(u64::MAX)))),
                Step::NeedMore(wanted) => {
                    let hold_from = self.blocks.iter().map(|block| block.0).min();
                    if !self.events.more_but_keep(wanted, hold_from)? {
                        return Ok(self.let_go(self.sorted_up_to));
                    }
                }
            }
        }
    }

    #[inline]
    fn hold(&mut self) {
        let (header, _, _) = self.events.engine.current();
        if header.is_sorted {
            self.sorted_up_to = Some(header.time);
        }
        let block = u32::try_from(self.blocks.len().saturating_sub(1)).unwrap_or(u32::MAX);
        self.held.push(Held { header: *header, block });
    }

    /// Notes the block of the current event, if it is another than that of the event before.
    fn note_block(&mut self) {
        let (_, start, end) = self.events.engine.current();
        let block = (self.events.engine.base().saturating_add(start as u64), end.saturating_sub(start));
        if self.blocks.last() != Some(&block) {
            self.blocks.push(block);
        }
    }

    /// Makes the events up to a time ready; says whether there are any.
    fn let_go(&mut self, up_to: Option<Ticks>) -> bool {
        // If few can go, the next try waits until there are many more: trying costs a pass over all that is held.
        self.patience = self.held.len().saturating_mul(2).max(BATCH);
        let Some(up_to) = up_to else { return false };
        self.ready.clear();
        self.given = 0;
        let mut held = 0u32;
        for Held { header, .. } in &self.held {
            if header.time <= up_to {
                self.ready.push(Place { time: header.time, held });
            }
            held = held.saturating_add(1);
        }
        // Each thread's events come as runs in order, of which this sort makes use; and it keeps the order of equals.
        self.ready.sort_by_key(|place| place.time);
        !self.ready.is_empty()
    }

    /// Forgets the events that have been given, and the blocks that held none of the others.
    fn drop_given(&mut self) {
        if self.ready.len() == self.held.len() {
            self.held.clear();
            self.blocks.clear();
        } else if let Some(last) = self.ready.iter().map(|place| place.time).max() {
            self.held.retain(|held| held.header.time > last);
            let first = self.held.iter().map(|held| held.block).min().unwrap_or(0);
            self.blocks.drain(..(first as usize).min(self.blocks.len()));
            for held in &mut self.held {
                held.block = held.block.saturating_sub(first);
            }
        }
        self.ready.clear();
        self.given = 0;
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
