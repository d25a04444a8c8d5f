//! Images that were compiled ahead of time: their functions.
//!
//! # Source
//! dotnet/runtime `docs/design/coreclr/botr/readytorun-format.md`; ECMA-335 II.25 for the headers of an
//! image.

use crate::code::debug_info::{BoundsForm, DebugInfoForm, DebugInfoPlace};
use crate::code::method_info::GcInfoPlace;
use crate::code::native_array;
use crate::memory::{Memory, MemoryResult, Missing, offset};
use crate::processor::Processor;
use crate::unwind::{self, FunctionEntry};

/// The signature of the ReadyToRun header, `RTR`.
const SIGNATURE: u32 = 0x0052_5452;
/// The section with the table of functions.
const RUNTIME_FUNCTIONS: u32 = 102;
/// The section with the places of the handlers of exceptions, by method.
const EXCEPTION_INFO: u32 = 104;
/// The section with the maps of functions to IL, an array by function.
const DEBUG_INFO: u32 = 105;
/// Maximum number of sections to read.
const MAX_SECTIONS: u32 = 64;
/// Maximum number of functions of an image.
const MAX_FUNCTIONS: u32 = 1 << 24;
/// The number of bytes of an entry of the table of methods with handlers.
const HANDLERS_ENTRY: u32 = 8;
/// Maximum number of handlers of a method to look at.
const MAX_CLAUSES: u32 = 1 << 14;

/// An image that was compiled ahead of time, as it is mapped.
#[derive(Debug)]
pub(crate) struct Image {
    base: u64,
    processor: Processor,
    /// The address of the table of functions.
    pub(crate) functions: u64,
    /// The number of functions.
    pub(crate) count: u32,
    /// The address of the array of maps to IL, and their form.
    debug_info: Option<(u64, BoundsForm)>,
    /// The address and the number of entries of the table of methods with handlers.
    handlers: Option<(u64, u32)>,
    /// The version of the GCInfo of its methods.
    gc_info: u32,
}

impl Image {
    /// Reads the headers of the image at `base`.
    pub(crate) fn read(memory: &dyn Memory, processor: Processor, base: u64) -> MemoryResult<Self> {
        let header = offset(base, native_header(memory, base)?);
        if memory.u32(header)? != SIGNATURE {
            return Err(Missing { address: header });
        }
        let [major, minor] = [memory.u16(offset(header, 4))?, memory.u16(offset(header, 6))?];
        let bounds = bounds_form(major);
        let gc_info = gc_info_version(major, minor);
        // Signature, versions and flags precede the number of sections.
        let sections = memory.u32(offset(header, 12))?.min(MAX_SECTIONS);
        let (mut functions, mut debug_info, mut handlers) = (None, None, None);
        for index in 0..u64::from(sections) {
            let at = offset(header, index.wrapping_mul(12).wrapping_add(16));
            let start = || Ok(offset(base, memory.u32(offset(at, 4))?.into()));
            match memory.u32(at)? {
                RUNTIME_FUNCTIONS => {
                    // An entry that marks the end follows the section and is not part of it.
                    let count = u64::from(memory.u32(offset(at, 8))?).checked_div(processor.function_entry());
                    let count = count.and_then(|count| u32::try_from(count).ok()).unwrap_or(u32::MAX);
                    functions = Some((start()?, count.min(MAX_FUNCTIONS)));
                }
                EXCEPTION_INFO => {
                    let count = memory.u32(offset(at, 8))?.checked_div(HANDLERS_ENTRY).unwrap_or_default();
                    handlers = Some((start()?, count));
                }
                DEBUG_INFO => debug_info = Some((start()?, bounds)),
                _ => {}
            }
        }
        let (functions, count) = functions.ok_or(Missing { address: header })?;
        Ok(Self { base, processor, functions, count, debug_info, handlers, gc_info })
    }

