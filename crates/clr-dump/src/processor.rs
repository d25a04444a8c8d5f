//! Processors: the architecture of a dump, and its facts that readers need.

use std::fmt;

/// The architecture of a processor, as ELF numbers it (`e_machine`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine(pub u16);

impl Machine {
    /// x86-64
    pub const X86_64: Self = Self(62);
    /// 64-bit Arm
    pub const AARCH64: Self = Self(183);
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            62 => "x86-64",
            183 => "arm64",
            243 => "riscv64",
            258 => "loongarch64",
            machine => return write!(f, "processors with the ELF number {machine}"),
        })
    }
}

/// The architecture of the processor of a process. It is data of the process: any machine reads the memory of
/// either.
///
/// ```
/// use clr_dump::{Machine, Processor};
///
/// assert_eq!(Processor::of(Machine::AARCH64), Some(Processor::Aarch64));
/// // IBM Z.
/// assert_eq!(Processor::of(Machine(22)), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Processor {
    /// x86-64
    X86_64,
    /// 64-bit Arm, with addresses of 48 bits at most
    Aarch64,
}

impl Processor {
    /// Returns the processor with a number of ELF; `None` if its programs are not read.
    pub const fn of(machine: Machine) -> Option<Self> {
        match machine {
            Machine::X86_64 => Some(Self::X86_64),
            Machine::AARCH64 => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// Returns the processor of this machine; `None` if its programs are not read.
    pub const fn of_this_machine() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Self::Aarch64)
        } else {
            None
        }
    }

    /// Bytes of `RUNTIME_FUNCTION`, which has the end of the function on x86-64 alone.
    pub(crate) const fn function_entry(self) -> u64 {
        match self {
            Self::X86_64 => 12,
            Self::Aarch64 => 8,
        }
    }

    /// Returns a return address without its signature (pointer authentication), which code of aarch64 can put
    /// into the upper bits, above the 48 of an address.
    pub(crate) const fn return_address(self, word: u64) -> u64 {
        match self {
            Self::X86_64 => word,
            Self::Aarch64 => word & 0xffff_ffff_ffff,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_removed_from_return_addresses_of_arm64_alone() {
        let signed = 0x00a3_ffff_8123_4568;
        assert_eq!(Processor::Aarch64.return_address(signed), 0xffff_8123_4568);
        assert_eq!(Processor::X86_64.return_address(signed), signed);
    }
}
