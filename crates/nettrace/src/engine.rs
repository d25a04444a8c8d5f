//! The reader without input or output: it is handed bytes, and moves through them event by event.
//!
//! The owner of the bytes calls [`Engine::advance`] with all that have not been released. The answer is an
//! event (which [`Engine::event`] then returns), a sequence point, or that more bytes are needed; a block is
//! decoded only when it is whole, or when the input is complete. Nothing here keeps or copies an event.

#[cfg(feature = "std")]
pub(crate) mod batch;
#[cfg(feature = "std")]
pub(crate) mod block_outcome;
mod blocks;
mod content;
#[cfg(feature = "rayon")]
pub(crate) mod deferred;
mod skipping;

use core::ops::{ControlFlow, Range};

use crate::cursor::{ReadError, ReadResult};
use crate::error::Error;
use crate::event::Event;
use crate::metadata::{Metadata, MetadataSlot};
use crate::raw::{
    Header, Layout, MetadataEncoding, RowDecoder, RowHeader, RowKind, ScanResult, SequencePoint,
};
use crate::record::{PassedPoint, Record};
use crate::tables::{TableLengths, Tables};
pub(crate) use skipping::BlockSkipping;
use skipping::SkippedBlocks;

/// The outcome of [`Engine::advance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// An event, which [`Engine::event`] returns.
    Event,
    /// The next call invalidates ids that events so far refer to.
    Invalidates,
    /// All older events have been given; otherwise as `Invalidates`.
    SequencePoint,
    /// At least this many more bytes are needed.
    NeedMore(usize),
    /// All available bytes are unneeded, and this many after them.
    Skip(usize),
    /// The end of the recording.
    End,
}

/// Other ids that a sequence point invalidates, in addition to stack and label list ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Invalidation {
    threads: bool,
    metadata: bool,
}

/// The state of the stream at the next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first byte.
    Start,
    /// Between objects of netperf V3 or nettrace V4.
    Objects,
    /// Between blocks of V6.
    Blocks,
    /// Between events of netperf V1 and V2, which are not grouped in blocks.
    Flat,
    /// After damage at an offset: the next block has not been found yet.
    Resync { since: u64, what: &'static str },
    /// After the end of a V6 stream: its offset, and that of the byte after it. Zeroed bytes in the middle of
    /// a recording look like an end, so the reader looks for further blocks.
    AfterEnd { since: u64, end: u64 },
    /// After the end of the stream; `trailing` bytes follow it.
    Ended { trailing: u64 },
    /// At the end of a recording that was cut.
    Cut,
}

/// The event block that is being read: offsets in the available bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Open {
    start: usize,
    end: usize,
    next: usize,
    pub(crate) rows: RowDecoder,
    /// True if the recording ends inside the block.
    cut: bool,
}

impl Open {
    /// Returns the content of the block.
    #[inline]
    pub(crate) fn content<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.start..self.end).unwrap_or_default()
    }
}