    /// Returns true if code begins a filter of exceptions (`when`), given the index of the first function of
    /// its method.
    ///
    /// # Source
    /// dotnet/runtime `src/coreclr/vm/codeman.cpp` (`ReadyToRunJitManager::InitializeEHEnumeration`),
    /// `inc/corcompile.h` (`CORCOMPILE_EXCEPTION_CLAUSE`).
    pub(crate) fn is_filter(&self, memory: &dyn Memory, method: u32, address: u64) -> MemoryResult<bool> {
        const FILTER: u32 = 1;
        const CLAUSE: u32 = 24;
        let start = self.begin(memory, method)?;
        let Some((clauses, size)) = self.clauses(memory, start)? else { return Ok(false) };
        for index in 0..size.checked_div(CLAUSE).unwrap_or_default().min(MAX_CLAUSES) {
            // The flags, the parts of the code of the block and of its handler, and the start of the filter.
            let at = offset(clauses, u64::from(index.saturating_mul(CLAUSE)));
            let (flags, filter) = (memory.u32(at)?, memory.u32(offset(at, 20))?);
            if flags & FILTER != 0 && u64::from(filter) == address.wrapping_sub(start) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the address and the size of the handlers of the method that starts at an address; `None` if it
    /// has none.
    fn clauses(&self, memory: &dyn Memory, start: u64) -> MemoryResult<Option<(u64, u32)>> {
        let Some((table, count)) = self.handlers else { return Ok(None) };
        // The start of a method and the place of its handlers, which end where the next ones begin. The last
        // entry is the end of all.
        let entry = |index: u32| {
            let at = offset(table, u64::from(index).wrapping_mul(HANDLERS_ENTRY.into()));
            Ok((memory.u32(at)?, memory.u32(offset(at, 4))?))
        };
        let start = start.wrapping_sub(self.base);
        let (mut low, mut high) = (0, count.saturating_sub(1));
        while low < high {
            let middle = low.midpoint(high);
            let (begin, clauses) = entry(middle)?;
            match u64::from(begin).cmp(&start) {
                std::cmp::Ordering::Less => low = middle.saturating_add(1),
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    let (_, end) = entry(middle.saturating_add(1))?;
                    return Ok(Some((offset(self.base, clauses.into()), end.saturating_sub(clauses))));
                }
            }
        }
        Ok(None)
    }

    /// Returns the debug info of code at an address, given the index of the first function of its method;
    /// `None` if the image has none for it.
    pub(crate) fn debug_info(
        &self,
        memory: &dyn Memory,
        method: u32,
        address: u64,
    ) -> MemoryResult<Option<DebugInfoPlace>> {
        let Some((array, bounds)) = self.debug_info else { return Ok(None) };
        let Some(element) = native_array::element(memory, array, method)? else { return Ok(None) };
        // Equal maps are there once: the others have the distance to it.
        let Some((back, next)) = native_array::unsigned(memory, element)? else { return Ok(None) };
        let at = if back == 0 { next } else { element.wrapping_sub(back.into()) };
        let Ok(native) = u32::try_from(address.wrapping_sub(self.begin(memory, method)?)) else {
            return Ok(None);
        };
        let form = DebugInfoForm { patchpoints: None, bounds };
        Ok(Some(DebugInfoPlace { form, at, native }))
    }

    /// Returns the place of the GCInfo of a method, given the index of its first function: it follows the
    /// unwind information, to which the address of the handler of exceptions belongs.
    pub(crate) fn gc_info(&self, memory: &dyn Memory, method: u32) -> MemoryResult<GcInfoPlace> {
        let entry = FunctionEntry::read(memory, self.processor, self.entry(method), self.base)?;
        let start = self.begin(memory, method)?;
        let unwind_info = entry.at(start).ok_or(Missing { address: start })?.unwind_info;
        let at = offset(unwind_info, unwind::information_size(memory, self.processor, unwind_info)?);
        Ok(GcInfoPlace { at, version: self.gc_info, start })
    }

    fn entry(&self, index: u32) -> u64 {
        offset(self.functions, u64::from(index).wrapping_mul(self.processor.function_entry()))
    }

    /// The begin of an entry, relative to the image. It is zero where a copy of the memory has left it out.
    fn entry_begin(&self, memory: &dyn Memory, index: u32) -> MemoryResult<u32> {
        let address = self.entry(index);
        match memory.u32(address)? {
            0 => Err(Missing { address }),
            begin => Ok(begin),
        }
    }

    /// Returns the function that contains an address, with its index.
    ///
    /// The search reads only entries on its way: a core has the pages that a search of its writer touched.
    /// The nearest present page takes the place of a missing page. A stripped core has only the entries of
    /// its writer's search, which may lack the last entry.
    pub(crate) fn function_at(
        &self,
        memory: &dyn Memory,
        address: u64,
    ) -> MemoryResult<Option<(u32, FunctionEntry)>> {
        let Some(inside) = address.checked_sub(self.base) else { return Ok(None) };
        let Some(last) = self.count.checked_sub(1) else { return Ok(None) };
        let found = self.search(memory, inside, last);
        match last.checked_sub(1).filter(|_| found.is_err()) {
            Some(last) => self.search(memory, inside, last).or(found),
            None => found,
        }
    }

    /// Searches the entries up to `last`.
    fn search(
        &self,
        memory: &dyn Memory,
        inside: u64,
        last: u32,
    ) -> MemoryResult<Option<(u32, FunctionEntry)>> {
        let (mut low, mut high) = (0, last);
        let mut missing = None;
        while low < high {
            let middle = low.midpoint(high.saturating_add(1));
            let near = pages_around(middle, low, high);
            let mut begins = near.map(|index| (index, self.entry_begin(memory, index)));
            let found = begins.find_map(|(index, begin)| {
                let begin = begin.inspect_err(|error| missing = Some(*error)).ok()?;
                Some((index, begin))
            });
            let Some((middle, begin)) = found else { break };
            if u64::from(begin) <= inside {
                low = middle;
            } else {
                high = middle.saturating_sub(1);
            }
        }
        let entry = FunctionEntry::read(memory, self.processor, self.entry(low), self.base)?;
        match entry.at(offset(self.base, inside)) {
            Some(function) => Ok(Some((low, function))),
            None => missing.filter(|_| low < high).map_or(Ok(None), Err),
        }
    }

    /// Returns the address of a function's first instruction.
    pub(crate) fn begin(&self, memory: &dyn Memory, index: u32) -> MemoryResult<u64> {
        Ok(offset(self.base, memory.u32(self.entry(index))?.into()))
    }
}

/// The form of the maps to IL, by the major version of the image's format.
const fn bounds_form(version: u16) -> BoundsForm {
    match version {
        ..=15 => BoundsForm::Nibbles,
        16 => BoundsForm::Bits { of_source: 2 },
        _ => BoundsForm::Bits { of_source: 3 },
    }
}

/// The version of the GCInfo of an image, by the version of its format.
const fn gc_info_version(major: u16, minor: u16) -> u32 {
    match (major, minor) {
        (..=8, _) | (9, ..=1) => 2,
        (9 | 10, _) => 3,
        _ => 4,
    }
}

/// An index, those in other pages around it, the nearest first, and some in the pages of both ends, that are
/// above `low` and at most `high`.
fn pages_around(middle: u32, low: u32, high: u32) -> impl Iterator<Item = u32> {
    const OF_PAGE: u32 = 341;
    let steps = (1..).map_while(move |page: u32| {
        let by = page.checked_mul(OF_PAGE).filter(|by| *by <= high.saturating_sub(low))?;
        Some([middle.saturating_add(by), middle.saturating_sub(by)])
    });
    // The pages of both ends are there in part.
    let ends = (0..9_u32).rev().flat_map(move |bits| {
        let by = 1_u32 << bits;
        [low.saturating_add(by), high.saturating_sub(by.saturating_sub(1))]
    });
    std::iter::once(middle)
        .chain(steps.flatten())
        .chain(ends)
        .filter(move |index| *index > low && *index <= high)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    const BASE: u64 = 0x1000;
    const FUNCTIONS: u64 = 0x4000;
    const HANDLERS: u64 = 0x3000;

    /// An image with functions, each with its begin and end; an entry that marks the end follows them.
    fn image(functions: &[[u32; 2]]) -> TestMemory {
        let mut bytes = vec![0; 0x200];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &0x5a4d_u16.to_le_bytes());
        put(0x3c, &0x40_u32.to_le_bytes());
        put(0x40, &0x4550_u32.to_le_bytes());
        put(0x58, &0x20b_u16.to_le_bytes());
        // The CLI header at 0x140, which leads to the ReadyToRun header at 0x1a0.
        put(0x58 + 112 + 14 * 8, &0x140_u32.to_le_bytes());
        put(0x140 + 64, &0x1a0_u32.to_le_bytes());
        put(0x1a0, &SIGNATURE.to_le_bytes());
        put(0x1a0 + 12, &2_u32.to_le_bytes());
        let size = u32::try_from(functions.len()).unwrap() * 12;
        let section = [RUNTIME_FUNCTIONS, u32::try_from(FUNCTIONS - BASE).unwrap(), size];
        put(0x1a0 + 16, &section.map(u32::to_le_bytes).concat());
        let section = [EXCEPTION_INFO, u32::try_from(HANDLERS - BASE).unwrap(), 3 * HANDLERS_ENTRY];
        put(0x1a0 + 28, &section.map(u32::to_le_bytes).concat());
        let mut memory = TestMemory::default();
        memory.put(BASE, &bytes);
        let entries = functions.iter().map(|[begin, end]| [*begin, *end, begin + 0x10_0000]);
        let entries = entries.chain([[u32::MAX, 0, 0]]).flatten().flat_map(u32::to_le_bytes);
        memory.put(FUNCTIONS, &entries.collect::<Vec<_>>());
        memory
    }

