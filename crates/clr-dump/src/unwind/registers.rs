//! The registers of a thread on x86-64.

/// A general register, numbered as instructions number it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Register(u8);

impl Register {
    /// rax
    pub const RAX: Self = Self(0);
    /// rcx
    pub const RCX: Self = Self(1);
    /// rdx
    pub const RDX: Self = Self(2);
    /// rbx
    pub const RBX: Self = Self(3);
    /// The stack pointer.
    pub const RSP: Self = Self(4);
    /// The frame pointer, in most code.
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

    /// The register of a number; only its low four bits count.
    pub const fn of_number(number: u8) -> Self {
        Self(number & 15)
    }
}

/// The registers of a thread in one frame. An unknown register has no value.
///
/// ```
/// use clr_dump::{Register, Registers};
///
/// let registers = Registers::new(0x1000, 0x7ffe_0000, 0x7ffe_0040);
/// assert_eq!(registers.get(Register::RBP), Some(0x7ffe_0040));
/// assert_eq!(registers.get(Register::RBX), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// The instruction pointer: the thread's in its innermost frame, a return address in other frames.
    pub ip: u64,
    /// The stack pointer.
    pub sp: u64,
    others: [Option<u64>; 16],
}

impl Registers {
    /// Registers with only these three known.
    pub fn new(ip: u64, sp: u64, bp: u64) -> Self {
        Self::unknown(ip, sp).with(Register::RBP, bp)
    }

    /// The registers in the kernel's form, `user_regs_struct` of x86-64; `None` if `bytes` is too short.
    ///
    /// # Source
    /// Linux `arch/x86/include/asm/user_64.h`.
    pub fn of_user(bytes: &[u8]) -> Option<Self> {
        /// The general registers in its order; the system call's number, the instruction pointer, cs, flags
        /// and the stack pointer follow.
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
        let mut registers = Self::unknown(words.clone().nth(16)?, words.clone().nth(19)?);
        for (register, value) in ORDER.into_iter().zip(words) {
            registers.set(register, value);
        }
        Some(registers)
    }

    /// Registers with only these two known.
    pub(crate) const fn unknown(ip: u64, sp: u64) -> Self {
        Self { ip, sp, others: [None; 16] }
    }

    /// Returns the registers with `register` set to `value`.
    #[must_use]
    pub fn with(mut self, register: Register, value: u64) -> Self {
        self.set(register, value);
        self
    }

    /// Returns the registers with the callee-saved registers set, in the order in which the runtime keeps
    /// them: r12, r13, r14, r15, rbx, rbp.
    #[must_use]
    pub(crate) fn with_preserved(mut self, values: [u64; 6]) -> Self {
        const ORDER: [Register; 6] =
            [Register::R12, Register::R13, Register::R14, Register::R15, Register::RBX, Register::RBP];
        for (register, value) in ORDER.into_iter().zip(values) {
            self.set(register, value);
        }
        self
    }

    pub(crate) fn set(&mut self, register: Register, value: u64) {
        if register == Register::RSP {
            self.sp = value;
        } else if let Some(place) = self.others.get_mut(usize::from(register.0)) {
            *place = Some(value);
        }
    }

    /// The value of a register, if it is known.
    pub fn get(&self, register: Register) -> Option<u64> {
        if register == Register::RSP {
            return Some(self.sp);
        }
        self.others.get(usize::from(register.0)).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_given_registers_are_known() {
        let registers = Registers::new(1, 2, 3).with(Register::R15, 4).with(Register::RSP, 5);
        let known = [Register::RSP, Register::RBP, Register::R15, Register::RBX];
        assert_eq!(known.map(|register| registers.get(register)), [Some(5), Some(3), Some(4), None]);
        assert_eq!((registers.ip, registers.sp), (1, 5));
    }
}