/// A visitor of the events of a block, in groups of the same kind, threads, activities and stack.
pub(crate) trait RowVisitor {
    /// Begins a group with its first event.
    fn begin(&mut self, first: &Event<'_>);
    /// Visits an event of the group, the first one included.
    fn row(&mut self, rows: &RowDecoder, event: Event<'_>);
    /// Ends the group, which is of this kind.
    fn end(&mut self, kind: MetadataSlot);
}

/// A visitor that needs no groups.
struct EachRow<F>(F);

impl<F: FnMut(&RowDecoder, Event<'_>)> RowVisitor for EachRow<F> {
    #[inline]
    fn begin(&mut self, _: &Event<'_>) {}

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the loop around it is where a reader spends its time")]
    fn row(&mut self, rows: &RowDecoder, event: Event<'_>) {
        (self.0)(rows, event);
    }

    #[inline]
    fn end(&mut self, _: MetadataSlot) {}
}

/// The fault of an event that does not end with its block.
const PAST_BLOCK_END: &str = "event that continues past the end of its block";

#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) tables: Tables,
    layout: Layout,
    /// The encoding of metadata rows among events.
    metadata_among_events: Option<MetadataEncoding>,
    state: State,
    /// Offset in the recording of the first available byte.
    base: u64,
    /// The next byte, counted from there.
    at: usize,
    /// Bytes that are missing before the next block, as the padding of blocks shows: to be added to offsets.
    shift: u64,
    open: Option<Open>,
    invalidation: Option<Invalidation>,
    /// The content of the sequence point that was passed last, in the available bytes.
    point: Range<usize>,
    /// Offset in the recording up to which the content of a block that may be too large was searched for
    /// blocks.
    looked_through: u64,
    /// True if a block of V6 waits for the next one.
    pub(crate) has_lookahead: bool,
    /// Offset in the recording of the block that was announced to replace stacks or label lists.
    replacing: Option<u64>,
    pub(crate) skipping: Option<BlockSkipping>,
    /// Offset in the recording of a block skipped up to its last byte, which is the next byte.
    unseen: Option<u64>,
    pub(crate) skipped: SkippedBlocks,
    /// The event blocks left to the thread that decodes them.
    #[cfg(feature = "std")]
    unread: Option<batch::UnreadBlocks>,
}

impl Engine {
    pub(crate) fn new() -> Self {
        Self {
            tables: Tables::default(),
            layout: Layout::V4,
            metadata_among_events: None,
            state: State::Start,
            base: 0,
            at: 0,
            shift: 0,
            open: None,
            invalidation: None,
            point: 0..0,
            looked_through: 0,
            has_lookahead: false,
            replacing: None,
            skipping: None,
            unseen: None,
            skipped: SkippedBlocks::default(),
            #[cfg(feature = "std")]
            unread: None,
        }
    }

    /// Reads only the header; `None` if it was read before.
    pub(crate) fn open(&mut self, bytes: &[u8], end: bool) -> Result<Option<Step>, Error> {
        if self.state == State::Start { self.start(bytes, end) } else { Ok(None) }
    }

    /// Reads the header. Nothing is consumed until all of it is there.
    fn start(&mut self, bytes: &[u8], end: bool) -> Result<Option<Step>, Error> {
        let header = match Header::scan(bytes, end)? {
            ScanResult::Found(header) => header,
            ScanResult::NeedMore(more) => return Ok(Some(Step::NeedMore(more))),
            ScanResult::Invalid(what) => return Err(Error::BadHeader { offset: 0, what }),
        };
        self.layout = header.layout;
        self.metadata_among_events = header.metadata_among_events();
        self.state = match header.layout {
            _ if header.is_flat() => State::Flat,
            Layout::V6 => State::Blocks,
            _ => State::Objects,
        };
        self.at = header.size;
        self.tables.threads.are_described = header.layout == Layout::V6;
        self.tables.info = Some(header.info);
        Ok(None)
    }

    /// Moves to the next event if it is of the most frequent kind, in the open block.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the loop around it is where a reader spends its time")]
    pub(crate) fn next_fast(&mut self, bytes: &[u8]) -> bool {
        let Some(open) = &mut self.open else { return false };
        let content = open.content(bytes);
        open.rows.next_fast(content)
    }

    /// Moves to the next event. `bytes` begin at the first byte that was not released; `end` is true if the
    /// input is complete.
    #[inline(never)]
    pub(crate) fn advance(&mut self, bytes: &[u8], end: bool) -> Result<Step, Error> {
        self.invalidate();
        loop {
            while let Some(open) = &mut self.open {
                let content = open.content(bytes);
                let before = open.rows.at();
                if before >= content.len() {
                    self.close();
                    continue;
                }
                match open.rows.next(content, &mut self.tables) {
                    Ok(RowKind::Event) => return Ok(Step::Event),
                    outcome => self.handle_other_row(outcome, before, content),
                }
            }
            if let Some(step) = self.step(bytes, end)? {
                return Ok(step);
            }
        }
    }

    /// Handles the row at `before` in the open block, which is not an event.
    #[inline(never)]
    pub(crate) fn handle_other_row(&mut self, outcome: ReadResult<RowKind>, before: usize, content: &[u8]) {
        let Some(open) = &self.open else { return };
        let offset = self.offset(open.start).saturating_add(before as u64);
        debug_assert!(before <= content.len(), "a row begins in its block");
        let skipped = content.len().saturating_sub(before) as u64;
        match outcome {
            Ok(kind) => {
                let (header, end) = (open.rows.header, open.rows.at());
                return self.row_without_event(kind, &header, content, offset, end);
            }
            Err(ReadError::UnexpectedEnd) if open.cut => self.tables.truncated_at = Some(offset),
            Err(ReadError::UnexpectedEnd) => self.tables.damaged(offset, skipped, PAST_BLOCK_END),
            Err(ReadError::Invalid(what)) => self.tables.damaged(offset, skipped, what),
        }
        self.close();
    }

    /// Ends the open block.
    fn close(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        open.rows.finish(&mut self.tables);
        self.note_thread_faults(self.offset(open.start));
        self.at = open.next;
        if open.cut {
            self.cut(open.end);
        }
    }

    /// Returns the event that [`advance`](Self::advance) moved to, in the same bytes.
    #[inline]
    pub(crate) fn event<'a>(&'a self, bytes: &'a [u8]) -> Option<Event<'a>> {
        let open = self.open.as_ref()?;
        let block = bytes.get(open.start..open.end)?;
        let block_offset = self.base.wrapping_add(open.start as u64);
        self.event_at(&open.rows.header, block, block_offset, self.tables.lengths())
    }

    /// Returns what [`advance`](Self::advance) moved to with a step, in the same bytes, if that is a record
    /// other than an event.
    pub(crate) fn passed<'a>(&'a self, step: &Step, bytes: &'a [u8]) -> Option<Record<'a>> {
        match step {
            Step::SequencePoint => {
                let content = bytes.get(self.point.clone());
                let point = content.and_then(|content| SequencePoint::new(content, self.layout).ok());
                Some(Record::SequencePoint(PassedPoint { point, threads: &self.tables.threads }))
            }
            Step::Invalidates => Some(Record::IdsEnd),
            _ => None,
        }
    }

    /// Returns the event of a header that was kept, in the block that it was read from.
    #[inline]
    pub(crate) fn event_at<'a>(
        &'a self,
        header: &'a RowHeader,
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

    /// Returns the open block, its content, the offset of the content in the recording, and the layout.
    #[inline]
    pub(crate) fn open_block<'a>(&self, bytes: &'a [u8]) -> Option<(&Open, &'a [u8], u64, Layout)> {
        let open = self.open.as_ref()?;
        Some((open, open.content(bytes), self.base.wrapping_add(open.start as u64), self.layout))
    }

    /// Calls `each` with the current event and the later events of its block, and with the state of the
    /// decoder.
    #[inline]
    pub(crate) fn rest_of_block(&mut self, bytes: &[u8], each: impl FnMut(&RowDecoder, Event<'_>)) {
        self.visit_rest_of_block(bytes, &mut EachRow(each));
    }

    /// Calls `each` with the current event and the later events of its block until it breaks. The loop is not
    /// generic: it is compiled in this crate.
    pub(crate) fn records_of_block(
        &mut self,
        bytes: &[u8],
        each: &mut dyn FnMut(&Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        self.rest_of_block(bytes, |_, event| {
            if flow.is_continue() {
                flow = each(&Record::Event(event));
            }
        });
        flow
    }

    /// Passes the current event and the later events of its block to a visitor.
    #[inline]
    pub(crate) fn visit_rest_of_block(&mut self, bytes: &[u8], visitor: &mut impl RowVisitor) {
        let Some((open, content, block_offset, layout)) = self.open_block(bytes) else { return };
        let lengths = self.tables.lengths();
        // A copy, so that the values that change with every event can stay in registers.
        let mut rows = open.rows;
        let outcome = loop {
            // Rows of the fast form are of the same kind as the previous row: a single table lookup serves
            // them all.
            let Some(metadata) = self.tables.metadata.get(rows.header.metadata) else { break None };
            let mut is_first = true;
            loop {
                let tables = &self.tables;
                let event = Event {
                    header: &rows.header,
                    metadata,
                    tables,
                    epoch: &tables.epoch,
                    lengths,
                    new_threads: &[],
                    block: content,
                    block_offset,
                    layout,
                };
                if is_first {
                    visitor.begin(&event);
                    is_first = false;
                }
                visitor.row(&rows, event);
                if !rows.next_fast(content) {
                    break;
                }
            }
            visitor.end(rows.header.metadata);
            let before = rows.at();
            if before >= content.len() {
                break None;
            }
            match rows.next(content, &mut self.tables) {
                Ok(RowKind::Event) => {}
                outcome => break Some((outcome, before)),
            }
        };
        self.set_rows(rows);
        if let Some((outcome, before)) = outcome {
            self.handle_other_row(outcome, before, content);
        }
    }

    /// Sets the state of reading the open block.
    #[inline]
    pub(crate) fn set_rows(&mut self, rows: RowDecoder) {
        if let Some(open) = &mut self.open {
            open.rows = rows;
        }
    }

    /// Returns the number of leading bytes that no event refers to any more.
    pub(crate) fn releasable(&self) -> usize {
        self.open.as_ref().map_or(self.at, |open| open.start)
    }

    /// Adjusts offsets to `count` bytes that the owner has dropped from the front.
    pub(crate) fn release(&mut self, count: usize) {
        debug_assert!(count <= self.releasable(), "bytes of the open block are dropped");
        self.base = self.base.saturating_add(count as u64);
        self.at = self.at.saturating_sub(count);
        if let Some(open) = &mut self.open {
            open.start = open.start.saturating_sub(count);
            open.end = open.end.saturating_sub(count);
            open.next = open.next.saturating_sub(count);
        }
    }

    /// Returns the offset in the recording of the first available byte.
    pub(crate) const fn base(&self) -> u64 {
        self.base
    }

    /// Returns the offset in the recording of an available byte.
    fn offset(&self, at: usize) -> u64 {
        self.base.saturating_add(at as u64)
    }

    /// Invalidates ids, if a sequence point or a block that replaces some was passed.
    fn invalidate(&mut self) {
        let Some(ended) = self.invalidation.take() else { return };
        self.tables.epoch.stacks.clear();
        self.tables.epoch.labels.clear();
        if ended.threads {
            self.tables.threads.forget_indexes();
        }
        if ended.metadata {
            self.tables.metadata.forget_ids();
        }
    }

    /// Ends a recording that is cut off at `at`.
    fn cut(&mut self, at: usize) -> Step {
        if self.tables.truncated_at.is_none() {
            self.tables.truncated_at = Some(self.offset(at));
        }
        self.state = State::Cut;
        Step::End
    }
}
