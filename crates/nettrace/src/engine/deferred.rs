//! Passing blocks of events by, so that others can read them at the same time.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use core::ops::Range;

use super::{BEHIND_ITS_BLOCK, Engine, Open, Step, blocks};
use crate::block::event::{References, Row};
use crate::block::sequence_point;
use crate::cursor::ReadError;
use crate::damage::Damages;
use crate::error::Error;
use crate::event::{Event, Layout};
use crate::metadata::MetadataSlot;
use crate::tables::{TableLengths, Tables};
use crate::thread::{Thread, ThreadSlot};
use crate::time::Ticks;

/// What was passed by.
#[derive(Debug)]
pub(crate) enum DeferredBlock {
    /// A block of events.
    Events {
        open: Open,
        lengths: TableLengths,
        /// Number of its epoch among those that have passed.
        epoch: usize,
    },
    /// A sequence point: its content in the bytes at hand.
    Point(Range<usize>),
}

/// What reading a block apart from the others has come to, besides its events.
#[derive(Debug, Default)]
pub(crate) struct BlockOutcome {
    /// How many threads the tables had.
    known_threads: u32,
    /// Those that they did not have.
    new_threads: Vec<Thread>,
    captures: Vec<Capture>,
    damages: Damages,
    truncated: Option<u64>,
}

/// What a block says of the events that a thread has captured.
#[derive(Debug, Clone, Copy)]
struct Capture {
    time: Ticks,
    thread: ThreadSlot,
    sequence: u32,
    /// Nothing was lost before it.
    is_without_gap: bool,
}

/// What a block changes is noted and not done. Nothing else does between the blocks that are passed by.
struct Apart<'a> {
    tables: &'a Tables,
    account: BlockOutcome,
    /// Where the new threads are, by their index.
    new_threads: BTreeMap<u64, u32>,
}

impl References for Apart<'_> {
    #[inline]
    fn kind(&self, id: u32) -> MetadataSlot {
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
        self.account.captures.push(Capture { time, thread, sequence, is_without_gap: false });
    }

    fn captured_all(&mut self, thread: ThreadSlot, sequence: u32, time: Ticks) {
        if thread != ThreadSlot::NONE {
            self.account.captures.push(Capture { time, thread, sequence, is_without_gap: true });
        }
    }
}

impl Apart<'_> {
    fn new_thread(&mut self, index: u64) -> ThreadSlot {
        let threads = &mut self.account.new_threads;
        let place = *self.new_threads.entry(index).or_insert_with(|| {
            threads.push(Thread::numbered(index));
            u32::try_from(threads.len().saturating_sub(1)).unwrap_or(u32::MAX)
        });
        ThreadSlot(self.account.known_threads.saturating_add(place))
    }
}

impl BlockOutcome {
    /// The slot that a thread has got in the tables.
    fn slot(&self, slot: ThreadSlot, new: &[ThreadSlot]) -> ThreadSlot {
        match slot.0.checked_sub(self.known_threads).and_then(|place| usize::try_from(place).ok()) {
            Some(place) => new.get(place).copied().unwrap_or(ThreadSlot::NONE),
            None => slot,
        }
    }
}

impl Engine {
    /// Whether blocks can be read apart from one another: in netperf they define kinds of events among these.
    pub(crate) fn has_independent_blocks(&self) -> bool {
        self.layout != Layout::Netperf
    }

    /// Moves on by one block. A block of events is passed by; before one that events must not know of there is a stop, as before
    /// whatever [`advance`](Self::advance) stops at.
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> Result<Result<DeferredBlock, Step>, Error> {
        if let Some(forget) = self.forget.take() {
            self.forget(forget);
        }
        self.passes_events = true;
        let outcome = loop {
            if self.is_open {
                self.is_open = false;
                let open = core::mem::replace(&mut self.open, Open::NONE);
                self.at = open.next;
                if open.cut {
                    self.cut(open.end);
                }
                let epoch = self.tables.past.len();
                break Ok(Ok(DeferredBlock::Events { open, lengths: self.tables.lengths(), epoch }));
            }
            match self.step(bytes, true) {
                Ok(None) => {}
                Ok(Some(step)) => {
                    break Ok(match self.passed_point.take() {
                        Some(point) => {
                            let past = core::mem::take(&mut self.tables.epoch);
                            self.tables.past.push(past);
                            Ok(DeferredBlock::Point(point))
                        }
                        None => Err(step),
                    });
                }
                Err(error) => break Err(error),
            }
        };
        self.passes_events = false;
        outcome
    }

