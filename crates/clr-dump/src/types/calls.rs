//! Calls in the instructions of a method.
//!
//! # Source
//! ECMA-335 II.25.4 for bodies of methods, III.2 to III.4 for instructions.

#[cfg(feature = "analysis")]
use crate::memory::address::Address;
use crate::memory::address::TypeHandle;
use crate::memory::{Memory, MemoryResult, offset};
use crate::runtime::module::{Module, PeImage};
use crate::types::Types;
#[cfg(feature = "analysis")]
use crate::types::field::StaticField;
use crate::types::method::Method;

/// Maximum number of bytes of a method's instructions.
const MAX_CODE: u32 = 1 << 20;
/// The prefix of instructions of two bytes.
const TWO_BYTES: u8 = 0xfe;
const CALL: u8 = 0x28;
const CALL_VIRTUAL: u8 = 0x6f;
const SWITCH: u8 = 0x45;
const LOAD_FIELD: u8 = 0x7b;
const LOAD_FIELD_ADDRESS: u8 = 0x7c;
const LOAD_STATIC_FIELD: u8 = 0x7e;
const LOAD_STATIC_FIELD_ADDRESS: u8 = 0x7f;
/// The table of the fields that a program defines.
#[cfg(feature = "analysis")]
const FIELD: u32 = 0x04;
/// Maximum number of types to search for the one that defines a field.
#[cfg(feature = "analysis")]
const MAX_TYPES: u32 = 1 << 16;

/// The fields that a method reads.
#[cfg(feature = "analysis")]
#[derive(Debug, Default)]
pub(crate) struct FieldsRead {
    /// The names of fields of objects.
    pub(crate) names: Vec<String>,
    /// The addresses of static fields that its own program defines.
    pub(crate) statics: Vec<Address>,
}

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
        self.calls_any(method, &[type_name], &[name])
    }

    /// Returns true if a method calls any of these methods of any of these types.
    pub(crate) fn calls_any(self, method: &Method, types: &[&str], names: &[&str]) -> bool {
        let place = method.module.as_ref().zip(method.token);
        place.is_some_and(|(module, token)| self.row_calls(module, token & 0x00ff_ffff, types, names))
    }

    /// Returns the fields that a method reads.
    #[cfg(feature = "analysis")]
    pub(crate) fn fields_read(self, method: &Method) -> FieldsRead {
        let mut read = FieldsRead::default();
        let mut find = || {
            let module = method.module.as_ref()?;
            let metadata = self.metadata(module)?;
            for (instruction, token) in self.tokens(module, method.token? & 0x00ff_ffff)? {
                let row = token & 0x00ff_ffff;
                let own = (token >> 24 == FIELD).then(|| metadata.field(row).ok()).flatten();
                match (instruction, own) {
                    (LOAD_FIELD | LOAD_FIELD_ADDRESS, Some(field)) => read.names.push(field.name),
                    (LOAD_FIELD | LOAD_FIELD_ADDRESS, None) => {
                        let other = metadata.referenced_method(token).ok().flatten();
                        read.names.extend(other.map(|(_, name)| name));
                    }
                    (LOAD_STATIC_FIELD | LOAD_STATIC_FIELD_ADDRESS, Some(field)) => {
                        let defines =
                            |of: &u32| metadata.fields_of_type(*of).is_ok_and(|rows| rows.contains(&row));
                        let of = (1..=metadata.type_count().min(MAX_TYPES)).find(defines);
                        let of = of.and_then(|of| self.defined_type(module.address, of));
                        let fields = of.map(|of| self.dump.statics().fields_of(of, &[]));
                        let is_meant = |of: &StaticField| of.field.name == field.name;
                        read.statics.extend(fields.into_iter().flatten().find(is_meant).map(|of| of.address));
                    }
                    _ => {}
                }
            }
            Some(())
        };
        find();
        read
    }

    /// The same for a method of a type, by its name: the `MoveNext` of a state machine.
    pub fn method_of_type_calls(self, of: TypeHandle, method: &str, type_name: &str, name: &str) -> bool {
        let calls = || {
            let module = self.module(of)?;
            let metadata = self.metadata(&module)?;
            let mut rows = metadata.methods_of_type(self.type_row(of).ok()?).ok()?;
            let row = rows.find(|row| metadata.method(*row).is_ok_and(|of| of.name == method))?;
            Some(self.row_calls(&module, row, &[type_name], &[name]))
        };
        calls().unwrap_or_default()
    }

    fn row_calls(self, module: &Module, row: u32, types: &[&str], names: &[&str]) -> bool {
        let calls = || {
            let metadata = self.metadata(module)?;
            let is_meant = |(instruction, token): (u8, u32)| {
                let referenced = metadata.referenced_method(token).ok().flatten();
                matches!(instruction, CALL | CALL_VIRTUAL)
                    && referenced.is_some_and(|(of, called)| {
                        types.contains(&of.as_str()) && names.contains(&called.as_str())
                    })
            };
            Some(self.tokens(module, row)?.into_iter().any(is_meant))
        };
        calls().unwrap_or_default()
    }

    /// The instructions of a method that call a method or load a field, with its token.
    fn tokens(self, module: &Module, row: u32) -> Option<Vec<(u8, u32)>> {
        let body = self.metadata(module)?.method(row).ok()?.body;
        let image = PeImage::read(self.memory(), module.base.get()).ok()?;
        let at = image.body(self.memory(), module.metadata_at?.0, body)?;
        Some(tokens_of(&instructions(self.memory(), at).ok()?))
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

/// The tokens of the methods that instructions call and of the fields that they load, up to an unknown
/// instruction.
fn tokens_of(code: &[u8]) -> Vec<(u8, u32)> {
    let mut tokens = Vec::new();
    let mut rest = code;
    while let Some((instruction, after)) = rest.split_first() {
        let number = after.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        if matches!(
            *instruction,
            CALL | CALL_VIRTUAL | LOAD_FIELD..=LOAD_FIELD_ADDRESS | LOAD_STATIC_FIELD..=LOAD_STATIC_FIELD_ADDRESS
        ) {
            tokens.extend(number.map(|token| (*instruction, token)));
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
        let tokens = [(LOAD_STATIC_FIELD, 0x0400_0001), (CALL_VIRTUAL, 0x0a00_0002), (CALL, 0x0a00_0003)];
        assert_eq!(tokens_of(&code), tokens);
        // One that does not exist, and one that is cut off.
        assert_eq!(tokens_of(&[0x24, 0x28, 1, 0, 0, 6]), []);
        assert_eq!(tokens_of(&[0x28, 1, 0]), []);
        assert_eq!(tokens_of(&[0x45, 0xff, 0xff, 0xff, 0xff, 0]), []);
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
