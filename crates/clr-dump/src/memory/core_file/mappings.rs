//! The mappings of a core dump: its segments, divided at the borders of files, and joined where `dipc` has
//! cut a mapping into several of them. It states the start of their mapping as their physical address, which
//! other writers leave zero: neighbours with equal permissions can be two mappings, such as a stack and what
//! lies above it.

use std::ops::Range;
use std::sync::Arc;

use super::{CoreFile, Segment, WRITABLE};
use crate::memory::address::Address;
use crate::memory::mapping::{MAX_MAPPINGS, MappedFile, Mapping};

/// The flag of executable memory in a program header.
const EXECUTABLE: u32 = 1;

impl CoreFile {
    /// The memory in the file, with the names of mapped files. All of it counts as readable, and as writable,
    /// too, if the core dump does not state permissions.
    pub fn mappings(&self) -> Vec<Mapping> {
        // A process without writable memory does not exist: the writer has left the permissions out.
        let has_permissions = self.segments.iter().any(|segment| segment.flags & WRITABLE != 0);
        let mut joined = Joined { has_permissions, mappings: Vec::new() };
        let mut borders_left = MAX_MAPPINGS;
        let mut last_mapping = 0;
        for segment in &self.segments {
            let is_rest = segment.mapping != 0 && segment.mapping == last_mapping;
            last_mapping = segment.mapping;
            let end = segment.address.saturating_add(segment.size);
            let mut at = segment.address;
            while at < end {
                let after = self.files.partition_point(|file| file.start.get() <= at);
                let file = after.checked_sub(1).and_then(|index| self.files.get(index));
                let file = file.filter(|file| at < file.end.get());
                let border = self.files.get(after).map_or(end, |next| next.start.get().min(end));
                let border = file.map_or(border, |file| file.end.get().min(border));
                borders_left = borders_left.saturating_sub(1);
                let stop = if borders_left == 0 { end } else { border };
                let is_rest = is_rest || at > segment.address;
                joined.add(segment, at..stop, file, is_rest);
                at = stop;
            }
        }
        joined.mappings
    }
}

/// Mappings, each as long as its neighbours continue it.
struct Joined {
    has_permissions: bool,
    mappings: Vec<Mapping>,
}

impl Joined {
    /// Adds a part of a segment. `is_rest` is true if it can be the rest of the mapping before it.
    fn add(&mut self, segment: &Segment, range: Range<u64>, file: Option<&MappedFile>, is_rest: bool) {
        let inside = |file: &MappedFile| range.start.saturating_sub(file.start.get());
        let has = |flag: u32| self.has_permissions && segment.flags & flag != 0;
        let mapping = Mapping {
            start: Address::new(range.start),
            end: Address::new(range.end),
            is_readable: true,
            is_writable: has(WRITABLE) || !self.has_permissions,
            is_executable: has(EXECUTABLE),
            is_shared: false,
            file_offset: file.map_or(0, |file| file.file_offset.saturating_add(inside(file))),
            name: file.map_or_else(|| "".into(), |file| Arc::clone(&file.path)),
        };
        match self.mappings.last_mut().filter(|last| is_rest && continues(last, &mapping)) {
            Some(last) => last.end = mapping.end,
            None => self.mappings.push(mapping),
        }
    }
}

/// Returns true if a mapping is the rest of the one before it.
fn continues(before: &Mapping, next: &Mapping) -> bool {
    let permissions = |mapping: &Mapping| (mapping.is_writable, mapping.is_executable);
    let is_next = before.end == next.start && permissions(before) == permissions(next);
    let is_consecutive =
        next.name.is_empty() || before.file_offset.checked_add(before.size()) == Some(next.file_offset);
    is_next && before.name == next.name && is_consecutive
}

#[cfg(test)]
mod tests {
    use super::*;

    const READABLE: u32 = 4;
    const BOTH: u32 = READABLE | WRITABLE;

