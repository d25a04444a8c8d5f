//! Batches of event blocks of which only the position is known: the thread that decodes a block reads it.
//!
//! [`Engine::fill`] walks the stream without the bytes of the event blocks, [`Engine::decode_run`] decodes
//! some of them without changing anything, and [`Engine::commit_batch`] takes over the outcomes, in the order
//! of the blocks.
//!
//! A violation of the format is left to a reader that reads everything in order: a walk that meets one ends
//! with [`Fill::Irregular`].

use alloc::vec::Vec;
use core::ops::Range;

use super::block_outcome::{BlockOutcome, BlockRows};
use super::blocks::Located;
use super::{Engine, State, Step};
use crate::error::Error;
use crate::event::Event;
use crate::raw::{BlockContent, BlockKind, Frame, Layout, ScanResult, fast_serialization, v6};
use crate::tables::{Epoch, TableLengths};

/// Maximum size of an event block to leave unread, in bytes: each thread has a buffer of this size. Runtimes
/// write blocks of about a hundred kilobytes.
const MAX_BLOCK_SIZE: usize = 4 << 20;
/// Maximum size of the stacks, labels and sequence points in a batch, in bytes.
const MAX_KEPT: usize = 4 << 20;
/// Maximum number of blocks in a batch: very small ones take more memory here than in the recording.
const MAX_BLOCKS: usize = 4096;

/// The state for leaving event blocks unread.
#[derive(Debug)]
pub(crate) struct UnreadBlocks {
    /// The number of bytes in the recording.
    length: u64,
    /// True if the next byte is the last byte of an unread block: its end is still to be checked.
    is_at_last_byte: bool,
}

/// Maximum number of bytes read at a time for consecutive event blocks.
const RUN: u64 = 256 << 10;

/// A batch of blocks, in the order of the recording.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    blocks: Vec<PlacedBlock>,
    /// Event blocks that are read at a time.
    pub(crate) runs: Vec<Run>,
    points: Vec<PlacedPoint>,
    /// The epochs that the sequence points have ended.
    epochs: Vec<Epoch>,
    /// Bytes of the event blocks.
    pub(crate) bytes: usize,
    /// Bytes of other blocks that are kept.
    kept: usize,
}

/// Event blocks that lie near one another.
#[derive(Debug)]
pub(crate) struct Run {
    /// The numbers of the blocks in the batch.
    blocks: Range<usize>,
    /// Offset in the recording of the first one's content.
    pub(crate) offset: u64,
    /// Bytes from there to the end of the last one's content.
    pub(crate) size: usize,
}

/// An event block that was not read.
#[derive(Debug)]
struct PlacedBlock {
    /// Offset of its content in the recording.
    offset: u64,
    /// Bytes of its content.
    size: usize,
    lengths: TableLengths,
    /// Index of its epoch in [`Batch`]; the index after the last is the current epoch.
    epoch: usize,
}

/// A sequence point.
#[derive(Debug)]
struct PlacedPoint {
    offset: u64,
    content: Vec<u8>,
    /// The number of event blocks in the batch before it.
    preceding: usize,
}

/// The outcome of [`Engine::fill`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    /// At least this many more bytes are needed.
    NeedMore(usize),
    /// All available bytes are unneeded, as well as this many further bytes, except the last byte.
    Skip(usize),
    /// The batch must be decoded and committed before the walk continues.
    Full,
    /// The same, and everything that follows must be read in order.
    Rest,
    /// The recording violates the format: the batch, and all before it, must be discarded.
    Irregular,
}

impl Batch {
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
        self.runs.clear();
        self.points.clear();
        self.epochs.clear();
        self.bytes = 0;
        self.kept = 0;
    }

    /// Adds an event block. Each of the last blocks of a batch of `most_bytes` is a run of its own, so that
    /// all threads finish at about the same time.
    fn push(&mut self, block: PlacedBlock, most_bytes: usize) {
        let is_near_end = self.bytes >= most_bytes.saturating_sub(most_bytes / 8);
        let longest = if is_near_end { 0 } else { RUN };
        let number = self.blocks.len();
        let end = block.offset.saturating_add(block.size as u64);
        match self.runs.last_mut() {
            Some(run) if end.saturating_sub(run.offset) <= longest => {
                run.blocks.end = number.saturating_add(1);
                run.size = usize::try_from(end.saturating_sub(run.offset)).unwrap_or(usize::MAX);
            }
            _ => self.runs.push(Run {
                blocks: number..number.saturating_add(1),
                offset: block.offset,
                size: block.size,
            }),
        }
        self.bytes = self.bytes.saturating_add(block.size);
        self.blocks.push(block);
    }

    fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.points.is_empty()
    }

    fn is_full(&self, most_bytes: usize) -> bool {
        let items = self.blocks.len().saturating_add(self.points.len());
        self.bytes >= most_bytes || self.kept >= MAX_KEPT || items >= MAX_BLOCKS
    }
}

