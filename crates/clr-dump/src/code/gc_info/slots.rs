//! The slots of a method.

use super::GcInfoError;
use super::bits::BitReader;
use super::encoding::Encoding;

/// The bits of a slot's flags.
const FLAG_BITS: u32 = 2;
const INTERIOR: u32 = 1;
const PINNED: u32 = 2;
/// Maximum number of slots of a method.
pub(super) const MAX_SLOTS: u32 = 1 << 14;

/// A register or a place on the stack that can have a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_structs, reason = "the parts of a slot in GCInfo")]
pub struct GcSlot {
    /// The place.
    pub place: SlotPlace,
    /// True if the reference can point into an object.
    pub is_interior: bool,
    /// True if the object must not be moved.
    pub is_pinned: bool,
}

/// The place of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "the kinds of GCInfo")]
pub enum SlotPlace {
    /// A register, by its number as instructions have it.
    Register(u8),
    /// A place on the stack.
    Stack {
        /// The address that the offset is relative to.
        base: StackBase,
        /// The offset in bytes.
        offset: i32,
    },
}

/// The address that the offset of a stack slot is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "the bases of GCInfo")]
pub enum StackBase {
    /// The stack pointer of the caller.
    CallerSp,
    /// The stack pointer.
    Sp,
    /// The frame register.
    FrameRegister,
}

/// Reads the slots: those that are tracked, registers first, and the others.
pub(super) fn read(
    bits: &mut BitReader<'_>,
    encoding: &Encoding,
) -> Result<(Vec<GcSlot>, Vec<GcSlot>), GcInfoError> {
    let registers = if bits.bit()? { bits.number(encoding.register_count)? } else { 0 };
    let (stack_slots, untracked) = if bits.bit()? {
        (bits.number(encoding.stack_slot_count)?, bits.number(encoding.untracked_count)?)
    } else {
        (0, 0)
    };
    if registers.saturating_add(stack_slots).saturating_add(untracked) > MAX_SLOTS {
        return Err(GcInfoError::Damaged);
    }
    let mut tracked = read_registers(bits, encoding, registers)?;
    tracked.extend(read_stack(bits, encoding, stack_slots)?);
    Ok((tracked, read_stack(bits, encoding, untracked)?))
}

fn read_registers(
    bits: &mut BitReader<'_>,
    encoding: &Encoding,
    count: u32,
) -> Result<Vec<GcSlot>, GcInfoError> {
    let mut slots = Vec::new();
    let (mut register, mut flags) = (0_u32, None);
    for _ in 0..count {
        if flags == Some(0) {
            let by = bits.number(encoding.register_delta)?;
            register =
                register.checked_add(by).and_then(|at| at.checked_add(1)).ok_or(GcInfoError::Damaged)?;
        } else {
            register = bits.number(encoding.register)?;
            flags = Some(bits.take(FLAG_BITS)?);
        }
        let number = u8::try_from(register).ok().filter(|number| *number < 32).ok_or(GcInfoError::Damaged)?;
        slots.push(slot(SlotPlace::Register(number), flags.unwrap_or_default()));
    }
    Ok(slots)
}

fn read_stack(bits: &mut BitReader<'_>, encoding: &Encoding, count: u32) -> Result<Vec<GcSlot>, GcInfoError> {
    let mut slots = Vec::new();
    let (mut units, mut flags) = (0_i32, None);
    for _ in 0..count {
        let base = match bits.take(2)? {
            0 => StackBase::CallerSp,
            1 => StackBase::Sp,
            2 => StackBase::FrameRegister,
            _ => return Err(GcInfoError::Damaged),
        };
        if flags == Some(0) {
            let by = bits.number(encoding.stack_slot_delta)?;
            units = units.checked_add_unsigned(by).ok_or(GcInfoError::Damaged)?;
        } else {
            units = bits.signed(encoding.stack_slot)?;
            flags = Some(bits.take(FLAG_BITS)?);
        }
        let offset = units.checked_mul(8).ok_or(GcInfoError::Damaged)?;
        slots.push(slot(SlotPlace::Stack { base, offset }, flags.unwrap_or_default()));
    }
    Ok(slots)
}

const fn slot(place: SlotPlace, flags: u32) -> GcSlot {
    GcSlot { place, is_interior: flags & INTERIOR != 0, is_pinned: flags & PINNED != 0 }
}
