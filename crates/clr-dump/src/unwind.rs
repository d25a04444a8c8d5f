//! The caller's registers, from UNWIND_INFO: the unwind codes of Windows on x64, which the runtime's
//! compilers write on Linux, too. Those of arm64 have another form, and a module of their own.
//!
//! # Source
//! Microsoft, *x64 exception handling*, "Unwind data definitions for exception handling"; dotnet/runtime
//! `src/coreclr/inc/win64unwind.h` for `UWOP_SET_FPREG_LARGE`.

pub(crate) mod arm64;
pub(crate) mod native;
pub(crate) mod registers;
#[cfg(all(
    feature = "linux-sampler",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(crate) mod sampled;
#[cfg(feature = "linux-sampler")]
pub(crate) mod symbols;

use crate::memory::address::Address;
use crate::memory::{Memory, MemoryResult, Missing, offset};
use crate::processor::Processor;
use crate::unwind::registers::{Register, Registers};

/// Maximum number of chained unwind infos of a function.
const MAX_CHAINED_INFOS: usize = 32;

/// A reason for a missing caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnwindError {
    /// The unwind information or the stack is not in the memory.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The codes need the value of a register that is unknown.
    #[error("an unwind code needs a register that is not known")]
    UnknownRegister,
    /// An operation that code of .NET on Linux does not have.
    #[error("unwind operation {0} is not supported")]
    Unsupported(u8),
    /// The caller's frame is not above this frame.
    #[error("the stack pointer does not rise")]
    NotRising,
    /// The code is in no image of the process: native code that was generated at run time.
    #[error("the code is in no image")]
    NotInImage,
    /// The image lacks unwind information for the code.
    #[error("its image has no unwind information for it")]
    NoInformation,
    /// The unwind information of native code is damaged, or of a form that is not read.
    #[error("the unwind information of its image is damaged")]
    Damaged,
}

/// A function, or a part of one, with its unwind information.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "the three words of RUNTIME_FUNCTION")]
pub struct FunctionEntry {
    /// The address of the first instruction.
    pub begin: u64,
    /// The address of the function's UNWIND_INFO, `.xdata` on arm64; for NativeAOT, the address of its entry
    /// in `.eh_frame`.
    pub unwind_info: u64,
    /// The address that image-relative addresses start from.
    pub image_base: u64,
}

/// A function with its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FunctionRange {
    function: FunctionEntry,
    end: u64,
}

impl FunctionRange {
    /// Returns the function if it contains an address.
    pub(crate) fn at(self, address: u64) -> Option<FunctionEntry> {
        (self.function.begin..self.end).contains(&address).then_some(self.function)
    }
}

impl FunctionEntry {
    /// Reads an entry of a table: begin, end and unwind information, relative to the image. Entries of arm64
    /// do not have the end: the unwind information has the length.
    pub(crate) fn read(
        memory: &dyn Memory,
        processor: Processor,
        at: u64,
        image_base: u64,
    ) -> MemoryResult<FunctionRange> {
        let field = |by: u64| Ok(offset(image_base, memory.u32(offset(at, by))?.into()));
        let begin = field(0)?;
        let (end, unwind_info) = match processor {
            Processor::X86_64 => (field(4)?, field(8)?),
            Processor::Aarch64 => {
                let unwind_info = field(4)?;
                (offset(begin, arm64::function_length(memory, unwind_info)?), unwind_info)
            }
        };
        Ok(FunctionRange { function: Self { begin, unwind_info, image_base }, end })
    }
}

/// Returns the number of bytes of the unwind information of a function of an image, with the address of the
/// handler of exceptions, which each has.
pub(crate) fn information_size(memory: &dyn Memory, processor: Processor, at: u64) -> MemoryResult<u64> {
    match processor {
        Processor::X86_64 => {
            let codes = u64::from(memory.u8(offset(at, 2))?);
            Ok(codes.wrapping_mul(2).wrapping_add(8).next_multiple_of(4))
        }
        Processor::Aarch64 => arm64::information_size(memory, at),
    }
}

