//! Events in the order of time across threads.

use alloc::collections::{BinaryHeap, VecDeque};
use core::cmp::Reverse;
use core::time::Duration;

use crate::block::event::{Row, Rows};
use crate::damage::Damage;
use crate::engine::Step;
use crate::error::Error;
use crate::event::{Event, Header};
use crate::events::{Events, Source};
use crate::info::TraceInfo;
use crate::loss::Loss;
use crate::tables::{Again, Defined, Tables};
use crate::time::Ticks;

/// Gives the events of all threads in time order; events of the same tick in file order.
///
/// A recording is merged between its sequence points: what is held back is at most what lies between two of them, or between
/// an event that is marked as sorted and the events before it. Runtimes write a sequence point at least for every 10 MB of
/// events and mark an event as sorted every 100 ms. What is held are no events but the places where events in order begin:
/// some 150 bytes for each time that the recording goes back in time, and for a [`Reader`](crate::Reader) or
/// [`Decoder`](crate::Decoder) the bytes of the blocks.
///
/// A recording that breaks its own promise, so that an older event comes behind such a point, loses nothing: that event is
/// given when it comes.
#[derive(Debug)]
pub struct TimeOrder<S> {
    events: Events<S>,
    /// The runs that have not been given to their end are all here, each at an event that has not been given. The first of
    /// them has the number `first_run`.
    runs: VecDeque<Run>,
    first_run: u64,
    /// The blocks that they lie in, counted in the same way.
    blocks: VecDeque<Block>,
    first_block: u64,
    /// All runs that have an event left, but the current one.
    waiting: BinaryHeap<Reverse<Place>>,
    current: Option<Place>,
    /// The current run's events come next as long as they are not behind this.
    limit: Place,
    /// Events up to this may be given.
    up_to: Option<Ticks>,
    /// Nothing that follows in the recording is older than this.
    sorted_up_to: Option<Ticks>,
    newest: Ticks,
    max_delay: Option<Duration>,
}

/// An event, by when it comes: runs are numbered in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    time: Ticks,
    run: u64,
}

/// Events of a block that follow one another in time.
#[derive(Debug)]
struct Run {
    /// The reader of the block, at the run's next event.
    rows: Rows,
    /// How many more there are.
    left: u32,
    block: u64,
    defined: Defined,
    is_finished: bool,
}

#[derive(Debug)]
struct Block {
    /// Offset in the recording.
    offset: u64,
    length: usize,
    /// How many of its runs have not been given to their end.
    runs: u32,
}

impl<S: Source> Events<S> {
    /// The same events in the order of time across threads.
    pub fn in_time_order(self) -> TimeOrder<S> {
        TimeOrder {
            events: self,
            runs: VecDeque::new(),
            first_run: 0,
            blocks: VecDeque::new(),
            first_block: 0,
            waiting: BinaryHeap::new(),
            current: None,
            limit: Place { time: Ticks(0), run: 0 },
            up_to: None,
            sorted_up_to: None,
            newest: Ticks(0),
            max_delay: None,
        }
    }
}

