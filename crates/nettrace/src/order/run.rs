//! Runs: events of a block in time order.

use alloc::vec::Vec;

use super::kinds::{ActivityFilter, Interest, KindChoice};
use crate::engine::RowVisitor;
use crate::event::Event;
use crate::metadata::MetadataSlot;
use crate::raw::{RowDecoder, RowHeader, RowKind};
use crate::tables::{SnapshotLookup, TableLengths, Tables};
use crate::time::Ticks;

/// Maximum number of events of other kinds within a run: rereading more of them would cost more than another
/// run.
const MAX_SKIPPED: u32 = 32;

/// Events of a block in time order, with events of other kinds between them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    /// The decoder of the block, at the run's next event.
    pub(super) rows: RowDecoder,
    /// The number of rows after that, up to the run's last event.
    pub(super) left: u32,
    /// Offset of the block in the recording, and its length.
    pub(super) offset: u64,
    pub(super) length: usize,
    /// Number of the block.
    pub(super) block: u64,
    pub(super) lengths: TableLengths,
}

impl Run {
    /// The content of its block.
    #[inline]
    pub(super) fn content<'a>(&self, bytes: &'a [u8], base: u64) -> &'a [u8] {
        let start = usize::try_from(self.offset.wrapping_sub(base)).unwrap_or(usize::MAX);
        bytes.get(start..start.saturating_add(self.length)).unwrap_or_default()
    }

    /// Moves to the next event of a kind that is wanted, if there is one.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the loop around it is where a reader spends its time")]
    pub(super) fn step(&mut self, content: &[u8], tables: &Tables, kinds: Option<&KindChoice>) -> bool {
        match kinds {
            None => self.step_row(content, tables),
            Some(kinds) => self.step_to_wanted(content, tables, kinds),
        }
    }

    /// Moves to the next row, if there is one.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the loop around it is where a reader spends its time")]
    fn step_row(&mut self, content: &[u8], tables: &Tables) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        // The row is known to be an event.
        self.rows.next_fast(content)
            || self.rows.next(content, &mut SnapshotLookup { tables, lengths: self.lengths })
                == Ok(RowKind::Event)
    }

    /// Moves to the next row of a wanted kind. Separate from the loop over all events, which stays small.
    #[inline(never)]
    fn step_to_wanted(&mut self, content: &[u8], tables: &Tables, kinds: &KindChoice) -> bool {
        while self.step_row(content, tables) {
            if kinds.interest(self.rows.header.metadata) != Interest::None {
                return true;
            }
        }
        false
    }
}

/// A run in the rows of a block.
#[derive(Debug)]
pub(super) struct FoundRun {
    /// The decoder of the block, at the run's first event.
    pub(super) rows: RowDecoder,
    /// The number of rows after that, up to the run's last event.
    pub(super) left: u32,
    /// The number of events.
    pub(super) events: u32,
}

/// Finds the runs of a block from its rows, passed one by one.
#[derive(Debug, Default)]
pub(super) struct RunFinder {
    found: Vec<FoundRun>,
    /// The number of rows of the last run after its first one.
    left: u32,
    /// The number of these rows that are of other kinds.
    others: u32,
    /// The time of its last event; `None` if the next event begins a run.
    last: Option<Ticks>,
    /// The number of rows of other kinds since that event.
    passed: u32,
    times: RowTimes,
}

/// Finds the runs of the events of some kinds in a block.
#[derive(Debug)]
pub(super) struct ChosenRuns<'k> {
    kinds: &'k mut KindChoice,
    pub(super) finder: RunFinder,
    activities: ActivityFilter,
    /// True if the next event of the group is wanted.
    is_wanted: bool,
    /// True if those after it are.
    are_others_wanted: bool,
    /// True if passed events would be given if a run with them were read again.
    are_of_interest: bool,
    /// The number of events of the group so far.
    count: u32,
}

impl<'k> ChosenRuns<'k> {
    pub(super) fn new(kinds: &'k mut KindChoice) -> Self {
        Self {
            kinds,
            finder: RunFinder::default(),
            activities: ActivityFilter::default(),
            is_wanted: false,
            are_others_wanted: false,
            are_of_interest: false,
            count: 0,
        }
    }
}