/// The place of an instruction pointer in the frames of a thread.
///
/// ```
/// use clr_dump::{Address, FramePosition};
///
/// // After a call that does not return, the return address is past the function's end.
/// let ip = Address::new(0x1000);
/// assert_eq!(FramePosition::Caller.lookup_address(ip), Address::new(0xfff));
/// assert_eq!(FramePosition::Innermost.lookup_address(ip), ip);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the innermost frame, or another")]
pub enum FramePosition {
    /// The innermost frame: the thread is at the instruction, perhaps in a prolog or an epilog.
    Innermost,
    /// A frame with a return address as instruction pointer.
    Caller,
}

impl FramePosition {
    /// The address to look up a frame's function with: a return address can be past its end.
    pub const fn lookup_address(self, ip: Address) -> Address {
        match self {
            Self::Innermost => ip,
            Self::Caller => Address::new(ip.get().wrapping_sub(1)),
        }
    }
}

/// Returns the registers in the caller of a frame. The unwind codes are those of the registers' processor.
///
/// # Errors
/// As in [`UnwindError`].
pub fn unwind(
    memory: &dyn Memory,
    function: FunctionEntry,
    registers: &Registers,
    position: FramePosition,
) -> Result<Registers, UnwindError> {
    if registers.processor() == Processor::Aarch64 {
        return arm64::unwind(memory, function, registers, position);
    }
    let caller = match position {
        FramePosition::Innermost => epilog(memory, registers),
        FramePosition::Caller => None,
    };
    let caller = match caller {
        Some(caller) => caller,
        None => apply(memory, function, *registers)?,
    };
    if caller.sp <= registers.sp {
        return Err(UnwindError::NotRising);
    }
    Ok(caller)
}

/// Applies the codes of all operations that the prolog has done at the instruction pointer.
fn apply(
    memory: &dyn Memory,
    function: FunctionEntry,
    mut registers: Registers,
) -> Result<Registers, UnwindError> {
    let mut inside = registers.ip.wrapping_sub(function.begin);
    let mut at = function.unwind_info;
    for _ in 0..MAX_CHAINED_INFOS {
        let info = Info::read(memory, at)?;
        info.apply(memory, inside, &mut registers)?;
        let Some(chained) = info.chained else {
            registers.ip = pop(memory, &mut registers)?;
            return Ok(registers);
        };
        at = offset(function.image_base, u64::from(memory.u32(offset(chained, 8))?));
        // The prolog of the other part is done.
        inside = u64::MAX;
    }
    Err(UnwindError::Unsupported(CHAINED))
}

/// The flag of an UNWIND_INFO that is followed by the entry of another part of the function.
const CHAINED: u8 = 4;

/// The header and the codes of an UNWIND_INFO.
struct Info {
    frame_register: Register,
    frame_offset: u64,
    codes: Vec<u16>,
    /// The address of the chained entry.
    chained: Option<u64>,
}

impl Info {
    fn read(memory: &dyn Memory, at: u64) -> Result<Self, UnwindError> {
        let [version_and_flags, _, count, frame] = memory.array(at)?;
        let version = version_and_flags & 7;
        if version != 1 {
            return Err(UnwindError::Unsupported(version));
        }
        let bytes = memory.bytes(offset(at, 4), usize::from(count).saturating_mul(2))?;
        let codes = bytes.as_chunks().0.iter().map(|code| u16::from_le_bytes(*code)).collect();
        // The array of codes has an even length.
        let after = u64::from(count).next_multiple_of(2).wrapping_mul(2).wrapping_add(4);
        Ok(Self {
            frame_register: Register::of_number(frame),
            frame_offset: u64::from(frame >> 4).wrapping_mul(16),
            codes,
            chained: (version_and_flags >> 3 & CHAINED != 0).then_some(offset(at, after)),
        })
    }

