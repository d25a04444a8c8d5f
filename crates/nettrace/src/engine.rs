//! The reader without input or output: it is handed bytes, and moves through them event by event.
//!
//! Whoever owns the bytes calls [`Engine::advance`] with all that have not been released. The answer is an event (which
//! [`Engine::event`] then shows), a sequence point, or that more bytes are needed; a block is looked at only when it is whole,
//! or when no more bytes will come. Nothing here keeps or copies an event.

pub(crate) mod blocks;
#[cfg(feature = "rayon")]
pub(crate) mod deferred;
mod header;

use core::ops::Range;

use crate::block::event::{Encoding, Row, Rows};
use crate::cursor::{ReadError, ReadResult};
use crate::error::Error;
use crate::event::{Event, Header, Layout};
use crate::metadata::Metadata;
use crate::tables::{TableLengths, Tables};

use crate::block::sequence_point::Invalidation;

/// What [`Engine::advance`] came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// An event, which [`Engine::event`] shows.
    Event,
    /// What follows makes something invalid to which events so far refer; it does so with the next call.
    Invalidates,
    /// Everything older has been given, and it is as with `Invalidates`.
    SequencePoint,
    /// At least this many more bytes are needed.
    NeedMore(usize),
    /// Nothing more will come.
    End,
}

/// Where in the stream the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first byte.
    Start,
    /// Between objects of netperf V3 or nettrace V4.
    Objects,
    /// Between blocks of V6.
    Blocks,
    /// Between events of netperf V1 and V2, which have no blocks.
    Flat,
    /// Behind damage: looking for the next block since the offset.
    Resync { since: u64, what: &'static str },
    /// Behind the end of the stream; the number of bytes that stand there all the same.
    Ended { trailing: u64 },
    /// The recording was cut.
    Cut,
}

/// The event block that is being read: offsets in the bytes at hand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Open {
    start: usize,
    end: usize,
    next: usize,
    rows: Rows,
    /// The block goes on behind the last byte there is.
    cut: bool,
}

/// What is wrong with an event that does not end with its block.
pub(crate) const BEHIND_ITS_BLOCK: &str = "event that goes on behind its block";

impl Open {
    /// No block, which has no rows.
    const NONE: Self = Self { start: 0, end: 0, next: 0, rows: Rows::new(0, Encoding::Netperf), cut: false };
}

#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) tables: Tables,
    layout: Layout,
    state: State,
    /// Offset in the recording of the first byte at hand.
    base: u64,
    /// The next byte, counted from there.
    at: usize,
    /// What the padding of blocks shows of bytes that are missing before them: to be added to their offsets.
    shift: u64,
    open: Open,
    is_open: bool,
    forget: Option<Invalidation>,
    /// Blocks of events are passed by, for others to read, and so are sequence points.
    passes_events: bool,
    /// The sequence point that was passed by: its content in the bytes at hand.
    passed_point: Option<Range<usize>>,
    /// The block that was said to replace stacks or label lists: offset in the recording.
    replacing: Option<u64>,
}

impl Engine {
    pub(crate) fn new() -> Self {
        Self {
            tables: Tables::default(),
            layout: Layout::V4,
            state: State::Start,
            base: 0,
            at: 0,
            shift: 0,
            open: Open::NONE,
            is_open: false,
            forget: None,
            passes_events: false,
            passed_point: None,
            replacing: None,
        }
    }

    /// Reads the header, and no event; `None` once it is read.
    pub(crate) fn open(&mut self, bytes: &[u8], end: bool) -> Result<Option<Step>, Error> {
        if self.state == State::Start { self.start(bytes, end) } else { Ok(None) }
    }

    /// Moves to the next event if it is of the commonest kind, in the open block.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the loop around it is where a reader spends its time")]
    pub(crate) fn next_fast(&mut self, bytes: &[u8]) -> bool {
        let content = bytes.get(self.open.start..self.open.end).unwrap_or_default();
        self.open.rows.next_fast(content)
    }

    /// Moves to the next event, whatever lies before it. `bytes` begin at the first byte that was not released; `end` says
    /// that no more will come.
    #[inline(never)]
    pub(crate) fn advance(&mut self, bytes: &[u8], end: bool) -> Result<Step, Error> {
        if let Some(forget) = self.forget.take() {
            self.forget(forget);
        }
        loop {
            while self.is_open {
                if self.next_row(bytes) {
                    return Ok(Step::Event);
                }
            }
            if let Some(step) = self.step(bytes, end)? {
                return Ok(step);
            }
        }
    }

    /// Reads what stands between events.
    fn step(&mut self, bytes: &[u8], end: bool) -> Result<Option<Step>, Error> {
        Ok(match self.state {
            State::Start => self.start(bytes, end)?,
            State::Objects => self.object(bytes, end),
            State::Blocks => self.block(bytes, end),
            State::Flat => self.flat(bytes, end),
            State::Resync { since, what } => self.resync(bytes, end, since, what),
            State::Ended { trailing } => Some(self.ended(bytes, end, trailing)),
            State::Cut => Some(Step::End),
        })
    }