impl Engine {
    /// Leaves event blocks unread from now on, in a recording of `length` bytes.
    pub(crate) fn leave_unread(&mut self, length: u64) {
        self.unread = Some(UnreadBlocks { length, is_at_last_byte: false });
    }

    /// Reads all blocks from now on.
    pub(crate) fn read_all(&mut self) {
        self.unread = None;
    }

    /// Returns true if the event block is left unread: it is small enough, and the recording extends to its
    /// end.
    pub(super) fn leaves_unread(&self, frame: &Frame) -> bool {
        let Some(UnreadBlocks { length, .. }) = self.unread else { return false };
        frame.kind == BlockKind::Event
            && self.layout != Layout::Netperf
            && frame.end.saturating_sub(frame.start) <= MAX_BLOCK_SIZE
            && self.offset(frame.next) <= length
    }

    /// Returns the number of bytes that are known to follow the available bytes.
    pub(super) fn bytes_ahead(&self, bytes: &[u8]) -> usize {
        let length = self.unread.as_ref().map_or(0, |unread| unread.length);
        usize::try_from(length.saturating_sub(self.offset(bytes.len()))).unwrap_or(usize::MAX)
    }

    /// Adds blocks until there are `most_bytes` of them, until a block changes the tables for later events,
    /// or until an event block has to be read in order. `end` says that no bytes follow the available bytes.
    ///
    /// # Errors
    /// As [`Engine::advance`].
    pub(crate) fn fill(
        &mut self,
        bytes: &[u8],
        end: bool,
        batch: &mut Batch,
        most_bytes: usize,
    ) -> Result<Fill, Error> {
        if batch.is_empty() {
            self.invalidate();
        }
        loop {
            if let Some(fill) = self.check_unread_end(bytes, end) {
                return Ok(fill);
            }
            if batch.is_full(most_bytes) {
                return Ok(Fill::Full);
            }
            let located = self.locate(bytes, end)?;
            if self.is_irregular() {
                return Ok(Fill::Irregular);
            }
            let fill = match located {
                Located::Unread(frame) => self.place(bytes, &frame, batch, most_bytes),
                Located::Block(frame, _) if frame.kind == BlockKind::Event => Some(Fill::Rest),
                Located::Block(frame, cut) => self.add_block(bytes, frame, cut, batch),
                Located::Step(Step::NeedMore(more)) => Some(Fill::NeedMore(more)),
                Located::Step(_) => Some(Fill::Rest),
                Located::Moved => None,
            };
            if self.is_irregular() {
                return Ok(Fill::Irregular);
            }
            if let Some(fill) = fill {
                return Ok(fill);
            }
        }
    }

    /// Returns true if a violation of the format was found, other than the end of a cut recording.
    pub(crate) fn is_irregular(&self) -> bool {
        self.tables.damages.count > 0 || matches!(self.state, State::Resync { .. })
    }

    /// Adds an event block to the batch, and moves to its last byte.
    fn place(&mut self, bytes: &[u8], frame: &Frame, batch: &mut Batch, most_bytes: usize) -> Option<Fill> {
        let unread = self.unread.as_mut()?;
        unread.is_at_last_byte = true;
        let size = frame.end.saturating_sub(frame.start);
        let (lengths, epoch) = (self.tables.lengths(), batch.epochs.len());
        batch.push(PlacedBlock { offset: self.offset(frame.start), size, lengths, epoch }, most_bytes);
        self.at = frame.next.saturating_sub(1);
        let beyond = frame.next.saturating_sub(bytes.len());
        (beyond > 0).then_some(Fill::Skip(beyond))
    }

    /// Continues at the last byte of a block. The owner of the bytes has dropped all available bytes, and the
    /// next `beyond` bytes except this last one.
    pub(crate) fn moved_beyond(&mut self, at_hand: usize, beyond: usize) {
        self.base = self.base.saturating_add(at_hand as u64).saturating_add(beyond.saturating_sub(1) as u64);
        self.at = 0;
    }