    /// Undoes the operations of the prolog before the offset `inside`, last first.
    fn apply(&self, memory: &dyn Memory, inside: u64, registers: &mut Registers) -> Result<(), UnwindError> {
        let mut codes = self.codes.iter().copied();
        while let Some(code) = codes.next() {
            let [prolog_offset, operation] = code.to_le_bytes();
            let (operation, info) = (operation & 15, operation >> 4);
            let mut slot = || codes.next().map(u64::from).ok_or(UnwindError::Unsupported(operation));
            let register = Register::of_number(info);
            let effect = match (operation, info) {
                (0, _) => Effect::Pop(register),
                (1, 0) => Effect::Free(slot()?.wrapping_mul(8)),
                (1, 1) => Effect::Free(slot()? | slot()? << 16),
                (2, _) => Effect::Free(u64::from(info).wrapping_mul(8).wrapping_add(8)),
                (3, _) => Effect::FromFrame(self.frame_offset),
                (4, _) => Effect::Load(register, slot()?.wrapping_mul(8)),
                (5, _) => Effect::Load(register, slot()? | slot()? << 16),
                // xmm registers: no value of them is an address.
                (8, _) => {
                    slot()?;
                    Effect::None
                }
                (9, _) => {
                    slot()?;
                    slot()?;
                    Effect::None
                }
                (11, _) => Effect::FromFrame((slot()? | slot()? << 16).wrapping_mul(16)),
                _ => return Err(UnwindError::Unsupported(operation)),
            };
            if u64::from(prolog_offset) <= inside {
                effect.apply(memory, self.frame_register, registers)?;
            }
        }
        Ok(())
    }
}

/// The undoing of an operation.
enum Effect {
    None,
    /// A register was pushed.
    Pop(Register),
    /// Bytes were allocated.
    Free(u64),
    /// The frame register was set to the stack pointer plus an offset.
    FromFrame(u64),
    /// A register was stored at an offset.
    Load(Register, u64),
}

impl Effect {
    fn apply(
        self,
        memory: &dyn Memory,
        frame_register: Register,
        registers: &mut Registers,
    ) -> Result<(), UnwindError> {
        match self {
            Self::None => {}
            Self::Pop(register) => {
                let value = pop(memory, registers)?;
                registers.set(register, value);
            }
            Self::Free(bytes) => registers.sp = offset(registers.sp, bytes),
            Self::FromFrame(by) => {
                let frame = registers.get(frame_register).ok_or(UnwindError::UnknownRegister)?;
                registers.sp = frame.wrapping_sub(by);
            }
            Self::Load(register, by) => {
                let value = memory.u64(offset(registers.sp, by))?;
                registers.set(register, value);
            }
        }
        Ok(())
    }
}

fn pop(memory: &dyn Memory, registers: &mut Registers) -> Result<u64, Missing> {
    let value = memory.u64(registers.sp)?;
    registers.sp = offset(registers.sp, 8);
    Ok(value)
}

/// Maximum number of bytes of an epilog.
const MAX_EPILOG_LENGTH: usize = 48;

