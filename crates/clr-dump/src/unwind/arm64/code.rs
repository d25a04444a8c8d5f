//! The unwind codes: their effects and their lengths.

use crate::unwind::UnwindError;

/// The effect of a code on the registers of a frame.
pub(super) enum Effect {
    None,
    /// The codes end.
    End,
    /// The codes of a part of a function end, and those of the function itself follow.
    EndOfPart,
    /// Bytes were allocated.
    Free(u64),
    /// The frame register was set to the stack pointer plus an offset.
    FromFrame(u64),
    /// Registers were stored at an offset, and the stack pointer was lowered by a number of bytes.
    Load {
        registers: [Option<u8>; 2],
        at: u64,
        free: u64,
    },
    /// The next pair of registers was stored after the pair of the next code.
    Next,
    /// The return address was signed.
    Signed,
}

impl Effect {
    /// A pair of registers from `first` on, with the offset in words; a lowered stack pointer if `free` is
    /// not zero.
    fn pair(first: u8, at: u8, free: u8) -> Self {
        let words = |number: u8| u64::from(number).wrapping_mul(8);
        Self::Load { registers: [Some(first), first.checked_add(1)], at: words(at), free: words(free) }
    }

    fn single(register: u8, at: u8, free: u8) -> Self {
        match Self::pair(register, at, free) {
            Self::Load { at, free, .. } => Self::Load { registers: [Some(register), None], at, free },
            other => other,
        }
    }

    /// Registers of floating-point numbers, of which no value is an address.
    fn numbers(free: u8) -> Self {
        Self::Load { registers: [None; 2], at: 0, free: u64::from(free).wrapping_mul(8) }
    }
}

/// Decodes the first code; returns its effect and the codes after it.
pub(super) fn decode(codes: &[u8]) -> Result<(Effect, &[u8]), UnwindError> {
    let Some((&first, rest)) = codes.split_first() else { return Err(UnwindError::Damaged) };
    let size = match first {
        0xc0..=0xdf | 0xe2 => 1,
        0xe7 => 2,
        0xe0 => 3,
        _ => 0,
    };
    let (operands, rest) = rest.split_at_checked(size).ok_or(UnwindError::Damaged)?;
    let second = operands.first().copied().unwrap_or_default();
    // Fields that both bytes share.
    let four = (first << 2 | second >> 6) & 15;
    let three = (first << 2 | second >> 6) & 7;
    let place = second & 0x3f;
    let effect = match first {
        0x00..=0x1f => Effect::Free(u64::from(first).wrapping_mul(16)),
        // The stack pointer was lowered by the offset itself.
        0x20..=0x3f => Effect::pair(19, 0, first & 0x1f),
        0x40..=0x7f => Effect::pair(29, first & 0x3f, 0),
        0x80..=0xbf => Effect::pair(29, 0, (first & 0x3f).saturating_add(1)),
        0xc0..=0xc7 => Effect::Free((u64::from(first & 7) << 8 | u64::from(second)).wrapping_mul(16)),
        0xc8..=0xcb => Effect::pair(four.saturating_add(19), place, 0),
        0xcc..=0xcf => Effect::pair(four.saturating_add(19), 0, place.saturating_add(1)),
        0xd0..=0xd3 => Effect::single(four.saturating_add(19), place, 0),
        0xd4 | 0xd5 => {
            let register = (first & 1) << 3 | second >> 5;
            Effect::single(register.saturating_add(19), 0, (second & 0x1f).saturating_add(1))
        }
        0xd6 | 0xd7 => {
            let register = three.saturating_mul(2).saturating_add(19);
            let at = u64::from(place).wrapping_mul(8);
            Effect::Load { registers: [Some(register), Some(30)], at, free: 0 }
        }
        0xd8 | 0xd9 | 0xdc | 0xdd => Effect::numbers(0),
        0xda | 0xdb => Effect::numbers(place.saturating_add(1)),
        0xde => Effect::numbers((second & 0x1f).saturating_add(1)),
        0xe0 => {
            let [high, middle, low] = *operands else { return Err(UnwindError::Damaged) };
            Effect::Free(u64::from(u32::from_be_bytes([0, high, middle, low])).wrapping_mul(16))
        }
        0xe1 => Effect::FromFrame(0),
        0xe2 => Effect::FromFrame(u64::from(second).wrapping_mul(8)),
        0xe3 => Effect::None,
        0xe4 => Effect::End,
        0xe5 => Effect::EndOfPart,
        0xe6 => Effect::Next,
        0xfc => Effect::Signed,
        // Frames of the system, vectors of variable length, and codes that are reserved.
        _ => return Err(UnwindError::Unsupported(first)),
    };
    Ok((effect, rest))
}

/// The number of instructions that codes stand for.
pub(super) fn instructions(mut codes: &[u8]) -> Result<u64, UnwindError> {
    let mut count = 0_u64;
    loop {
        let (effect, rest) = decode(codes)?;
        if matches!(effect, Effect::End | Effect::EndOfPart) {
            return Ok(count);
        }
        (count, codes) = (count.saturating_add(1), rest);
    }
}

/// Returns the codes after the first `count`, which does not pass their end.
pub(super) fn skip(mut codes: &[u8], count: u64) -> Result<&[u8], UnwindError> {
    for _ in 0..count {
        let (effect, rest) = decode(codes)?;
        if matches!(effect, Effect::End) {
            break;
        }
        codes = rest;
    }
    Ok(codes)
}
