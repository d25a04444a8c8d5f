//! The places of references in the objects of a type.
//!
//! # Source
//! dotnet/runtime `src/coreclr/gc/gcdesc.h` (`CGCDesc`).

use crate::memory::address::TypeHandle;
use crate::memory::{Memory, MemoryResult, Missing, offset};

/// Maximum number of runs of references in the objects of a type.
const MAX_RUNS: u64 = 1 << 16;
/// Bytes of the header of an object, before its address.
const HEADER: u64 = 8;

/// The places of references in the objects of a type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pointers {
    None,
    /// Runs: the offset of each, and its size minus the object's size.
    Runs(Box<[(u64, i64)]>),
    /// The elements of an array of structures: from an offset on, numbers of references and bytes between.
    Elements(u64, Box<[(u32, u32)]>),
}

impl Pointers {
    /// Reads the description that lies before the MethodTable of a type with references.
    pub(crate) fn read(memory: &dyn Memory, type_handle: TypeHandle) -> MemoryResult<Self> {
        let before = |bytes: u64| type_handle.get().wrapping_sub(bytes);
        let damaged = Missing { address: before(8) };
        let count = memory.i64(before(8))?;
        if count.unsigned_abs() > MAX_RUNS || count == 0 {
            return Err(damaged);
        }
        if count > 0 {
            let runs: MemoryResult<Vec<_>> = (0..count.unsigned_abs())
                .map(|index| {
                    let at = before(index.wrapping_mul(16).wrapping_add(24));
                    Ok((memory.u64(offset(at, 8))?, memory.i64(at)?))
                })
                .collect();
            let mut runs = runs?;
            // The description has the last run first.
            runs.sort_unstable();
            return Ok(Self::Runs(runs.into()));
        }
        let elements: MemoryResult<Vec<_>> = (0..count.unsigned_abs())
            .map(|index| {
                let at = before(index.wrapping_mul(8).wrapping_add(24));
                Ok((memory.u32(at)?, memory.u32(offset(at, 4))?))
            })
            .collect();
        let elements = elements?;
        if elements.iter().all(|(references, _)| *references == 0) {
            return Err(damaged);
        }
        Ok(Self::Elements(memory.u64(before(16))?, elements.into()))
    }

    /// Calls `visit` with the address of each reference in an object until it returns `None`. Returns whether
    /// all are in the object and were visited.
    pub(crate) fn each(&self, object: u64, size: u64, mut visit: impl FnMut(u64) -> Option<()>) -> bool {
        // Damaged runs can overlap.
        let mut left = size / 8;
        let mut visit = |at: u64| {
            left = left.checked_sub(1)?;
            visit(at)
        };
        match self {
            Self::None => true,
            Self::Runs(runs) => runs.iter().all(|(start, less)| {
                let bytes = size.wrapping_add_signed(*less);
                let end = start.saturating_add(bytes);
                // The padding of an object belongs to the runs.
                if *start < HEADER || end > size.saturating_add(HEADER) {
                    return false;
                }
                (0..bytes / 8)
                    .all(|index| visit(offset(object, index.wrapping_mul(8).wrapping_add(*start))).is_some())
            }),
            Self::Elements(start, elements) => {
                let end = size.saturating_sub(HEADER);
                let mut at = *start;
                if at < HEADER {
                    return false;
                }
                while at < end {
                    for (references, skipped) in elements {
                        for _ in 0..*references {
                            if at >= end || visit(offset(object, at)).is_none() {
                                return at >= end;
                            }
                            at = at.saturating_add(8);
                        }
                        at = at.saturating_add(u64::from(*skipped));
                    }
                }
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    fn places(pointers: &Pointers, size: u64) -> (Vec<u64>, bool) {
        let mut places = Vec::new();
        let is_whole = pointers.each(0x1000, size, |at| {
            places.push(at - 0x1000);
            Some(())
        });
        (places, is_whole)
    }

    #[test]
    fn references_are_where_their_type_has_them() {
        let mut memory = TestMemory::default();
        // Two runs of an object of 56 bytes: two references at 8, one at 32.
        memory.put_words(0x2000, &[8_u64.wrapping_sub(56), 32, 16_u64.wrapping_sub(56), 8, 2, 0]);
        let pointers = Pointers::read(&memory, TypeHandle::new(0x2028)).unwrap();
        assert_eq!(places(&pointers, 56), (vec![8, 16, 32], true));
        // An array of three structures of 24 bytes, each with two references after a number.
        memory.put_words(0x3000, &[2 | 8 << 32, 24, u64::MAX, 0]);
        let pointers = Pointers::read(&memory, TypeHandle::new(0x3018)).unwrap();
        assert_eq!(places(&pointers, 24 + 72), (vec![24, 32, 48, 56, 72, 80], true));
    }

    #[test]
    fn damaged_descriptions_are_bounded() {
        let mut memory = TestMemory::default();
        // No references at all, and as many as words.
        memory.put_words(0x2000, &[0, 24, u64::MAX, 0]);
        assert!(Pointers::read(&memory, TypeHandle::new(0x2018)).is_err());
        memory.put_words(0x2000, &[0, 8, 1 << 60, 0]);
        assert!(Pointers::read(&memory, TypeHandle::new(0x2018)).is_err());
        // Runs outside the object, and runs that overlap.
        for runs in [vec![(1 << 60, 0)], vec![(0, 0)], vec![(8, i64::MAX)]] {
            assert_eq!(places(&Pointers::Runs(runs.into()), 64), (vec![], false));
        }
        let (places, is_whole) = places(&Pointers::Runs([(8, -8); 100].into()), 64);
        assert_eq!((places.len(), is_whole), (8, false));
    }
}