/// Returns the registers after an epilog, if the instruction pointer is in one: unwind codes describe prologs
/// alone, and an epilog has undone a part of it.
///
/// An epilog is `vzeroupper`, either `add rsp, n` or `lea rsp, [rbp+n]`, `pop`s and `ret`, each but the last
/// optional.
fn epilog(memory: &dyn Memory, registers: &Registers) -> Option<Registers> {
    // The end of a function can be the end of the memory.
    let mut code = [0; MAX_EPILOG_LENGTH];
    let mut lengths = (1..=MAX_EPILOG_LENGTH).rev();
    let length = lengths
        .find(|&length| code.get_mut(..length).is_some_and(|code| memory.read(registers.ip, code).is_ok()))?;
    let mut code = code.get(..length)?;
    let mut registers = *registers;
    let mut may_free = true;
    loop {
        let (from_frame, by, rest) = match code {
            [0xc5, 0xf8, 0x77, rest @ ..] => {
                code = rest;
                continue;
            }
            [0xc3, ..] => {
                registers.ip = pop(memory, &mut registers).ok()?;
                return Some(registers);
            }
            [byte @ 0x58..=0x5f, rest @ ..] => {
                let value = pop(memory, &mut registers).ok()?;
                registers.set(Register::of_number(byte & 7), value);
                (code, may_free) = (rest, false);
                continue;
            }
            [0x41, byte @ 0x58..=0x5f, rest @ ..] => {
                let value = pop(memory, &mut registers).ok()?;
                registers.set(Register::of_number(byte & 7 | 8), value);
                (code, may_free) = (rest, false);
                continue;
            }
            [0x48, 0x83, 0xc4, by, rest @ ..] => (false, i64::from(by.cast_signed()), rest),
            [0x48, 0x8d, 0x65, by, rest @ ..] => (true, i64::from(by.cast_signed()), rest),
            [0x48, 0x81, 0xc4, a, b, c, d, rest @ ..] => {
                (false, i64::from(i32::from_le_bytes([*a, *b, *c, *d])), rest)
            }
            [0x48, 0x8d, 0xa5, a, b, c, d, rest @ ..] => {
                (true, i64::from(i32::from_le_bytes([*a, *b, *c, *d])), rest)
            }
            _ => return None,
        };
        if !may_free {
            return None;
        }
        let base = if from_frame { registers.get(Register::RBP)? } else { registers.sp };
        registers.sp = base.wrapping_add_signed(by);
        (code, may_free) = (rest, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    const STACK: u64 = 0x7000;
    const CODE: u64 = 0x1000;
    const INFO: u64 = 0x2000;

    fn function() -> FunctionEntry {
        FunctionEntry { begin: CODE, unwind_info: INFO, image_base: 0 }
    }

    /// `push rbp; push r15; sub rsp, 0x20; lea rbp, [rsp+0x30]`, as the JIT writes it. The unwind codes
    /// follow the documentation's table, last operation first.
    fn framed(memory: &mut TestMemory) {
        memory.put(
            INFO,
            &[
                1, 12, 4, 0x35, // version 1, prolog of 12 bytes, 4 codes, rbp is rsp + 3 * 16
                12, 0x03, // at 12: set the frame register
                7, 0x32, // at 7: allocate 3 * 8 + 8
                3, 0xf0, // at 3: push r15
                1, 0x50, // at 1: push rbp
            ],
        );
        // 0x20 bytes of locals, r15, rbp, return address.
        memory.put_words(STACK, &[0, 0, 0, 0, 15, 5, 0x4444, 0]);
    }

    #[test]
    fn a_frame_after_its_prolog_is_unwound_by_the_frame_register() {
        let mut memory = TestMemory::default();
        framed(&mut memory);
        // The stack pointer is lower: the body has allocated.
        let registers = Registers::new(CODE + 40, STACK - 0x40, STACK + 0x30);
        let caller = unwind(&memory, function(), &registers, FramePosition::Caller).unwrap();
        assert_eq!((caller.ip, caller.sp), (0x4444, STACK + 0x38));
        assert_eq!((caller.get(Register::RBP), caller.get(Register::R15)), (Some(5), Some(15)));
    }

    #[test]
    fn only_done_operations_of_a_prolog_are_undone() {
        let mut memory = TestMemory::default();
        framed(&mut memory);
        // After `push rbp`: the stack pointer is at the saved rbp.
        let registers = Registers::new(CODE + 1, STACK + 0x28, 99);
        let caller = unwind(&memory, function(), &registers, FramePosition::Innermost).unwrap();
        assert_eq!((caller.ip, caller.sp), (0x4444, STACK + 0x38));
        assert_eq!((caller.get(Register::RBP), caller.get(Register::R15)), (Some(5), None));
        // At the first instruction: nothing is pushed.
        let registers = Registers::new(CODE, STACK + 0x30, 99);
        let caller = unwind(&memory, function(), &registers, FramePosition::Innermost).unwrap();
        assert_eq!((caller.ip, caller.get(Register::RBP)), (0x4444, Some(99)));
    }

    #[test]
    fn an_epilog_is_executed() {
        let mut memory = TestMemory::default();
        framed(&mut memory);
        // add rsp, 0x20; pop r15; pop rbp; ret
        memory.put(CODE + 50, &[0x48, 0x83, 0xc4, 0x20, 0x41, 0x5f, 0x5d, 0xc3]);
        for (at, sp) in [(50, STACK), (54, STACK + 0x20), (56, STACK + 0x28), (57, STACK + 0x30)] {
            let registers = Registers::new(CODE + at, sp, 1);
            let caller = unwind(&memory, function(), &registers, FramePosition::Innermost).unwrap();
            assert_eq!((caller.ip, caller.sp), (0x4444, STACK + 0x38), "at {at}");
            assert_eq!(caller.get(Register::RBP), Some(if at < 57 { 5 } else { 1 }));
        }
    }

    #[test]
    fn a_chained_part_continues_with_the_codes_of_the_first() {
        let mut memory = TestMemory::default();
        framed(&mut memory);
        // A part without codes, chained to the function.
        let mut part = vec![0x21, 0, 0, 0];
        part.extend([0x1000_u32, 0x1010, 0x2000].iter().flat_map(|word| word.to_le_bytes()));
        memory.put(0x3000, &part);
        let cold = FunctionEntry { begin: 0x5000, unwind_info: 0x3000, image_base: 0 };
        let registers = Registers::new(0x5000, STACK - 8, STACK + 0x30);
        let caller = unwind(&memory, cold, &registers, FramePosition::Caller).unwrap();
        assert_eq!((caller.ip, caller.sp), (0x4444, STACK + 0x38));
    }

    #[test]
    fn large_allocations_and_frames_are_read() {
        let mut memory = TestMemory::default();
        // Allocate 0x12340 bytes (32-bit form), then set a frame register with a large offset: rsp + 16 *
        // 0x100.
        memory.put(INFO, &[1, 9, 6, 0x05, 9, 0x0b, 0, 1, 0, 0, 8, 0x11, 0x40, 0x23, 1, 0]);
        memory.put_words(STACK + 0x12340, &[0x4444]);
        let registers = Registers::new(CODE + 9, STACK - 8, STACK + 0x1000);
        let caller = unwind(&memory, function(), &registers, FramePosition::Caller).unwrap();
        assert_eq!((caller.ip, caller.sp), (0x4444, STACK + 0x12348));
    }

    #[test]
    fn damaged_information_is_an_error() {
        let mut memory = TestMemory::default();
        memory.put_words(STACK, &[0x4444]);
        let registers = Registers::new(CODE + 9, STACK, 0);
        let result = |info: &[u8]| {
            let mut memory = TestMemory::default();
            memory.put(INFO, info).put_words(STACK, &[0x4444]);
            unwind(&memory, function(), &registers, FramePosition::Caller).unwrap_err()
        };
        assert_eq!(result(&[2, 0, 0, 0]), UnwindError::Unsupported(2));
        assert_eq!(result(&[1, 0, 1, 0, 0, 0x0a]), UnwindError::Unsupported(10));
        assert_eq!(
            result(&[1, 0, 1, 0, 0, 0x01]),
            UnwindError::Unsupported(1),
            "a code without its second slot"
        );
        assert!(matches!(result(&[1, 0, 255, 0]), UnwindError::Missing(_)));
        // Chained to itself.
        let mut itself = vec![0x21, 0, 0, 0];
        itself.extend([0_u32, 0, 0x2000].iter().flat_map(|word| word.to_le_bytes()));
        assert_eq!(result(&itself), UnwindError::Unsupported(CHAINED));
        // A frame register below the stack pointer.
        let registers = Registers::new(CODE + 9, STACK, 0x10);
        let mut memory = TestMemory::default();
        memory.put(INFO, &[1, 0, 1, 5, 0, 0x03]).put_words(0x10, &[0x4444]);
        let result = unwind(&memory, function(), &registers, FramePosition::Caller);
        assert_eq!(result, Err(UnwindError::NotRising));
    }
}
