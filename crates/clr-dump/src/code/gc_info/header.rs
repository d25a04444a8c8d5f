//! The header of GCInfo.

use super::GcInfoError;
use super::bits::BitReader;
use super::encoding::Encoding;

/// The first version whose header lacks the kind of the return value.
const WITHOUT_RETURN_KIND: u32 = 4;
/// The versions that are read.
const VERSIONS: std::ops::RangeInclusive<u32> = 2..=4;
/// Maximum number of bytes of a method's code.
const MAX_CODE: u32 = 1 << 28;

/// Flags of a whole header (`GcInfoHeaderFlags`).
mod flags {
    pub(super) const BITS: u32 = 10;
    pub(super) const SECURITY_OBJECT: u32 = 0x2;
    pub(super) const STACK_COOKIE: u32 = 0x4;
    pub(super) const FUNCLET_PARENT: u32 = 0x8;
    pub(super) const GENERIC_CONTEXT: u32 = 0x30;
    pub(super) const FRAME_REGISTER: u32 = 0x40;
    /// On arm64 it states tail calls.
    pub(super) const ONLY_LEAF: u32 = 0x80;
    pub(super) const EDIT_AND_CONTINUE: u32 = 0x100;
    pub(super) const CALLED_BY_NATIVE: u32 = 0x200;
}

/// The parts of a header that the slots depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Header {
    pub(super) code_length: u32,
    pub(super) frame_register: Option<u8>,
    pub(super) argument_area: u32,
    pub(super) is_reported_by_leaf_alone: bool,
    pub(super) safe_points: u32,
    pub(super) ranges: u32,
}

impl Header {
    pub(super) fn read(
        bits: &mut BitReader<'_>,
        encoding: &Encoding,
        version: u32,
    ) -> Result<Self, GcInfoError> {
        if !VERSIONS.contains(&version) {
            return Err(GcInfoError::Version(version));
        }
        let is_whole = bits.bit()?;
        let [short_kind, whole_kind] = encoding.return_kind;
        let skip_kind = |bits: &mut BitReader<'_>, count: u32| {
            if version < WITHOUT_RETURN_KIND { bits.skip(count, 1) } else { Ok(()) }
        };
        if is_whole {
            let flags = bits.take(flags::BITS)?;
            skip_kind(bits, whole_kind)?;
            return Self::read_whole(bits, encoding, flags);
        }
        let has_frame_register = bits.bit()?;
        skip_kind(bits, short_kind)?;
        Ok(Self {
            code_length: code_length(bits, encoding)?,
            frame_register: has_frame_register.then_some(encoding.frame_pointer),
            is_reported_by_leaf_alone: encoding.has_fixed_frame,
            safe_points: bits.number(encoding.safe_point_count)?,
            ..Self::default()
        })
    }

    fn read_whole(bits: &mut BitReader<'_>, encoding: &Encoding, flags: u32) -> Result<Self, GcInfoError> {
        let has = |flag: u32| flags & flag != 0;
        let code_length = code_length(bits, encoding)?;
        if has(flags::STACK_COOKIE | flags::SECURITY_OBJECT | flags::GENERIC_CONTEXT) {
            bits.number(encoding.prolog_size)?;
        }
        if has(flags::STACK_COOKIE) {
            bits.number(encoding.epilog_size)?;
        }
        let slots =
            [flags::SECURITY_OBJECT, flags::STACK_COOKIE, flags::FUNCLET_PARENT, flags::GENERIC_CONTEXT];
        for _ in slots.into_iter().filter(|flag| has(*flag)) {
            bits.signed(encoding.stack_slot)?;
        }
        let mut frame_register = None;
        if has(flags::FRAME_REGISTER) {
            let register = bits.number(encoding.frame_register)?;
            let register = u8::try_from(register).map_err(|_| GcInfoError::Damaged)?;
            frame_register = Some(register ^ encoding.frame_pointer).filter(|register| *register < 32);
        }
        if has(flags::EDIT_AND_CONTINUE) {
            bits.number(encoding.preserved_area)?;
            if encoding.has_fixed_frame {
                bits.number(encoding.preserved_area)?;
            }
        }
        if has(flags::CALLED_BY_NATIVE) {
            bits.signed(encoding.stack_slot)?;
        }
        let argument_area = bits.number(encoding.argument_area)?;
        Ok(Self {
            code_length,
            frame_register,
            argument_area: argument_area.checked_mul(8).ok_or(GcInfoError::Damaged)?,
            is_reported_by_leaf_alone: has(flags::ONLY_LEAF) || encoding.has_fixed_frame,
            safe_points: bits.number(encoding.safe_point_count)?,
            ranges: bits.number(encoding.range_count)?,
        })
    }
}

fn code_length(bits: &mut BitReader<'_>, encoding: &Encoding) -> Result<u32, GcInfoError> {
    let length = bits.number(encoding.code_length)?;
    if length == 0 || length > MAX_CODE {
        return Err(GcInfoError::Damaged);
    }
    Ok(encoding.code_offset(length))
}
