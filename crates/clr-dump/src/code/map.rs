//! Managed code by address: the runtime's own map of code ranges, and the methods in them.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/codeman.h` (`RangeSectionMap`, `RangeSection`, `HeapList`,
//! `CodeHeader`); dotnet/coreclr `src/vm/codeman.h` (a list of `RangeSection`); and `inc/nibblemapmacros.h`.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hashbrown::{HashMap, HashSet};

use crate::code::debug_info::{DebugInfoForm, DebugInfoPlace};
use crate::code::method_info::GcInfoPlace;
use crate::code::ready_to_run::Image;
use crate::memory::address::{Address, MethodDesc};
use crate::memory::{Memory, MemoryResult, offset};
use crate::processor::Processor;
use crate::runtime::layout::{CodeRanges, Layout, NibbleMap};
use crate::unwind::registers::Registers;
use crate::unwind::{FramePosition, FunctionEntry, UnwindError, unwind};

/// Maximum number of nodes of the map to read.
const MAX_NODES: usize = 1 << 20;
/// Maximum number of code ranges that share an entry of the map.
const MAX_FRAGMENTS: usize = 4096;
/// Maximum number of ranges in a list: one for each image, plus the ranges of JIT-compiled code.
const MAX_RANGES: usize = 1 << 16;
/// Maximum number of entries of a method: its body and its funclets.
const MAX_ENTRIES: u32 = 4096;
/// Maximum number of handlers of a method.
const MAX_CLAUSES: u64 = 4096;
/// Maximum number of words of the nibble map to search for the start of a method: 16 MB of code.
const MAX_NIBBLE_WORDS: usize = 1 << 16;

/// The map from addresses to managed code of a process.
///
/// Lookups read the process's own structures each time: code that was compiled since is found, and only the
/// headers of ReadyToRun images are kept.
#[derive(Debug)]
pub struct CodeMap {
    /// The top level of the tree, or the address of the pointer to the first range.
    root: u64,
    ranges: CodeRanges,
    nibble_map: NibbleMap,
    debug_info: Option<DebugInfoForm>,
    gc_info: Option<u32>,
    processor: Processor,
    images: Mutex<HashMap<u64, Arc<Image>>>,
    /// All sections, for memory that lacks a part of the map.
    all_sections: OnceLock<Vec<Section>>,
}

/// Managed code at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a function and its origin")]
pub struct Code {
    /// The origin of the code.
    pub origin: CodeOrigin,
    /// The function, or the part of one, that contains the address.
    pub function: FunctionEntry,
}

/// The origin of managed code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodeOrigin {
    /// A method that was compiled when it was first called.
    Jit {
        /// The address of its MethodDesc.
        method_desc: MethodDesc,
    },
    /// A function of an image that was compiled ahead of time.
    ReadyToRun {
        /// The address of the Module.
        module: Address,
        /// The index in the image's table of functions. Several can belong to one method.
        index: u32,
    },
    /// A part of a program that was compiled ahead of time.
    NativeAot {
        /// The address of the method's first instruction. A method can have several functions.
        method: Address,
    },
}

impl CodeOrigin {
    /// Returns true if the code has native unwind information (`.eh_frame`).
    pub(crate) const fn has_native_unwinding(self) -> bool {
        matches!(self, Self::NativeAot { .. })
    }
}

/// A range of managed code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    flags: u32,
    pub(crate) module: u64,
    heap: u64,
}

/// The code of the range can be freed: dynamic methods, and load contexts that can be unloaded.
const COLLECTIBLE: u32 = 1;
/// The range is a heap of JIT-compiled code.
const CODE_HEAP: u32 = 2;
/// The range has stubs, which are not methods.
const STUBS: u32 = 4;

impl Section {
    fn read(memory: &dyn Memory, at: u64) -> MemoryResult<Self> {
        let [begin, end] = memory.words(at)?;
        let flags = memory.u32(offset(at, 16))?;
        let [module, heap] = memory.words(offset(at, 32))?;
        Ok(Self { begin, end, flags, module, heap })
    }

    fn contains(&self, address: u64) -> bool {
        (self.begin..self.end).contains(&address)
    }

