//! Events in time order across threads.

mod kinds;
mod run;

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::time::Duration;

use crate::damage::Damage;
use crate::engine::Step;
use crate::error::Error;
use crate::event::Event;
use crate::events::{Events, Source};
use crate::info::TraceInfo;
use crate::loss::Loss;
use crate::metadata::Metadata;
use crate::time::{RelativeTime, Ticks};
use kinds::KindChoice;
use run::{FoundRun, Run, RunFinder};

/// Gives the events of all threads in time order; events of the same tick in file order.
///
/// A recording is merged between its sequence points: at most the events between two of them are held, or those before an event
/// that is marked as sorted. Runtimes write a sequence point at least for every 10 MB of events and mark an event as sorted
/// every 100 ms. Not the events are held, but a decoder for each run of events in time order: some 150 bytes each, and for a
/// [`Reader`](crate::Reader) or [`Decoder`](crate::Decoder) the bytes of the blocks.
///
/// [`Events::in_time_order_of`] gives events of some kinds alone. The others cost about as much as in file order; a run is then one of wanted
/// events without many others in between.
///
/// Where an older event follows such a point against the format, nothing is lost: that event is given out of order.
#[derive(Debug)]
pub struct TimeOrder<S> {
    events: Events<S>,
    /// Runs, each at its next event; those that are done are free.
    runs: Vec<Run>,
    free: Vec<u32>,
    /// The blocks of the runs, in file order. The first one has the number `first_block`.
    blocks: VecDeque<Block>,
    first_block: u64,
    /// The number of runs since none was held.
    count: u32,
    /// The number of events since then, without those of the parts that were given or passed.
    held: u64,
    /// The runs with events, without the current one.
    waiting: BinaryHeap<Reverse<MergeKey>>,
    /// The run of the event that was given last.
    current: Option<MergeKey>,
    /// The current run's events are next while they are before this.
    limit: MergeKey,
    /// The limit of events that may be given.
    up_to: MergeKey,
    /// Nothing that follows in the recording is older than this.
    sorted_up_to: Option<Ticks>,
    newest: Ticks,
    /// The newest time of all events by its sign, which relative times have.
    latest: Option<i64>,
    /// The kinds of events that are given; `None` for all.
    kinds: Option<KindChoice>,
    max_delay: Option<Duration>,
}

/// The key by which runs are merged: the time of the next event, the number of the run in file order, and the index of the run
/// in [`TimeOrder::runs`], from the high bits to the low ones. One number is compared faster than three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MergeKey(u128);

impl MergeKey {
    #[inline]
    fn new(time: Ticks, number: u32, index: u32) -> Self {
        Self(u128::from(time.0) << 64 | u128::from(number) << 32 | u128::from(index))
    }

    /// The key behind all events up to a time.
    #[inline]
    fn behind(time: Ticks) -> Self {
        Self::new(time, u32::MAX, u32::MAX)
    }

    #[inline]
    fn at(self, time: Ticks) -> Self {
        Self(u128::from(time.0) << 64 | self.0 & u128::from(u64::MAX))
    }

    #[inline]
    const fn time(self) -> Ticks {
        Ticks((self.0 >> 64) as u64)
    }

    #[inline]
    const fn index(self) -> usize {
        (self.0 & 0xffff_ffff) as usize
    }
}

#[derive(Debug)]
struct Block {
    /// Offset in the recording, and that of its end.
    offset: u64,
    end: u64,
    /// The number of its runs that have events.
    runs: u32,
}

impl<S: Source> Events<S> {
    /// Returns the same events in time order across threads.
    pub fn in_time_order(self) -> TimeOrder<S> {
        self.ordered(None)
    }

    /// Returns the events of some kinds in time order across threads: those of [`in_time_order`](Self::in_time_order) without the others, and
    /// faster where these are many. Whether a kind is wanted is asked once.
    ///
    /// All events are read: losses, damage, threads and kinds are known as without a choice.
    pub fn in_time_order_of(
        self,
        is_wanted: impl Fn(&Metadata) -> bool + Send + Sync + 'static,
    ) -> TimeOrder<S> {
        self.ordered(Some(KindChoice::new(is_wanted)))
    }

    fn ordered(self, kinds: Option<KindChoice>) -> TimeOrder<S> {
        TimeOrder {
            events: self,
            runs: Vec::new(),
            free: Vec::new(),
            blocks: VecDeque::new(),
            first_block: 0,
            count: 0,
            held: 0,
            waiting: BinaryHeap::new(),
            current: None,
            limit: MergeKey(0),
            up_to: MergeKey(0),
            sorted_up_to: None,
            newest: Ticks(0),
            latest: None,
            kinds,
            max_delay: None,
        }
    }
}

