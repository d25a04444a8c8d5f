//! The sparse array of images that were compiled ahead of time.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/nativeformatreader.h`; `docs/design/coreclr/botr/readytorun-format.md`.

use crate::memory::{Memory, MemoryResult, offset};

/// The number of elements of a block. A block is a binary tree of its elements.
const BLOCK: u32 = 16;

/// Returns the address of an element of the array at `array`; `None` if the array lacks it.
pub(crate) fn element(memory: &dyn Memory, array: u64, index: u32) -> MemoryResult<Option<u64>> {
    let Some((header, blocks)) = unsigned(memory, array)? else { return Ok(None) };
    // The number of elements, and the size of the offsets of blocks.
    if index >= header >> 2 {
        return Ok(None);
    }
    let block = u64::from(index / BLOCK);
    let start = match header & 3 {
        0 => memory.u8(offset(blocks, block))?.into(),
        1 => memory.u16(offset(blocks, block.wrapping_mul(2)))?.into(),
        _ => memory.u32(offset(blocks, block.wrapping_mul(4)))?,
    };
    let mut at = offset(blocks, start.into());
    let mut bit = BLOCK / 2;
    while bit > 0 {
        let Some((node, next)) = unsigned(memory, at)? else { return Ok(None) };
        let is_upper = index & bit != 0;
        if is_upper && node & 2 != 0 {
            at = offset(at, u64::from(node >> 2));
        } else if !is_upper && node & 1 != 0 {
            at = next;
        } else {
            // A leaf without siblings is at the top of its subtree, with its index in the block.
            let is_leaf = node == (index % BLOCK) << 2;
            return Ok(is_leaf.then_some(next));
        }
        bit /= 2;
    }
    Ok(Some(at))
}

/// Decodes a number, whose lowest bits have its length. Returns it with the address after it; `None` for an
/// undefined length.
pub(crate) fn unsigned(memory: &dyn Memory, at: u64) -> MemoryResult<Option<(u32, u64)>> {
    let first = memory.u8(at)?;
    let length = first.trailing_ones();
    let value = match length {
        0 => u32::from(first),
        1 => memory.u16(at)?.into(),
        2 => u32::from(memory.u16(at)?) | u32::from(memory.u8(offset(at, 2))?) << 16,
        3 => memory.u32(at)?,
        4 => return Ok(Some((memory.u32(offset(at, 1))?, offset(at, 5)))),
        _ => return Ok(None),
    };
    let bits = length.wrapping_add(1);
    Ok(Some((value >> bits, offset(at, bits.into()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    fn decoded(bytes: &[u8]) -> Option<(u32, u64)> {
        let mut memory = TestMemory::default();
        memory.put(0x100, bytes);
        unsigned(&memory, 0x100).unwrap()
    }

    #[test]
    fn a_number_has_its_length_in_its_lowest_bits() {
        assert_eq!(decoded(&[0x7f << 1]), Some((0x7f, 0x101)));
        assert_eq!(decoded(&[0b01 | 0x34 << 2, 0x12]), Some((0x34 | 0x12 << 6, 0x102)));
        assert_eq!(decoded(&[0b011, 0, 0x80]), Some((0x80 << 13, 0x103)));
        assert_eq!(decoded(&[0b0111, 0, 0, 1]), Some((1 << 20, 0x104)));
        assert_eq!(decoded(&[0b0_1111, 0x78, 0x56, 0x34, 0x12]), Some((0x1234_5678, 0x105)));
        assert_eq!(decoded(&[0x1f, 0, 0, 0, 0]), None);
        let mut memory = TestMemory::default();
        assert!(unsigned(memory.put(0x100, &[0b0111, 0]), 0x100).is_err());
    }

    #[test]
    fn elements_are_leaves_of_a_tree() {
        // 20 elements in two blocks: 2 and 3 in the first, and 17 alone in the second.
        let bytes = [
            20 << 3,
            2,
            10,                // The header, with offsets of blocks of a byte.
            1 << 1,            // 8: the lower half.
            1 << 1,            // 4: the lower half.
            (2 | 1 << 2) << 1, // 2: the upper half, a byte on.
            (3 | 2 << 2) << 1, // 1: both; the upper one two bytes on.
            0x22,              // Element 2.
            0x33,              // Element 3.
            0,
            0,
            1 << 3, // The leaf of 17, which is 1 in its block.
            0x44,
        ];
        let mut memory = TestMemory::default();
        memory.put(0x1000, &bytes);
        let value = |index| {
            let at = element(&memory, 0x1000, index).unwrap();
            at.map(|at| {
                let memory: &dyn Memory = &memory;
                memory.u8(at).unwrap()
            })
        };
        assert_eq!((value(2), value(3), value(17)), (Some(0x22), Some(0x33), Some(0x44)));
        assert_eq!([0, 1, 4, 8, 15, 16, 18, 19, 20, u32::MAX].map(value), [None; 10]);
    }

    #[test]
    fn a_tree_outside_the_memory_is_missing() {
        let mut memory = TestMemory::default();
        memory.put(0x1000, &[20 << 3, 0xff, 0xff]);
        assert!(element(&memory, 0x1000, 3).is_err());
        assert!(element(&memory, 0x2000, 3).is_err());
    }
}
