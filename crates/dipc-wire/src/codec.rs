//! The numbers, GUIDs, strings and arrays payloads are made of.

use crate::{DecodeError, EncodeError};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use byteorder::{ByteOrder as _, LittleEndian};
use uuid::Uuid;
use widestring::U16CStr;

/// What can stand in the payload of a message, in both directions.
pub trait Payload: Sized {
    /// Appends the value's bytes.
    fn encode(&self, encoder: &mut Encoder) -> Result<(), EncodeError>;

    /// Takes the value's bytes from the front of what is left.
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError>;
}

/// Takes values from the front of a byte slice. It never reads past the end and never indexes.
///
/// Every method takes the field's name, for the error that says what was cut short and at which offset.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Decoder<'a> {
    /// Decodes `bytes` from the beginning.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self::with_offset(bytes, 0)
    }

    /// Decodes `bytes`, whose first byte is reported as `offset` in errors.
    pub const fn with_offset(bytes: &'a [u8], offset: usize) -> Self {
        Self { rest: bytes, offset }
    }

    /// The bytes not taken yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The offset of the first byte not taken yet.
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Takes `len` bytes.
    pub fn slice(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            let left = self.rest.len();
            return Err(DecodeError::UnexpectedEnd { field, offset: self.offset, needed: len, left });
        };
        self.rest = rest;
        self.offset = self.offset.saturating_add(len);
        Ok(taken)
    }

    /// Takes `N` bytes.
    pub fn bytes<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.slice(N, field)?);
        Ok(bytes)
    }

    /// Takes one byte.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.bytes(field).map(|[byte]| byte)
    }

    /// Takes one byte; every value but 0 is true, as in the runtime.
    pub fn bool(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        self.u8(field).map(|byte| byte != 0)
    }

    /// Takes a little-endian u16.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.bytes::<2>(field).map(|bytes| LittleEndian::read_u16(&bytes))
    }

    /// Takes a little-endian u32.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.bytes::<4>(field).map(|bytes| LittleEndian::read_u32(&bytes))
    }

    /// Takes a little-endian i32.
    pub fn i32(&mut self, field: &'static str) -> Result<i32, DecodeError> {
        self.bytes::<4>(field).map(|bytes| LittleEndian::read_i32(&bytes))
    }

    /// Takes a little-endian u64.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.bytes::<8>(field).map(|bytes| LittleEndian::read_u64(&bytes))
    }

    /// Takes a GUID: 16 bytes of which the first three fields are little-endian and the last two in order.
    pub fn guid(&mut self, field: &'static str) -> Result<Uuid, DecodeError> {
        self.bytes::<16>(field).map(Uuid::from_bytes_le)
    }

    /// Takes the u32 count of an array whose items have at least `item_len` bytes each, and makes sure that so many
    /// can follow: what is then allocated for them is bounded by the bytes that were received.
    pub fn count(&mut self, item_len: usize, field: &'static str) -> Result<usize, DecodeError> {
        let offset = self.offset;
        let count = self.u32(field)?;
        let left = self.rest.len();
        match usize::try_from(count) {
            Ok(items) if items.checked_mul(item_len).is_some_and(|len| len <= left) => Ok(items),
            _ => Err(DecodeError::CountTooLarge { field, offset, count, left }),
        }
    }

    /// Takes an array: u32 count, then the items, each of which has at least `item_len` bytes.
    pub fn array<T: Payload>(&mut self, item_len: usize, field: &'static str) -> Result<Vec<T>, DecodeError> {
        let count = self.count(item_len, field)?;
        (0..count).map(|_| T::decode(self)).collect()
    }

    /// Takes a string: u32 count of UTF-16 code units with the terminating NUL, then the units, little-endian.
    ///
    /// Count 0 and count 1 (the NUL alone) are both the empty string. The string ends at its first NUL, as it does for
    /// the runtime. A surrogate without its other half, which a Windows command line may hold, becomes U+FFFD.
    pub fn string(&mut self, field: &'static str) -> Result<String, DecodeError> {
        let offset = self.offset;
        let count = self.count(2, field)?;
        if count == 0 {
            return Ok(String::new());
        }
        let bytes = self.slice(count.saturating_mul(2), field)?;
        let mut units = vec![0; count];
        LittleEndian::read_u16_into(bytes, &mut units);
        if units.last() != Some(&0) {
            return Err(DecodeError::MissingNul { field, offset });
        }
        match U16CStr::from_slice_truncate(&units) {
            Ok(string) => Ok(string.to_string_lossy()),
            Err(_) => Err(DecodeError::MissingNul { field, offset }),
        }
    }
}

/// Appends values to a byte buffer.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// An encoder with nothing in it.
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// What has been encoded.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The number of bytes encoded so far.
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing has been encoded yet.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Appends bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends one byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Appends one byte, 0 or 1.
    pub fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    /// Appends a little-endian u16.
    pub fn u16(&mut self, value: u16) {
        let mut bytes = [0; 2];
        LittleEndian::write_u16(&mut bytes, value);
        self.bytes(&bytes);
    }

    /// Appends a little-endian u32.
    pub fn u32(&mut self, value: u32) {
        let mut bytes = [0; 4];
        LittleEndian::write_u32(&mut bytes, value);
        self.bytes(&bytes);
    }

    /// Appends a little-endian i32.
    pub fn i32(&mut self, value: i32) {
        let mut bytes = [0; 4];
        LittleEndian::write_i32(&mut bytes, value);
        self.bytes(&bytes);
    }

    /// Appends a little-endian u64.
    pub fn u64(&mut self, value: u64) {
        let mut bytes = [0; 8];
        LittleEndian::write_u64(&mut bytes, value);
        self.bytes(&bytes);
    }

    /// Appends a GUID, the first three fields little-endian.
    pub fn guid(&mut self, value: Uuid) {
        self.bytes(&value.to_bytes_le());
    }

    /// Appends the u32 count of an array.
    pub fn count(&mut self, len: usize, field: &'static str) -> Result<(), EncodeError> {
        let count = u32::try_from(len).map_err(|_| EncodeError::TooManyItems { field, len })?;
        self.u32(count);
        Ok(())
    }

    /// Appends an array: u32 count, then the items.
    pub fn array<T: Payload>(&mut self, items: &[T], field: &'static str) -> Result<(), EncodeError> {
        self.count(items.len(), field)?;
        items.iter().try_for_each(|item| item.encode(self))
    }

    /// Appends a string: u32 count of UTF-16 code units with the terminating NUL, then the units. The empty string is
    /// count 0 and nothing else. A NUL inside the string is an error, since the receiver would cut it there.
    pub fn string(&mut self, value: &str, field: &'static str) -> Result<(), EncodeError> {
        if value.is_empty() {
            self.u32(0);
            return Ok(());
        }
        let mut units: Vec<u16> = value.encode_utf16().collect();
        if let Some(index) = units.iter().position(|unit| *unit == 0) {
            return Err(EncodeError::InteriorNul { field, index });
        }
        units.push(0);
        self.count(units.len(), field)?;
        let mut bytes = vec![0; units.len().saturating_mul(2)];
        LittleEndian::write_u16_into(&units, &mut bytes);
        self.bytes(&bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
