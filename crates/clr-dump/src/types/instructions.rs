//! The instructions of a method.
//!
//! # Source
//! ECMA-335 II.25.4 for bodies of methods, III.2 to III.4 for instructions.

use crate::memory::{Memory, MemoryResult, offset};
use crate::runtime::module::{Module, PeImage};
use crate::types::Types;

/// Maximum number of bytes of a method's instructions.
const MAX_CODE: u32 = 1 << 20;
/// The prefix of instructions of two bytes.
const TWO_BYTES: u8 = 0xfe;
const SWITCH: u8 = 0x45;
/// The low bits of the first byte of a body with a small header.
const SMALL: u8 = 2;

/// An instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instruction<'c> {
    /// The offset from the first instruction.
    pub(crate) offset: usize,
    pub(crate) first: u8,
    /// The bytes after the first one.
    pub(crate) operand: &'c [u8],
}

impl Instruction<'_> {
    /// The first four bytes of the operand, as a number or a token.
    pub(crate) fn number(&self) -> Option<u32> {
        self.operand.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }
}

/// Instructions in their order, up to an unknown one.
#[derive(Debug, Clone)]
pub(crate) struct Instructions<'c> {
    code: &'c [u8],
    next: usize,
}

impl<'c> Instructions<'c> {
    pub(crate) const fn new(code: &'c [u8]) -> Self {
        Self { code, next: 0 }
    }
}

impl<'c> Iterator for Instructions<'c> {
    type Item = Instruction<'c>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.next;
        let (first, after) = self.code.get(at..)?.split_first()?;
        let size = match *first {
            SWITCH => {
                let targets = after.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
                targets.and_then(|targets| targets.checked_mul(4)?.checked_add(4))
            }
            TWO_BYTES => after.first().and_then(|second| operand_of_second(*second)),
            first => operand(first),
        };
        let operand = size.and_then(|size| after.get(..usize::try_from(size).ok()?));
        let Some(operand) = operand else {
            self.next = self.code.len();
            return None;
        };
        self.next = at.saturating_add(1).saturating_add(operand.len());
        Some(Instruction { offset: at, first: *first, operand })
    }
}

impl Types<'_> {
    /// Reads the instructions of a method of a module, by its row; `None` if the memory lacks them.
    pub(crate) fn instructions(self, module: &Module, row: u32) -> Option<Vec<u8>> {
        instructions(self.memory(), self.body(module, row)?).ok()
    }

    /// Returns the row of the signature of a method's local variables; `None` without variables, and if the
    /// memory lacks the body.
    pub(crate) fn locals_row(self, module: &Module, row: u32) -> Option<u32> {
        locals_row(self.memory(), self.body(module, row)?).ok().flatten()
    }

    /// The address of the body of a method.
    fn body(self, module: &Module, row: u32) -> Option<u64> {
        let body = self.metadata(module)?.method(row).ok()?.body;
        let image = PeImage::read(self.memory(), module.base.get()).ok()?;
        image.body(self.memory(), module.metadata_at?.0, body)
    }
}

/// Reads the row of the signature of local variables of the body at an address: small ones have none.
fn locals_row(memory: &dyn Memory, at: u64) -> MemoryResult<Option<u32>> {
    const SIGNATURE: u32 = 0x11;
    if memory.u8(at)? & 3 == SMALL {
        return Ok(None);
    }
    let token = memory.u32(offset(at, 8))?;
    Ok(Some(token & 0x00ff_ffff).filter(|row| token >> 24 == SIGNATURE && *row != 0))
}

/// Reads the instructions of the body at an address.
fn instructions(memory: &dyn Memory, at: u64) -> MemoryResult<Vec<u8>> {
    let first = memory.u8(at)?;
    let (start, size) = match first & 3 {
        SMALL => (1, u32::from(first >> 2)),
        _ => (12, memory.u32(offset(at, 4))?.min(MAX_CODE)),
    };
    memory.bytes(offset(at, start), usize::try_from(size).unwrap_or_default())
}

/// The bytes that follow the first byte of an instruction.
const fn operand(instruction: u8) -> Option<u32> {
    Some(match instruction {
        0x0e..=0x13 | 0x1f | 0x2b..=0x37 | 0xde => 1,
        0x20
        | 0x22
        | 0x27..=0x29
        | 0x38..=0x44
        | 0x6f..=0x75
        | 0x79
        | 0x7b..=0x81
        | 0x8c
        | 0x8d
        | 0x8f
        | 0xa3..=0xa5
        | 0xc2
        | 0xc6
        | 0xd0
        | 0xdd => 4,
        0x21 | 0x23 => 8,
        0x24 | 0x77 | 0x78 | 0xa6..=0xb2 | 0xbb..=0xc1 | 0xc4 | 0xc5 | 0xc7..=0xcf | 0xe1..=0xff => {
            return None;
        }
        _ => 0,
    })
}

/// The bytes that follow the first byte of an instruction of two bytes, with the second.
const fn operand_of_second(second: u8) -> Option<u32> {
    Some(match second {
        0x09..=0x0e => 3,
        0x06 | 0x07 | 0x15 | 0x16 | 0x1c => 5,
        0x12 | 0x19 => 2,
        0x00..=0x05 | 0x0f | 0x11 | 0x13 | 0x14 | 0x17 | 0x18 | 0x1a | 0x1d | 0x1e => 1,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    #[test]
    fn bodies_have_a_small_header_or_a_large_one() {
        let mut memory = TestMemory::default();
        memory.put(0x1000, &[2 << 2 | 2, 0x00, 0x2a, 0xff]);
        memory.put(0x2000, &[0x13, 0x30, 8, 0, 1, 0, 0, 0, 5, 0, 0, 0x11, 0x2a]);
        assert_eq!(instructions(&memory, 0x1000), Ok(vec![0x00, 0x2a]));
        assert_eq!(instructions(&memory, 0x2000), Ok(vec![0x2a]));
        assert!(instructions(&memory, 0x3000).is_err());
        assert_eq!((locals_row(&memory, 0x1000), locals_row(&memory, 0x2000)), (Ok(None), Ok(Some(5))));
        memory.put(0x4000, &[0x13, 0x30, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x2a]);
        assert_eq!(locals_row(&memory, 0x4000), Ok(None));
        assert!(locals_row(&memory, 0x3000).is_err());
    }
}
