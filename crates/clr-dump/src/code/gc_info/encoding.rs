//! The numbers of bits of the parts of GCInfo, which differ by processor.

use crate::processor::Processor;

/// The encoding of a processor: base numbers of bits, and the units of offsets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Encoding {
    /// The number of low bits of code offsets that are left out.
    code_shift: u32,
    /// The frame pointer: the number of the register is stored as the difference in bits from it.
    pub(super) frame_pointer: u8,
    /// The number of bits of a register's number in the header.
    pub(super) frame_register: u32,
    pub(super) code_length: u32,
    pub(super) register_count: u32,
    pub(super) stack_slot_count: u32,
    pub(super) untracked_count: u32,
    pub(super) safe_point_count: u32,
    pub(super) range_count: u32,
    pub(super) range_delta: u32,
    pub(super) register: u32,
    pub(super) register_delta: u32,
    /// Offsets of stack slots are in units of eight bytes.
    pub(super) stack_slot: u32,
    pub(super) stack_slot_delta: u32,
    pub(super) prolog_size: u32,
    pub(super) epilog_size: u32,
    pub(super) argument_area: u32,
    pub(super) preserved_area: u32,
    /// True if the size of the fixed frame follows that of the area that Edit and Continue preserves.
    pub(super) has_fixed_frame: bool,
    pub(super) pointer_size: u32,
    pub(super) run: u32,
    pub(super) gap: u32,
    /// The bits of the kind of the return value in a short header, and in another.
    pub(super) return_kind: [u32; 2],
    /// The registers that a callee preserves, as bits by number.
    preserved: u32,
}

/// Code offsets of a chunk of interruptible code.
pub(super) const CHUNK: u32 = 64;
/// The number of bits of an offset in a chunk.
pub(super) const BITS_IN_CHUNK: u32 = 6;

const X86_64: Encoding = Encoding {
    code_shift: 0,
    frame_pointer: 5,
    frame_register: 3,
    code_length: 8,
    register_count: 2,
    stack_slot_count: 2,
    untracked_count: 1,
    safe_point_count: 2,
    range_count: 1,
    range_delta: 6,
    register: 3,
    register_delta: 2,
    stack_slot: 6,
    stack_slot_delta: 4,
    prolog_size: 5,
    epilog_size: 3,
    argument_area: 3,
    preserved_area: 4,
    has_fixed_frame: false,
    pointer_size: 3,
    run: 2,
    gap: 4,
    return_kind: [2, 4],
    // rbx, rbp, r12 to r15
    preserved: 0b1111_0000_0010_1000,
};

const AARCH64: Encoding = Encoding {
    code_shift: 2,
    frame_pointer: 29,
    frame_register: 2,
    register_count: 3,
    safe_point_count: 3,
    has_fixed_frame: true,
    // x19 to x28
    preserved: 0x1ff8_0000,
    ..X86_64
};

impl Encoding {
    /// Returns the encoding of a processor.
    pub(super) const fn of(processor: Processor) -> &'static Self {
        match processor {
            Processor::X86_64 => &X86_64,
            Processor::Aarch64 => &AARCH64,
        }
    }

    /// The number of bits of a safe point's offset: those of the last offset of the code.
    pub(super) const fn bits_per_offset(&self, code_length: u32) -> u32 {
        let length = self.normal_offset(code_length);
        match length.checked_sub(1) {
            Some(last) => u32::BITS.saturating_sub(last.leading_zeros()),
            None => 0,
        }
    }

    /// The normalized form of an offset of code.
    pub(super) const fn normal_offset(&self, bytes: u32) -> u32 {
        bytes >> self.code_shift
    }

    /// The offset of code in bytes.
    pub(super) const fn code_offset(&self, normal: u32) -> u32 {
        normal.wrapping_shl(self.code_shift)
    }

    /// Returns true if a callee preserves a register.
    pub(super) const fn preserves(&self, register: u8) -> bool {
        register < 32 && self.preserved >> register & 1 != 0
    }
}
