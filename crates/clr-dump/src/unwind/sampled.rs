//! Samples of the crate linux-sampler, with managed code that this crate unwinds.

use crate::processor::Processor;
use crate::unwind::FramePosition;
use crate::unwind::registers::{Register, Registers};

/// The processor of samples, which are of this machine.
const PROCESSOR: Processor =
    if cfg!(target_arch = "aarch64") { Processor::Aarch64 } else { Processor::X86_64 };

/// The registers of a sample: three, and on arm64 the one with the return address.
#[cfg_attr(docsrs, doc(cfg(feature = "linux-sampler")))]
impl From<linux_sampler::Registers> for Registers {
    fn from(sampled: linux_sampler::Registers) -> Self {
        let registers = Self::of(PROCESSOR, sampled.ip, sampled.sp);
        let arm64 = [(Register::FP, sampled.fp), (Register::LR, sampled.lr)];
        registers.with(Register::RBP, sampled.fp).with_all(arm64)
    }
}

#[cfg_attr(docsrs, doc(cfg(feature = "linux-sampler")))]
impl From<linux_sampler::FramePosition> for FramePosition {
    fn from(position: linux_sampler::FramePosition) -> Self {
        match position {
            linux_sampler::FramePosition::Innermost => Self::Innermost,
            linux_sampler::FramePosition::Caller => Self::Caller,
        }
    }
}

impl Registers {
    /// The registers that a sampler continues from: the result of its `RuntimeUnwinder`. `None` if the frame
    /// pointer is unknown.
    #[cfg_attr(docsrs, doc(cfg(feature = "linux-sampler")))]
    pub fn to_sampled(&self) -> Option<linux_sampler::Registers> {
        let (fp, lr) = (self.frame_pointer()?, self.get(Register::LR).unwrap_or_default());
        Some(linux_sampler::Registers { ip: self.ip, sp: self.sp, fp, lr })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_of_samples_are_converted_and_back() {
        let sampled = linux_sampler::Registers { ip: 1, sp: 2, fp: 3, lr: 0 };
        let registers = Registers::from(sampled);
        assert_eq!((registers.ip, registers.sp, registers.frame_pointer()), (1, 2, Some(3)));
        assert_eq!(registers.to_sampled(), Some(sampled));
        assert_eq!(Registers::of(PROCESSOR, 1, 2).to_sampled(), None);
    }
}