    #[test]
    fn finds_each_function_of_the_table() {
        let memory = image(&[[0x100, 0x180], [0x200, 0x280], [0x300, 0x380]]);
        let image = Image::read(&memory, Processor::X86_64, BASE).unwrap();
        let function = |inside: u64| {
            let found = image.function_at(&memory, BASE + inside).unwrap();
            found.map(|(index, function)| (index, function.begin - BASE, function.unwind_info - BASE))
        };
        assert_eq!(function(0x100), Some((0, 0x100, 0x10_0100)));
        assert_eq!(function(0x27f), Some((1, 0x200, 0x10_0200)));
        assert_eq!(function(0x340), Some((2, 0x300, 0x10_0300)));
        assert_eq!([0xff, 0x180, 0x2ff, 0x380].map(function), [None; 4]);
    }

    #[test]
    fn filters_are_found_in_the_table_of_handlers() {
        // Two methods, the first of which has a filter at 0x60 in one function of its own.
        let mut memory = image(&[[0x100, 0x160], [0x160, 0x180], [0x200, 0x280], [0x300, 0x380]]);
        // The clauses: a typed handler and a filter of the first method, and a finally of the second one.
        let table = [[0x100, 0x2100], [0x200, 0x2100 + 48], [u32::MAX, 0x2100 + 72]];
        memory.put(HANDLERS, &table.concat().into_iter().flat_map(u32::to_le_bytes).collect::<Vec<_>>());
        let clauses =
            [[0, 0, 0x10, 0x40, 0x50, 0x0100_0001], [1, 0, 0x10, 0x50, 0x60, 0x60], [2, 0, 4, 8, 9, 0x60]];
        let bytes = clauses.concat().into_iter().flat_map(u32::to_le_bytes).collect::<Vec<_>>();
        memory.put(BASE + 0x2100, &bytes);
        let image = Image::read(&memory, Processor::X86_64, BASE).unwrap();
        let is_filter = |method, at| image.is_filter(&memory, method, BASE + at).unwrap();
        assert!(is_filter(0, 0x160));
        assert!(!is_filter(0, 0x140) && !is_filter(0, 0x100));
        // A handler with the number of a filter is none, and a method without handlers has none.
        assert!(!is_filter(2, 0x260) && !is_filter(3, 0x360));
    }

