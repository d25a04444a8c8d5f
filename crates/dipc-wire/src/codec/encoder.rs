use super::Encode;
use crate::EncodeError;
use alloc::vec::Vec;
use byteorder::{ByteOrder as _, LittleEndian};
use uuid::Uuid;

/// A byte buffer that values are appended to.
///
/// ```
/// use dipc_wire::Encoder;
///
/// let mut encoder = Encoder::with_capacity(16);
/// encoder.u16(0x0102);
/// encoder.bool(true);
/// encoder.bytes(b"ok");
/// assert_eq!(encoder.into_bytes(), [2, 1, 1, b'o', b'k']);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// Returns an empty encoder.
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Returns an empty encoder with room for `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { bytes: Vec::with_capacity(capacity) }
    }

    /// Returns the encoded bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the number of bytes encoded so far.
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether nothing has been encoded yet.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Appends a value of any type.
    pub fn put(&mut self, value: &(impl Encode + ?Sized), field: &'static str) -> Result<(), EncodeError> {
        value.encode(self, field)
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

    /// Appends each of the bytes as a UTF-16 code unit.
    pub(crate) fn widen(&mut self, ascii: &[u8]) {
        let from = self.bytes.len();
        self.bytes.resize(from.saturating_add(ascii.len().saturating_mul(2)), 0);
        let pairs = self.bytes.get_mut(from..).unwrap_or_default().as_chunks_mut::<2>().0;
        for ([low, _], byte) in pairs.iter_mut().zip(ascii) {
            *low = *byte;
        }
    }

    /// Overwrites the u16 at `offset`, which was encoded before.
    pub(crate) fn set_u16(&mut self, offset: usize, value: u16) {
        if let Some(bytes) = self.encoded_mut::<2>(offset) {
            LittleEndian::write_u16(bytes, value);
        }
    }

    /// Overwrites the u32 at `offset`, which was encoded before.
    pub(crate) fn set_u32(&mut self, offset: usize, value: u32) {
        if let Some(bytes) = self.encoded_mut::<4>(offset) {
            LittleEndian::write_u32(bytes, value);
        }
    }

    /// Returns the `N` encoded bytes at `offset`.
    fn encoded_mut<const N: usize>(&mut self, offset: usize) -> Option<&mut [u8; N]> {
        let bytes = self.bytes.get_mut(offset..).and_then(<[u8]>::first_chunk_mut);
        debug_assert!(bytes.is_some(), "nothing was encoded at {offset}");
        bytes
    }
}
