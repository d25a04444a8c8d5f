//! The merging of runs by time.
//!
//! Nothing here depends on the source of the bytes, so this crate compiles it, with its own level of
//! optimisation.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::kinds::KindChoice;
use super::run::{ChosenRuns, FoundRun, RowTimes, Run, RunFinder};
use crate::engine::Engine;
use crate::event::Event;
use crate::time::Ticks;

/// The runs that are held, and the order in which their events are given.
///
/// Methods take the available bytes, and the engine that reads them.
#[derive(Debug)]
pub(super) struct Merge {
    /// Runs, each at its next event; finished runs are free.
    runs: Vec<Run>,
    free: Vec<u32>,
    /// The blocks of the runs, in file order. The first one has the number `first_block`.
    blocks: VecDeque<Block>,
    first_block: u64,
    /// The number of runs since the merge was last empty.
    count: u32,
    /// The number of events since then, excluding parts that were given or passed.
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
    /// The newest time of all events, compared as signed: relative times can be negative.
    latest: Option<i64>,
    /// The kinds of events that are given; `None` for all.
    kinds: Option<KindChoice>,
}

/// The key by which runs are merged: the time of the next event, the number of the run in file order, and the
/// index of the run in [`Merge::runs`], from the high bits to the low ones. One number is compared faster
/// than three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MergeKey(u128);

impl MergeKey {
    #[inline]
    fn new(time: Ticks, number: u32, index: u32) -> Self {
        Self(u128::from(time.0) << 64 | u128::from(number) << 32 | u128::from(index))
    }

    /// The key after all events up to a time.
    #[inline]
    fn after(time: Ticks) -> Self {
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
    /// Offset of the block in the recording, and of its end.
    offset: u64,
    end: u64,
    /// The number of its runs that have events.
    runs: u32,
}

impl Merge {
    pub(super) const fn new(kinds: Option<KindChoice>) -> Self {
        Self {
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
        }
    }

    /// Prepares for more runs: numbers start again if no run is held.
    pub(super) fn begin(&mut self) {
        if self.waiting.is_empty() {
            self.count = 0;
            self.held = 0;
        }
    }

    /// Declares that nothing older than the events held so far follows.
    pub(super) fn release(&mut self) {
        self.sorted_up_to = self.sorted_up_to.max(Some(self.newest));
    }

    /// Releases all held events. After a sequence point, nothing is known about the events that follow.
    pub(super) fn release_all(&mut self, is_at_sequence_point: bool) {
        if is_at_sequence_point {
            self.sorted_up_to = None;
        }
        self.up_to = MergeKey(u128::MAX);
    }

    /// Limits the events that may be given to events that nothing older follows, or that are at least `delay`
    /// ticks older than the newest event.
    pub(super) fn limit_to_sorted(&mut self, delay: Option<u64>) {
        let overdue = delay.and_then(|delay| self.newest.0.checked_sub(delay).map(Ticks));
        self.up_to = self.sorted_up_to.max(overdue).map_or(MergeKey(0), MergeKey::after);
    }

