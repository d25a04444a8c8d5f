//! The memory of a core dump that a copy keeps, by units of four bytes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::memory::core_file::CoreFile;
use crate::memory::{Memory, MemoryResult};

/// Bytes of a unit.
const UNIT: u64 = 4;
/// Bytes of a chunk, each with a bit for each unit.
pub(crate) const CHUNK: u64 = 1 << 16;
/// Words of the bits of a chunk.
const WORDS: usize = 256;
/// Maximum number of chunks: 16 GiB of memory; their bits take 512 MiB.
const MAX_CHUNKS: usize = 1 << 18;
/// The offset of a string's characters.
const CHARACTERS: u64 = 12;

/// Parts of memory.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    chunks: BTreeMap<u64, Box<[u64; WORDS]>>,
    /// True if there was more than can be kept.
    pub(crate) is_full: bool,
}

impl Kept {
    /// Keeps or drops the units that a range of one chunk touches.
    fn set(&mut self, chunk: u64, units: Range<u64>, keep: bool) {
        if self.chunks.len() >= MAX_CHUNKS && !self.chunks.contains_key(&chunk) {
            self.is_full = true;
            return;
        }
        let bits = self.chunks.entry(chunk).or_insert_with(|| Box::new([0; WORDS]));
        let (first, last) = (units.start / 64, units.end.div_ceil(64));
        let range = usize::try_from(first).unwrap_or(WORDS)..usize::try_from(last).unwrap_or(WORDS);
        for (index, word) in (first..).zip(bits.get_mut(range).unwrap_or_default()) {
            let first = index.saturating_mul(64);
            let from = units.start.saturating_sub(first).min(64);
            let to = units.end.saturating_sub(first).min(64);
            // Bits below `to` that are not below `from`.
            let below = |bit: u64| if bit >= 64 { u64::MAX } else { (1_u64 << bit).wrapping_sub(1) };
            let mask = below(to) & !below(from);
            if keep {
                *word |= mask;
            } else {
                *word &= !mask;
            }
        }
    }

    fn change(&mut self, address: u64, bytes: u64, keep: bool) {
        let end = address.saturating_add(bytes);
        let mut at = address;
        while at < end {
            let chunk = at / CHUNK;
            let start = chunk.saturating_mul(CHUNK);
            let to = end.min(start.saturating_add(CHUNK));
            let unit = |at: u64| at.saturating_sub(start) / UNIT;
            self.set(chunk, unit(at)..unit(to.saturating_add(UNIT).saturating_sub(1)), keep);
            if to <= at {
                break;
            }
            at = to;
        }
    }

    /// Keeps the units that a range touches, except memory that the core dump lacks.
    pub(crate) fn keep(&mut self, core: &CoreFile, address: u64, bytes: u64) {
        for (start, size) in core.present(address, bytes) {
            self.change(start, size, true);
        }
    }

    /// Drops the units that a range touches.
    pub(crate) fn leave_out(&mut self, core: &CoreFile, address: u64, bytes: u64) {
        for (start, size) in core.present(address, bytes) {
            self.change(start, size, false);
        }
    }

    /// The chunks with kept memory, in the order of their addresses.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.chunks.keys().map(|chunk| chunk.saturating_mul(CHUNK))
    }

    /// Zeroes all bytes that are not kept; returns the number of kept bytes.
    pub(crate) fn mask(&self, address: u64, bytes: &mut [u8]) -> u64 {
        let mut kept = 0_u64;
        let mut of = None;
        for (at, byte) in (address..).zip(bytes) {
            let chunk = at / CHUNK;
            let bits = match of {
                Some((number, bits)) if number == chunk => bits,
                _ => self.chunks.get(&chunk),
            };
            of = Some((chunk, bits));
            let unit = at % CHUNK / UNIT;
            let word = usize::try_from(unit / 64).ok().and_then(|index| bits?.get(index));
            if word.is_some_and(|word| word >> (unit % 64) & 1 != 0) {
                kept = kept.saturating_add(1);
            } else {
                *byte = 0;
            }
        }
        kept
    }
}

/// A core dump that marks everything read from it as kept, except the characters of strings and ranges with
/// an explicit choice.
pub(crate) struct Recorder<'c> {
    core: &'c CoreFile,
    kept: Mutex<Kept>,
    /// Non-overlapping ranges where reads do not mark bytes as kept, by address.
    regions: Vec<Range<u64>>,
    /// The type of strings; zero if unknown.
    string_type: u64,
}

impl<'c> Recorder<'c> {
    pub(crate) fn new(core: &'c CoreFile) -> Self {
        Self { core, kept: Mutex::default(), regions: Vec::new(), string_type: 0 }
    }

    pub(crate) fn set_regions(&mut self, regions: Vec<Range<u64>>, string_type: u64) {
        (self.regions, self.string_type) = (regions, string_type);
    }

    pub(crate) const fn has_regions(&self) -> bool {
        !self.regions.is_empty()
    }

    pub(crate) fn keep(&self, address: u64, bytes: u64) {
        self.lock().keep(self.core, address, bytes);
    }

    pub(crate) fn leave_out(&self, address: u64, bytes: u64) {
        self.lock().leave_out(self.core, address, bytes);
    }

    pub(crate) fn into_kept(self) -> Kept {
        self.kept.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a range has bytes of a region, or of the word before one, which belongs to its first
    /// object.
    fn is_of_region(&self, address: u64, bytes: u64) -> bool {
        let end = address.saturating_add(bytes).saturating_add(8);
        let after = self.regions.partition_point(|region| region.start < end);
        let region = after.checked_sub(1).and_then(|index| self.regions.get(index));
        region.is_some_and(|region| address < region.end)
    }

    /// Returns true if a range has the characters of a string.
    fn is_text(&self, address: u64, bytes: u64) -> bool {
        let object = address.wrapping_sub(CHARACTERS);
        let memory: &dyn Memory = self.core;
        self.string_type != 0
            && object.is_multiple_of(8)
            && memory.u64(object).is_ok_and(|word| word & !7 == self.string_type)
            // The description of a field of strings looks like one, but for its length.
            && (bytes != 4 || memory.u32(object.wrapping_add(8)) == Ok(2))
    }
}

impl Memory for Recorder<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
        self.core.read(address, buffer)?;
        let bytes = u64::try_from(buffer.len()).unwrap_or_default();
        if !self.is_of_region(address, bytes) && !self.is_text(address, bytes) {
            self.keep(address, bytes);
        }
        Ok(())
    }
}