    /// Reads an element of the list; returns the address of the next element, too.
    fn read_element(memory: &dyn Memory, at: u64) -> MemoryResult<(Self, u64)> {
        let [begin, end, _, next, _, flags, of, _] = memory.words(at)?;
        // The flags have four bytes.
        let is_heap = flags & u64::from(CODE_HEAP) != 0;
        let collectible = u32::from(flags & u64::from(COLLECTIBLE) != 0);
        let (flags, module, heap) = if is_heap { (CODE_HEAP | collectible, 0, of) } else { (0, of, 0) };
        Ok((Self { begin, end, flags, module, heap }, next))
    }
}

/// The use of a range of the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RangeUse {
    /// JIT-compiled code.
    Jit {
        /// True if it can be freed, as that of dynamic methods.
        is_collectible: bool,
        /// The address of the description of its heap (`HeapList`).
        heap: Address,
    },
    /// Stubs.
    Stubs,
    /// An image that was compiled ahead of time, with the address of its Module.
    Image(Address),
}

impl CodeMap {
    /// Reads all ranges: start, end and use.
    pub(crate) fn all_ranges(&self, memory: &dyn Memory) -> Vec<(u64, u64, RangeUse)> {
        let range = |section: Section| {
            let of = match section.flags {
                flags if flags & CODE_HEAP != 0 => RangeUse::Jit {
                    is_collectible: flags & COLLECTIBLE != 0,
                    heap: Address::new(section.heap),
                },
                flags if flags & STUBS != 0 || section.module == 0 => RangeUse::Stubs,
                _ => RangeUse::Image(Address::new(section.module)),
            };
            (section.begin, section.end, of)
        };
        self.read_sections(memory).into_iter().map(range).collect()
    }

    /// Uses the map at `root`: the top level of the tree, or the pointer to the list.
    pub(crate) fn new(root: u64, layout: &Layout) -> Self {
        Self {
            root,
            ranges: layout.code_ranges,
            nibble_map: layout.nibble_map,
            debug_info: layout.debug_info,
            gc_info: layout.gc_info,
            processor: layout.processor,
            images: Mutex::default(),
            all_sections: OnceLock::new(),
        }
    }

    /// Returns the managed code at an address; `None` if the address is not in managed code.
    ///
    /// # Errors
    /// [`Missing`](crate::Missing) if the memory lacks a part of the runtime's structures.
    pub fn find(&self, memory: &dyn Memory, address: Address) -> MemoryResult<Option<Code>> {
        let address = address.get();
        let Some(section) = self.section(memory, address)? else { return Ok(None) };
        if section.flags & CODE_HEAP != 0 {
            return self.find_jit(memory, &section, address);
        }
        if section.flags & STUBS != 0 {
            return Ok(None);
        }
        let image = self.image(memory, section.begin)?;
        let Some((index, function)) = image.function_at(memory, address)? else { return Ok(None) };
        Ok(Some(Code {
            origin: CodeOrigin::ReadyToRun { module: Address::new(section.module), index },
            function,
        }))
    }

    /// Returns the registers in the caller of a frame of managed code; `None` if its code is not managed.
    ///
    /// # Errors
    /// As in [`UnwindError`].
    pub fn unwind(
        &self,
        memory: &dyn Memory,
        registers: &Registers,
        position: FramePosition,
    ) -> Result<Option<Registers>, UnwindError> {
        let address = position.lookup_address(Address::new(registers.ip));
        let Some(code) = self.find(memory, address)? else { return Ok(None) };
        unwind(memory, code.function, registers, position).map(Some)
    }

    /// The section that contains an address.
    pub(crate) fn section(&self, memory: &dyn Memory, address: u64) -> MemoryResult<Option<Section>> {
        if self.ranges == CodeRanges::None {
            return Ok(None);
        }
        if self.ranges == CodeRanges::List {
            let mut found = None;
            self.each_element(memory, |section| {
                found = section.contains(address).then_some(section);
                section.begin > address
            })?;
            return Ok(found);
        }
        match self.section_by_path(memory, address) {
            // A core can lack nodes of the map. Another entry may lead to the same section.
            Err(missing) => {
                let sections = self.all_sections.get_or_init(|| self.read_sections(memory));
                let next = sections.partition_point(|section| section.begin <= address);
                let section = next.checked_sub(1).and_then(|index| sections.get(index));
                match section.filter(|section| section.contains(address)) {
                    Some(section) => Ok(Some(*section)),
                    None => Err(missing),
                }
            }
            found => found,
        }
    }

