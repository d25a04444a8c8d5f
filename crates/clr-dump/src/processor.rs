//! Processors: the architecture of a dump, and its facts that readers need.

use crate::error::{Error, Machine};

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

    /// Returns the processor of an image or a core dump.
    ///
    /// # Errors
    /// [`Error::UnsupportedMachine`].
    pub(crate) const fn of_supported(machine: u16) -> Result<Self, Error> {
        match Self::of(Machine(machine)) {
            Some(processor) => Ok(processor),
            None => Err(Error::UnsupportedMachine(Machine(machine))),
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

    #[test]
    fn other_processors_are_refused_by_name() {
        let error = Processor::of_supported(243).unwrap_err().to_string();
        assert_eq!(error, "programs of riscv64 are not read yet, only those of x86-64 and arm64");
    }
}
