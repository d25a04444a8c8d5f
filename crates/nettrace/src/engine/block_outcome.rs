//! The decoding of a block of events that changes nothing, and its outcome, which is taken over afterwards:
//! so that several blocks can be decoded at the same time. Outcomes are taken over in the order of the
//! blocks.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::content::{account_for_losses, unknown_kind};
use super::{Engine, PAST_BLOCK_END};
use crate::cursor::ReadError;
use crate::damage::Damages;
use crate::event::Event;
use crate::metadata::MetadataSlot;
use crate::raw::{BlockKind, Frame, Layout, ParseError, RowDecoder, RowKind, RowResolver, SequencePoint};
use crate::tables::{Epoch, TableLengths, Tables};
use crate::thread::{Thread, ThreadSlot};
use crate::time::Ticks;

/// The rows of an event block, and the items that they refer to.
pub(super) struct BlockRows<'a> {
    pub(super) rows: RowDecoder,
    pub(super) content: &'a [u8],
    /// Offset of the content in the recording.
    pub(super) offset: u64,
    /// True if the recording ends inside the block.
    pub(super) cut: bool,
    pub(super) lengths: TableLengths,
    pub(super) epoch: &'a Epoch,
}

/// The outcome of decoding a deferred block, apart from its events.
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

/// The resolver of a deferred block: it notes what the block changes. The tables do not change between
/// deferred blocks.
struct DeferredResolver<'a> {
    tables: &'a Tables,
    outcome: BlockOutcome,
    /// Places in [`BlockOutcome::new_threads`] by index.
    new_threads: BTreeMap<u64, u32>,
    /// Slots that were found last, by the low bits of their index.
    found: [(u64, ThreadSlot); FOUND],
}

/// More events that name their thread than most blocks of runtimes have.
const USUAL_CAPTURES: usize = 256;

/// The number of threads that are found without a search: blocks switch often, among few threads. A power of
/// two.
const FOUND: usize = 32;

impl RowResolver for DeferredResolver<'_> {
    type Thread = ThreadSlot;

    #[inline]
    fn metadata(&self, id: u32) -> MetadataSlot {
        self.tables.metadata.slot(id)
    }

    #[inline]
    fn thread(&mut self, index: u64) -> ThreadSlot {
        let place = usize::from(index.to_le_bytes()[0]) & (FOUND - 1);
        match self.found.get(place) {
            Some(&(found, slot)) if found == index && slot != ThreadSlot::NONE => slot,
            _ => self.find_thread(index, place),
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
    /// Moves to the next event of the block at `offset`. Returns whether there is one.
    #[inline(never)]
    fn next_event(&mut self, rows: &mut RowDecoder, content: &[u8], offset: u64, cut: bool) -> bool {
        loop {
            let before = rows.at();
            if before >= content.len() {
                return false;
            }
            let at = offset.saturating_add(before as u64);
            match rows.next(content, self) {
                Ok(RowKind::Event) => return true,
                Ok(_) => {
                    let size = rows.at().saturating_sub(before) as u64;
                    self.outcome.damages.add(at, size, unknown_kind(rows.header.metadata_id));
                }
                Err(error) => {
                    let skipped = content.len().saturating_sub(before) as u64;
                    self.outcome.fail(error, at, skipped, cut);
                    return false;
                }
            }
        }
    }

    #[inline(never)]
    fn find_thread(&mut self, index: u64, place: usize) -> ThreadSlot {
        let slot = match self.tables.threads.known(index) {
            ThreadSlot::NONE => self.new_thread(index),
            slot => slot,
        };
        if let Some(entry) = self.found.get_mut(place) {
            *entry = (index, slot);
        }
        slot
    }

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
    /// The slot of a thread in the tables, given the slots of the new threads.
    fn slot(&self, slot: ThreadSlot, new: &[ThreadSlot]) -> ThreadSlot {
        match slot.0.checked_sub(self.known_threads).and_then(|place| usize::try_from(place).ok()) {
            Some(place) => new.get(place).copied().unwrap_or(ThreadSlot::NONE),
            None => slot,
        }
    }
}

impl Engine {
    /// Returns true if blocks can be decoded independently: in netperf they define kinds of events for later
    /// ones.
    pub(crate) fn has_independent_blocks(&self) -> bool {
        self.layout != Layout::Netperf
    }

    /// Returns true if a block changes tables that events before it refer to. Sequence points that only end
    /// an epoch do not.
    pub(super) fn changes_tables(&self, bytes: &[u8], frame: Frame, cut: bool) -> bool {
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

    /// Decodes the rows of a block without changing anything.
    pub(super) fn decode_rows(&self, block: &BlockRows<'_>, mut each: impl FnMut(Event<'_>)) -> BlockOutcome {
        let &BlockRows { mut rows, content, offset, cut, lengths, epoch } = block;
        let tables = &self.tables;
        let outcome = BlockOutcome {
            known_threads: tables.threads.len(),
            captures: Vec::with_capacity(USUAL_CAPTURES),
            ..BlockOutcome::default()
        };
        let found = [(0, ThreadSlot::NONE); FOUND];
        let mut resolver = DeferredResolver { tables, outcome, new_threads: BTreeMap::new(), found };
        while resolver.next_event(&mut rows, content, offset, cut) {
            let Some(metadata) = tables.metadata.get(rows.header.metadata) else { continue };
            let (new_threads, layout) = (&resolver.outcome.new_threads[..], self.layout);
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
        rows.finish(&mut resolver);
        resolver.outcome
    }

    /// Takes over the outcome of decoding the block of events at an offset.
    pub(super) fn commit_events(&mut self, offset: u64, outcome: BlockOutcome) {
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
        self.note_thread_faults(offset);
    }

    /// Passes a sequence point with its content at an offset. Its epoch has already ended.
    pub(super) fn commit_sequence_point(&mut self, offset: u64, content: &[u8]) {
        let outcome = match SequencePoint::new(content, self.layout) {
            Ok(point) => account_for_losses(&point, self.layout, &mut self.tables.threads),
            Err(error) => Err(ParseError { offset: 0, error }),
        };
        self.note(outcome, content.len(), offset, false);
        self.note_thread_faults(offset);
    }
}

impl BlockOutcome {
    /// Returns true if the block conforms to the format.
    pub(super) const fn is_whole(&self) -> bool {
        self.damages.count == 0 && self.truncated_at.is_none()
    }

    /// Notes the row at an offset, which could not be read.
    fn fail(&mut self, error: ReadError, at: u64, skipped: u64, cut: bool) {
        match error {
            ReadError::UnexpectedEnd if cut => self.truncated_at = Some(at),
            ReadError::UnexpectedEnd => self.damages.add(at, skipped, PAST_BLOCK_END),
            ReadError::Invalid(what) => self.damages.add(at, skipped, what),
        }
    }
}
