//! Images that were compiled ahead of time: their functions.
//!
//! # Source
//! dotnet/runtime `docs/design/coreclr/botr/readytorun-format.md`; ECMA-335 II.25 for the headers of an
//! image.

use crate::memory::{Memory, MemoryResult, Missing, offset};
use crate::unwind::FunctionEntry;

/// The signature of the ReadyToRun header, `RTR`.
const SIGNATURE: u32 = 0x0052_5452;
/// The section with the table of functions.
const RUNTIME_FUNCTIONS: u32 = 102;
/// The most sections that are read.
const MOST_SECTIONS: u32 = 64;
/// The most functions of an image.
const MOST_FUNCTIONS: u32 = 1 << 24;
/// Bytes of an entry: begin, end, unwind information.
const ENTRY: u64 = 12;

/// An image that was compiled ahead of time, as it is mapped.
#[derive(Debug)]
pub(crate) struct Image {
    base: u64,
    /// The address of the table of functions.
    pub(crate) functions: u64,
    /// The number of functions.
    pub(crate) count: u32,
}

impl Image {
    /// Reads the headers of the image at `base`.
    pub(crate) fn read(memory: &dyn Memory, base: u64) -> MemoryResult<Self> {
        let header = offset(base, native_header(memory, base)?);
        if memory.u32(header)? != SIGNATURE {
            return Err(Missing { address: header });
        }
        // Signature, versions and flags come before the number of sections.
        let count = memory.u32(offset(header, 12))?.min(MOST_SECTIONS);
        for index in 0..u64::from(count) {
            let at = offset(header, index.wrapping_mul(12).wrapping_add(16));
            if memory.u32(at)? == RUNTIME_FUNCTIONS {
                let functions = offset(base, memory.u32(offset(at, 4))?.into());
                // The last entry marks the end.
                let count = (memory.u32(offset(at, 8))? / 12).saturating_sub(1).min(MOST_FUNCTIONS);
                return Ok(Self { base, functions, count });
            }
        }
        Err(Missing { address: header })
    }

    fn entry(&self, index: u32) -> u64 {
        offset(self.functions, u64::from(index).wrapping_mul(ENTRY))
    }

    /// Returns the function that contains an address, with its index.
    ///
    /// The search reads only entries on its way: a core has the pages that the same search of its writer
    /// touched.
    pub(crate) fn function_at(
        &self,
        memory: &dyn Memory,
        address: u64,
    ) -> MemoryResult<Option<(u32, FunctionEntry)>> {
        let Some(inside) = address.checked_sub(self.base) else { return Ok(None) };
        let Some(last) = self.count.checked_sub(1) else { return Ok(None) };
        let (mut low, mut high) = (0, last);
        while low < high {
            let middle = low.midpoint(high.saturating_add(1));
            if u64::from(memory.u32(self.entry(middle))?) <= inside {
                low = middle;
            } else {
                high = middle.saturating_sub(1);
            }
        }
        let at = self.entry(low);
        let [begin, end, info] = [0, 4, 8].map(|field| memory.u32(offset(at, field)));
        let (begin, end) = (begin?, end?);
        if !(u64::from(begin)..u64::from(end)).contains(&inside) {
            return Ok(None);
        }
        let function = FunctionEntry {
            begin: offset(self.base, begin.into()),
            unwind_info: offset(self.base, info?.into()),
            image_base: self.base,
        };
        Ok(Some((low, function)))
    }

    /// Returns the address of a function's first instruction.
    pub(crate) fn begin(&self, memory: &dyn Memory, index: u32) -> MemoryResult<u64> {
        Ok(offset(self.base, memory.u32(self.entry(index))?.into()))
    }
}

/// Returns the address of the ReadyToRun header relative to the image.
fn native_header(memory: &dyn Memory, base: u64) -> MemoryResult<u64> {
    let pe = offset(base, memory.u32(offset(base, 0x3c))?.into());
    if memory.u16(base)? != 0x5a4d || memory.u32(pe)? != 0x4550 {
        return Err(Missing { address: base });
    }
    let optional = offset(pe, 24);
    let directories = match memory.u16(optional)? {
        0x20b => 112,
        _ => 96,
    };
    // The 15th directory is the CLI header.
    let cli = memory.u32(offset(optional, u64::wrapping_add(directories, 14 * 8)))?;
    let native = memory.u32(offset(base, u64::from(cli).wrapping_add(64)))?;
    if cli == 0 || native == 0 {
        return Err(Missing { address: base });
    }
    Ok(native.into())
}
