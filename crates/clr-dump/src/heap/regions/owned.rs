//! The memory that the collector has taken from the system: its regions or segments, and its tables.
//!
//! # Source
//! dotnet/runtime `src/coreclr/gc/gcpriv.h` (`card_table_info`, `heap_segment`), `gc/gcinterface.dacvars.def`
//! (`bookkeeping_start`, `card_table_info_size`), `inc/dacvars.h` (`g_card_table`, `g_lowest_address`).

use hashbrown::{HashMap, HashSet};

use super::variables::handle_map;
use super::{
    GENERATION_TABLE, HEAP_COUNT, HEAPS, HeapLayout, MAX_HEAPS, MAX_REGIONS, Variables, YOUNG, is_server,
};
use crate::memory::{Memory, MemoryResult, PAGE, offset};
use crate::runtime::Runtime;
use crate::runtime::layout::Heap;

/// The flag of segments with objects that are never collected.
const READ_ONLY: u64 = 1;
/// The index of the pointer to the start of the tables, and the offset of the size of their header in `GcDacVars`: both
/// from minor version 2 on.
const BOOKKEEPING_START: u64 = 29;
const MIN_MINOR_VERSION: u8 = 2;
const TABLE_HEADER_SIZE: u64 = 312;
/// Maximum number of tables: a new one replaces an old one that is still in use.
const MAX_TABLES: usize = 64;
/// Maximum size of a table.
const MAX_TABLE_SIZE: u64 = 1 << 44;
/// The sizes of the header of tables in versions that do not state it.
const HEADER_SIZES: [u64; 2] = [40, 160];
/// Offsets in the header of a table: of the bounds of the addresses that it describes, of its size, and of the pointer to
/// the table before it. .NET Core 3.1 has another order.
#[derive(Debug, Clone, Copy)]
struct HeaderForm {
    bounds: u64,
    size: u64,
    next: u64,
    /// The offset of the pointer to the marks, if they end the table.
    marks: Option<u64>,
}
const HEADER: HeaderForm = HeaderForm { bounds: 24, size: 8, next: 16, marks: None };
const HEADER_3_1: HeaderForm = HeaderForm { bounds: 8, size: 48, next: 56, marks: Some(40) };
/// Maximum number of places at which they are looked for.
const MAX_STARTS: usize = 1 << 16;
/// The number of variables before the type of strings among which is the place of the tables.
const SEARCHED_SLOTS: usize = 16;
/// The segment's own description precedes its objects by at most so many bytes.
const MAX_DESCRIPTION: u64 = 1 << 16;

/// A region or segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnedRegion {
    pub(crate) start: u64,
    /// The end of the addresses that are reserved for it.
    pub(crate) end: u64,
    pub(crate) committed: u64,
    /// The oldest of the generations that it belongs to.
    pub(crate) generation: u64,
    /// True if its objects are never collected.
    pub(crate) is_frozen: bool,
}

/// The numbers of a generation, in bytes of addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GenerationNumbers {
    /// Bytes up to the last objects.
    pub(crate) bytes: u64,
    /// Bytes of these that are free.
    pub(crate) free: Option<u64>,
    /// Bytes that are committed after them.
    pub(crate) unused: u64,
}

/// The memory that the collector has taken from the system.
#[derive(Debug, Default)]
pub(crate) struct CollectorRanges {
    pub(crate) regions: Vec<OwnedRegion>,
    /// Card tables, mark arrays and the like: start and end.
    pub(crate) tables: Vec<(u64, u64)>,
    /// The addresses that are reserved for all regions; `None` of a collector with segments.
    pub(crate) reserved: Option<(u64, u64)>,
    /// True if generations share segments.
    pub(crate) has_segments: bool,
    /// The address of the map of handle tables.
    pub(crate) handle_map: u64,
    /// The numbers of generations, and of frozen segments (`None`).
    pub(crate) numbers: HashMap<Option<u64>, GenerationNumbers>,
}