    #[test]
    fn finds_a_function_without_the_pages_that_a_search_begins_with() {
        let functions: Vec<[u32; 2]> = (1..4001).map(|index| [index * 16, index * 16 + 8]).collect();
        let mut memory = image(&functions);
        let image = Image::read(&memory, Processor::X86_64, BASE).unwrap();
        // Only the entries from 1000 to 1009 and the entries of another page are present.
        memory.put(FUNCTIONS, &[]);
        let entries = |from: u32, count: u32| {
            let entries = (from + 1..=from + count).map(|index| [index * 16, index * 16 + 8, 0]);
            entries.flatten().flat_map(u32::to_le_bytes).collect::<Vec<_>>()
        };
        memory.put(FUNCTIONS, &entries(0, 1));
        memory.put(FUNCTIONS + 1000 * 12, &entries(1000, 341));
        memory.put(FUNCTIONS + 3000 * 12, &entries(3000, 341));
        let found = |index: u32| image.function_at(&memory, BASE + u64::from(index) * 16 + 20);
        assert_eq!(found(1005).unwrap().unwrap().0, 1005);
        assert!(found(2000).is_err());
        let between = BASE + 1006 * 16 + 12;
        assert_eq!(image.function_at(&memory, between), Ok(None));
        // Entries that a copy has left out are zeros.
        memory.put(FUNCTIONS + 3000 * 12, &[0; 341 * 12]);
        assert_eq!(image.function_at(&memory, between), Ok(None));
    }
}