    /// Reads a block that was passed by.
    pub(crate) fn decode_deferred(
        &self,
        bytes: &[u8],
        passed: &DeferredBlock,
        mut each: impl FnMut(Event<'_>),
    ) -> BlockOutcome {
        let DeferredBlock::Events { open: Open { start, end, mut rows, cut, .. }, lengths, epoch } = *passed
        else {
            return BlockOutcome::default();
        };
        let content = bytes.get(start..end).unwrap_or_default();
        let offset = self.offset(start);
        let tables = &self.tables;
        let epoch = tables.past.get(epoch).unwrap_or(&tables.epoch);
        let account = BlockOutcome { known_threads: tables.threads.len(), ..BlockOutcome::default() };
        let mut apart = Apart { tables, account, new_threads: BTreeMap::new() };
        loop {
            let before = rows.at();
            if before >= content.len() {
                break;
            }
            match rows.next(content, &mut apart) {
                Ok(Row::Event) => {}
                Ok(_) => {
                    let id = rows.header.metadata_id;
                    let (at, size) =
                        (offset.saturating_add(before as u64), rows.at().saturating_sub(before) as u64);
                    apart.account.damages.add(at, size, blocks::unknown_kind(id));
                    continue;
                }
                Err(bad) => {
                    let at = offset.saturating_add(before as u64);
                    let skipped = content.len().saturating_sub(before) as u64;
                    match bad {
                        ReadError::UnexpectedEnd if cut => apart.account.truncated = Some(at),
                        ReadError::UnexpectedEnd => apart.account.damages.add(at, skipped, BEHIND_ITS_BLOCK),
                        ReadError::Invalid(what) => apart.account.damages.add(at, skipped, what),
                    }
                    break;
                }
            }
            let Some(metadata) = tables.metadata.get(rows.header.metadata) else { continue };
            let (new_threads, layout) = (&apart.account.new_threads[..], self.layout);
            loop {
                each(Event {
                    header: &rows.header,
                    metadata,
                    tables,
                    epoch,
                    lengths,
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
        rows.finish(&mut apart);
        apart.account
    }

    /// Takes over what reading a block has come to; blocks are settled in their order.
    pub(crate) fn commit(&mut self, bytes: &[u8], passed: &DeferredBlock, account: BlockOutcome) {
        let open = match passed {
            DeferredBlock::Events { open, .. } => open,
            DeferredBlock::Point(content) => return self.commit_sequence_point(bytes, content),
        };
        let threads = &mut self.tables.threads;
        let new: Vec<_> = account.new_threads.iter().map(|thread| threads.slot(thread.index())).collect();
        for &Capture { time, thread, sequence, is_without_gap } in &account.captures {
            let slot = account.slot(thread, &new);
            if is_without_gap {
                threads.note(slot, sequence, time);
            } else {
                threads.captured(slot, sequence, time);
            }
        }
        self.tables.damages.append(account.damages);
        self.tables.truncated = account.truncated.or(self.tables.truncated);
        self.note_thread_faults(self.offset(open.start));
    }

    fn commit_sequence_point(&mut self, bytes: &[u8], place: &Range<usize>) {
        let content = bytes.get(place.clone()).unwrap_or_default();
        let v6 = self.layout == Layout::V6;
        let offset = self.offset(place.start);
        let outcome = sequence_point::read(content, v6, &mut self.tables.threads);
        self.note(outcome.map(drop).map_err(|(bad, _)| bad), content.len(), offset, false);
        self.note_thread_faults(offset);
    }

    /// All that was passed by has been read and settled.
    pub(crate) fn forget_past(&mut self) {
        self.tables.past.clear();
        self.tables.damages.sort();
    }
}
