//! Strings: u32 count of UTF-16 code units with the terminating NUL, then the units, little-endian.
//!
//! Count 0 and count 1 (the NUL alone) are both the empty string. A string ends at its first NUL, as it does
//! for the runtime. An unpaired surrogate, which can occur in a Windows command line, becomes U+FFFD.

use super::{Decode, Decoder, Encode, Encoder};
use crate::{DecodeError, EncodeError};
use alloc::string::String;
use alloc::vec::Vec;
use byteorder::{ByteOrder as _, LittleEndian};
use core::fmt::{self, Write as _};
use core::hash::{Hash, Hasher};

/// A string that borrows the received bytes. It prints as text and encodes to the received bytes.
///
/// ```
/// use dipc_wire::{Decoder, Encoder, Utf16};
///
/// let mut encoder = Encoder::new();
/// encoder.put("shop", "name")?;
/// let bytes = encoder.into_bytes();
/// let name: Utf16<'_> = Decoder::new(&bytes).take("name")?;
/// assert_eq!((name.to_string(), name.chars().count()), ("shop".to_owned(), 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Default)]
pub struct Utf16<'a> {
    /// The units with their NUL, without the count.
    bytes: &'a [u8],
}

impl<'a> Utf16<'a> {
    /// Returns the code units up to the first NUL.
    pub fn units(self) -> impl Iterator<Item = u16> + Clone + use<'a> {
        let units = self.bytes.chunks_exact(2).map(LittleEndian::read_u16);
        units.take_while(|unit| *unit != 0)
    }

    /// Returns the characters, with U+FFFD for each unpaired surrogate.
    pub fn chars(self) -> impl Iterator<Item = char> + use<'a> {
        widestring::decode_utf16_lossy(self.units())
    }

    /// Returns true if the string is empty.
    pub fn is_empty(self) -> bool {
        self.units().next().is_none()
    }
}

impl<'a> Decode<'a> for Utf16<'a> {
    const MIN_LEN: usize = 4;

    fn decode(decoder: &mut Decoder<'a>, field: &'static str) -> Result<Self, DecodeError> {
        let offset = decoder.offset();
        let count = decoder.count(2, field)?;
        let bytes = decoder.slice(count.saturating_mul(2), field)?;
        match bytes.last_chunk::<2>() {
            None | Some([0, 0]) => Ok(Self { bytes }),
            Some(_) => Err(DecodeError::MissingNul { field, offset }),
        }
    }
}

impl Encode for Utf16<'_> {
    fn encode(&self, encoder: &mut Encoder, field: &'static str) -> Result<(), EncodeError> {
        encoder.count(self.bytes.len() / 2, field)?;
        encoder.bytes(self.bytes);
        Ok(())
    }
}

impl fmt::Display for Utf16<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chars().try_for_each(|char| f.write_char(char))
    }
}

impl fmt::Debug for Utf16<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        self.chars().flat_map(char::escape_debug).try_for_each(|char| f.write_char(char))?;
        f.write_char('"')
    }
}

impl PartialEq for Utf16<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.units().eq(other.units())
    }
}

impl Eq for Utf16<'_> {}

impl PartialEq<str> for Utf16<'_> {
    fn eq(&self, other: &str) -> bool {
        self.chars().eq(other.chars())
    }
}

impl PartialEq<&str> for Utf16<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl Hash for Utf16<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.units().for_each(|unit| unit.hash(state));
    }
}

impl From<Utf16<'_>> for String {
    fn from(text: Utf16<'_>) -> Self {
        text.ascii().and_then(|ascii| Self::from_utf8(ascii).ok()).unwrap_or_else(|| text.chars().collect())
    }
}

impl Utf16<'_> {
    /// Returns the characters, if all are ASCII and none is NUL, as in nearly all strings of the protocol.
    fn ascii(self) -> Option<Vec<u8>> {
        let units = self.bytes.strip_suffix(&[0, 0])?;
        let pairs = units.as_chunks::<2>().0;
        // Without a branch per unit, the compiler vectorises it: bits above ASCII, and the NULs.
        let (above, nuls) = pairs.iter().fold((0, 0_u8), |(above, nuls), [low, high]| {
            (above | high | (low & 0x80), nuls | u8::from(*low == 0))
        });
        (above | nuls == 0).then(|| pairs.iter().map(|[low, _]| *low).collect())
    }
}

impl Decode<'_> for String {
    const MIN_LEN: usize = 4;

    fn decode(decoder: &mut Decoder<'_>, field: &'static str) -> Result<Self, DecodeError> {
        decoder.take::<Utf16<'_>>(field).map(Self::from)
    }
}

/// The empty string is count 0 and nothing else. A NUL inside the string is an error, since the receiver
/// would cut it there.
impl Encode for str {
    fn encode(&self, encoder: &mut Encoder, field: &'static str) -> Result<(), EncodeError> {
        if self.is_empty() {
            encoder.u32(0);
            return Ok(());
        }
        terminated(self, encoder, field)
    }
}

impl Encode for String {
    fn encode(&self, encoder: &mut Encoder, field: &'static str) -> Result<(), EncodeError> {
        self.as_str().encode(encoder, field)
    }
}

/// An optional string. Count 0 is an absent string, the NUL alone is the empty string.
impl<S: AsRef<str>> Encode for Option<S> {
    fn encode(&self, encoder: &mut Encoder, field: &'static str) -> Result<(), EncodeError> {
        match self {
            None => encoder.u32(0),
            Some(text) => terminated(text.as_ref(), encoder, field)?,
        }
        Ok(())
    }
}

impl Decode<'_> for Option<String> {
    const MIN_LEN: usize = 4;

    fn decode(decoder: &mut Decoder<'_>, field: &'static str) -> Result<Self, DecodeError> {
        let text: Utf16<'_> = decoder.take(field)?;
        Ok((!text.bytes.is_empty()).then(|| text.into()))
    }
}

/// Appends the count, the units and the NUL.
fn terminated(text: &str, encoder: &mut Encoder, field: &'static str) -> Result<(), EncodeError> {
    let (above, nuls) = text
        .bytes()
        .fold((0, 0_u8), |(above, nuls), byte| (above | (byte & 0x80), nuls | u8::from(byte == 0)));
    if above | nuls == 0 {
        encoder.count(text.len().saturating_add(1), field)?;
        encoder.widen(text.as_bytes());
        encoder.u16(0);
        return Ok(());
    }
    let at = encoder.len();
    encoder.u32(0);
    let mut len = 0_usize;
    for unit in text.encode_utf16() {
        if unit == 0 {
            return Err(EncodeError::InteriorNul { field, index: len });
        }
        encoder.u16(unit);
        len = len.saturating_add(1);
    }
    encoder.u16(0);
    len = len.saturating_add(1);
    let count = u32::try_from(len).map_err(|_| EncodeError::TooManyItems { field, len })?;
    encoder.set_u32(at, count);
    Ok(())
}