    /// Reads the next row of the open block, if there is one. Says whether it is an event.
    #[inline]
    fn next_row(&mut self, bytes: &[u8]) -> bool {
        let open = &mut self.open;
        let content = bytes.get(open.start..open.end).unwrap_or_default();
        let before = open.rows.at();
        if before >= content.len() {
            self.close();
            return false;
        }
        match open.rows.next(content, &mut self.tables) {
            Ok(Row::Event) => true,
            outcome => {
                self.no_event(outcome, before, content);
                false
            }
        }
    }

    /// What the row at `before` in the open block came to, if not to an event.
    #[inline(never)]
    pub(crate) fn no_event(&mut self, outcome: ReadResult<Row>, before: usize, content: &[u8]) {
        let open = &self.open;
        let offset = self.base.saturating_add(open.start as u64).saturating_add(before as u64);
        let skipped = content.len().saturating_sub(before) as u64;
        match outcome {
            Ok(row) => return blocks::row_without_event(row, &open.rows, content, offset, &mut self.tables),
            Err(ReadError::UnexpectedEnd) if open.cut => self.tables.truncated = Some(offset),
            Err(ReadError::UnexpectedEnd) => self.tables.damaged(offset, skipped, BEHIND_ITS_BLOCK),
            Err(ReadError::Invalid(what)) => self.tables.damaged(offset, skipped, what),
        }
        self.close();
    }

    fn close(&mut self) {
        self.is_open = false;
        let mut open = core::mem::replace(&mut self.open, Open::NONE);
        open.rows.finish(&mut self.tables);
        self.note_thread_faults(self.offset(open.start));
        self.at = open.next;
        if open.cut {
            self.cut(open.end);
        }
    }

    /// The event that [`advance`](Self::advance) moved to, in the same bytes.
    #[inline]
    pub(crate) fn event<'a>(&'a self, bytes: &'a [u8]) -> Option<Event<'a>> {
        let open = &self.open;
        let block = bytes.get(open.start..open.end)?;
        let block_offset = self.base.wrapping_add(open.start as u64);
        self.event_at(&open.rows.header, block, block_offset, self.tables.lengths())
    }

    /// An event whose header was kept, in the block that it was read from.
    #[inline]
    pub(crate) fn event_at<'a>(
        &'a self,
        header: &'a Header,
        block: &'a [u8],
        block_offset: u64,
        lengths: TableLengths,
    ) -> Option<Event<'a>> {
        let metadata: &Metadata = self.tables.metadata.get(header.metadata)?;
        let tables = &self.tables;
        let layout = self.layout;
        let epoch = &tables.epoch;
        Some(Event {
            header,
            metadata,
            tables,
            epoch,
            lengths,
            new_threads: &[],
            block,
            block_offset,
            layout,
        })
    }

    /// The open block: its content, where that begins in the recording, and how it is laid out.
    #[inline]
    pub(crate) fn open_block<'a>(&self, bytes: &'a [u8]) -> (&'a [u8], u64, Layout) {
        let content = bytes.get(self.open.start..self.open.end).unwrap_or_default();
        (content, self.base.wrapping_add(self.open.start as u64), self.layout)
    }

    /// The rows of the open block.
    #[inline]
    pub(crate) const fn rows(&self) -> &Rows {
        &self.open.rows
    }

    #[inline]
    pub(crate) const fn rows_mut(&mut self) -> &mut Rows {
        &mut self.open.rows
    }

    /// How many bytes from the front no event refers to any more.
    pub(crate) fn releasable(&self) -> usize {
        if self.is_open { self.open.start } else { self.at }
    }

    /// The owner has dropped that many bytes from the front.
    pub(crate) fn release(&mut self, count: usize) {
        self.base = self.base.saturating_add(count as u64);
        self.at = self.at.saturating_sub(count);
        self.open.start = self.open.start.saturating_sub(count);
        self.open.end = self.open.end.saturating_sub(count);
        self.open.next = self.open.next.saturating_sub(count);
    }

    /// Offset in the recording of the first byte at hand.
    pub(crate) const fn base(&self) -> u64 {
        self.base
    }

    /// Offset in the recording of a byte at hand.
    fn offset(&self, at: usize) -> u64 {
        self.base.saturating_add(at as u64)
    }

    fn forget(&mut self, forget: Invalidation) {
        self.tables.epoch.stacks.clear();
        self.tables.epoch.labels.clear();
        if forget.threads {
            self.tables.threads.forget_indexes();
        }
        if forget.metadata {
            self.tables.metadata.forget_ids();
        }
    }

    /// The recording ends at `at` although more should follow.
    fn cut(&mut self, at: usize) -> Step {
        if self.tables.truncated.is_none() {
            self.tables.truncated = Some(self.offset(at));
        }
        self.state = State::Cut;
        Step::End
    }
}
