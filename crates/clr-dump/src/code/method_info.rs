//! The GCInfo of a method in memory.

use crate::code::gc_info::{GcInfo, GcInfoError, GcInfoFormat, LiveSlots};
use crate::memory::{Memory, PAGE, offset};
use crate::processor::Processor;
use crate::unwind::FramePosition;

/// The numbers of bytes that are read in turn, until the information is whole: it does not state its length.
const SIZES: [usize; 4] = [256, 4096, 1 << 16, 1 << 20];

/// The place of the GCInfo of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GcInfoPlace {
    /// The address of its first byte.
    pub(crate) at: u64,
    pub(crate) version: u32,
    /// The address of the method's first instruction.
    pub(crate) start: u64,
}

/// The slots of a frame, and the facts that their places need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrameSlots {
    pub(crate) live: LiveSlots,
    /// The address of the method's first instruction.
    pub(crate) start: u64,
    pub(crate) frame_register: Option<u8>,
    /// The bytes above the stack pointer that belong to callees.
    pub(crate) argument_area: u64,
    pub(crate) is_reported_by_leaf_alone: bool,
}

impl GcInfoPlace {
    /// Reads the slots that have references at an instruction pointer.
    pub(crate) fn slots(
        self,
        memory: &dyn Memory,
        processor: Processor,
        ip: u64,
        position: FramePosition,
    ) -> Result<FrameSlots, GcInfoError> {
        let at = u32::try_from(ip.wrapping_sub(self.start)).map_err(|_| GcInfoError::Damaged)?;
        let format = GcInfoFormat { processor, version: self.version };
        let mut failure = GcInfoError::Cut;
        for size in SIZES {
            let bytes = available(memory, self.at, size);
            match self.slots_of(&bytes, format, at, position) {
                Err(GcInfoError::Cut) if bytes.len() == size => failure = GcInfoError::Cut,
                read => return read,
            }
        }
        Err(failure)
    }

    fn slots_of(
        self,
        bytes: &[u8],
        format: GcInfoFormat,
        at: u32,
        position: FramePosition,
    ) -> Result<FrameSlots, GcInfoError> {
        let info = GcInfo::decode(bytes, format)?;
        // A call that does not return can be the last instruction.
        if at > info.code_length() {
            return Err(GcInfoError::Damaged);
        }
        Ok(FrameSlots {
            live: info.live_slots(at, position)?,
            start: self.start,
            frame_register: info.frame_register(),
            argument_area: info.argument_area().into(),
            is_reported_by_leaf_alone: info.is_reported_by_leaf_alone(),
        })
    }
}

/// Reads `size` bytes, or those before the first page that is missing.
fn available(memory: &dyn Memory, at: u64, size: usize) -> Vec<u8> {
    if let Ok(bytes) = memory.bytes(at, size) {
        return bytes;
    }
    let mut bytes = Vec::new();
    while bytes.len() < size {
        let next = offset(at, u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let of_page = PAGE.wrapping_sub(next % PAGE);
        let left = size.saturating_sub(bytes.len());
        let count = usize::try_from(of_page).unwrap_or(usize::MAX).min(left);
        let Ok(more) = memory.bytes(next, count) else { break };
        bytes.extend(more);
    }
    bytes
}
