//! Samples of the crate linux-sampler, with managed code that this crate unwinds.

use crate::unwind::FramePosition;
use crate::unwind::registers::{Register, Registers};

/// The three registers of a sample, on x86-64.
#[cfg_attr(docsrs, doc(cfg(feature = "linux-sampler")))]
impl From<linux_sampler::Registers> for Registers {
    fn from(sampled: linux_sampler::Registers) -> Self {
        Self::new(sampled.ip, sampled.sp, sampled.fp)
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
        let fp = self.get(Register::RBP)?;
        Some(linux_sampler::Registers { ip: self.ip, sp: self.sp, fp, lr: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_of_samples_are_converted_and_back() {
        let sampled = linux_sampler::Registers { ip: 1, sp: 2, fp: 3, lr: 0 };
        let registers = Registers::from(sampled);
        assert_eq!(registers, Registers::new(1, 2, 3));
        assert_eq!(registers.to_sampled(), Some(sampled));
        assert_eq!(Registers::unknown(1, 2).to_sampled(), None);
    }
}