impl<S: Source> TimeOrder<S> {
    /// For live use: an event is given at the latest when one has come that is so much newer, even if the recording has not
    /// promised that nothing older will follow. What comes later than that comes out of order.
    #[must_use]
    pub fn with_max_delay(self, delay: Duration) -> Self {
        Self { max_delay: Some(delay), ..self }
    }

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
        if !self.carry_on() && !self.advance()? {
            return Ok(None);
        }
        Ok(self.show())
    }

    /// Moves to the next event as far as it is known which that is; says whether it is.
    #[inline]
    fn carry_on(&mut self) -> bool {
        let Some(mut place) = self.current else { return false };
        let Some(run) = get_mut(&mut self.runs, place.run, self.first_run) else { return false };
        let Some(block) = get(&self.blocks, run.block, self.first_block) else { return false };
        let engine = &self.events.engine;
        if !run.step(block.content(self.events.source.bytes(), engine.base()), &engine.tables) {
            self.finish_current();
            return false;
        }
        place.time = run.rows.header.time;
        self.current = Some(place);
        place <= self.limit || self.change_runs(place)
    }

    /// The current run must wait at `place`; says whether it is known which goes on.
    fn change_runs(&mut self, place: Place) -> bool {
        if !self.may_give() {
            self.waiting.push(Reverse(place));
            self.current = None;
            return false;
        }
        self.current = self.waiting.peek_mut().map(|mut first| core::mem::replace(&mut first.0, place));
        self.set_limit();
        true
    }

    fn set_limit(&mut self) {
        let up_to = Place { time: self.up_to.unwrap_or(Ticks(0)), run: u64::MAX };
        self.limit = self.waiting.peek().map_or(up_to, |first| first.0.min(up_to));
    }

    /// Forgets the current run, and whatever lies before all others.
    fn finish_current(&mut self) {
        let Some(place) = self.current.take() else { return };
        let Some(run) = get_mut(&mut self.runs, place.run, self.first_run) else { return };
        run.is_finished = true;
        if let Some(block) = get_mut(&mut self.blocks, run.block, self.first_block) {
            block.runs = block.runs.saturating_sub(1);
        }
        while self.runs.front().is_some_and(|run| run.is_finished) {
            self.runs.pop_front();
            self.first_run = self.first_run.wrapping_add(1);
        }
        while self.blocks.front().is_some_and(|block| block.runs == 0) {
            self.blocks.pop_front();
            self.first_block = self.first_block.wrapping_add(1);
        }
    }

    /// The event at which the current run stands.
    #[inline]
    fn show(&self) -> Option<Event<'_>> {
        let run = get(&self.runs, self.current?.run, self.first_run)?;
        let block = get(&self.blocks, run.block, self.first_block)?;
        let engine = &self.events.engine;
        let content = block.content(self.events.source.bytes(), engine.base());
        engine.event_at(&run.rows.header, content, block.offset, run.defined)
    }

    /// Moves to the first event of those that wait, and reads on if none of them may be given; says whether there is one.
    #[inline(never)]
    fn advance(&mut self) -> Result<bool, Error> {
        if !self.may_give() && !self.prepare()? {
            return Ok(false);
        }
        self.current = self.waiting.pop().map(|first| first.0);
        self.set_limit();
        Ok(self.current.is_some())
    }

    fn may_give(&self) -> bool {
        self.waiting.peek().is_some_and(|first| Some(first.0.time) <= self.up_to)
    }

    /// Reads on until events may be given; says whether there are any.
    fn prepare(&mut self) -> Result<bool, Error> {
        self.up_to = self.sorted_up_to.max(self.late());
        loop {
            let source = &self.events.source;
            match self.events.engine.advance(source.bytes(), source.is_complete())? {
                Step::Event => {
                    self.hold_block();
                    self.up_to = self.sorted_up_to.max(self.late());
                    if self.may_give() {
                        return Ok(true);
                    }
                }
                // What becomes invalid is forgotten only when reading goes on: these events are given before.
                step @ (Step::SequencePoint | Step::Forgets) => {
                    if step == Step::SequencePoint {
                        self.sorted_up_to = None;
                    }
                    self.up_to = Some(Ticks(u64::MAX));
                    if self.may_give() {
                        return Ok(true);
                    }
                }
                Step::End => {
                    self.up_to = Some(Ticks(u64::MAX));
                    return Ok(self.may_give());
                }
                Step::NeedMore(wanted) => {
                    let hold_from = self.blocks.front().map(|block| block.offset);
                    if !self.events.more_but_keep(wanted, hold_from)? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// What is as old as this has waited for long enough.
    fn late(&self) -> Option<Ticks> {
        let per_second = u128::from(self.info()?.frequency);
        let ticks = self.max_delay?.as_nanos().saturating_mul(per_second).checked_div(1_000_000_000)?;
        let delay = u64::try_from(ticks).unwrap_or(u64::MAX);
        self.newest.0.checked_sub(delay).map(Ticks)
    }

    /// Holds the current event and those that follow it in its block.
    fn hold_block(&mut self) {
        let engine = &self.events.engine;
        let (content, offset, _) = engine.open_block(self.events.source.bytes());
        let mut block = Block { offset, length: content.len(), runs: 0 };
        let number = self.first_block.wrapping_add(self.blocks.len() as u64);
        let defined = engine.tables.defined();
        let first = self.runs.len();
        let runs = &mut self.runs;
        let mut last = None;
        self.events.rest_of_block(|rows, _| {
            let Header { time, is_sorted, .. } = rows.header;
            if is_sorted {
                self.sorted_up_to = Some(time);
            }
            self.newest = self.newest.max(time);
            if let (Some(run), true) = (runs.back_mut(), last.is_some_and(|last| last <= time)) {
                run.left = run.left.saturating_add(1);
            } else {
                runs.push_back(Run { rows: *rows, left: 0, block: number, defined, is_finished: false });
                block.runs = block.runs.saturating_add(1);
            }
            last = Some(time);
        });
        self.blocks.push_back(block);
        // Events of threads that nobody had heard of define them.
        let threads = self.events.engine.tables.threads.len();
        for (index, run) in self.runs.iter_mut().enumerate().skip(first) {
            run.defined.threads = threads;
            let run_number = self.first_run.wrapping_add(index as u64);
            self.waiting.push(Reverse(Place { time: run.rows.header.time, run: run_number }));
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

impl Run {
    /// Moves to the next event, if there is one.
    #[inline]
    fn step(&mut self, content: &[u8], tables: &Tables) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        // What was an event is one again.
        self.rows.carry_on(content)
            || self.rows.next(content, &mut Again { tables, defined: self.defined }) == Ok(Row::Event)
    }
}

impl Block {
    #[inline]
    fn content<'a>(&self, bytes: &'a [u8], base: u64) -> &'a [u8] {
        let start = usize::try_from(self.offset.wrapping_sub(base)).unwrap_or(usize::MAX);
        bytes.get(start..start.saturating_add(self.length)).unwrap_or_default()
    }
}

/// The item with a number, where the first one has the number `first`.
#[inline]
fn get<T>(items: &VecDeque<T>, number: u64, first: u64) -> Option<&T> {
    items.get(usize::try_from(number.wrapping_sub(first)).ok()?)
}

#[inline]
fn get_mut<T>(items: &mut VecDeque<T>, number: u64, first: u64) -> Option<&mut T> {
    items.get_mut(usize::try_from(number.wrapping_sub(first)).ok()?)
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