    /// The current event.
    pub(super) fn current<'a>(&'a self, engine: &'a Engine, bytes: &'a [u8]) -> Option<Event<'a>> {
        let run = self.current.and_then(|key| self.runs.get(key.index()))?;
        engine.event_at(&run.rows.header, run.content(bytes, engine.base()), run.offset, run.lengths)
    }

    /// Calls `each` with the events that may be given, after the current one. Returns their number.
    pub(super) fn give(&mut self, engine: &Engine, bytes: &[u8], each: &mut dyn FnMut(Event<'_>)) -> u64 {
        let mut count = 0_u64;
        while self.next_held(engine, bytes) || self.take_next() {
            count = count.saturating_add(1);
            if let Some(event) = self.current(engine, bytes) {
                each(event);
            }
        }
        count
    }

    /// Passes the events that may be given. Returns their number.
    pub(super) fn pass(&mut self, engine: &Engine, bytes: &[u8]) -> u64 {
        let mut count = 0_u64;
        while self.may_give()
            && let Some(Reverse(key)) = self.waiting.pop()
        {
            count = count.saturating_add(self.pass_in_run(engine, bytes, key));
        }
        count
    }

    /// Passes the current event, and queues the next one like all others.
    pub(super) fn put_back(&mut self, engine: &Engine, bytes: &[u8]) {
        if self.next_held(engine, bytes)
            && let Some(key) = self.current.take()
        {
            self.waiting.push(Reverse(key));
        }
    }

    /// Limits the events that may be given to a part of about `most`. Returns the limit of all, for
    /// [`end_part`](Self::end_part).
    pub(super) fn begin_part(&mut self, most: usize) -> MergeKey {
        let end = self.part_end(most);
        core::mem::replace(&mut self.up_to, end)
    }

    /// Ends a part of which `count` events were given or passed.
    pub(super) fn end_part(&mut self, all: MergeKey, count: u64) {
        self.up_to = all;
        self.held = self.held.saturating_sub(count);
    }

    /// Passes the events of a run that may be given. Returns their number.
    fn pass_in_run(&mut self, engine: &Engine, bytes: &[u8], mut key: MergeKey) -> u64 {
        let Some(run) = self.runs.get_mut(key.index()) else { return 0 };
        let content = run.content(bytes, engine.base());
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

    /// Returns the limit of a part of about `most` events, assuming that held events are spread evenly over
    /// their time.
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
        MergeKey::after(Ticks(end)).min(self.up_to)
    }

    /// Moves to the next event of the runs that are held. Returns whether that is the next of all.
    pub(super) fn next_held(&mut self, engine: &Engine, bytes: &[u8]) -> bool {
        let Some(key) = &mut self.current else { return false };
        let Some(run) = self.runs.get_mut(key.index()) else { return false };
        if !run.step(run.content(bytes, engine.base()), &engine.tables, self.kinds.as_ref()) {
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

    /// Puts the current run back with its key, and takes the next one. Returns whether that run's event may
    /// be given.
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
    pub(super) fn set_limit(&mut self) {
        self.limit = self.waiting.peek().map_or(self.up_to, |first| first.0.min(self.up_to));
    }

    /// Frees the current run, and the first blocks once all their runs are free.
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

    /// Moves to the first event of the waiting runs, if it may be given. Returns whether it may.
    pub(super) fn take_next(&mut self) -> bool {
        if !self.may_give() {
            return false;
        }
        self.current = self.waiting.pop().map(|first| first.0);
        self.set_limit();
        self.current.is_some()
    }

    #[inline]
    pub(super) fn may_give(&self) -> bool {
        self.waiting.peek().is_some_and(|first| first.0 < self.up_to)
    }

    /// Holds the runs of the open block, from the current event on.
    pub(super) fn hold_block(&mut self, engine: &mut Engine, bytes: &[u8]) {
        let Some((_, content, offset, _)) = engine.open_block(bytes) else { return };
        let length = content.len();
        let mut lengths = engine.tables.lengths();
        let (found, times) = match &mut self.kinds {
            None => find_all_runs(engine, bytes),
            Some(kinds) => find_chosen_runs(engine, bytes, kinds),
        };
        self.newest = self.newest.max(times.newest);
        self.latest = self.latest.max(Some(times.latest));
        self.sorted_up_to = times.sorted.or(self.sorted_up_to);
        if found.is_empty() {
            return;
        }
        // Events introduce threads that are not described.
        lengths.threads = engine.tables.threads.len();
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

    /// Offset in the recording of the first held byte; `None` if no byte is held.
    pub(super) fn held_from(&self) -> Option<u64> {
        self.blocks.front().map(|block| block.offset)
    }

    /// The memory of the blocks that are held, and of the runs, in bytes.
    pub(super) fn held_bytes(&self) -> u64 {
        let blocks = match (self.held_from(), self.blocks.back()) {
            (Some(first), Some(last)) => last.end.saturating_sub(first),
            _ => 0,
        };
        blocks.saturating_add(self.runs.len().saturating_mul(size_of::<Run>()) as u64)
    }

    /// The number of events read so far of each kind, if kinds are chosen.
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> {
        self.kinds.iter().flat_map(KindChoice::counts)
    }

    /// The newest time of all events read so far, of any kind.
    pub(super) fn latest(&self) -> Option<Ticks> {
        self.latest.map(|latest| Ticks(latest.cast_unsigned()))
    }
}

/// Returns the runs of the open block, from the current event on.
#[inline(never)]
fn find_all_runs(engine: &mut Engine, bytes: &[u8]) -> (Vec<FoundRun>, RowTimes) {
    let mut finder = RunFinder::default();
    engine.rest_of_block(bytes, |rows, _| finder.add(rows));
    finder.finish()
}

/// Returns the runs of the events of some kinds.
#[inline(never)]
fn find_chosen_runs(engine: &mut Engine, bytes: &[u8], kinds: &mut KindChoice) -> (Vec<FoundRun>, RowTimes) {
    // Kinds are defined between blocks, or in a row that ends the loop.
    kinds.update(engine.tables.metadata.rows());
    let mut runs = ChosenRuns::new(kinds);
    engine.visit_rest_of_block(bytes, &mut runs);
    runs.finder.finish()
}
