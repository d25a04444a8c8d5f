//! The sections of a NativeAOT program, read from its header.
//!
//! # Source
//! dotnet/runtime `src/coreclr/nativeaot/Runtime/inc/ModuleHeaders.h`.

use std::ops::Range;

use hashbrown::HashMap;

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
pub(crate) struct Sections(HashMap<u32, Range<u64>>);

impl Sections {
    /// Reads the sections of a header, and whether its version is known. An unknown version yields no
    /// sections.
    pub(crate) fn read(memory: &dyn Memory, header: u64) -> MemoryResult<(Self, bool)> {
        /// Measured: .NET 8 and 9.
        const KNOWN: [u16; 2] = [9, 10];
        let mut sections = Self::default();
        if !KNOWN.contains(&memory.u16(offset(header, 4))?) {
            return Ok((sections, false));
        }
        let size = u64::from(memory.u8(offset(header, 14))?);
        for index in 0..u64::from(memory.u16(offset(header, 12))?.min(MAX_SECTIONS)) {
            let at = offset(header, index.wrapping_mul(size).wrapping_add(16));
            let [start, end] = memory.words(offset(at, 8))?;
            // Some lack an end.
            if start < end && end.wrapping_sub(start) <= MAX_BYTES {
                sections.0.insert(memory.u32(at)?, start..end);
            }
        }
        Ok((sections, true))
    }

    /// The bytes of a section with their address.
    pub(crate) fn bytes(&self, memory: &dyn Memory, number: u32) -> MemoryResult<(u64, Vec<u8>)> {
        let range = self.0.get(&number).ok_or(Missing { address: 0 })?;
        let size = usize::try_from(range.end.wrapping_sub(range.start)).unwrap_or_default();
        Ok((range.start, memory.bytes(range.start, size)?))
    }

    /// The place of a section.
    pub(crate) fn range(&self, number: u32) -> Option<Range<u64>> {
        self.0.get(&number).cloned()
    }
}