impl CollectorRanges {
    /// Reads the collector's description. Where it does not state its tables, they are looked for at `starts`, the
    /// beginnings of anonymous mappings.
    pub(crate) fn read(memory: &dyn Memory, runtime: &Runtime, starts: &[u64]) -> MemoryResult<Self> {
        let variables = Variables::of(memory, runtime)?;
        let layout = HeapLayout::read(memory, runtime)?;
        let mut ranges = Self { handle_map: handle_map(memory, runtime)?, ..Self::default() };
        let (size, generations) = variables.generations()?;
        let [_, first] = variables.generation_fields()?;
        let mut seen = HashSet::new();
        for table in generation_tables(memory, runtime, &variables)? {
            for index in (0..generations).rev() {
                let generation = offset(table, size.wrapping_mul(index));
                // A running process changes its lists: what was read before is used.
                let _ = ranges.add_segments(memory, offset(generation, first), index, &mut seen);
            }
        }
        let is_young = |region: &OwnedRegion| region.generation < YOUNG;
        ranges.has_segments = !ranges.regions.iter().any(is_young);
        ranges.add_numbers(&layout);
        ranges.add_tables(memory, runtime, &variables, starts);
        Ok(ranges)
    }

    fn add_segments(
        &mut self,
        memory: &dyn Memory,
        pointer: u64,
        generation: u64,
        seen: &mut HashSet<u64>,
    ) -> MemoryResult<()> {
        let mut segment = memory.u64(pointer)?;
        while segment != 0 && seen.len() < MAX_REGIONS && seen.insert(segment) {
            let [_, committed, reserved, _, start, flags, next] = memory.words(segment)?;
            // Segments begin with their description, regions have it elsewhere.
            let is_before = start.checked_sub(segment).is_some_and(|before| before <= MAX_DESCRIPTION);
            let start = if is_before { segment } else { start };
            let end = reserved.max(committed);
            if start < end {
                let is_frozen = flags & READ_ONLY != 0;
                self.regions.push(OwnedRegion { start, end, committed, generation, is_frozen });
            }
            segment = next;
        }
        Ok(())
    }

    fn add_numbers(&mut self, layout: &HeapLayout) {
        let mut regions: Vec<_> = self.regions.clone();
        regions.sort_unstable_by_key(|region| region.start);
        for region in &layout.regions {
            let next = regions.partition_point(|own| own.start <= region.start);
            let own = next.checked_sub(1).and_then(|index| regions.get(index));
            let own = own.filter(|own| region.start < own.end);
            let is_frozen = own.is_some_and(|own| own.is_frozen);
            let key = (!is_frozen).then_some(region.generation);
            let numbers = self.numbers.entry(key).or_default();
            numbers.bytes = numbers.bytes.saturating_add(region.end.saturating_sub(region.start));
            let unused = own.map_or(0, |own| own.committed.saturating_sub(region.end));
            numbers.unused = numbers.unused.saturating_add(unused);
        }
        for (generation, numbers) in &mut self.numbers {
            let parts = layout.free.iter().filter(|free| Some(free.generation) == *generation);
            let mut free = parts.map(|free| free.bytes);
            let free = free.try_fold(0_u64, |sum, part| Some(sum.saturating_add(part?)));
            numbers.free = free.map(|free| free.min(numbers.bytes));
        }
    }

    /// Adds the tables that describe the addresses of all regions.
    fn add_tables(
        &mut self,
        memory: &dyn Memory,
        runtime: &Runtime,
        variables: &Variables<'_>,
        starts: &[u64],
    ) {
        let collected = || self.regions.iter().filter(|region| !region.is_frozen);
        let low = collected().map(|region| region.start).min();
        let high = collected().map(|region| region.end).max();
        let Some(bounds) = low.zip(high) else { return };
        // All regions are in one piece of addresses: what lies between two of them is the collector's, too.
        self.reserved = Some(bounds).filter(|_| !self.has_segments);
        let stated = stated_tables(memory, variables).filter(|of| of.describes(memory, bounds));
        let Some(newest) = stated.or_else(|| searched_tables(memory, runtime, bounds, starts)) else {
            return;
        };
        self.reserved = self.reserved.and_then(|_| newest.bounds(memory));
        let Tables { mut at, header, form } = newest;
        while self.tables.len() < MAX_TABLES {
            let field = |by: u64| memory.u64(offset(at, by));
            let (Ok(size), Ok(next)) = (field(form.size), field(form.next)) else { break };
            let size = if size == 0 { form.size_by_marks(memory, at).unwrap_or_default() } else { size };
            if size == 0 || size > MAX_TABLE_SIZE || self.tables.iter().any(|(start, _)| *start == at) {
                break;
            }
            self.tables.push((at, offset(at, size)));
            let Some(before) = next.checked_sub(header) else { break };
            at = before;
        }
    }
}

