//! Calls in the instructions of a method.
//!
//! # Source
//! ECMA-335 II.25.4 for bodies of methods, III.2 to III.4 for instructions.

use crate::memory::address::TypeHandle;
use crate::memory::{Memory, MemoryResult, offset};
use crate::runtime::module::{Module, PeImage};
use crate::types::Types;
use crate::types::method::Method;

/// Maximum number of bytes of a method's instructions.
const MAX_CODE: u32 = 1 << 20;
/// The prefix of instructions of two bytes.
const TWO_BYTES: u8 = 0xfe;
const CALL: u8 = 0x28;
const CALL_VIRTUAL: u8 = 0x6f;
const SWITCH: u8 = 0x45;

impl Types<'_> {
    /// Returns true if a method calls a method of another assembly: its instructions have the call, whether
    /// or not it is reached. False if the memory lacks them. `type_name` has no type arguments.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// # let method = dump.heap().delegate_method(clr_dump::Address::new(0x7f00_1000_2000)).ok_or("no method")?;
    /// let releases = dump.types().calls(&method, "System.Threading.SemaphoreSlim", "Release");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn calls(self, method: &Method, type_name: &str, name: &str) -> bool {
        let place = method.module.as_ref().zip(method.token);
        place.is_some_and(|(module, token)| self.row_calls(module, token & 0x00ff_ffff, type_name, name))
    }

    /// The same for a method of a type, by its name: the `MoveNext` of a state machine.
    pub fn method_of_type_calls(self, of: TypeHandle, method: &str, type_name: &str, name: &str) -> bool {
        let calls = || {
            let module = self.module(of)?;
            let metadata = self.metadata(&module)?;
            let mut rows = metadata.methods_of_type(self.type_row(of).ok()?).ok()?;
            let row = rows.find(|row| metadata.method(*row).is_ok_and(|of| of.name == method))?;
            Some(self.row_calls(&module, row, type_name, name))
        };
        calls().unwrap_or_default()
    }

    fn row_calls(self, module: &Module, row: u32, type_name: &str, name: &str) -> bool {
        let calls = || {
            let metadata = self.metadata(module)?;
            let body = metadata.method(row).ok()?.body;
            let image = PeImage::read(self.memory(), module.base.get()).ok()?;
            let at = image.body(self.memory(), module.metadata_at?.0, body)?;
            let code = instructions(self.memory(), at).ok()?;
            let is_meant = |token: u32| {
                let referenced = metadata.referenced_method(token).ok().flatten();
                referenced.is_some_and(|(of, called)| of == type_name && called == name)
            };
            Some(called_tokens(&code).into_iter().any(is_meant))
        };
        calls().unwrap_or_default()
    }
}

/// Reads the instructions of the body at an address.
fn instructions(memory: &dyn Memory, at: u64) -> MemoryResult<Vec<u8>> {
    let first = memory.u8(at)?;
    let (start, size) = match first & 3 {
        2 => (1, u32::from(first >> 2)),
        _ => (12, memory.u32(offset(at, 4))?.min(MAX_CODE)),
    };
    memory.bytes(offset(at, start), usize::try_from(size).unwrap_or_default())
}

/// The tokens of the methods that instructions call, up to an unknown instruction.
fn called_tokens(code: &[u8]) -> Vec<u32> {
    let mut tokens = Vec::new();
    let mut rest = code;
    while let Some((instruction, after)) = rest.split_first() {
        let number = after.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        if matches!(*instruction, CALL | CALL_VIRTUAL) {
            tokens.extend(number);
        }
        let operand = match *instruction {
            SWITCH => number.and_then(|targets| targets.checked_mul(4)?.checked_add(4)),
            TWO_BYTES => after.first().and_then(|second| operand_of_second(*second)),
            first => operand(first),
        };
        let operand = operand.and_then(|size| usize::try_from(size).ok());
        let Some(next) = operand.and_then(|size| after.get(size..)) else { break };
        rest = next;
    }
    tokens
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
    fn operands_are_not_instructions() {
        // ldsfld, callvirt, ldc.i4 with the bytes of a call, a switch of one target, ldftn, ret, and a call.
        let code = [
            &[0x7e, 1, 0, 0, 4][..],
            &[0x6f, 2, 0, 0, 0x0a],
            &[0x20, 0x28, 0x28, 0x28, 0x28],
            &[0x45, 1, 0, 0, 0, 0x28, 0, 0, 0],
            &[0xfe, 0x06, 0x28, 0, 0, 6],
            &[0x2a],
            &[0x28, 3, 0, 0, 0x0a],
        ]
        .concat();
        assert_eq!(called_tokens(&code), [0x0a00_0002, 0x0a00_0003]);
        // One that does not exist, and one that is cut off.
        assert_eq!(called_tokens(&[0x24, 0x28, 1, 0, 0, 6]), [0; 0]);
        assert_eq!(called_tokens(&[0x28, 1, 0]), [0; 0]);
        assert_eq!(called_tokens(&[0x45, 0xff, 0xff, 0xff, 0xff, 0]), [0; 0]);
    }

    #[test]
    fn bodies_have_a_small_header_or_a_large_one() {
        let mut memory = TestMemory::default();
        memory.put(0x1000, &[2 << 2 | 2, 0x00, 0x2a, 0xff]);
        memory.put(0x2000, &[0x13, 0x30, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x2a]);
        assert_eq!(instructions(&memory, 0x1000), Ok(vec![0x00, 0x2a]));
        assert_eq!(instructions(&memory, 0x2000), Ok(vec![0x2a]));
        assert!(instructions(&memory, 0x3000).is_err());
    }
}
