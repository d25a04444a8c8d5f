//! The slots that have references at a place in the code.
//!
//! At the return address of a call, a table has a bit for each slot. In interruptible code, chunks of 64
//! offsets have the slots that any of their code uses, with the state of each at the end of the chunk, and
//! the places where the state changes.

use super::bits::BitReader;
use super::encoding::{BITS_IN_CHUNK, CHUNK, Encoding};
use super::{GcInfo, GcInfoError, GcSlot, SlotPlace};
use crate::unwind::FramePosition;

/// The slots that have references at a place in the code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LiveSlots {
    /// The slots that are tracked, in the order of the table. Those that a callee can have overwritten are
    /// left out in a caller's frame.
    pub tracked: Vec<GcSlot>,
    /// The slots that always have a reference or null.
    pub untracked: Vec<GcSlot>,
}

impl GcInfo<'_> {
    /// Returns the slots that have references where a frame is: `offset` is the instruction pointer relative
    /// to the start of the method.
    ///
    /// # Errors
    /// [`GcInfoError::NoSafePoint`] where the collector does not stop: at most instructions of a method that
    /// is only interruptible in calls. Others if the table is cut off or damaged.
    pub fn live_slots(&self, offset: u32, position: FramePosition) -> Result<LiveSlots, GcInfoError> {
        let mut tracked = match position {
            FramePosition::Caller => self.live_in_call(offset)?,
            FramePosition::Innermost => self.live_in_range(self.encoding.normal_offset(offset))?,
        };
        if position == FramePosition::Caller {
            tracked.retain(|slot| match slot.place {
                SlotPlace::Register(register) => self.encoding.preserves(register),
                SlotPlace::Stack { .. } => true,
            });
        }
        Ok(LiveSlots { tracked, untracked: self.untracked.clone() })
    }

    /// The slots at a return address.
    fn live_in_call(&self, offset: u32) -> Result<Vec<GcSlot>, GcInfoError> {
        let call = self.encoding.normal_offset(offset.checked_sub(1).ok_or(GcInfoError::NoSafePoint)?);
        let safe_point = if self.has_return_addresses { self.encoding.normal_offset(offset) } else { call };
        match self.safe_points.iter().position(|at| *at == safe_point) {
            Some(index) if !self.tracked.is_empty() => self.live_at_safe_point(index),
            // Code that is not optimized has safe points only where tracked slots have references.
            None if !self.ranges.is_empty() => self.live_in_range(call),
            _ => Ok(Vec::new()),
        }
    }

    /// The slots at a safe point: a bit for each, in a table that can be shared.
    fn live_at_safe_point(&self, index: usize) -> Result<Vec<GcSlot>, GcInfoError> {
        let mut bits = BitReader::at(self.bytes, self.live_at);
        if !bits.bit()? {
            bits.skip(1, index.checked_mul(self.tracked.len()).ok_or(GcInfoError::Damaged)?)?;
            return self.plain_states(&mut bits);
        }
        let size = bits.number(self.encoding.pointer_size)?.checked_add(1).ok_or(GcInfoError::Damaged)?;
        let mut table = bits;
        table.skip(size, index)?;
        let at = table.take(size)?;
        bits.skip(size, self.safe_points.len())?;
        bits.align()?;
        bits.skip(1, usize::try_from(at).map_err(|_| GcInfoError::Damaged)?)?;
        if bits.bit()? {
            let runs = self.runs(&mut bits)?;
            return Ok(self.chosen(runs.into_iter().enumerate()));
        }
        self.plain_states(&mut bits)
    }

    fn plain_states(&self, bits: &mut BitReader<'_>) -> Result<Vec<GcSlot>, GcInfoError> {
        let mut live = Vec::new();
        for slot in &self.tracked {
            if bits.bit()? {
                live.push(*slot);
            }
        }
        Ok(live)
    }

    /// Reads a bit for each slot as alternating runs of equal bits. The first run is of slots that are not
    /// live, and can be empty.
    fn runs(&self, bits: &mut BitReader<'_>) -> Result<Vec<bool>, GcInfoError> {
        let Encoding { run, gap, .. } = *self.encoding;
        // If most slots are live, their runs have the larger base.
        let [dead, live] = if bits.bit()? { [run, gap] } else { [gap, run] };
        let mut states = Vec::new();
        let (mut is_live, mut more) = (false, 0);
        while states.len() < self.tracked.len() {
            let count = bits.number(if is_live { live } else { dead })?.saturating_add(more);
            let room = self.tracked.len().saturating_sub(states.len());
            let count = usize::try_from(count).unwrap_or(usize::MAX).min(room);
            states.resize(states.len().saturating_add(count), is_live);
            (is_live, more) = (!is_live, 1);
        }
        Ok(states)
    }

    fn chosen(&self, states: impl Iterator<Item = (usize, bool)>) -> Vec<GcSlot> {
        let live = states.filter(|(_, is_live)| *is_live);
        live.filter_map(|(index, _)| self.tracked.get(index).copied()).collect()
    }

    /// The slots in interruptible code.
    fn live_in_range(&self, normal: u32) -> Result<Vec<GcSlot>, GcInfoError> {
        let (mut inside, mut length) = (None, 0_u32);
        for range in &self.ranges {
            if range.contains(&normal) {
                inside = Some(length.saturating_add(normal.wrapping_sub(range.start)));
            }
            length = length.saturating_add(range.end.wrapping_sub(range.start));
        }
        let inside = inside.ok_or(GcInfoError::NoSafePoint)?;
        if self.tracked.is_empty() {
            return Ok(Vec::new());
        }
        let mut bits = BitReader::at(self.bytes, self.live_at);
        self.skip_safe_points(&mut bits)?;
        let size = bits.number(self.encoding.pointer_size)?;
        if size == 0 {
            return Ok(Vec::new());
        }
        let table = bits;
        let pointer = |chunk: u32| {
            let mut bits = table;
            bits.skip(size, usize::try_from(chunk).map_err(|_| GcInfoError::Damaged)?)?;
            bits.take(size)
        };
        let chunk = inside / CHUNK;
        // Chunks without changes have no data: the last one before them has the state.
        let mut found = (chunk, pointer(chunk)?);
        while found.1 == 0 {
            let Some(before) = found.0.checked_sub(1) else { return Ok(Vec::new()) };
            found = (before, pointer(before)?);
        }
        let count = usize::try_from(length.div_ceil(CHUNK)).map_err(|_| GcInfoError::Damaged)?;
        bits.skip(size, count)?;
        bits.align()?;
        bits.skip(1, usize::try_from(found.1.wrapping_sub(1)).map_err(|_| GcInfoError::Damaged)?)?;
        let at = (found.0 == chunk).then_some(inside % CHUNK);
        self.states_in_chunk(&mut bits, at)
    }

    /// Skips the states at safe points, which precede those of interruptible code.
    fn skip_safe_points(&self, bits: &mut BitReader<'_>) -> Result<(), GcInfoError> {
        let count = self.safe_points.len();
        if count == 0 {
            return Ok(());
        }
        // A method with interruptible code has no shared table of safe points.
        if bits.bit()? {
            return Err(GcInfoError::Damaged);
        }
        bits.skip(1, count.checked_mul(self.tracked.len()).ok_or(GcInfoError::Damaged)?)
    }

    /// The slots at an offset of a chunk, or at its end.
    fn states_in_chunk(&self, bits: &mut BitReader<'_>, at: Option<u32>) -> Result<Vec<GcSlot>, GcInfoError> {
        let used = if bits.bit()? {
            self.runs(bits)?
        } else {
            let states: Result<Vec<bool>, _> = self.tracked.iter().map(|_| bits.bit()).collect();
            states?
        };
        let used: Vec<usize> =
            used.into_iter().enumerate().filter(|(_, is_used)| *is_used).map(|(index, _)| index).collect();
        let mut last = Vec::new();
        for index in used {
            last.push((index, bits.bit()?));
        }
        if let Some(at) = at {
            for (_, is_live) in &mut last {
                while bits.bit()? {
                    // The state of the end, without the changes after the offset.
                    *is_live ^= bits.take(BITS_IN_CHUNK)? > at;
                }
            }
        }
        Ok(self.chosen(last.into_iter()))
    }
}
