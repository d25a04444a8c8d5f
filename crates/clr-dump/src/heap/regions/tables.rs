//! The collector's tables: cards, marks and the like, which describe the addresses of its regions or
//! segments.
//!
//! # Source
//! dotnet/runtime `src/coreclr/gc/gcpriv.h` (`card_table_info`), `gc/gcinterface.dacvars.def`
//! (`bookkeeping_start`, `card_table_info_size`), `inc/dacvars.h` (`g_card_table`, `g_lowest_address`).

use super::{FROZEN, HeapLayout, Variables, YOUNG};
use crate::memory::{Memory, MemoryResult, PAGE, offset};
use crate::runtime::Runtime;
use crate::runtime::layout::Heap;

/// The index of the pointer to the start of the tables, and the offset of the size of their header in
/// `GcDacVars`: both from minor version 2 on.
const BOOKKEEPING_START: u64 = 29;
const MIN_MINOR_VERSION: u8 = 2;
const TABLE_HEADER_SIZE: u64 = 312;
/// Maximum number of tables: a new one replaces an old one that is still in use.
const MAX_TABLES: usize = 64;
/// Maximum size of a table.
const MAX_TABLE_SIZE: u64 = 1 << 44;
/// The sizes of the header of tables in versions that do not state it.
const HEADER_SIZES: [u64; 2] = [40, 160];
/// Offsets in the header of a table: of the bounds of the addresses that it describes, of its size, and of
/// the pointer to the table before it. .NET Core 3.1 has another order.
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
/// Maximum number of bytes of a program's variables to search.
const MAX_DATA: u64 = 16 << 20;
/// Maximum number of places at which they are looked for.
const MAX_STARTS: usize = 1 << 16;
/// The number of variables before the type of strings among which is the place of the tables.
const SEARCHED_SLOTS: usize = 16;

/// The memory that the collector has taken from the system for itself.
#[derive(Debug, Default)]
pub(crate) struct CollectorTables {
    /// Card tables, mark arrays and the like: start and end.
    pub(crate) tables: Vec<(u64, u64)>,
    /// The addresses that are reserved for all regions; `None` of a collector with segments.
    pub(crate) reserved: Option<(u64, u64)>,
}

impl CollectorTables {
    /// Reads the tables for the regions of a heap. Where the collector does not state them, they are looked
    /// for at `places`.
    pub(crate) fn read(
        memory: &dyn Memory,
        runtime: &Runtime,
        layout: &HeapLayout,
        places: SearchPlaces<'_>,
    ) -> MemoryResult<Self> {
        let variables = Variables::of(memory, runtime)?;
        let collected = || layout.regions.iter().filter(|region| region.generation != FROZEN);
        let low = collected().map(|region| region.first).min();
        let high = collected().map(|region| region.reserved).max();
        let Some(bounds) = low.zip(high) else { return Ok(Self::default()) };
        // All regions are in one piece of addresses: what lies between two of them is the collector's, too.
        // Young generations share segments with the oldest one.
        let has_regions = collected().any(|region| region.generation < YOUNG);
        let mut found = Self { tables: Vec::new(), reserved: has_regions.then_some(bounds) };
        let stated = stated_tables(memory, &variables).filter(|of| of.describes(memory, bounds));
        let searched = || searched_tables(memory, runtime, bounds, places);
        let Some(newest) = stated.or_else(searched) else { return Ok(found) };
        found.reserved = found.reserved.and_then(|_| newest.bounds(memory));
        let Tables { mut at, header, form } = newest;
        while found.tables.len() < MAX_TABLES {
            let field = |by: u64| memory.u64(offset(at, by));
            let (Ok(size), Ok(next)) = (field(form.size), field(form.next)) else { break };
            let size = if size == 0 { form.size_by_marks(memory, at).unwrap_or_default() } else { size };
            if size == 0 || size > MAX_TABLE_SIZE || found.tables.iter().any(|(start, _)| *start == at) {
                break;
            }
            found.tables.push((at, offset(at, size)));
            let Some(before) = next.checked_sub(header) else { break };
            at = before;
        }
        Ok(found)
    }
}

impl HeaderForm {
    /// The size of a table that does not state it, as one of .NET Core 3.1 after the heap has grown: it ends
    /// with the marks of a concurrent collector, a bit for each 16 bytes.
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

/// The places at which tables are looked for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SearchPlaces<'a> {
    /// The beginnings of anonymous mappings.
    pub(crate) starts: &'a [u64],
    /// The variables of a program of NativeAOT: start and end.
    pub(crate) data: &'a [(u64, u64)],
}

