//! The registers of a thread.

use std::fmt;

use crate::processor::Processor;

/// A general register of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Register(u8);

/// The first number of registers of aarch64: one type has those of both processors.
const AARCH64: u8 = 32;

impl Register {
    /// rax
    pub const RAX: Self = Self(0);
    /// rcx
    pub const RCX: Self = Self(1);
    /// rdx
    pub const RDX: Self = Self(2);
    /// rbx
    pub const RBX: Self = Self(3);
    /// The stack pointer of x86-64.
    pub const RSP: Self = Self(4);
    /// The frame pointer, in most code of x86-64.
    pub const RBP: Self = Self(5);
    /// rsi
    pub const RSI: Self = Self(6);
    /// rdi
    pub const RDI: Self = Self(7);
    /// r8
    pub const R8: Self = Self(8);
    /// r9
    pub const R9: Self = Self(9);
    /// r10
    pub const R10: Self = Self(10);
    /// r11
    pub const R11: Self = Self(11);
    /// r12
    pub const R12: Self = Self(12);
    /// r13
    pub const R13: Self = Self(13);
    /// r14
    pub const R14: Self = Self(14);
    /// r15
    pub const R15: Self = Self(15);
    /// x29, the frame pointer of aarch64.
    pub const FP: Self = Self::x(29);
    /// x30, which has the return address at the beginning of a function of aarch64.
    pub const LR: Self = Self::x(30);
    /// The stack pointer of aarch64.
    pub const SP: Self = Self(AARCH64 + 31);

    /// The register of x86-64 with a number, as instructions number them; only its low four bits count.
    pub const fn of_number(number: u8) -> Self {
        Self(number & 15)
    }

    /// The register of aarch64 with a number; only its low five bits count, and 31 is the stack pointer.
    pub const fn x(number: u8) -> Self {
        Self(number & 31 | AARCH64)
    }

    /// The register with a number, as instructions of a processor number it.
    pub(crate) const fn of_processor(processor: Processor, number: u8) -> Self {
        match processor {
            Processor::X86_64 => Self::of_number(number),
            Processor::Aarch64 => Self::x(number),
        }
    }

    /// The stack pointer of a processor.
    pub(crate) const fn stack_pointer(processor: Processor) -> Self {
        match processor {
            Processor::X86_64 => Self::RSP,
            Processor::Aarch64 => Self::SP,
        }
    }

    const fn processor(self) -> Processor {
        if self.0 < AARCH64 { Processor::X86_64 } else { Processor::Aarch64 }
    }

    const fn is_stack_pointer(self) -> bool {
        matches!(self, Self::RSP | Self::SP)
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const X86_64: [&str; 8] = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"];
        let number = self.0 & 31;
        match (self.processor(), X86_64.get(usize::from(number))) {
            (Processor::X86_64, Some(name)) => f.write_str(name),
            (Processor::X86_64, None) => write!(f, "r{number}"),
            (Processor::Aarch64, _) if self.is_stack_pointer() => f.write_str("sp"),
            (Processor::Aarch64, _) if *self == Self::FP => f.write_str("fp"),
            (Processor::Aarch64, _) => write!(f, "x{number}"),
        }
    }
}

/// The registers of a thread in one frame. An unknown register has no value, and neither has a register of
/// another processor.
///
/// ```
/// use clr_dump::{Processor, Register, Registers};
///
/// let registers = Registers::new(0x1000, 0x7ffe_0000, 0x7ffe_0040);
/// assert_eq!(registers.get(Register::RBP), Some(0x7ffe_0040));
/// assert_eq!(registers.get(Register::RBX), None);
/// let registers = Registers::of(Processor::Aarch64, 0x1000, 0x7ffe_0000).with(Register::x(5), 7);
/// assert_eq!((registers.get(Register::x(5)), registers.get(Register::RBP)), (Some(7), None));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// The instruction pointer: the thread's in its innermost frame, a return address in other frames.
    pub ip: u64,
    /// The stack pointer.
    pub sp: u64,
    processor: Processor,
    /// A bit for each of the others that is known.
    known: u32,
    others: [u64; 32],
}

impl Registers {
    /// Registers of x86-64 with only these three known.
    pub fn new(ip: u64, sp: u64, bp: u64) -> Self {
        Self::of(Processor::X86_64, ip, sp).with(Register::RBP, bp)
    }

    /// Registers with only these two known.
    pub const fn of(processor: Processor, ip: u64, sp: u64) -> Self {
        Self { ip, sp, processor, known: 0, others: [0; 32] }
    }

    /// The registers in the kernel's form, `user_regs_struct` of x86-64 and `user_pt_regs` of aarch64; `None`
    /// if `bytes` is too short.
    ///
    /// # Source
    /// Linux `arch/x86/include/asm/user_64.h`, `arch/arm64/include/uapi/asm/ptrace.h`.
    pub fn of_user(processor: Processor, bytes: &[u8]) -> Option<Self> {
        /// The general registers of x86-64 in its order; the system call's number, the instruction pointer,
        /// cs, flags and the stack pointer follow.
        const ORDER: [Register; 15] = [
            Register::R15,
            Register::R14,
            Register::R13,
            Register::R12,
            Register::RBP,
            Register::RBX,
            Register::R11,
            Register::R10,
            Register::R9,
            Register::R8,
            Register::RAX,
            Register::RCX,
            Register::RDX,
            Register::RSI,
            Register::RDI,
        ];
        let words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        let word = |at: usize| words.clone().nth(at);
        match processor {
            Processor::X86_64 => {
                let registers = Self::of(processor, word(16)?, word(19)?);
                Some(registers.with_all(ORDER.into_iter().zip(words)))
            }
            // x0 to x30, the stack pointer, the instruction pointer, flags.
            Processor::Aarch64 => {
                let registers = Self::of(processor, word(32)?, word(31)?);
                Some(registers.with_all((0..31).map(Register::x).zip(words)))
            }
        }
    }

