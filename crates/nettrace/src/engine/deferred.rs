//! Deferred decoding of blocks, so that several can be decoded at the same time.
//!
//! [`Engine::defer`] walks the stream, reads the blocks that events refer to, and collects the event blocks,
//! each with the lengths of the tables at its place. [`Engine::decode_deferred`] decodes a block without
//! changing anything. [`Engine::commit`] takes over the outcomes, in the order of the blocks.

use alloc::vec::Vec;
use core::ops::Range;

use super::block_outcome::{BlockOutcome, BlockRows};
use super::blocks::Located;
use super::{Engine, Open, Step};
use crate::error::Error;
use crate::event::Event;
use crate::raw::{BlockKind, Frame};
use crate::tables::{Epoch, TableLengths};

/// Blocks to decode later, in the order of the recording.
#[derive(Debug, Default)]
pub(crate) struct DeferredBlocks {
    pub(crate) blocks: Vec<DeferredBlock>,
    /// The epochs that sequence points among the blocks have ended.
    epochs: Vec<Epoch>,
    /// The block that is next, and whether it is cut, once it has been located. Locating it again would
    /// report its damage again.
    next: Option<(Frame, bool)>,
}

/// A block to decode later.
#[derive(Debug)]
pub(crate) enum DeferredBlock {
    /// A block of events.
    Events {
        open: Open,
        lengths: TableLengths,
        /// Index of its epoch in [`DeferredBlocks`]; the index after the last is the current epoch.
        epoch: usize,
    },
    /// A sequence point: its content in the available bytes.
    SequencePoint(Range<usize>),
}

impl DeferredBlocks {
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
        self.epochs.clear();
    }
}

impl Engine {
    /// Adds blocks until there are `most` of them, or until a block changes the tables for later events: then
    /// those before it must be decoded first. Returns whether the recording has ended.
    pub(crate) fn defer(
        &mut self,
        bytes: &[u8],
        deferred: &mut DeferredBlocks,
        most: usize,
    ) -> Result<bool, Error> {
        self.invalidate();
        while deferred.blocks.len() < most {
            let located = match deferred.next.take() {
                Some((frame, cut)) => Located::Block(frame, cut),
                None => self.locate(bytes, true)?,
            };
            let step = match located {
                Located::Block(frame, cut) => {
                    if !deferred.blocks.is_empty() && self.changes_tables(bytes, frame, cut) {
                        deferred.next = Some((frame, cut));
                        return Ok(false);
                    }
                    self.defer_block(bytes, frame, cut, deferred)
                }
                Located::Step(step) => Some(step),
                Located::Moved | Located::Unread(_) => None,
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

    /// Decodes a deferred block.
    pub(crate) fn decode_deferred(
        &self,
        bytes: &[u8],
        deferred: &DeferredBlocks,
        block: &DeferredBlock,
        each: impl FnMut(Event<'_>),
    ) -> BlockOutcome {
        let DeferredBlock::Events { open, lengths, epoch } = block else { return BlockOutcome::default() };
        let block = BlockRows {
            rows: open.rows,
            content: open.content(bytes),
            offset: self.offset(open.start),
            cut: open.cut,
            lengths: *lengths,
            epoch: deferred.epochs.get(*epoch).unwrap_or(&self.tables.epoch),
        };
        self.decode_rows(&block, each)
    }

    /// Takes over the outcome of decoding a block.
    pub(crate) fn commit(&mut self, bytes: &[u8], block: &DeferredBlock, outcome: BlockOutcome) {
        match block {
            DeferredBlock::Events { open, .. } => self.commit_events(self.offset(open.start), outcome),
            DeferredBlock::SequencePoint(place) => {
                let content = bytes.get(place.clone()).unwrap_or_default();
                self.commit_sequence_point(self.offset(place.start), content);
            }
        }
    }
}