    /// Checks that a block that was left unread ends as its version requires, and moves past it.
    fn check_unread_end(&mut self, bytes: &[u8], end: bool) -> Option<Fill> {
        if !self.unread.as_ref()?.is_at_last_byte {
            return None;
        }
        let next = self.at.saturating_add(1);
        let found = if next > bytes.len() {
            if end {
                ScanResult::Invalid("recording that ends before its length")
            } else {
                ScanResult::NeedMore(1)
            }
        } else if self.layout == Layout::V6 {
            v6::is_followed(bytes, next, end, self.bytes_ahead(bytes))
        } else if fast_serialization::ends_at(bytes, self.at) == Some(true) {
            ScanResult::Found(())
        } else {
            ScanResult::Invalid("block without its end tag")
        };
        match found {
            ScanResult::NeedMore(more) => return Some(Fill::NeedMore(more)),
            ScanResult::Invalid(_) => return Some(Fill::Irregular),
            ScanResult::Found(()) => {}
        }
        self.at = next;
        if let Some(unread) = &mut self.unread {
            unread.is_at_last_byte = false;
        }
        None
    }

    /// Adds a block of another kind to the batch or to the tables.
    fn add_block(&mut self, bytes: &[u8], frame: Frame, cut: bool, batch: &mut Batch) -> Option<Fill> {
        let changes_tables = self.changes_tables(bytes, frame, cut);
        if changes_tables && !batch.is_empty() {
            return Some(Fill::Full);
        }
        let content = bytes.get(frame.start..frame.end).unwrap_or_default();
        batch.kept = batch.kept.saturating_add(content.len());
        if frame.kind == BlockKind::SequencePoint && !changes_tables {
            let (offset, preceding) = (self.offset(frame.start), batch.blocks.len());
            batch.points.push(PlacedPoint { offset, content: content.to_vec(), preceding });
            batch.epochs.push(core::mem::take(&mut self.tables.epoch));
            self.at = frame.next;
            return None;
        }
        match self.read_block(bytes, frame, cut)? {
            Step::End => Some(Fill::Rest),
            // Ids become invalid: events before that are decoded first.
            _ => Some(Fill::Full),
        }
    }

    /// Decodes the blocks of a run from its bytes, and adds their outcomes with their numbers in the batch.
    /// Returns `None` if a block violates the format.
    pub(crate) fn decode_run(
        &self,
        batch: &Batch,
        run: &Run,
        bytes: &[u8],
        outcomes: &mut Vec<(usize, BlockOutcome)>,
        mut each: impl FnMut(Event<'_>),
    ) -> Option<()> {
        for number in run.blocks.clone() {
            let block = batch.blocks.get(number)?;
            let start = usize::try_from(block.offset.checked_sub(run.offset)?).ok()?;
            let content = bytes.get(start..start.checked_add(block.size)?)?;
            outcomes.push((number, self.decode_placed(batch, block, content, &mut each)?));
        }
        Some(())
    }

    /// Decodes a block with that content.
    fn decode_placed(
        &self,
        batch: &Batch,
        block: &PlacedBlock,
        content: &[u8],
        each: impl FnMut(Event<'_>),
    ) -> Option<BlockOutcome> {
        let kind = BlockKind::Event;
        let parsed = BlockContent::new(kind, content, block.offset, self.layout, self.metadata_among_events);
        let Ok(BlockContent::Event(parsed)) = parsed else { return None };
        let rows = BlockRows {
            rows: parsed.decoder(),
            content,
            offset: block.offset,
            cut: false,
            lengths: block.lengths,
            epoch: batch.epochs.get(block.epoch).unwrap_or(&self.tables.epoch),
        };
        let outcome = self.decode_rows(&rows, each);
        outcome.is_whole().then_some(outcome)
    }

    /// Takes over the outcomes of the blocks of a batch, one for each.
    pub(crate) fn commit_batch(&mut self, batch: &Batch, outcomes: impl IntoIterator<Item = BlockOutcome>) {
        let mut points = batch.points.iter().peekable();
        for (index, (block, outcome)) in batch.blocks.iter().zip(outcomes).enumerate() {
            while let Some(point) = points.next_if(|point| point.preceding <= index) {
                self.commit_sequence_point(point.offset, &point.content);
            }
            self.commit_events(block.offset, outcome);
        }
        for point in points {
            self.commit_sequence_point(point.offset, &point.content);
        }
    }
}