    /// The processor.
    pub const fn processor(&self) -> Processor {
        self.processor
    }

    /// Returns the registers with `register` set to `value`.
    #[must_use]
    pub fn with(mut self, register: Register, value: u64) -> Self {
        self.set(register, value);
        self
    }

    /// Returns the registers with others set.
    #[must_use]
    pub(crate) fn with_all(mut self, values: impl IntoIterator<Item = (Register, u64)>) -> Self {
        for (register, value) in values {
            self.set(register, value);
        }
        self
    }

    /// Returns the registers with the callee-saved registers set, in the order in which the runtime keeps
    /// them: r12, r13, r14, r15, rbx, rbp of x86-64; x29, x30 and x19 to x28 of aarch64.
    #[must_use]
    pub(crate) fn with_preserved(self, values: &[u64]) -> Self {
        const X86_64: [Register; 6] =
            [Register::R12, Register::R13, Register::R14, Register::R15, Register::RBX, Register::RBP];
        let values = values.iter().copied();
        match self.processor {
            Processor::X86_64 => self.with_all(X86_64.into_iter().zip(values)),
            Processor::Aarch64 => {
                let order = [29, 30].into_iter().chain(19..29).map(Register::x);
                self.with_all(order.zip(values))
            }
        }
    }

    pub(crate) fn set(&mut self, register: Register, value: u64) {
        if register.processor() != self.processor {
            return;
        }
        if register.is_stack_pointer() {
            self.sp = value;
        } else if let Some(place) = self.others.get_mut(usize::from(register.0 & 31)) {
            *place = value;
            self.known |= 1 << (register.0 & 31);
        }
    }

    /// The value of a register, if it is known.
    pub fn get(&self, register: Register) -> Option<u64> {
        if register.processor() != self.processor {
            return None;
        }
        if register.is_stack_pointer() {
            return Some(self.sp);
        }
        let number = register.0 & 31;
        self.others.get(usize::from(number)).copied().filter(|_| self.known >> number & 1 != 0)
    }

    /// The frame pointer, if it is known.
    pub fn frame_pointer(&self) -> Option<u64> {
        self.get(match self.processor {
            Processor::X86_64 => Register::RBP,
            Processor::Aarch64 => Register::FP,
        })
    }

    /// The values of all known general registers, with the stack pointer.
    pub(crate) fn values(&self) -> impl Iterator<Item = u64> {
        let known = (0..32).zip(&self.others).filter(|(number, _)| self.known >> number & 1 != 0);
        known.map(|(_, value)| *value).chain([self.sp])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_the_names_of_their_processor() {
        let names = [Register::RAX, Register::RBP, Register::R8, Register::R15].map(|of| of.to_string());
        assert_eq!(names, ["rax", "rbp", "r8", "r15"]);
        let names = [Register::x(0), Register::x(19), Register::FP, Register::SP].map(|of| of.to_string());
        assert_eq!(names, ["x0", "x19", "fp", "sp"]);
    }

    #[test]
    fn only_given_registers_are_known() {
        let registers = Registers::new(1, 2, 3).with(Register::R15, 4).with(Register::RSP, 5);
        let known = [Register::RSP, Register::RBP, Register::R15, Register::RBX];
        assert_eq!(known.map(|register| registers.get(register)), [Some(5), Some(3), Some(4), None]);
        assert_eq!((registers.ip, registers.sp), (1, 5));
    }

    #[test]
    fn registers_of_another_processor_are_unknown() {
        let x86 = Registers::new(1, 2, 3).with(Register::x(3), 9).with(Register::SP, 9);
        assert_eq!(x86, Registers::new(1, 2, 3));
        let arm = Registers::of(Processor::Aarch64, 1, 2).with(Register::FP, 3).with(Register::RBP, 9);
        assert_eq!(
            (arm.get(Register::FP), arm.get(Register::RBP), arm.frame_pointer()),
            (Some(3), None, Some(3))
        );
        assert_eq!((arm.get(Register::SP), arm.get(Register::RSP)), (Some(2), None));
        assert_eq!(arm.values().collect::<Vec<_>>(), [3, 2]);
    }

    #[test]
    fn the_kernels_form_is_read_for_each_processor() {
        let bytes: Vec<u8> = (100_u64..134).flat_map(u64::to_le_bytes).collect();
        let x86 = Registers::of_user(Processor::X86_64, &bytes).unwrap();
        assert_eq!((x86.ip, x86.sp, x86.get(Register::RBP)), (116, 119, Some(104)));
        let arm = Registers::of_user(Processor::Aarch64, &bytes).unwrap();
        assert_eq!(
            (arm.ip, arm.sp, arm.get(Register::x(0)), arm.get(Register::LR)),
            (132, 131, Some(100), Some(130))
        );
        assert_eq!(Registers::of_user(Processor::Aarch64, &bytes[..216]), None);
    }
}
