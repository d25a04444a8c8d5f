//! Blocks whose decoding is deferred, so that several can be decoded at the same time.
//!
//! [`Engine::defer`] walks the stream, reads the blocks that events refer to, and collects those with events: each with the
//! lengths that the tables had at its place. [`Engine::decode_deferred`] decodes one of them without changing anything.
//! [`Engine::commit`] takes over the outcomes, in the order of the blocks.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use core::ops::Range;

use super::blocks::Located;
use super::content::{account_for_losses, unknown_kind};
use super::{Engine, Open, PAST_BLOCK_END, Step};
use crate::cursor::ReadError;
use crate::damage::Damages;
use crate::error::Error;
use crate::event::Event;
use crate::metadata::MetadataSlot;
use crate::raw::{BlockKind, Frame, Layout, ParseError, RowKind, RowResolver, SequencePoint};
use crate::tables::{Epoch, TableLengths, Tables};
use crate::thread::{Thread, ThreadSlot};
use crate::time::Ticks;

/// Blocks whose decoding is deferred, in the order of the recording.
#[derive(Debug, Default)]
pub(crate) struct DeferredBlocks {
    pub(crate) blocks: Vec<DeferredBlock>,
    /// The epochs that sequence points among the blocks have ended.
    epochs: Vec<Epoch>,
}

/// A block whose decoding is deferred.
#[derive(Debug)]
pub(crate) enum DeferredBlock {
    /// A block of events.
    Events {
        open: Open,
        lengths: TableLengths,
        /// Number of its epoch among those of [`DeferredBlocks`]; the one behind the last is the current one.
        epoch: usize,
    },
    /// A sequence point: its content in the bytes at hand.
    SequencePoint(Range<usize>),
}

/// The outcome of decoding a deferred block, besides its events.
#[derive(Debug, Default)]
pub(crate) struct BlockOutcome {
    /// The number of threads in the tables.
    known_threads: u32,
    /// Threads that are not in the tables.
    new_threads: Vec<Thread>,
    captures: Vec<Capture>,
    damages: Damages,
    truncated_at: Option<u64>,
}

/// An event that accounts for its thread's events up to it.
#[derive(Debug, Clone, Copy)]
struct Capture {
    time: Ticks,
    thread: ThreadSlot,
    sequence: u32,
    /// No event was lost before it.
    is_without_gap: bool,
}

/// The resolver of a deferred block: it notes what the block changes. The tables do not change between deferred blocks.
struct DeferredResolver<'a> {
    tables: &'a Tables,
    outcome: BlockOutcome,
    /// Places in [`BlockOutcome::new_threads`] by index.
    new_threads: BTreeMap<u64, u32>,
}

impl RowResolver for DeferredResolver<'_> {
    type Thread = ThreadSlot;

    #[inline]
    fn metadata(&self, id: u32) -> MetadataSlot {
        self.tables.metadata.slot(id)
    }

    #[inline]
    fn thread(&mut self, index: u64) -> ThreadSlot {
        match self.tables.threads.known(index) {
            ThreadSlot::NONE => self.new_thread(index),
            slot => slot,
        }
    }

    fn captured(&mut self, thread: ThreadSlot, sequence: u32, time: Ticks) {
        self.outcome.captures.push(Capture { time, thread, sequence, is_without_gap: false });
    }

    fn captured_all(&mut self, thread: ThreadSlot, sequence: u32, time: Ticks) {
        if thread != ThreadSlot::NONE {
            self.outcome.captures.push(Capture { time, thread, sequence, is_without_gap: true });
        }
    }
}

impl DeferredResolver<'_> {
    fn new_thread(&mut self, index: u64) -> ThreadSlot {
        let threads = &mut self.outcome.new_threads;
        let place = *self.new_threads.entry(index).or_insert_with(|| {
            let place = threads.len();
            threads.push(Thread::numbered(index));
            u32::try_from(place).unwrap_or(u32::MAX)
        });
        ThreadSlot(self.outcome.known_threads.saturating_add(place))
    }
}

impl BlockOutcome {
    /// The slot of a thread in the tables, given those of the new threads.
    fn slot(&self, slot: ThreadSlot, new: &[ThreadSlot]) -> ThreadSlot {
        match slot.0.checked_sub(self.known_threads).and_then(|place| usize::try_from(place).ok()) {
            Some(place) => new.get(place).copied().unwrap_or(ThreadSlot::NONE),
            None => slot,
        }
    }
}

impl DeferredBlocks {
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
        self.epochs.clear();
    }
}

impl Engine {
    /// Whether blocks can be decoded independently: in netperf they define kinds of events for later ones.
    pub(crate) fn has_independent_blocks(&self) -> bool {
        self.layout != Layout::Netperf
    }

    /// Adds blocks until there are `most` of them, or until a block changes the tables for later events: then those before it
    /// must be decoded first. Returns whether the recording has ended.
    pub(crate) fn defer(
        &mut self,
        bytes: &[u8],
        deferred: &mut DeferredBlocks,
        most: usize,
    ) -> Result<bool, Error> {
        self.invalidate();
        while deferred.blocks.len() < most {
            let step = match self.locate(bytes, true)? {
                Located::Block(frame, cut) => {
                    if !deferred.blocks.is_empty() && self.changes_tables(bytes, frame, cut) {
                        return Ok(false);
                    }
                    self.defer_block(bytes, frame, cut, deferred)
                }
                Located::Step(step) => Some(step),
                Located::Moved => None,
            };
            if let Some(step) = step {
                return Ok(step == Step::End);
            }
        }
        Ok(false)
    }