impl RowVisitor for ChosenRuns<'_> {
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the loop around it is where a reader spends its time")]
    fn begin(&mut self, first: &Event<'_>) {
        self.count = 0;
        let interest = self.kinds.interest(first.header.metadata);
        self.are_of_interest = interest != Interest::None;
        (self.is_wanted, self.are_others_wanted) = match interest {
            Interest::None => (false, false),
            Interest::Activity => (self.activities.is_needed(first), self.activities.are_others_needed()),
            Interest::All => {
                self.activities.reset();
                (true, true)
            }
        };
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the loop around it is where a reader spends its time")]
    fn row(&mut self, rows: &RowDecoder, _: Event<'_>) {
        self.count = self.count.wrapping_add(1);
        if self.is_wanted {
            self.finder.add_wanted(rows);
            self.is_wanted = self.are_others_wanted;
        } else {
            self.finder.pass(&rows.header);
        }
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the loop around it is where a reader spends its time")]
    fn end(&mut self, kind: MetadataSlot) {
        self.kinds.count(kind, self.count);
        if self.are_of_interest && self.finder.passed > 0 {
            self.finder.split();
        }
    }
}

/// The times of rows of any kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowTimes {
    /// The newest time, once the last run has ended.
    pub(super) newest: Ticks,
    /// The newest time, compared as signed: relative times can be negative.
    pub(super) latest: i64,
    /// The time of the last row that is marked as sorted.
    pub(super) sorted: Option<Ticks>,
}

impl RunFinder {
    /// Adds the event at which the decoder stands.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the loop around it is where a reader spends its time")]
    pub(super) fn add(&mut self, rows: &RowDecoder) {
        let time = rows.header.time;
        self.times.add(&rows.header);
        if self.last.is_none_or(|last| time < last) {
            self.begin_run(rows);
        } else {
            self.left = self.left.saturating_add(1);
        }
        self.last = Some(time);
    }

    /// Adds the event at which the decoder stands, with events of other kinds before it.
    #[inline]
    fn add_wanted(&mut self, rows: &RowDecoder) {
        if self.passed <= MAX_SKIPPED && self.last.is_some_and(|last| last <= rows.header.time) {
            self.left = self.left.saturating_add(self.passed);
            self.others = self.others.saturating_add(self.passed);
        } else {
            self.end_run();
        }
        self.passed = 0;
        self.add(rows);
    }

    /// Passes an event.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the loop around it is where a reader spends its time")]
    fn pass(&mut self, header: &RowHeader) {
        self.times.add(header);
        self.times.newest = self.times.newest.max(header.time);
        self.passed = self.passed.saturating_add(1);
    }

    /// Makes the next event that is added begin a run. Runs are read again without knowledge of activities,
    /// so a run must not span an event that was passed for an activity.
    const fn split(&mut self) {
        self.passed = u32::MAX;
    }

    #[inline(never)]
    fn begin_run(&mut self, rows: &RowDecoder) {
        self.end_run();
        self.found.push(FoundRun { rows: *rows, left: 0, events: 0 });
    }

    #[inline(never)]
    fn end_run(&mut self) {
        let (Some(run), Some(last)) = (self.found.last_mut(), self.last.take()) else { return };
        run.left = self.left;
        run.events = self.left.saturating_sub(self.others).saturating_add(1);
        (self.left, self.others) = (0, 0);
        // The last event of a run is its newest.
        self.times.newest = self.times.newest.max(last);
    }

    /// Returns the runs, in file order, and the times of all rows.
    pub(super) fn finish(mut self) -> (Vec<FoundRun>, RowTimes) {
        self.end_run();
        (self.found, self.times)
    }
}

impl Default for RowTimes {
    fn default() -> Self {
        Self { newest: Ticks(0), latest: i64::MIN, sorted: None }
    }
}

impl RowTimes {
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the loop around it is where a reader spends its time")]
    fn add(&mut self, header: &RowHeader) {
        let time = header.time;
        self.latest = self.latest.max(time.0.cast_signed());
        self.sorted = if header.is_sorted { Some(time) } else { self.sorted };
    }
}