impl HeaderForm {
    /// The size of a table that does not state it, as one of .NET Core 3.1 after the heap has grown: it ends with the marks
    /// of a concurrent collector, a bit for each 16 bytes.
    fn size_by_marks(self, memory: &dyn Memory, at: u64) -> Option<u64> {
        let marks = memory.u64(offset(at, self.marks?)).ok().filter(|marks| *marks != 0)?;
        let [low, high] = memory.words(offset(at, self.bounds)).ok()?;
        let end = marks.checked_add(high.checked_sub(low)?.checked_div(128)?)?;
        end.checked_sub(at)
    }
}

/// The newest of the collector's tables, which leads to the ones before it.
#[derive(Debug, Clone, Copy)]
struct Tables {
    /// The address of its header.
    at: u64,
    /// The size of the header. Pointers to tables point past it.
    header: u64,
    form: HeaderForm,
}

impl Tables {
    /// The addresses that it describes.
    fn bounds(self, memory: &dyn Memory) -> Option<(u64, u64)> {
        let [low, high] = memory.words(offset(self.at, self.form.bounds)).ok()?;
        Some((low, high))
    }

    /// Returns true if it describes these addresses.
    fn describes(self, memory: &dyn Memory, (low, high): (u64, u64)) -> bool {
        self.bounds(memory).is_some_and(|(from, to)| from <= low && high <= to)
    }
}

/// The tables of generations of all heaps.
fn generation_tables(
    memory: &dyn Memory,
    runtime: &Runtime,
    variables: &Variables<'_>,
) -> MemoryResult<Vec<u64>> {
    if !is_server(memory, runtime, variables)? {
        return Ok(vec![variables.pointer(GENERATION_TABLE)?]);
    }
    let table = memory.u64(variables.pointer(HEAPS)?)?;
    let [.., generations] = variables.heap_fields()?;
    let count = memory.u32(variables.pointer(HEAP_COUNT)?)?.min(MAX_HEAPS);
    let heap = |index: u32| memory.u64(offset(table, u64::from(index).wrapping_mul(8)));
    (0..count).map(|index| Ok(offset(heap(index)?, generations))).collect()
}

/// The newest table, as the collector states it.
fn stated_tables(memory: &dyn Memory, variables: &Variables<'_>) -> Option<Tables> {
    if variables.heap != Heap::Described || memory.u8(offset(variables.address, 1)).ok()? < MIN_MINOR_VERSION
    {
        return None;
    }
    let at = memory.u64(variables.pointer(BOOKKEEPING_START).ok()?).ok()?;
    let header = memory.u64(offset(variables.address, TABLE_HEADER_SIZE)).ok()?;
    (at != 0).then_some(Tables { at, header, form: HEADER })
}