    /// Returns true if an address is in an image that was compiled ahead of time.
    pub(crate) fn is_of_image(&self, memory: &dyn Memory, address: Address) -> bool {
        let section = self.section(memory, address.get()).ok().flatten();
        section.is_some_and(|section| section.flags & (CODE_HEAP | STUBS) == 0 && section.module != 0)
    }

    /// The addresses of the modules that have code of their own.
    pub(crate) fn modules(&self, memory: &dyn Memory) -> Vec<Address> {
        let sections = self.read_sections(memory);
        sections
            .iter()
            .map(|section| section.module)
            .filter(|module| *module != 0)
            .map(Address::new)
            .collect()
    }

    /// Passes the ranges of the list to `visit`, from the highest to the lowest, until it returns false.
    fn each_element(&self, memory: &dyn Memory, mut visit: impl FnMut(Section) -> bool) -> MemoryResult<()> {
        let (mut at, mut last) = (memory.u64(self.root)?, u64::MAX);
        for _ in 0..MAX_RANGES {
            if at == 0 {
                break;
            }
            let (section, next) = Section::read_element(memory, at)?;
            // Addresses have to fall, so the walk of a cyclic list ends.
            if section.begin >= last || !visit(section) {
                break;
            }
            (at, last) = (next, section.begin);
        }
        Ok(())
    }

    /// Follows the five levels of the map.
    fn section_by_path(&self, memory: &dyn Memory, address: u64) -> MemoryResult<Option<Section>> {
        let mut node = self.root;
        for shift in [49, 41, 33, 25, 17] {
            let index = address >> shift & 0xff;
            // The lowest bit marks entries of collectible code.
            node = memory.u64(offset(node, index.wrapping_mul(8)))? & !1;
            if node == 0 {
                return Ok(None);
            }
        }
        for _ in 0..MAX_FRAGMENTS {
            let [next, begin, end, section] = memory.words(node)?;
            if (begin..end).contains(&address) {
                return Section::read(memory, section).map(Some);
            }
            node = next & !1;
            if node == 0 {
                break;
            }
        }
        Ok(None)
    }

    /// Reads all sections that can be reached, by address.
    fn read_sections(&self, memory: &dyn Memory) -> Vec<Section> {
        let mut sections = Vec::new();
        if self.ranges == CodeRanges::None {
            return sections;
        }
        if self.ranges == CodeRanges::List {
            // Sections read before a gap are used.
            let _ = self.each_element(memory, |section| {
                sections.push(section);
                true
            });
            sections.sort_by_key(|section| section.begin);
            return sections;
        }
        let mut seen = HashSet::new();
        let mut pending = vec![(self.root, 0_u32)];
        while let Some((node, level)) = pending.pop() {
            if seen.len() >= MAX_NODES {
                break;
            }
            if level == 5 {
                let Ok([next, _, _, section]) = memory.words(node) else { continue };
                if next & !1 != 0 && seen.insert(next & !1) {
                    pending.push((next & !1, level));
                }
                if seen.insert(section)
                    && let Ok(section) = Section::read(memory, section)
                {
                    sections.push(section);
                }
                continue;
            }
            let Ok(entries) = memory.words::<256>(node) else { continue };
            for entry in entries.map(|entry| entry & !1) {
                if entry != 0 && seen.insert(entry) {
                    pending.push((entry, level.saturating_add(1)));
                }
            }
        }
        sections.sort_by_key(|section| section.begin);
        sections
    }

    /// Returns the debug info of JIT-compiled code at an address; `None` if the address is in other code, or
    /// the runtime has none for it.
    pub(crate) fn jit_debug_info(
        &self,
        memory: &dyn Memory,
        address: u64,
    ) -> MemoryResult<Option<DebugInfoPlace>> {
        let Some(form) = self.debug_info else { return Ok(None) };
        let section = self.section(memory, address)?.filter(|section| section.flags & CODE_HEAP != 0);
        let Some(section) = section else { return Ok(None) };
        let Some(method) = self.jit_method(memory, &section, address)? else { return Ok(None) };
        let at = memory.u64(method.header)?;
        let Ok(native) = u32::try_from(address.wrapping_sub(method.start)) else { return Ok(None) };
        Ok((at != 0).then_some(DebugInfoPlace { form, at, native }))
    }

