//! The caller's registers on arm64, from `.xdata`: the unwind codes of Windows on arm64, which the runtime's
//! compilers write on Linux, too.
//!
//! A code stands for an instruction of the prolog, the last first, or of an epilog, the first first. So the
//! number of instructions that are left, or done, is the number of codes to skip.
//!
//! # Source
//! Microsoft, *ARM64 exception handling*, ".xdata records" and "Unwind codes"; dotnet/runtime
//! `src/coreclr/unwinder/arm64/unwinder.cpp` for `save_next` and the lengths of epilogs.

mod code;
mod record;

use self::code::{Effect, decode};
use self::record::Record;
use crate::memory::address::Address;
use crate::memory::{Memory, MemoryResult, offset};
use crate::unwind::registers::{Register, Registers};
use crate::unwind::{FramePosition, FunctionEntry, UnwindError};

/// Bytes of an instruction.
const INSTRUCTION: u64 = 4;

/// Returns the number of bytes of a function from its unwind information, whose entry does not have its end.
pub(crate) fn function_length(memory: &dyn Memory, unwind_info: u64) -> MemoryResult<u64> {
    Ok(u64::from(memory.u32(unwind_info)? & 0x3_ffff).wrapping_mul(INSTRUCTION))
}

/// Returns the number of bytes of an `.xdata` record, with the address of the handler of exceptions.
pub(crate) fn information_size(memory: &dyn Memory, at: u64) -> MemoryResult<u64> {
    let header = memory.u32(at)?;
    let (mut epilogs, mut words, mut size) = (header >> 22 & 0x1f, header >> 27, 8_u64);
    if epilogs == 0 && words == 0 {
        let extension = memory.u32(offset(at, 4))?;
        (epilogs, words, size) = (extension & 0xffff, extension >> 16 & 0xff, 12);
    }
    if header >> 21 & 1 != 0 {
        epilogs = 0;
    }
    Ok(u64::from(epilogs).wrapping_add(words.into()).wrapping_mul(4).wrapping_add(size))
}

/// Returns the registers in the caller of a frame.
pub(super) fn unwind(
    memory: &dyn Memory,
    function: FunctionEntry,
    registers: &Registers,
    position: FramePosition,
) -> Result<Registers, UnwindError> {
    let address = position.lookup_address(Address::new(registers.ip)).get();
    let at = address.wrapping_sub(function.begin) / INSTRUCTION;
    let info = Record::read(memory, function.unwind_info)?;
    let codes = info.codes_at(memory, at)?;
    let mut caller = *registers;
    apply(memory, codes, &mut caller)?;
    let return_address = caller.get(Register::LR).ok_or(UnwindError::UnknownRegister)?;
    caller.ip = caller.processor().return_address(return_address);
    // A function without a frame has pushed nothing.
    let is_risen = caller.sp > registers.sp;
    if is_risen || (caller.sp == registers.sp && position == FramePosition::Innermost) {
        Ok(caller)
    } else {
        Err(UnwindError::NotRising)
    }
}

/// Undoes the operations of codes.
fn apply(memory: &dyn Memory, mut codes: &[u8], registers: &mut Registers) -> Result<(), UnwindError> {
    // Pairs that were stored after the pair of the next code.
    let mut pairs = 0_u8;
    loop {
        let (effect, rest) = decode(codes)?;
        codes = rest;
        match effect {
            Effect::End => return Ok(()),
            Effect::None | Effect::EndOfPart => {}
            Effect::Free(bytes) => registers.sp = offset(registers.sp, bytes),
            Effect::FromFrame(by) => {
                let frame = registers.get(Register::FP).ok_or(UnwindError::UnknownRegister)?;
                registers.sp = frame.wrapping_sub(by);
            }
            Effect::Next => pairs = pairs.saturating_add(1),
            Effect::Signed => {
                if let Some(signed) = registers.get(Register::LR) {
                    registers.set(Register::LR, registers.processor().return_address(signed));
                }
            }
            Effect::Load { registers: stored, at, free } => {
                let place = offset(registers.sp, at);
                for (number, at) in stored.into_iter().zip([0, 8]) {
                    if let Some(number) = number {
                        load(memory, registers, number, offset(place, at))?;
                    }
                }
                let first = stored[0].filter(|_| pairs > 0);
                for index in 0..first.map_or(0, |_| pairs.saturating_mul(2)) {
                    let number = first.unwrap_or_default().saturating_add(2).saturating_add(index);
                    load(
                        memory,
                        registers,
                        number,
                        offset(place, u64::from(index).wrapping_mul(8).wrapping_add(16)),
                    )?;
                }
                pairs = 0;
                registers.sp = offset(registers.sp, free);
            }
        }
    }
}

