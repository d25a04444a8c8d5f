//! GCInfo: the registers and stack slots of a method that have references, by the place in its code.
//!
//! A method has it once, for its body and its funclets. It states neither its own length nor its version:
//! the runtime keeps the version for JIT-compiled code, and the format of an image implies it.
//!
//! # Source
//! dotnet/runtime `src/coreclr/inc/gcinfotypes.h`, `vm/gcinfodecoder.cpp`, `gcinfo/gcinfoencoder.cpp`;
//! `docs/design/datacontracts/GCInfo.md`.

mod bits;
mod encoding;
mod header;
mod live;
mod slots;

use std::ops::Range;

use self::bits::BitReader;
use self::encoding::Encoding;
use self::header::Header;
pub use self::live::LiveSlots;
pub use self::slots::{GcSlot, SlotPlace, StackBase};
use crate::processor::Processor;

/// The first version whose safe points are return addresses; before, they are the last bytes of calls.
const WITH_RETURN_ADDRESSES: u32 = 4;

/// A reason for GCInfo that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GcInfoError {
    /// The bytes end before the information does.
    #[error("its GCInfo ends early")]
    Cut,
    /// A number or a place that no method has.
    #[error("its GCInfo is damaged")]
    Damaged,
    /// A version that is not read.
    #[error("GCInfo of version {0} is not read")]
    Version(u32),
    /// The collector cannot stop a thread at this place in the code.
    #[error("the collector does not stop there")]
    NoSafePoint,
}

/// Returns true if callees preserve a register, by its number as instructions have it.
pub(crate) const fn is_preserved(processor: Processor, register: u8) -> bool {
    Encoding::of(processor).preserves(register)
}

/// The encoding of GCInfo: it depends on the processor and the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "the encoding depends on both alone")]
pub struct GcInfoFormat {
    /// The processor of the code.
    pub processor: Processor,
    /// The version: 2 until .NET 8, 3 of .NET 9, and 4 since .NET 10.
    pub version: u32,
}

/// The GCInfo of a method.
///
/// ```
/// use clr_dump::{GcInfo, GcInfoFormat, Processor};
///
/// // A short method without references: a slim header, 12 bytes of code, one place to stop, no slots.
/// let format = GcInfoFormat { processor: Processor::X86_64, version: 4 };
/// let info = GcInfo::decode(&[0x30, 0xc8, 0x02], format)?;
/// assert_eq!(info.code_length(), 12);
/// assert_eq!(info.safe_points().collect::<Vec<_>>(), [11]);
/// assert!(info.tracked().is_empty() && info.untracked().is_empty());
/// # Ok::<(), clr_dump::GcInfoError>(())
/// ```
#[derive(Debug, Clone)]
pub struct GcInfo<'b> {
    bytes: &'b [u8],
    encoding: &'static Encoding,
    header: Header,
    /// Normalized offsets of return addresses, or of the last bytes of calls.
    safe_points: Vec<u32>,
    /// True if the offsets are those of return addresses.
    has_return_addresses: bool,
    /// Normalized ranges of code in which the collector can stop a thread anywhere.
    ranges: Vec<Range<u32>>,
    tracked: Vec<GcSlot>,
    untracked: Vec<GcSlot>,
    /// The bit after the slots.
    live_at: usize,
}

impl<'b> GcInfo<'b> {
    /// Decodes GCInfo that begins with the first of `bytes`; those after its end are not used.
    ///
    /// # Errors
    /// As in [`GcInfoError`], and [`GcInfoError::Cut`] if more bytes are needed.
    pub fn decode(bytes: &'b [u8], format: GcInfoFormat) -> Result<Self, GcInfoError> {
        let encoding = Encoding::of(format.processor);
        let mut bits = BitReader::new(bytes);
        let header = Header::read(&mut bits, encoding, format.version)?;
        // Each is another offset: if they have no bits, their number is limited by the length alone.
        if header.safe_points > encoding.normal_offset(header.code_length) {
            return Err(GcInfoError::Damaged);
        }
        let mut safe_points = Vec::new();
        let bits_per_offset = encoding.bits_per_offset(header.code_length);
        for _ in 0..header.safe_points {
            safe_points.push(bits.take(bits_per_offset)?);
        }
        let mut ranges = Vec::new();
        let mut last = 0_u32;
        for _ in 0..header.ranges {
            let start = bits.number(encoding.range_delta)?;
            let length = bits.number(encoding.range_delta)?;
            let start = last.checked_add(start).ok_or(GcInfoError::Damaged)?;
            let end = start.checked_add(length).and_then(|end| end.checked_add(1));
            last = end.ok_or(GcInfoError::Damaged)?;
            ranges.push(start..last);
        }
        let (tracked, untracked) = slots::read(&mut bits, encoding)?;
        let live_at = bits.position();
        let has_return_addresses = format.version >= WITH_RETURN_ADDRESSES;
        Ok(Self {
            bytes,
            encoding,
            header,
            safe_points,
            has_return_addresses,
            ranges,
            tracked,
            untracked,
            live_at,
        })
    }

    /// The number of bytes of the method's code, with that of its funclets.
    pub const fn code_length(&self) -> u32 {
        self.header.code_length
    }

    /// The register that stack slots of the frame are relative to, as the processor numbers it.
    pub const fn frame_register(&self) -> Option<u8> {
        self.header.frame_register
    }

    /// The number of bytes above the stack pointer that have arguments of calls: they belong to the callee.
    pub const fn argument_area(&self) -> u32 {
        self.header.argument_area
    }

    /// Returns true if a frame of the method's body does not use its slots while a funclet of it is below.
    pub const fn is_reported_by_leaf_alone(&self) -> bool {
        self.header.is_reported_by_leaf_alone
    }

    /// The offsets of the return addresses where the collector stops a thread that is in a call.
    pub fn safe_points(&self) -> impl Iterator<Item = u32> {
        let before = if self.has_return_addresses { 0 } else { self.encoding.code_offset(1) };
        self.safe_points.iter().map(move |at| self.encoding.code_offset(*at).saturating_add(before))
    }

    /// The ranges of offsets in which the collector can stop a thread anywhere.
    pub fn interruptible(&self) -> impl Iterator<Item = Range<u32>> {
        let bytes = |offset: u32| self.encoding.code_offset(offset);
        self.ranges.iter().map(move |range| bytes(range.start)..bytes(range.end))
    }

    /// The slots that have references in parts of the code.
    pub fn tracked(&self) -> &[GcSlot] {
        &self.tracked
    }

    /// The slots that have a reference, or null, in all of the code after the prolog.
    pub fn untracked(&self) -> &[GcSlot] {
        &self.untracked
    }
}

#[cfg(test)]
mod tests;