    /// Returns the place of the GCInfo of JIT-compiled code at an address; `None` if the address is in other
    /// code, or the version is not known.
    pub(crate) fn jit_gc_info(&self, memory: &dyn Memory, address: u64) -> MemoryResult<Option<GcInfoPlace>> {
        let Some(version) = self.gc_info else { return Ok(None) };
        let section = self.section(memory, address)?.filter(|section| section.flags & CODE_HEAP != 0);
        let Some(section) = section else { return Ok(None) };
        let Some(method) = self.jit_method(memory, &section, address)? else { return Ok(None) };
        let at = memory.u64(offset(method.header, 16))?;
        Ok((at != 0).then_some(GcInfoPlace { at, version, start: method.start }))
    }

    /// Returns true if JIT-compiled code begins a filter of exceptions (`when`), by the table of its method's
    /// handlers.
    pub(crate) fn jit_is_filter(&self, memory: &dyn Memory, address: u64) -> MemoryResult<bool> {
        const FILTER: u32 = 1;
        const CLAUSE: u64 = 32;
        let section = self.section(memory, address)?.filter(|section| section.flags & CODE_HEAP != 0);
        let Some(section) = section else { return Ok(false) };
        let Some(method) = self.jit_method(memory, &section, address)? else { return Ok(false) };
        let table = memory.u64(offset(method.header, 8))?;
        if table == 0 {
            return Ok(false);
        }
        let count = memory.u64(table.wrapping_sub(8))?.min(MAX_CLAUSES);
        for at in (0..count).map(|index| offset(table, index.wrapping_mul(CLAUSE).wrapping_add(8))) {
            // The flags, the parts of the code of the block and of its handler, and the start of the filter.
            let flags = memory.u32(at)?;
            let filter = u64::from(memory.u32(offset(at, 24))?);
            if flags & FILTER != 0 && filter == address.wrapping_sub(method.start) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Finds the last method that starts before an address; `None` if it is a stub.
    fn jit_method(
        &self,
        memory: &dyn Memory,
        section: &Section,
        address: u64,
    ) -> MemoryResult<Option<JitMethod>> {
        let [base, nibbles] = memory.words(offset(section.heap, 0x20))?;
        let Some(inside) = address.checked_sub(base) else { return Ok(None) };
        let Some(start) = method_start(memory, self.nibble_map, nibbles, inside)? else { return Ok(None) };
        let start = offset(base, start);
        let header = memory.u64(start.wrapping_sub(8))?;
        // A small number instead of a pointer marks a stub.
        Ok((header >= 16).then_some(JitMethod { base, start, header }))
    }

    fn find_jit(&self, memory: &dyn Memory, section: &Section, address: u64) -> MemoryResult<Option<Code>> {
        let Some(method) = self.jit_method(memory, section, address)? else { return Ok(None) };
        let JitMethod { base, header, .. } = method;
        let method_desc = MethodDesc::new(memory.u64(offset(header, 0x18))?);
        // Entries are relative to the start of the range, which is the map's base in newer versions.
        let base = if self.ranges == CodeRanges::List { section.begin } else { base };
        let count = memory.u32(offset(header, 0x20))?.min(MAX_ENTRIES);
        for index in 0..u64::from(count) {
            let at = offset(header, index.wrapping_mul(self.processor.function_entry()).wrapping_add(0x24));
            if let Some(function) = FunctionEntry::read(memory, self.processor, at, base)?.at(address) {
                return Ok(Some(Code { origin: CodeOrigin::Jit { method_desc }, function }));
            }
        }
        // Past the end of the last method before it.
        Ok(None)
    }

    /// The image at an address, which is read once.
    pub(crate) fn image(&self, memory: &dyn Memory, base: u64) -> MemoryResult<Arc<Image>> {
        if let Some(image) = self.images().get(&base) {
            return Ok(Arc::clone(image));
        }
        let image = Arc::new(Image::read(memory, self.processor, base)?);
        self.images().insert(base, Arc::clone(&image));
        Ok(image)
    }

    fn images(&self) -> MutexGuard<'_, HashMap<u64, Arc<Image>>> {
        self.images.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A JIT-compiled method.
struct JitMethod {
    /// The address that the heap's map begins with.
    base: u64,
    /// The address of the first instruction.
    start: u64,
    /// The address of the header.
    header: u64,
}

/// Bytes of code for each nibble.
const BYTES: u64 = 32;

/// Returns the offset of the start of the method that contains the offset `inside` of a code heap.
fn method_start(memory: &dyn Memory, form: NibbleMap, map: u64, inside: u64) -> MemoryResult<Option<u64>> {
    let index = inside / BYTES;
    let mut word_index = index / 8;
    let mut word = memory.u32(offset(map, word_index.wrapping_mul(4)))?;
    if let Some(start) = pointer(form, word) {
        return Ok(Some(start));
    }
    // In the nibble of the address itself, only a start before it counts.
    let nibble = nibble(word, index);
    if nibble != 0 && u64::from(nibble) <= (inside % BYTES / 4).wrapping_add(1) {
        return Ok(Some(start(index, nibble)));
    }
    let mut before = index % 8;
    for _ in 0..MAX_NIBBLE_WORDS {
        let first = word_index.wrapping_mul(8);
        for place in (0..before).rev() {
            let index = first.wrapping_add(place);
            let nibble = self::nibble(word, index);
            if nibble != 0 {
                return Ok(Some(start(index, nibble)));
            }
        }
        let Some(previous) = word_index.checked_sub(1) else { break };
        (word_index, before) = (previous, 8);
        word = memory.u32(offset(map, word_index.wrapping_mul(4)))?;
        if let Some(start) = pointer(form, word) {
            return Ok(Some(start));
        }
        if form == NibbleMap::WithPointers && word == 0 {
            break;
        }
    }
    Ok(None)
}

/// The start that a word of the newer map points to.
fn pointer(form: NibbleMap, word: u32) -> Option<u64> {
    let low = word & 15;
    (form == NibbleMap::WithPointers && low > 8)
        .then(|| u64::from(word & !15).wrapping_add(u64::from(low.wrapping_sub(9)).wrapping_mul(4)))
}

/// The nibble of an index; a word's highest nibble has the lowest index.
fn nibble(word: u32, index: u64) -> u32 {
    let shift = 28_u32.wrapping_sub(u32::try_from(index % 8).unwrap_or_default().wrapping_mul(4));
    word.wrapping_shr(shift) & 15
}

fn start(index: u64, nibble: u32) -> u64 {
    index.wrapping_mul(BYTES).wrapping_add(u64::from(nibble.wrapping_sub(1)).wrapping_mul(4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    /// Words of a nibble map, each of eight nibbles, in order.
    fn map(words: &[[u32; 8]]) -> TestMemory {
        let mut memory = TestMemory::default();
        let bytes: Vec<u8> = words
            .iter()
            .map(|nibbles| nibbles.iter().fold(0, |word, nibble| word << 4 | nibble))
            .flat_map(u32::to_le_bytes)
            .collect();
        memory.put(0x1000, &bytes);
        memory
    }

    fn starts(memory: &TestMemory, form: NibbleMap, inside: &[u64]) -> Vec<Option<u64>> {
        inside.iter().map(|inside| method_start(memory, form, 0x1000, *inside).unwrap()).collect()
    }

    #[test]
    fn the_start_of_a_method_is_the_last_nibble_before_the_address() {
        // Methods at 0x24 (nibble 1 is 2), 0x60 (nibble 3 is 1), and 0x108 in the second word.
        let memory = map(&[[0, 2, 0, 1, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0, 0, 0]]);
        let found = starts(
            &memory,
            NibbleMap::Linear,
            &[0x00, 0x20, 0x23, 0x24, 0x5f, 0x60, 0xff, 0x100, 0x107, 0x108, 0x1f0],
        );
        let expected = [
            None,
            None,
            None,
            Some(0x24),
            Some(0x24),
            Some(0x60),
            Some(0x60),
            Some(0x60),
            Some(0x60),
            Some(0x108),
            Some(0x108),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_word_inside_a_long_method_points_to_its_start() {
        let mut memory = TestMemory::default();
        // The first word: a method at 0x28 (nibble 1 is 3). The second points to it: 0x20, and 9 + 2.
        let bytes: Vec<u8> =
            [0x0300_0000_u32, 0x20 | 0xb, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
        memory.put(0x1000, &bytes);
        let found = starts(&memory, NibbleMap::WithPointers, &[0x30, 0x180, 0x200]);
        assert_eq!(found, [Some(0x28), Some(0x28), Some(0x28)]);
        memory.put(0x1000, &[0; 12]);
        assert_eq!(starts(&memory, NibbleMap::WithPointers, &[0x180]), [None]);
    }

    /// A map with one section, reached through five levels.
    fn section_map() -> TestMemory {
        let mut memory = TestMemory::default();
        let address = 0x7f12_3456_0000_u64;
        for (level, shift) in [49, 41, 33, 25, 17].into_iter().enumerate() {
            let mut node = [0; 256];
            let next = 0x2_0000 + (level as u64 + 1) * 0x1000;
            node[usize::try_from(address >> shift & 0xff).unwrap()] = next | u64::from(level == 2);
            memory.put_words(0x2_0000 + level as u64 * 0x1000, &node);
        }
        // Two fragments: the first of another range, then ours.
        memory.put_words(0x2_5000, &[0x2_6000, 1, 2, 0x2_7000]);
        memory.put_words(0x2_6000, &[0, address, address + 0x1000, 0x2_8000]);
        memory.put_words(0x2_7000, &[1, 2, 2, 0, 0, 0, 0]);
        memory.put_words(0x2_8000, &[address, address + 0x1000, 2, 0, 0, 0x2_9000]);
        memory
    }

    #[test]
    fn a_section_is_found_through_the_levels() {
        let memory = section_map();
        let code = CodeMap::new(0x2_0000, &crate::runtime::layout::NET_9);
        let section = code.section(&memory, 0x7f12_3456_0800).unwrap().unwrap();
        assert_eq!((section.begin, section.heap), (0x7f12_3456_0000, 0x2_9000));
        assert_eq!(code.section(&memory, 0x7f12_3456_1000), Ok(None));
        assert_eq!(code.section(&memory, 0), Ok(None));
        assert_eq!(code.read_sections(&memory).len(), 2);
    }

    /// The list of .NET Core 3.1: JIT-compiled code at 0x9000, an image at 0x5000.
    fn section_list(last: u64) -> TestMemory {
        let mut memory = TestMemory::default();
        memory.put_words(0x100, &[0x1000]);
        memory.put_words(0x1000, &[0x9000, 0xa000, 0, 0x2000, 0, 2 | 0x7777 << 32, 0x3000, 0]);
        memory.put_words(0x2000, &[0x5000, 0x6000, 0, last, 0, 4, 0x4000, 0]);
        memory
    }

    #[test]
    fn a_section_is_found_in_the_list() {
        let memory = section_list(0);
        let code = CodeMap::new(0x100, &crate::runtime::layout::NET_3_1);
        let section = |address| code.section(&memory, address).unwrap();
        let heap = section(0x9fff).unwrap();
        assert_eq!((heap.begin, heap.flags, heap.heap, heap.module), (0x9000, CODE_HEAP, 0x3000, 0));
        let image = section(0x5000).unwrap();
        assert_eq!((image.begin, image.flags, image.heap, image.module), (0x5000, 0, 0, 0x4000));
        assert_eq!([0xa000, 0x8000, 0x6000, 0x4fff].map(section), [None; 4]);
        assert_eq!(code.modules(&memory), [Address::new(0x4000)]);
    }

    #[test]
    fn a_list_that_leads_back_or_out_ends() {
        let memory = section_list(0x1000);
        let code = CodeMap::new(0x100, &crate::runtime::layout::NET_3_1);
        assert_eq!((code.section(&memory, 0x4000), code.read_sections(&memory).len()), (Ok(None), 2));
        let memory = section_list(0x8000);
        assert!(code.section(&memory, 0x4000).is_err());
        assert_eq!(
            (code.section(&memory, 0x5800).unwrap().unwrap().module, code.modules(&memory)),
            (0x4000, vec![Address::new(0x4000)])
        );
    }

    #[test]
    fn a_map_that_points_to_itself_ends() {
        let mut memory = TestMemory::default();
        memory.put_words(0x2_0000, &[0x2_0000; 256]);
        let code = CodeMap::new(0x2_0000, &crate::runtime::layout::NET_9);
        assert!(code.read_sections(&memory).len() <= 2);
        assert!(
            code.find(&memory, Address::new(0x7f12_3456_0800))
                .is_err_and(|missing| missing.address == 0x2_0000)
                || code.find(&memory, Address::new(0x7f12_3456_0800)) == Ok(None)
        );
    }
}
