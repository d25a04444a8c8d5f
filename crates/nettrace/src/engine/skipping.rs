//! Event blocks that are left out by the times in their headers.

use core::ops::RangeInclusive;

use super::blocks::Located;
use super::{Engine, State, Step};
use crate::metadata::Metadata;
use crate::raw::{BlockKind, Cursor, Frame, Layout};
use crate::time::Ticks;

/// The choice of event blocks that are left out.
#[derive(Debug)]
pub(crate) struct BlockSkipping {
    pub(crate) times: RangeInclusive<Ticks>,
    pub(crate) is_needed: fn(&Metadata) -> bool,
    /// The number of kinds of events examined so far.
    kinds: usize,
    /// True if a kind is needed at any time.
    has_needed: bool,
}

/// Event blocks that were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SkippedBlocks {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// The time of the first event in them, and of the last.
    pub(crate) times: Option<(i64, i64)>,
}

/// The bytes of a block's header up to the end of its times.
const TIMES_END: usize = 20;

impl BlockSkipping {
    pub(crate) const fn new(times: RangeInclusive<Ticks>, is_needed: fn(&Metadata) -> bool) -> Self {
        Self { times, is_needed, kinds: 0, has_needed: false }
    }

    /// Examines the new kinds of events. Returns whether any kind so far is needed.
    fn has_needed(&mut self, kinds: &[Metadata]) -> bool {
        let new = kinds.get(self.kinds..).unwrap_or_default();
        self.has_needed |= new.iter().any(self.is_needed);
        self.kinds = kinds.len();
        self.has_needed
    }
}

impl Engine {
    /// Skips the block if it is an event block outside the wanted time. Returns `None` if it must be read.
    pub(super) fn skip(&mut self, bytes: &[u8], end: bool, frame: &Frame) -> Option<Located> {
        let skipping = self.skipping.as_mut()?;
        if frame.kind != BlockKind::Event
            || self.layout == Layout::Netperf
            || frame.end.saturating_sub(frame.start) < TIMES_END
            || skipping.has_needed(self.tables.metadata.rows())
        {
            return None;
        }
        let header_end = frame.start.saturating_add(TIMES_END);
        if header_end > bytes.len() {
            let missing = header_end.saturating_sub(bytes.len());
            return (!end).then_some(Located::Step(Step::NeedMore(missing)));
        }
        let (first, last) = times(bytes.get(frame.start..header_end)?)?;
        let (from, to) = (skipping.times.start(), skipping.times.end());
        if last.0.cast_signed() >= from.0.cast_signed() && first.0.cast_signed() <= to.0.cast_signed() {
            return None;
        }
        let (first, last) = (first.0.cast_signed(), last.0.cast_signed());
        let (from, to) = self.skipped.times.unwrap_or((first, last));
        self.skipped.times = Some((from.min(first), to.max(last)));
        if let Some(missing) = frame.next.checked_sub(bytes.len()).filter(|missing| *missing > 0) {
            // The end of the recording is examined as always.
            return (!end).then_some(Located::Step(Step::Skip(missing)));
        }
        if !self.ends_block(bytes, frame) {
            return None;
        }
        self.note_skipped(frame);
        self.at = frame.next;
        Some(Located::Moved)
    }

    /// Returns true if an available block ends as its version requires.
    fn ends_block(&self, bytes: &[u8], frame: &Frame) -> bool {
        self.layout == Layout::V6 || crate::raw::fast_serialization::ends_at(bytes, frame.end) == Some(true)
    }

    fn note_skipped(&mut self, frame: &Frame) {
        let size = frame.end.saturating_sub(frame.start) as u64;
        self.skipped.count = self.skipped.count.saturating_add(1);
        self.skipped.bytes = self.skipped.bytes.saturating_add(size);
        self.tables.threads.pass_unread();
    }

    /// Goes on at the last byte of a block, which shows that the recording was not cut before it. The owner
    /// of the bytes has dropped all `at_hand` bytes, and all but the last of the `beyond` bytes.
    pub(crate) fn skipped_beyond(&mut self, at_hand: usize, beyond: usize) {
        let size = at_hand.saturating_sub(self.at).saturating_add(beyond) as u64;
        self.skipped.count = self.skipped.count.saturating_add(1);
        self.skipped.bytes = self.skipped.bytes.saturating_add(size);
        self.tables.threads.pass_unread();
        self.unseen = Some(self.offset(self.at));
        self.base = self.base.saturating_add(at_hand as u64).saturating_add(beyond.saturating_sub(1) as u64);
        self.at = 0;
    }

    /// Moves past a skipped block, once its last byte is available.
    pub(super) fn pass_unseen(&mut self, bytes: &[u8], end: bool, block: u64) -> Option<Step> {
        if bytes.is_empty() && !end {
            return Some(Step::NeedMore(1));
        }
        self.unseen = None;
        if bytes.is_empty() {
            // The end lies somewhere in the block.
            self.tables.truncated_at = Some(block);
            self.state = State::Cut;
            return Some(Step::End);
        }
        self.at = 1;
        None
    }
}

/// Returns the times of the first and the last event, which the header of a block has.
fn times(header: &[u8]) -> Option<(Ticks, Ticks)> {
    let mut cursor = Cursor::new(header);
    let size = cursor.u16().ok()?;
    cursor.u16().ok()?;
    let (first, last) = (cursor.u64().ok()?, cursor.u64().ok()?);
    (usize::from(size) >= TIMES_END && first.cast_signed() <= last.cast_signed())
        .then_some((Ticks(first), Ticks(last)))
}
