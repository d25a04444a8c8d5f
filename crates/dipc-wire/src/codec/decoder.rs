use super::Decode;
use crate::DecodeError;
use byteorder::{ByteOrder as _, LittleEndian};
use uuid::Uuid;

/// A reader of values from the front of a byte slice. It never reads past the end and never indexes.
///
/// Every method takes the name of the field; the error for a truncated field has that name and the field's
/// offset.
///
/// ```
/// use dipc_wire::{Decoder, Encoder};
///
/// let mut encoder = Encoder::new();
/// encoder.u32(7);
/// encoder.put("shop", "name")?;
/// let bytes = encoder.into_bytes();
///
/// let mut decoder = Decoder::new(&bytes);
/// assert_eq!((decoder.u32("id")?, decoder.take::<String>("name")?), (7, "shop".to_owned()));
/// let error = decoder.u32("flags").expect_err("no bytes are left");
/// assert!(error.is_incomplete() && error.to_string().contains("flags"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Decoder<'a> {
    /// Returns a decoder of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self::with_offset(bytes, 0)
    }

    /// Returns a decoder of `bytes`. Errors count offsets from `offset`, the position of the first byte.
    pub const fn with_offset(bytes: &'a [u8], offset: usize) -> Self {
        Self { rest: bytes, offset }
    }

    /// Returns the bytes that were not taken yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the offset of the first byte that was not taken yet.
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Takes a value of any type.
    pub fn take<T: Decode<'a>>(&mut self, field: &'static str) -> Result<T, DecodeError> {
        T::decode(self, field)
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

    /// Takes a GUID: 16 bytes, of which the first three fields are little-endian and the last two in order.
    pub fn guid(&mut self, field: &'static str) -> Result<Uuid, DecodeError> {
        self.bytes::<16>(field).map(Uuid::from_bytes_le)
    }

    /// Takes the u32 count of an array of items of at least `item_len` bytes each, and checks that the
    /// remaining bytes can hold that many: the received bytes bound the allocation.
    pub fn count(&mut self, item_len: usize, field: &'static str) -> Result<usize, DecodeError> {
        let offset = self.offset;
        let count = self.u32(field)?;
        let left = self.rest.len();
        match usize::try_from(count) {
            Ok(items) if items.checked_mul(item_len.max(1)).is_some_and(|len| len <= left) => Ok(items),
            _ => Err(DecodeError::CountTooLarge { field, offset, count, left }),
        }
    }
}