/// Finds the newest table by the runtime's variables for write barriers: the table as if it began at address
/// zero, and the bounds of the heap.
fn searched_tables(
    memory: &dyn Memory,
    runtime: &Runtime,
    bounds: (u64, u64),
    places: SearchPlaces<'_>,
) -> Option<Tables> {
    let last = runtime.layout.slots.string_type;
    let variable = |slot: usize| memory.u64(Some(runtime.slot(slot)).filter(|at| *at != 0)?).ok();
    let listed = (last.saturating_sub(SEARCHED_SLOTS)..last).find_map(|slot| {
        let [low, high] = [1, 2].map(|by| variable(slot.saturating_add(by)));
        tables_of_barriers(memory, [variable(slot)?, low?, high?], bounds, places.starts)
    });
    listed.or_else(|| tables_of_data(memory, bounds, places))
}

/// Finds the newest table by variables that are somewhere in the data of a program.
fn tables_of_data(memory: &dyn Memory, bounds: (u64, u64), places: SearchPlaces<'_>) -> Option<Tables> {
    let mut left = MAX_DATA;
    for (start, end) in places.data {
        let end = start.saturating_add(left.min(end.saturating_sub(*start)));
        left = left.saturating_sub(end.saturating_sub(*start));
        let mut words = [0; 3];
        let mut at = *start;
        while at < end {
            let next = at.saturating_add(1).next_multiple_of(PAGE).min(end);
            let size = usize::try_from(next.saturating_sub(at)).unwrap_or_default();
            for word in memory.bytes(at, size).unwrap_or_default().as_chunks().0 {
                let [_, table, low] = words;
                words = [table, low, u64::from_le_bytes(*word)];
                let tables = tables_of_barriers(memory, words, bounds, places.starts);
                if tables.is_some() {
                    return tables;
                }
            }
            at = next;
        }
    }
    None
}

/// The newest table, if three words are the variables of write barriers. A table's own bounds are in its
/// header, and are wider if the heap has grown.
fn tables_of_barriers(
    memory: &dyn Memory,
    [table, low, high]: [u64; 3],
    bounds: (u64, u64),
    starts: &[u64],
) -> Option<Tables> {
    if table == 0 || low > bounds.0 || high < bounds.1 || low == 0 || !low.is_multiple_of(PAGE) {
        return None;
    }
    // A table with the bounds of the heap, or one at the beginning of a mapping.
    let first = first_entry(table, low);
    let [min, max] = HEADER_SIZES;
    let own = (min..=max).step_by(8).map(|header| first.wrapping_sub(header));
    let mut places = own.chain(starts.iter().copied().take(MAX_STARTS));
    places.find_map(|at| table_at(memory, at, table, (low, high)))
}

/// The address of the first entry of a table for addresses from `low` on, as if it began at address zero at
/// `table`. An entry has 32 bits, each for 256 bytes.
const fn first_entry(table: u64, low: u64) -> u64 {
    offset(table, (low >> 13).wrapping_mul(4))
}

/// Returns the table with a header at an address, if it is used, describes these addresses, and has its
/// entries at `table`.
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

    /// The memory of a process with a table for addresses from `low` on, found by its variables or by its
    /// start.
    fn found(header: &[u64; 8], low: u64, starts: &[u64]) -> Option<(u64, u64)> {
        let runtime = Runtime::of_slots(&NET_3_1, &[(47, 0x1000), (48, 0x2000), (49, 0x3000)]);
        let mut memory = TestMemory::default();
        let entries = (TABLE + 64).wrapping_sub((low >> 13) * 4);
        memory.put_words(0x1000, &[entries]).put_words(0x2000, &[LOW]).put_words(0x3000, &[HIGH]);
        memory.put_words(TABLE, header);
        let bounds = (LOW + 0x1000, HIGH - 0x1000);
        let places = SearchPlaces { starts, data: &[] };
        let tables = searched_tables(&memory, &runtime, bounds, places)?;
        // The same three variables in a row in a program's data, after others.
        let data = [[0x1000, u64::MAX, 7, 0, LOW].as_slice(), &[entries, LOW, HIGH, 0]].concat();
        memory.put_words(0x9000, &data);
        let places = SearchPlaces { starts, data: &[(0x8000, 0x8008), (0x9000, 0x9048)] };
        let in_data = tables_of_data(&memory, bounds, places).map(|tables| (tables.at, tables.header));
        assert_eq!(in_data, Some((tables.at, tables.header)));
        let without = SearchPlaces { starts, data: &[(0x9000, 0x9038)] };
        assert!(tables_of_data(&memory, bounds, without).is_none());
        in_data
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