impl<S: Source> TimeOrder<S> {
    /// Limits the delay of live events: an event is given at the latest when one that is newer by `delay` has arrived, although
    /// older ones may follow. Those are given out of order.
    #[must_use]
    pub fn with_max_delay(self, delay: Duration) -> Self {
        Self { max_delay: Some(delay), ..self }
    }

    /// Has all events given that have arrived so far, for a stream that has fallen silent: runtimes mark only the first event of
    /// each thread's batch as sorted, so that the last batch would be held until the next one comes. Older events that follow
    /// are given out of order.
    pub fn release(&mut self) {
        self.sorted_up_to = self.sorted_up_to.max(Some(self.newest));
        self.set_up_to();
        self.set_limit();
    }

    /// Returns the next event in time order; `None` at the end, and with a [`Decoder`](crate::Decoder) also when more bytes are
    /// needed.
    ///
    /// # Errors
    /// As [`Events::next`].
    #[inline]
    #[allow(
        clippy::should_implement_trait,
        reason = "an event borrows from its reader, which an Iterator's items cannot"
    )]
    pub fn next(&mut self) -> Result<Option<Event<'_>>, Error> {
        if !self.next_held() && !self.advance()? {
            return Ok(None);
        }
        Ok(self.current())
    }

    /// Returns the event that [`next`](Self::next) returned last, if that was one.
    #[inline]
    pub fn current(&self) -> Option<Event<'_>> {
        let run = self.current.and_then(|key| self.runs.get(key.index()))?;
        let Events { engine, source } = &self.events;
        let content = run.content(source.bytes(), engine.base());
        engine.event_at(&run.rows.header, content, run.offset, run.lengths)
    }

    /// Calls `each` with the events that are left, in the order of [`next`](Self::next). With a [`Decoder`](crate::Decoder) it
    /// ends when more bytes are needed.
    ///
    /// # Errors
    /// As [`Events::next`].
    pub fn for_each(&mut self, mut each: impl FnMut(Event<'_>)) -> Result<(), Error> {
        while let Some(event) = self.next()? {
            each(event);
        }
        Ok(())
    }

    /// Calls `each` with the next part of the events that are left, in the order of [`next`](Self::next): about `most` of them, and at
    /// least one. Returns how many they are; `None` at the end, and with a [`Decoder`](crate::Decoder) also when more bytes are needed.
    ///
    /// Where parts end depends on the recording, on `most` and on the kinds that are wanted alone. So several readers of a recording can share its events: each reads some
    /// of the parts, and [passes](Self::pass_part) the others, which costs little.
    ///
    /// # Errors
    /// As [`Events::next`].
    pub fn read_part(&mut self, most: usize, mut each: impl FnMut(Event<'_>)) -> Result<Option<u64>, Error> {
        let Some(all) = self.begin_part(most)? else { return Ok(None) };
        let mut count = 0_u64;
        while self.next_held() || self.take_next() {
            count = count.saturating_add(1);
            if let Some(event) = self.current() {
                each(event);
            }
        }
        self.end_part(all, count);
        Ok(Some(count))
    }

    /// Passes the part that [`read_part`](Self::read_part) would read. Returns the number of its events.
    ///
    /// # Errors
    /// As [`Events::next`].
    pub fn pass_part(&mut self, most: usize) -> Result<Option<u64>, Error> {
        let Some(all) = self.begin_part(most)? else { return Ok(None) };
        let mut count = 0_u64;
        while self.may_give()
            && let Some(Reverse(key)) = self.waiting.pop()
        {
            count = count.saturating_add(self.pass_in_run(key));
        }
        self.end_part(all, count);
        Ok(Some(count))
    }

    /// Passes the events of a run that may be given. Returns their number.
    fn pass_in_run(&mut self, mut key: MergeKey) -> u64 {
        let Some(run) = self.runs.get_mut(key.index()) else { return 0 };
        let Events { engine, source } = &self.events;
        let content = run.content(source.bytes(), engine.base());
        let mut count = 0_u64;
        while key < self.up_to {
            count = count.saturating_add(1);
            if !run.step(content, &engine.tables, self.kinds.as_ref()) {
                self.current = Some(key);
                self.finish_current();
                return count;
            }
            key = key.at(run.rows.header.time);
        }
        self.waiting.push(Reverse(key));
        count
    }

    /// Reads until there are events that may be given, and limits them to a part. Returns the limit of all that may be given, for
    /// [`end_part`](Self::end_part); `None` if there are no events.
    fn begin_part(&mut self, most: usize) -> Result<Option<MergeKey>, Error> {
        // The event that was given last, by `next`, is passed.
        if self.next_held()
            && let Some(key) = self.current.take()
        {
            self.waiting.push(Reverse(key));
        }
        if !self.may_give() && !self.prepare()? {
            return Ok(None);
        }
        let all = self.up_to;
        self.up_to = self.part_end(most);
        Ok(Some(all))
    }

    fn end_part(&mut self, all: MergeKey, count: u64) {
        self.up_to = all;
        self.held = self.held.saturating_sub(count);
    }

    /// Returns the limit of a part of about `most` events, as if those that are held were spread evenly over their time.
    fn part_end(&self, most: usize) -> MergeKey {
        let Some(Reverse(first)) = self.waiting.peek() else { return self.up_to };
        let most = most as u64;
        if self.held <= most {
            return self.up_to;
        }
        let (from, to) = (first.time().0, self.up_to.time().min(self.newest).0);
        let share =
            u128::from(to.saturating_sub(from)).saturating_mul(most.into()).checked_div(self.held.into());
        let end = from.saturating_add(share.and_then(|share| u64::try_from(share).ok()).unwrap_or(u64::MAX));
        MergeKey::behind(Ticks(end)).min(self.up_to)
    }

    /// Moves to the next event of the runs that are held. Returns whether that is the next of all.
    #[inline]
    fn next_held(&mut self) -> bool {
        let Some(key) = &mut self.current else { return false };
        let Some(run) = self.runs.get_mut(key.index()) else { return false };
        let Events { engine, source } = &self.events;
        if !run.step(run.content(source.bytes(), engine.base()), &engine.tables, self.kinds.as_ref()) {
            self.finish_current();
            return false;
        }
        *key = key.at(run.rows.header.time);
        if *key < self.limit {
            return true;
        }
        let key = *key;
        self.change_runs(key)
    }

    /// Puts the current run back with its key, and takes the next one. Returns whether there is one that may be given.
    #[inline]
    fn change_runs(&mut self, key: MergeKey) -> bool {
        if !self.may_give() {
            self.waiting.push(Reverse(key));
            self.current = None;
            return false;
        }
        self.current = self.waiting.peek_mut().map(|mut first| core::mem::replace(&mut first.0, key));
        self.set_limit();
        true
    }

    #[inline]
    fn set_limit(&mut self) {
        self.limit = self.waiting.peek().map_or(self.up_to, |first| first.0.min(self.up_to));
    }

    /// Frees the current run, and the first blocks if they have no runs left.
    #[inline(never)]
    fn finish_current(&mut self) {
        let Some(key) = self.current.take() else { return };
        let block = self.runs.get(key.index()).map_or(0, |run| run.block);
        self.free.extend(u32::try_from(key.index()));
        let index = usize::try_from(block.wrapping_sub(self.first_block)).unwrap_or(usize::MAX);
        if let Some(block) = self.blocks.get_mut(index) {
            debug_assert!(block.runs > 0, "a run ends once");
            block.runs = block.runs.saturating_sub(1);
        }
        while self.blocks.front().is_some_and(|block| block.runs == 0) {
            self.blocks.pop_front();
            self.first_block = self.first_block.wrapping_add(1);
        }
    }

    /// Moves to the first event of the waiting runs, and reads more if none of them may be given. Returns whether there is one.
    #[inline(never)]
    fn advance(&mut self) -> Result<bool, Error> {
        Ok(self.take_next() || self.prepare()? && self.take_next())
    }

    /// Moves to the first event of the waiting runs, if it may be given. Returns whether it may.
    fn take_next(&mut self) -> bool {
        if !self.may_give() {
            return false;
        }
        self.current = self.waiting.pop().map(|first| first.0);
        self.set_limit();
        self.current.is_some()
    }

    #[inline]
    fn may_give(&self) -> bool {
        self.waiting.peek().is_some_and(|first| first.0 < self.up_to)
    }

    /// Reads more until events may be given. Returns whether there are any.
    fn prepare(&mut self) -> Result<bool, Error> {
        if self.waiting.is_empty() {
            self.count = 0;
            self.held = 0;
        }
        self.set_up_to();
        loop {
            let source = &self.events.source;
            match self.events.engine.advance(source.bytes(), source.is_complete())? {
                Step::Event => {
                    self.hold_block();
                    self.set_up_to();
                    if self.may_give() {
                        return Ok(true);
                    }
                }
                // Ids lose their meaning with the next call of `advance`: these events are given before.
                step @ (Step::SequencePoint | Step::Invalidates) => {
                    if step == Step::SequencePoint {
                        self.sorted_up_to = None;
                    }
                    self.up_to = MergeKey(u128::MAX);
                    if self.may_give() {
                        return Ok(true);
                    }
                }
                Step::End => {
                    self.up_to = MergeKey(u128::MAX);
                    return Ok(self.may_give());
                }
                Step::NeedMore(wanted) => {
                    let hold_from = self.blocks.front().map(|block| block.offset);
                    if !self.events.more_but_keep(wanted, hold_from)? {
                        return Ok(false);
                    }
                }
                Step::Skip(beyond) => {
                    let hold_from = self.blocks.front().map(|block| block.offset);
                    if !self.events.skip(beyond, hold_from)? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    fn set_up_to(&mut self) {
        self.up_to = self.sorted_up_to.max(self.overdue()).map_or(MergeKey(0), MergeKey::behind);
    }

    /// The time of events that have reached the greatest delay.
    fn overdue(&self) -> Option<Ticks> {
        let per_second = u128::from(self.info()?.frequency);
        let ticks = self.max_delay?.as_nanos().saturating_mul(per_second).checked_div(1_000_000_000)?;
        let delay = u64::try_from(ticks).unwrap_or(u64::MAX);
        self.newest.0.checked_sub(delay).map(Ticks)
    }

    /// Holds the runs of the open block, from the current event on.
    fn hold_block(&mut self) {
        let engine = &self.events.engine;
        let Some((_, content, offset, _)) = engine.open_block(self.events.source.bytes()) else { return };
        let length = content.len();
        let mut lengths = engine.tables.lengths();
        let mut finder = RunFinder::default();
        if let Some(kinds) = &mut self.kinds {
            // Kinds are defined between blocks, or in a row that ends the loop.
            kinds.update(engine.tables.metadata.rows());
        }
        let kinds = self.kinds.as_ref();
        // One loop for both, whose decoder is inlined.
        self.events.rest_of_block(|rows, _| match kinds {
            None => finder.add(rows),
            Some(kinds) => finder.add_if(rows, kinds.contains(rows.header.metadata)),
        });
        let (found, times) = finder.finish();
        self.newest = self.newest.max(times.newest);
        self.latest = self.latest.max(Some(times.latest));
        self.sorted_up_to = times.sorted.or(self.sorted_up_to);
        if found.is_empty() {
            return;
        }
        // Events introduce threads that are not described.
        lengths.threads = self.events.engine.tables.threads.len();
        let end = offset.saturating_add(length as u64);
        let block = self.first_block.wrapping_add(self.blocks.len() as u64);
        self.blocks.push_back(Block { offset, end, runs: u32::try_from(found.len()).unwrap_or(u32::MAX) });
        for FoundRun { rows, left, events } in found {
            self.hold(Run { rows, left, offset, length, block, lengths }, events);
        }
    }

    fn hold(&mut self, run: Run, events: u32) {
        let time = run.rows.header.time;
        let free = self.free.pop();
        let index = free.unwrap_or_else(|| u32::try_from(self.runs.len()).unwrap_or(u32::MAX));
        match self.runs.get_mut(index as usize) {
            Some(place) => *place = run,
            None => self.runs.push(run),
        }
        self.waiting.push(Reverse(MergeKey::new(time, self.count, index)));
        self.count = self.count.saturating_add(1);
        self.held = self.held.saturating_add(u64::from(events));
    }

    /// The memory that the events take which are held, in bytes: the blocks that they are in, and their decoders. It depends on the recording
    /// and on the events that were given or passed alone.
    pub fn held_bytes(&self) -> u64 {
        let first = self.blocks.front().map_or(0, |block| block.offset);
        let blocks = self.blocks.back().map_or(0, |block| block.end.saturating_sub(first));
        let runs = self.runs.len().saturating_mul(size_of::<Run>()) as u64;
        blocks.saturating_add(runs)
    }

    /// The time of the last event that was read so far, of whatever kind; `None` before the first.
    pub fn last_time(&self) -> Option<RelativeTime> {
        Some(self.info()?.relative_time(Ticks(self.latest?.cast_unsigned())))
    }

    /// Format, version, clock and process of the recording; `None` while the header has not arrived.
    pub fn info(&self) -> Option<&TraceInfo> {
        self.events.info()
    }

    /// Events that the runtime lost, as far as the recording has been read.
    pub fn loss(&self) -> &Loss {
        self.events.loss()
    }

    /// Damage, as far as the recording has been read. Only the first 1024 are listed.
    pub fn damage(&self) -> &[Damage] {
        self.events.damage()
    }

    /// Returns the reader in file order, which goes on behind the events that were read so far.
    pub fn into_events(self) -> Events<S> {
        self.events
    }

    /// The reader in file order, for all other properties of the recording.
    pub const fn events(&self) -> &Events<S> {
        &self.events
    }
}

impl TimeOrder<crate::PushSource> {
    /// Reads the header, as [`Decoder::read_header`](crate::Decoder::read_header).
    ///
    /// # Errors
    /// As [`Decoder::read_header`](crate::Decoder::read_header).
    pub fn read_header(&mut self) -> Result<Option<&TraceInfo>, Error> {
        self.events.read_header()
    }

    /// Adds bytes behind those of earlier calls.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.events.feed(bytes);
    }

    /// Declares that no more bytes will come.
    pub fn end_of_input(&mut self) {
        self.events.end_of_input();
    }
}
