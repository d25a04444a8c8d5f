//! The heap of musl's malloc, as of version 1.2.1: the memory that it has taken from the kernel. Free parts
//! of it are not counted.
//!
//! # Source
//! musl `src/malloc/mallocng/meta.h` (`malloc_context`, `meta_area`, `meta`), on 64-bit systems. Nothing of
//! it is exported: its variables are found by a secret number, which each of its areas repeats.

use super::MAX_ARENAS;
use crate::memory::mapping::Mapping;
use crate::memory::{Memory, PAGE, offset};

/// The beginnings of the names of its file.
const NAMES: [&str; 2] = ["ld-musl-", "libc.musl-"];
/// Maximum number of bytes of its variables to search.
const MAX_DATA: u64 = 1 << 20;
/// Offsets of the pointer to the first area after the secret: systems with pages of several sizes keep the
/// size between them.
const FIRST_AREA: [u64; 2] = [56, 64];
/// The offsets of the pointer to the next area and of its groups, each of which has five words.
const NEXT: u64 = 8;
const GROUPS: usize = 24;
const GROUP: usize = 40;

/// Returns the ranges of the heap, start and end; `None` if the C library is not musl, or its variables were
/// not found.
pub(crate) fn ranges(memory: &dyn Memory, mappings: &[Mapping]) -> Option<Vec<(u64, u64)>> {
    let (secret, first) = variables(memory, mappings)?;
    let mut ranges = Vec::new();
    let mut area = first;
    for _ in 0..MAX_ARENAS {
        if area == 0 || memory.u64(area) != Ok(secret) {
            break;
        }
        ranges.push((area, offset(area, PAGE)));
        let bytes = memory.array::<4096>(area).ok()?;
        for group in bytes.get(GROUPS..).unwrap_or_default().chunks_exact(GROUP) {
            let [_, _, start, _, form] = [0, 8, 16, 24, 32].map(|at| word(group, at));
            // The number of its pages is above twelve bits; groups in other groups have none.
            let size = form & !0xfff;
            if start != 0 && start.is_multiple_of(PAGE) && size > 0 {
                ranges.push((start, start.saturating_add(size)));
            }
        }
        area = memory.u64(offset(area, NEXT)).unwrap_or_default();
    }
    Some(ranges)
}

/// The secret, and the address of the first area.
fn variables(memory: &dyn Memory, mappings: &[Mapping]) -> Option<(u64, u64)> {
    let mut end_of_data = None;
    for mapping in mappings {
        let file = mapping.name.rsplit('/').next().unwrap_or_default();
        let is_own = NAMES.iter().any(|name| file.starts_with(name));
        // The last variables are anonymous memory that follows the file's.
        let follows = mapping.name.is_empty() && end_of_data == Some(mapping.start);
        if !mapping.is_writable || !(is_own || follows) {
            continue;
        }
        end_of_data = Some(mapping.end);
        let end = mapping.end.get().min(offset(mapping.start.get(), MAX_DATA));
        let found = (mapping.start.get()..end).step_by(8).find_map(|at| {
            let secret = memory.u64(at).ok().filter(|secret| *secret != 0)?;
            let area =
                |by: u64| memory.u64(offset(at, by)).ok().filter(|area| is_area(memory, *area, secret));
            FIRST_AREA.into_iter().find_map(area).map(|area| (secret, area))
        });
        if found.is_some() {
            return found;
        }
    }
    None
}

fn is_area(memory: &dyn Memory, area: u64, secret: u64) -> bool {
    area != 0 && area.is_multiple_of(PAGE) && memory.u64(area) == Ok(secret)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::mapping::parse_mappings;
    use crate::memory::tests::TestMemory;

    const MAPS: &[u8] = b"1000-2000 rw-p 0 08:01 1 /lib/ld-musl-x86_64.so.1\n2000-3000 rw-p 0 00:00 0 \n";
    const SECRET: u64 = 0x1234_5678_9abc_def1;

    /// A group at `start` with this last word.
    fn group(start: u64, form: u64) -> [u64; 5] {
        [0, 0, start, 0, form]
    }

    fn area(secret: u64, next: u64, groups: &[[u64; 5]]) -> Vec<u64> {
        let mut words = vec![secret, next, groups.len() as u64];
        words.extend(groups.iter().flatten());
        words.resize(512, 0);
        words
    }

    fn memory(by: u64) -> TestMemory {
        let mut memory = TestMemory::default();
        let mut data = vec![7; 512];
        data[100] = SECRET;
        data[100 + usize::try_from(by / 8).unwrap()] = 0x10_0000;
        memory.put_words(0x1000, &[0; 512]).put_words(0x2000, &data);
        let groups =
            [group(0x20_0000, 3 << 12 | 63 << 6), group(0x30_0010, 1 << 12), group(0x40_0000, 0xfff)];
        memory.put_words(0x10_0000, &area(SECRET, 0x11_0000, &groups));
        memory.put_words(0x11_0000, &area(SECRET, 0, &[group(0, 0), group(0x50_0000, 1 << 12)]));
        memory
    }

    #[test]
    fn areas_lead_to_groups_with_pages() {
        let expected =
            [(0x10_0000, 0x10_1000), (0x20_0000, 0x20_3000), (0x11_0000, 0x11_1000), (0x50_0000, 0x50_1000)];
        for by in FIRST_AREA {
            assert_eq!(ranges(&memory(by), &parse_mappings(MAPS)).unwrap(), expected);
        }
        // Another C library, and variables that are elsewhere.
        let glibc = parse_mappings(b"1000-2000 rw-p 0 08:01 1 /lib/libc.so.6\n2000-3000 rw-p 0 00:00 0 \n");
        assert_eq!(ranges(&memory(56), &glibc), None);
        assert_eq!(ranges(&memory(48), &parse_mappings(MAPS)), None);
    }

    #[test]
    fn hostile_areas_end() {
        let mut ring = memory(56);
        ring.put_words(0x11_0000, &area(SECRET, 0x10_0000, &[group(!0xfff, u64::MAX)]));
        let found = ranges(&ring, &parse_mappings(MAPS)).unwrap();
        assert!(found.len() <= 4 * MAX_ARENAS && found.iter().all(|(start, end)| start < end));
        // An area without the secret, and one that is not there.
        for next in [0x12_0000, 0x13_0000, 8] {
            let mut cut = memory(56);
            cut.put_words(0x12_0000, &area(SECRET + 1, 0, &[group(0x60_0000, 1 << 12)]));
            cut.put_words(0x11_0000, &area(SECRET, next, &[]));
            assert_eq!(ranges(&cut, &parse_mappings(MAPS)).unwrap().len(), 3, "{next:#x}");
        }
    }
}