    /// The mappings of a core dump with these segments (address, pages, flags, mapping) and files (start,
    /// end, offset).
    fn mappings(
        segments: &[(u64, u64, u32, u64)],
        files: &[(u64, u64, u64)],
    ) -> Vec<(u64, u64, String, u64, bool)> {
        let mut core = CoreFile::open(testdata::bytes("cores/parked-mini.core.xz")).unwrap();
        let segment = |&(address, pages, flags, mapping): &(u64, u64, u32, u64)| Segment {
            address,
            size: pages << 12,
            file_offset: 0,
            flags,
            mapping,
        };
        core.segments = segments.iter().map(segment).collect();
        let file = |&(start, end, file_offset): &(u64, u64, u64)| MappedFile {
            start: Address::new(start),
            end: Address::new(end),
            file_offset,
            path: "/a.so".into(),
        };
        core.files = files.iter().map(file).collect();
        let row = |mapping: Mapping| {
            let (start, end) = (mapping.start.get(), mapping.end.get());
            (start, end, mapping.name.to_string(), mapping.file_offset, mapping.is_writable)
        };
        core.mappings().into_iter().map(row).collect()
    }

    #[test]
    fn segments_of_a_mapping_are_joined() {
        let none = String::new;
        // Three in a row; one with a gap before it, as untouched pages that were left out; another mapping.
        let segments = [
            (0x1000, 2, BOTH, 0x1000),
            (0x3000, 1, BOTH, 0x1000),
            (0x4000, 1, BOTH, 0x1000),
            (0x6000, 1, BOTH, 0x1000),
            (0x7000, 1, BOTH, 0x7000),
        ];
        assert_eq!(
            mappings(&segments, &[]),
            [
                (0x1000, 0x5000, none(), 0, true),
                (0x6000, 0x7000, none(), 0, true),
                (0x7000, 0x8000, none(), 0, true)
            ]
        );
        // Other writers do not state mappings, and parts with other permissions are not of one.
        let others =
            [(0x1000, 1, BOTH, 0), (0x2000, 1, BOTH, 0), (0x3000, 1, BOTH, 1), (0x4000, 1, READABLE, 1)];
        assert_eq!(mappings(&others, &[]).len(), 4);
        // Permissions that nothing has are not stated.
        assert_eq!(mappings(&[(0x1000, 1, READABLE, 0)], &[]), [(0x1000, 0x2000, none(), 0, true)]);
        let stated = mappings(&[(0x1000, 1, READABLE, 0), (0x2000, 1, BOTH, 0)], &[]);
        assert_eq!(stated.iter().map(|row| row.4).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn segments_are_divided_at_the_borders_of_files() {
        let file = || "/a.so".to_owned();
        // A page before the file, two parts of it in a row, a page after it, and another part of it.
        let files = [(0x2000, 0x3000, 0x5000), (0x3000, 0x4000, 0x6000), (0x5000, 0x6000, 0x9000)];
        assert_eq!(
            mappings(&[(0x1000, 5, BOTH, 0)], &files),
            [
                (0x1000, 0x2000, String::new(), 0, true),
                (0x2000, 0x4000, file(), 0x5000, true),
                (0x4000, 0x5000, String::new(), 0, true),
                (0x5000, 0x6000, file(), 0x9000, true)
            ]
        );
        // A segment that begins in a file has the offset of that place.
        let cut = [(0x3000, 1, BOTH, 0), (0x4000, 1, BOTH, 0)];
        assert_eq!(
            mappings(&cut, &[(0x2000, 0x4000, 0), (0x4000, 0x5000, 0x8000)]),
            [(0x3000, 0x4000, file(), 0x1000, true), (0x4000, 0x5000, file(), 0x8000, true)]
        );
    }

    #[test]
    fn overlapping_segments_and_files_lose_no_memory() {
        let segments = [
            (0x1000, 4, BOTH, 7),
            (0x1000, 4, BOTH, 7),
            (0x2000, 1, BOTH, 7),
            (u64::MAX - 0xfff, 1, BOTH, 7),
        ];
        let files =
            [(0x1000, 0x9000, 0), (0x1000, 0x1000, 0), (0x2000, 0x3000, u64::MAX), (0x3000, 0x2000, 7)];
        let sum = mappings(&segments, &files).iter().map(|(start, end, ..)| end - start).sum::<u64>();
        assert_eq!(sum, (9 << 12) + 0xfff);
    }
}