    /// Adds a block, or reads it.
    fn defer_block(
        &mut self,
        bytes: &[u8],
        frame: Frame,
        cut: bool,
        deferred: &mut DeferredBlocks,
    ) -> Option<Step> {
        if frame.kind == BlockKind::SequencePoint && !self.changes_tables(bytes, frame, cut) {
            deferred.blocks.push(DeferredBlock::SequencePoint(frame.start..frame.end));
            deferred.epochs.push(core::mem::take(&mut self.tables.epoch));
            self.at = frame.next;
            return None;
        }
        let step = self.read_block(bytes, frame, cut);
        if let Some(open) = self.open.take() {
            self.at = open.next;
            if open.cut {
                self.cut(open.end);
            }
            let (lengths, epoch) = (self.tables.lengths(), deferred.epochs.len());
            deferred.blocks.push(DeferredBlock::Events { open, lengths, epoch });
        }
        step
    }

    /// Whether a block changes tables that events before it refer to. Sequence points that only end an epoch do not.
    fn changes_tables(&self, bytes: &[u8], frame: Frame, cut: bool) -> bool {
        match frame.kind {
            BlockKind::Metadata | BlockKind::Thread | BlockKind::RemoveThread => true,
            BlockKind::SequencePoint => {
                let content = bytes.get(frame.start..frame.end).unwrap_or_default();
                let flags = content.get(8..).and_then(|rest| rest.first_chunk::<4>());
                cut || self.layout == Layout::V6 && flags != Some(&[0; 4])
            }
            _ => false,
        }
    }

    /// Decodes a deferred block.
    pub(crate) fn decode_deferred(
        &self,
        bytes: &[u8],
        deferred: &DeferredBlocks,
        block: &DeferredBlock,
        mut each: impl FnMut(Event<'_>),
    ) -> BlockOutcome {
        let DeferredBlock::Events { open, lengths, epoch } = block else { return BlockOutcome::default() };
        let (mut rows, content, offset) = (open.rows, open.content(bytes), self.offset(open.start));
        let tables = &self.tables;
        let epoch = deferred.epochs.get(*epoch).unwrap_or(&tables.epoch);
        let outcome = BlockOutcome { known_threads: tables.threads.len(), ..BlockOutcome::default() };
        let mut resolver = DeferredResolver { tables, outcome, new_threads: BTreeMap::new() };
        loop {
            let before = rows.at();
            if before >= content.len() {
                break;
            }
            let at = offset.saturating_add(before as u64);
            match rows.next(content, &mut resolver) {
                Ok(RowKind::Event) => {}
                Ok(_) => {
                    let size = rows.at().saturating_sub(before) as u64;
                    resolver.outcome.damages.add(at, size, unknown_kind(rows.header.metadata_id));
                    continue;
                }
                Err(error) => {
                    let skipped = content.len().saturating_sub(before) as u64;
                    resolver.outcome.fail(error, at, skipped, open.cut);
                    break;
                }
            }
            let Some(metadata) = tables.metadata.get(rows.header.metadata) else { continue };
            let (new_threads, layout) = (&resolver.outcome.new_threads[..], self.layout);
            loop {
                each(Event {
                    header: &rows.header,
                    metadata,
                    tables,
                    epoch,
                    lengths: *lengths,
                    new_threads,
                    block: content,
                    block_offset: offset,
                    layout,
                });
                if !rows.next_fast(content) {
                    break;
                }
            }
        }
        rows.finish(&mut resolver);
        resolver.outcome
    }

    /// Takes over the outcome of decoding a block.
    pub(crate) fn commit(&mut self, bytes: &[u8], block: &DeferredBlock, outcome: BlockOutcome) {
        let open = match block {
            DeferredBlock::Events { open, .. } => open,
            DeferredBlock::SequencePoint(content) => return self.commit_sequence_point(bytes, content),
        };
        let threads = &mut self.tables.threads;
        let new: Vec<_> = outcome.new_threads.iter().map(|thread| threads.slot(thread.index())).collect();
        for &Capture { time, thread, sequence, is_without_gap } in &outcome.captures {
            let slot = outcome.slot(thread, &new);
            if is_without_gap {
                threads.note(slot, sequence, time);
            } else {
                threads.captured(slot, sequence, time);
            }
        }
        self.tables.damages.append(outcome.damages);
        self.tables.truncated_at = outcome.truncated_at.or(self.tables.truncated_at);
        self.note_thread_faults(self.offset(open.start));
    }

    fn commit_sequence_point(&mut self, bytes: &[u8], place: &Range<usize>) {
        let content = bytes.get(place.clone()).unwrap_or_default();
        let offset = self.offset(place.start);
        let outcome = match SequencePoint::new(content, self.layout) {
            Ok(point) => account_for_losses(&point, self.layout, &mut self.tables.threads),
            Err(error) => Err(ParseError { offset: 0, error }),
        };
        self.note(outcome, content.len(), offset, false);
        self.note_thread_faults(offset);
    }
}

impl BlockOutcome {
    /// Notes the row at an offset, which could not be read.
    fn fail(&mut self, error: ReadError, at: u64, skipped: u64, cut: bool) {
        match error {
            ReadError::UnexpectedEnd if cut => self.truncated_at = Some(at),
            ReadError::UnexpectedEnd => self.damages.add(at, skipped, PAST_BLOCK_END),
            ReadError::Invalid(what) => self.damages.add(at, skipped, what),
        }
    }
}
