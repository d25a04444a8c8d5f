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
/// between an event that is marked as sorted and the events before it. In memory that is some 72 bytes for each event held
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
    /// Events in order, of which those before `given` have been given.
    ready: Vec<Held>,
    given: usize,
    /// Nothing that follows in the recording is older than this.
    sorted_up_to: Option<Ticks>,
    /// Where the earliest block begins whose events are held.
    held_from: Option<u64>,
    /// How many events may be held before it is tried to let some go.
    patience: usize,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    header: Header,
    block_offset: u64,
    block_len: usize,
}

impl<S: Source> Events<S> {
    /// The same events in the order of time across threads.
    pub fn in_time_order(self) -> TimeOrder<S> {
        TimeOrder {
            events: self,
            held: Vec::new(),
            ready: Vec::new(),
            given: 0,
            sorted_up_to: None,
            held_from: None,
            patience: BATCH,
        }
    }
}

impl<S: Source> TimeOrder<S> {
    /// The next event in time order. `None` at the end; in the push form also when more bytes are needed.
    ///
    /// # Errors
    /// As [`Events::next`].
    #[allow(
        clippy::should_implement_trait,
        reason = "an event borrows from its reader, which an Iterator's items cannot"
    )]
    pub fn next(&mut self) -> Result<Option<Event<'_>>, Error> {
        while self.given >= self.ready.len() {
            if !self.prepare()? {
                return Ok(None);
            }
        }
        let held = self.ready.get(self.given);
        self.given = self.given.saturating_add(1);
        Ok(held.and_then(|held| self.show(held)))
    }

    fn show<'a>(&'a self, held: &'a Held) -> Option<Event<'a>> {
        let engine = &self.events.engine;
        let start = usize::try_from(held.block_offset.checked_sub(engine.base())?).ok()?;
        let block = self.events.source.bytes().get(start..start.checked_add(held.block_len)?)?;
        engine.event_at(&held.header, block, held.block_offset)
    }

    /// Reads on until events can be given; says whether there can be any more.
    fn prepare(&mut self) -> Result<bool, Error> {
        self.ready.clear();
        self.given = 0;
        loop {
            let source = &self.events.source;
            match self.events.engine.advance(source.bytes(), source.is_complete())? {
                Step::Event => {
                    self.hold();
                    if self.held.len() >= self.patience && self.let_go(self.sorted_up_to) {
                        return Ok(true);
                    }
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
                    if !self.events.more_but_keep(wanted, self.held_from)? {
                        return Ok(self.let_go(self.sorted_up_to));
                    }
                }
            }
        }
    }

    fn hold(&mut self) {
        let Some((header, start, end)) = self.events.engine.current() else { return };
        let block_offset = self.events.engine.base().saturating_add(start as u64);
        self.held_from.get_or_insert(block_offset);
        self.held.push(Held { header, block_offset, block_len: end.saturating_sub(start) });
        if header.is_sorted {
            self.sorted_up_to = Some(header.time);
        }
    }

    /// Makes the events up to a time ready; says whether there are any.
    fn let_go(&mut self, up_to: Option<Ticks>) -> bool {
        let Some(up_to) = up_to else {
            self.patience = self.held.len().saturating_mul(2).max(BATCH);
            return false;
        };
        // Each thread's events come as runs in order, of which this sort makes use; and it keeps the order of equals.
        self.held.sort_by_key(|held| held.header.time);
        let count = self.held.partition_point(|held| held.header.time <= up_to);
        self.ready.extend(self.held.drain(..count));
        self.held_from = self.held.iter().map(|held| held.block_offset).min();
        // If few could go, the next try waits until there are many more: trying costs a pass over all that is held.
        self.patience = self.held.len().saturating_mul(2).max(BATCH);
        count > 0
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