fn load(memory: &dyn Memory, registers: &mut Registers, number: u8, at: u64) -> Result<(), UnwindError> {
    if number > 30 {
        return Err(UnwindError::Damaged);
    }
    let value = memory.u64(at)?;
    registers.set(Register::x(number), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;
    use crate::processor::Processor;

    const STACK: u64 = 0x7000;
    const CODE: u64 = 0x1000;
    const INFO: u64 = 0x2000;

    const FUNCTION: FunctionEntry = FunctionEntry { begin: CODE, unwind_info: INFO, image_base: 0 };

    /// A record with a list of epilogs (start and index), and codes.
    fn record(memory: &mut TestMemory, instructions: u32, epilogs: &[(u32, u32)], codes: &[u8]) {
        let mut codes = codes.to_vec();
        codes.resize(codes.len().next_multiple_of(4), 0xe4);
        let count = u32::try_from(epilogs.len()).unwrap();
        let words = u32::try_from(codes.len() / 4).unwrap();
        let mut bytes = (instructions | count << 22 | words << 27).to_le_bytes().to_vec();
        bytes.extend(epilogs.iter().flat_map(|(start, index)| (start | index << 22).to_le_bytes()));
        bytes.extend(codes);
        memory.put(INFO, &bytes);
    }

    fn registers(at: u64, sp: u64) -> Registers {
        let known = [(Register::FP, STACK + 0x10), (Register::LR, 0x5555)];
        Registers::of(Processor::Aarch64, CODE + at * 4, sp).with_all(known)
    }

    fn caller(memory: &TestMemory, at: u64, sp: u64, position: FramePosition) -> Registers {
        unwind(memory, FUNCTION, &registers(at, sp), position).unwrap()
    }

    /// `stp fp, lr, [sp, #-0x40]!; stp x19, x20, [sp, #0x10]; stp x21, x22, [sp, #0x20]; mov fp, sp`, and an
    /// epilog that undoes it at the tenth instruction.
    fn framed() -> TestMemory {
        let mut memory = TestMemory::default();
        let codes = [
            0xe1, // mov fp, sp
            0xe6, // the next pair: x21, x22
            0xc8, 0x02, // x19, x20 at 2 * 8
            0x87, // fp, lr, with 8 * 8 bytes
            0xe4, // 5: end
            0xe6, 0xc8, 0x02, 0x87, 0xe4,
        ];
        record(&mut memory, 15, &[(10, 6)], &codes);
        memory.put_words(STACK, &[0, 0, 0xfefe, 0x4444, 19, 20, 21, 22, 0, 0]);
        memory
    }

    #[test]
    fn a_frame_after_its_prolog_is_unwound_by_the_frame_register() {
        let memory = framed();
        // The body has allocated.
        let caller = caller(&memory, 8, STACK - 0x100, FramePosition::Caller);
        assert_eq!((caller.ip, caller.sp), (0x4444, STACK + 0x50));
        assert_eq!(caller.get(Register::FP), Some(0xfefe));
        let saved = [19, 20, 21, 22].map(|number| caller.get(Register::x(number)));
        assert_eq!(saved, [Some(19), Some(20), Some(21), Some(22)]);
    }

    #[test]
    fn a_signature_of_the_return_address_is_removed() {
        let mut memory = framed();
        memory.put_words(STACK, &[0, 0, 0xfefe, 0x00b1_0000_0000_4444, 19, 20, 21, 22, 0, 0]);
        let caller = caller(&memory, 8, STACK - 0x100, FramePosition::Caller);
        assert_eq!((caller.ip, caller.sp), (0x4444, STACK + 0x50));
    }

    #[test]
    fn only_done_operations_of_a_prolog_and_those_to_do_of_an_epilog_are_undone() {
        let memory = framed();
        let base = STACK + 0x10;
        let of = |at, sp| caller(&memory, at, sp, FramePosition::Innermost);
        // Nothing is stored: the return address is in its register, and the stack pointer is the caller's.
        assert_eq!((of(0, base + 0x40).ip, of(0, base + 0x40).sp), (0x5555, base + 0x40));
        // The frame register is not set yet.
        for at in 1..4 {
            let found = of(at, base);
            assert_eq!((found.ip, found.sp, found.get(Register::FP)), (0x4444, base + 0x40, Some(0xfefe)));
            assert_eq!(found.get(Register::x(19)), (at > 1).then_some(19), "{at}");
            assert_eq!(found.get(Register::x(21)), (at > 2).then_some(21), "{at}");
        }
        // Loads of x21, x19 and fp, and the return.
        assert_eq!(of(10, base).get(Register::x(21)), Some(21));
        assert_eq!((of(11, base).get(Register::x(21)), of(11, base).get(Register::x(19))), (None, Some(19)));
        assert_eq!((of(12, base).get(Register::x(19)), of(12, base).ip), (None, 0x4444));
        assert_eq!((of(13, base + 0x40).ip, of(13, base + 0x40).sp), (0x5555, base + 0x40));
        // After the epilog.
        assert_eq!(of(14, STACK - 0x100).get(Register::x(21)), Some(21));
    }

    #[test]
    fn an_epilog_at_the_end_shares_the_codes_of_the_prolog() {
        let mut memory = TestMemory::default();
        // sub sp, sp, #0x20; str lr, [sp, #0x18]
        let codes = [0xd2_u8, 0xc3, 0x02, 0xe4];
        let header = 0xa_u32 | 1 << 21 | 1 << 27;
        memory.put(INFO, &[&header.to_le_bytes()[..], &codes].concat());
        memory.put_words(STACK + 0x18, &[0x4444]);
        let of = |at, sp| caller(&memory, at, sp, FramePosition::Innermost);
        // The last three: two that undo, and the return.
        assert_eq!((of(6, STACK).ip, of(7, STACK).ip, of(7, STACK).sp), (0x4444, 0x4444, STACK + 0x20));
        assert_eq!((of(8, STACK).ip, of(8, STACK).sp), (0x5555, STACK + 0x20));
        assert_eq!((of(9, STACK + 0x20).ip, of(9, STACK + 0x20).sp), (0x5555, STACK + 0x20));
    }

    #[test]
    fn all_forms_of_codes_are_decoded() {
        /// Codes, the bytes that they free, and the registers that they load from words.
        type Row = (&'static [u8], u64, &'static [(u8, u64)]);
        let rows: [Row; 13] = [
            (&[0x1f], 0x1f0, &[]),
            (&[0xc7, 0xff], 0x7ff0, &[]),
            (&[0xe0, 0x01, 0x23, 0x45], 0x12_3450, &[]),
            // x19 and x20, with 4 words.
            (&[0x24], 0x20, &[(19, 0), (20, 1)]),
            (&[0x42], 0, &[(29, 2), (30, 3)]),
            (&[0xc9, 0x43], 0, &[(24, 3), (25, 4)]),
            (&[0xcd, 0x43], 0x20, &[(24, 0), (25, 1)]),
            (&[0xd1, 0x43], 0, &[(24, 3)]),
            (&[0xd5, 0x23], 0x20, &[(28, 0)]),
            (&[0xd6, 0x83], 0, &[(23, 3), (30, 4)]),
            // Registers of numbers.
            (&[0xd9, 0x43], 0, &[]),
            (&[0xda, 0x43], 0x20, &[]),
            (&[0xe3], 0, &[]),
        ];
        for (codes, free, loaded) in rows {
            let mut memory = TestMemory::default();
            let words: Vec<u64> = (0..8).map(|word| 0x100 + word).collect();
            memory.put_words(STACK, &words);
            let mut registers = Registers::of(Processor::Aarch64, CODE, STACK);
            apply(&memory, &[codes, &[0xe4]].concat(), &mut registers).unwrap();
            assert_eq!(registers.sp, STACK + free, "{codes:x?}");
            let expected = loaded.iter().map(|(number, word)| (Register::x(*number), 0x100 + word));
            let expected = Registers::of(Processor::Aarch64, CODE, STACK + free).with_all(expected);
            assert_eq!(registers, expected, "{codes:x?}");
        }
    }

    #[test]
    fn damaged_information_is_an_error() {
        let result = |bytes: &[u8]| {
            let mut memory = TestMemory::default();
            memory.put(INFO, bytes);
            unwind(&memory, FUNCTION, &registers(20, STACK), FramePosition::Caller).unwrap_err()
        };
        let of_codes = |codes: [u8; 4]| result(&[&(0x1e_u32 | 1 << 27).to_le_bytes()[..], &codes].concat());
        // Without an end, a code that is cut off, and codes that are reserved.
        assert_eq!(of_codes([0xe3; 4]), UnwindError::Damaged);
        assert_eq!(of_codes([0xe3, 0xe3, 0xe3, 0xc8]), UnwindError::Damaged);
        assert_eq!(of_codes([0xe9, 0xe4, 0xe4, 0xe4]), UnwindError::Unsupported(0xe9));
        // x31, and a pair after x30.
        assert!(matches!(of_codes([0xcb, 0xc0, 0xe4, 0xe4]), UnwindError::Damaged | UnwindError::Missing(_)));
        // The stack pointer does not rise.
        assert_eq!(of_codes([0xe4; 4]), UnwindError::NotRising);
        // Another version, and a record that is not there.
        assert_eq!(result(&(1_u32 << 18).to_le_bytes()), UnwindError::Unsupported(1));
        assert!(matches!(result(&[0, 0]), UnwindError::Missing(_)));
        // The codes and the list of epilogs of the longest record are missing.
        let longest = [0_u32, 0x00ff_ffff].map(u32::to_le_bytes).concat();
        assert!(matches!(result(&longest), UnwindError::Missing(_)));
        let packed = FunctionEntry { unwind_info: INFO + 1, ..FUNCTION };
        let error = unwind(&TestMemory::default(), packed, &registers(20, STACK), FramePosition::Caller);
        assert_eq!(error, Err(UnwindError::Unsupported(1)));
    }
}