/// Finds the newest table by the runtime's variables for write barriers: the table as if it began at address zero, and
/// the bounds of the heap. A table's own bounds are in its header, and are wider if the heap has grown.
fn searched_tables(
    memory: &dyn Memory,
    runtime: &Runtime,
    bounds: (u64, u64),
    starts: &[u64],
) -> Option<Tables> {
    let last = runtime.layout.slots.string_type;
    let variable = |slot: usize| memory.u64(Some(runtime.slot(slot)).filter(|at| *at != 0)?).ok();
    (last.saturating_sub(SEARCHED_SLOTS)..last).find_map(|slot| {
        let table = variable(slot)?;
        let low =
            variable(slot.saturating_add(1)).filter(|low| *low <= bounds.0 && low.is_multiple_of(PAGE))?;
        let high = variable(slot.saturating_add(2)).filter(|high| *high >= bounds.1)?;
        // A table with the bounds of the heap, or one at the beginning of a mapping.
        let first = first_entry(table, low);
        let [min, max] = HEADER_SIZES;
        let own = (min..=max).step_by(8).map(|header| first.wrapping_sub(header));
        let mut places = own.chain(starts.iter().copied().take(MAX_STARTS));
        places.find_map(|at| table_at(memory, at, table, (low, high)))
    })
}

/// The address of the first entry of a table for addresses from `low` on, as if it began at address zero at `table`. An
/// entry has 32 bits, each for 256 bytes.
const fn first_entry(table: u64, low: u64) -> u64 {
    offset(table, (low >> 13).wrapping_mul(4))
}

/// Returns the table with a header at an address, if it is used, describes these addresses, and has its entries at
/// `table`.
fn table_at(memory: &dyn Memory, at: u64, table: u64, bounds: (u64, u64)) -> Option<Tables> {
    if memory.u32(at).ok()? == 0 {
        return None;
    }
    [HEADER, HEADER_3_1].into_iter().find_map(|form| {
        let tables = Tables { at, header: 0, form };
        let (low, _) = tables.bounds(memory).filter(|_| tables.describes(memory, bounds))?;
        let header = first_entry(table, low).checked_sub(at)?;
        let [min, max] = HEADER_SIZES;
        (min..=max).contains(&header).then_some(Tables { header, ..tables })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;
    use crate::runtime::layout::NET_3_1;

    /// The heap of a process has these bounds, and its table wider ones.
    const LOW: u64 = 0x7f00_1000_0000;
    const HIGH: u64 = 0x7f00_2000_0000;
    const WIDE: u64 = 0x7f00_0000_0000;
    const TABLE: u64 = 0x7e00_0000_0000;

    /// The memory of a process with a table for addresses from `low` on, found by its variables or by its start.
    fn found(header: &[u64; 8], low: u64, starts: &[u64]) -> Option<(u64, u64)> {
        let runtime = Runtime::of_slots(&NET_3_1, &[(47, 0x1000), (48, 0x2000), (49, 0x3000)]);
        let mut memory = TestMemory::default();
        let entries = (TABLE + 64).wrapping_sub((low >> 13) * 4);
        memory.put_words(0x1000, &[entries]).put_words(0x2000, &[LOW]).put_words(0x3000, &[HIGH]);
        memory.put_words(TABLE, header);
        let tables = searched_tables(&memory, &runtime, (LOW + 0x1000, HIGH - 0x1000), starts)?;
        Some((tables.at, tables.header))
    }

    #[test]
    fn tables_are_found_by_the_variables_of_write_barriers() {
        let old = [1, LOW, HIGH, 0, 0, 0, 0x1_0000, 0];
        let new = [1, 0x1_0000, 0, LOW, HIGH, 0, 0, 0];
        for header in [old, new] {
            assert_eq!(found(&header, LOW, &[]), Some((TABLE, 64)), "{header:x?}");
        }
        // A table that has grown begins at an address of its own.
        let wide = [1, WIDE, HIGH, 0, 0, 0, 0x1_0000, 0];
        assert_eq!(found(&wide, WIDE, &[]), None);
        assert_eq!(found(&wide, WIDE, &[0x5000, TABLE]), Some((TABLE, 64)));
        // One that is not used, one of other addresses, and one that is elsewhere.
        assert_eq!(found(&[0, LOW, HIGH, 0, 0, 0, 0x1_0000, 0], LOW, &[TABLE]), None);
        assert_eq!(found(&[1, LOW + 0x2000, HIGH, 0, 0, 0, 0x1_0000, 0], LOW, &[TABLE]), None);
        assert_eq!(found(&wide, WIDE + 0x4_0000, &[TABLE]), None);
    }
}
