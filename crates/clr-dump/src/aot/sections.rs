//! The sections of a NativeAOT program, read from its header.
//!
//! # Source
//! dotnet/runtime `src/coreclr/nativeaot/Runtime/inc/ModuleHeaders.h`.

use std::ops::Range;

use hashbrown::HashMap;

use crate::aot::format::KindBits;
use crate::memory::{Memory, MemoryResult, Missing, offset};

/// Maximum number of sections of the header.
const MAX_SECTIONS: u16 = 256;
/// Maximum number of bytes of a section.
const MAX_BYTES: u64 = 256 << 20;

/// Numbers of sections of the program's header.
pub(crate) mod section {
    /// Pointers to the references to the objects that have the static fields of types.
    pub(crate) const STATIC_FIELDS: u32 = 201;
    /// Objects that the program starts with, such as string literals.
    pub(crate) const FROZEN_OBJECTS: u32 = 206;
    /// The map from types to their definitions in the metadata.
    pub(crate) const TYPE_MAP: u32 = 301;
    /// The map of methods that reflection can call.
    pub(crate) const INVOKE_MAP: u32 = 306;
    /// The addresses that maps refer to.
    pub(crate) const COMMON_FIXUPS: u32 = 308;
    /// The metadata.
    pub(crate) const METADATA: u32 = 313;
    /// The map from methods to their names, for printing stacks.
    pub(crate) const METHOD_NAMES: u32 = 327;
}

/// The places of the sections, keyed by number.
#[derive(Debug, Default)]
pub(crate) struct Sections {
    places: HashMap<u32, Range<u64>>,
    pub(crate) kind_bits: KindBits,
}

impl Sections {
    /// Reads the sections of a header, and whether its version is known. An unknown version yields no
    /// sections.
    pub(crate) fn read(memory: &dyn Memory, header: u64) -> MemoryResult<(Self, bool)> {
        /// Measured: .NET 8, 9 and 10, and .NET 11, which has sizes in the place of ends.
        const KNOWN: [u16; 4] = [9, 10, NET_10, WITH_SIZES];
        const NET_10: u16 = 16;
        const WITH_SIZES: u16 = 26;
        let mut sections = Self::default();
        let version = memory.u16(offset(header, 4))?;
        if !KNOWN.contains(&version) {
            return Ok((sections, false));
        }
        if version >= NET_10 {
            sections.kind_bits = KindBits::Seven;
        }
        let size = u64::from(memory.u8(offset(header, 14))?);
        for index in 0..u64::from(memory.u16(offset(header, 12))?.min(MAX_SECTIONS)) {
            let at = offset(header, index.wrapping_mul(size).wrapping_add(16));
            let start = memory.u64(offset(at, 8))?;
            let end = match version {
                WITH_SIZES => offset(start, memory.u32(offset(at, 4))?.into()),
                _ => memory.u64(offset(at, 16))?,
            };
            // Some lack an end.
            if start < end && end.wrapping_sub(start) <= MAX_BYTES {
                sections.places.insert(memory.u32(at)?, start..end);
            }
        }
        Ok((sections, true))
    }

    /// The bytes of a section with their address.
    pub(crate) fn bytes(&self, memory: &dyn Memory, number: u32) -> MemoryResult<(u64, Vec<u8>)> {
        let range = self.places.get(&number).ok_or(Missing { address: 0 })?;
        let size = usize::try_from(range.end.wrapping_sub(range.start)).unwrap_or_default();
        Ok((range.start, memory.bytes(range.start, size)?))
    }

    /// The place of a section.
    pub(crate) fn range(&self, number: u32) -> Option<Range<u64>> {
        self.places.get(&number).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    /// A header with two sections, with rows of the given words.
    fn read(version: u64, row: u64, words: &[u64]) -> (Sections, bool) {
        let mut memory = TestMemory::default();
        let header = [0x0052_5452 | version << 32, 2 << 32 | row << 48];
        memory.put_words(0x100, &[&header[..], words].concat());
        Sections::read(&memory, 0x100).unwrap()
    }

    #[test]
    fn sections_have_ends_or_sizes() {
        let (old, is_known) = read(10, 24, &[301, 0x5000, 0x5010, 313, 0x6000, 0]);
        assert_eq!((old.range(301), old.range(313), is_known), (Some(0x5000..0x5010), None, true));
        assert_eq!(old.kind_bits, KindBits::Eight);
        let (ten, is_known) = read(16, 24, &[301, 0x5000, 0x5010, 313, 0x6000, 0]);
        assert_eq!((ten.range(301), ten.kind_bits, is_known), (Some(0x5000..0x5010), KindBits::Seven, true));
        let (new, is_known) = read(26, 16, &[301 + (16 << 32), 0x5000, 313 + (1 << 63), 0x6000]);
        assert_eq!((new.range(301), new.range(313), is_known), (Some(0x5000..0x5010), None, true));
        assert_eq!(new.kind_bits, KindBits::Seven);
        assert!(!read(27, 16, &[0; 4]).1);
    }
}
