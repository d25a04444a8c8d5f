//! The primitives of all versions.

/// Bytes under construction. All numbers are little-endian.
///
/// | method | encoding |
/// |---|---|
/// | `u8` … `i64`, `f32`, `f64` | fixed size |
/// | `var_u64` | 7 bits a byte, least significant first; the high bit is set where another byte follows |
/// | `var_i64` | zigzag (0, -1, 1, -2 … become 0, 1, 2, 3 …), then as `var_u64` |
/// | `string16` | UTF-16 units and a unit of zero |
/// | `string8` | `var_u64` of the length in bytes, then UTF-8 (V6) |
/// | `counted_string` | i32 length in bytes, then UTF-8 (names of objects, V1–V5) |
///
/// ```
/// use nettrace_synth::Bytes;
///
/// let mut bytes = Bytes::new();
/// bytes.u16(0x0102).var_u64(300).string8("hi");
/// assert_eq!(bytes.into_vec(), [2, 1, 0xac, 2, 2, b'h', b'i']);
/// ```
///
/// # Source
/// microsoft/perfview, `src/TraceEvent/EventPipe/NetTraceFormat.md`, "Primitives and endianness".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(Vec<u8>);

impl Bytes {
    /// Creates an empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a view of the bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// Returns the bytes.
    pub fn into_vec(self) -> Vec<u8> {
        self.0
    }

    /// Writes bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Writes one byte.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.raw(&[value])
    }

    /// Writes two bytes.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// Writes four bytes.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// Writes four bytes, two's complement.
    pub fn i32(&mut self, value: i32) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// Writes eight bytes.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// Writes eight bytes, two's complement.
    pub fn i64(&mut self, value: i64) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// Writes at most ten bytes, seven bits in each; a u32 takes at most five.
    pub fn var_u64(&mut self, mut value: u64) -> &mut Self {
        while value >= 0x80 {
            self.u8((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.u8((value & 0x7f) as u8)
    }

    /// Writes the zigzag form, as [`Bytes::var_u64`].
    pub fn var_i64(&mut self, value: i64) -> &mut Self {
        self.var_u64(((value << 1) ^ (value >> 63)).cast_unsigned())
    }

    /// Writes UTF-16 with a terminator.
    pub fn string16(&mut self, text: &str) -> &mut Self {
        for unit in text.encode_utf16() {
            self.u16(unit);
        }
        self.u16(0)
    }

    /// Writes UTF-8 after a variable-length count of bytes.
    pub fn string8(&mut self, text: &str) -> &mut Self {
        self.var_u64(text.len() as u64).raw(text.as_bytes())
    }

    /// Writes UTF-8 after a count of four bytes.
    pub fn counted_string(&mut self, text: &str) -> &mut Self {
        self.u32(length32(text.len())).raw(text.as_bytes())
    }

    /// Writes zeros up to the next multiple of four.
    pub fn align4(&mut self) -> &mut Self {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Overwrites four bytes at `offset`.
    pub fn set_u32(&mut self, offset: usize, value: u32) -> &mut Self {
        self.0[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        self
    }
}

/// Returns a length for a field of two bytes.
pub(crate) fn length16(length: usize) -> u16 {
    u16::try_from(length).expect("the length does not fit its field of two bytes")
}

/// Returns a length for a field of four bytes.
pub(crate) fn length32(length: usize) -> u32 {
    u32::try_from(length).expect("the length does not fit its field of four bytes")
}

#[cfg(test)]
mod tests {
    use super::Bytes;

    fn written(write: impl FnOnce(&mut Bytes)) -> Vec<u8> {
        let mut bytes = Bytes::new();
        write(&mut bytes);
        bytes.into_vec()
    }

    #[test]
    fn variable_length_numbers_have_seven_bits_a_byte() {
        for (value, expected) in [
            (0, &[0x00][..]),
            (0x7f, &[0x7f]),
            (0x80, &[0x80, 0x01]),
            (300, &[0xac, 0x02]),
            (u64::from(u32::MAX), &[0xff, 0xff, 0xff, 0xff, 0x0f]),
            (u64::MAX, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
        ] {
            assert_eq!(written(|b| _ = b.var_u64(value)), expected, "{value}");
        }
    }

    #[test]
    fn signed_variable_length_numbers_zigzag() {
        for (value, zigzag) in
            [(0, 0), (-1, 1), (1, 2), (-2, 3), (i64::MAX, u64::MAX - 1), (i64::MIN, u64::MAX)]
        {
            assert_eq!(written(|b| _ = b.var_i64(value)), written(|b| _ = b.var_u64(zigzag)), "{value}");
        }
    }

    #[test]
    fn strings_of_three_kinds() {
        assert_eq!(written(|b| _ = b.string16("aé😀")), [0x61, 0, 0xe9, 0, 0x3d, 0xd8, 0x00, 0xde, 0, 0]);
        assert_eq!(written(|b| _ = b.string8("aé")), [3, 0x61, 0xc3, 0xa9]);
        assert_eq!(written(|b| _ = b.counted_string("aé")), [3, 0, 0, 0, 0x61, 0xc3, 0xa9]);
    }

    #[test]
    fn alignment_adds_nothing_where_nothing_is_needed() {
        assert_eq!(written(|b| _ = b.raw(&[1, 2, 3, 4]).align4()), [1, 2, 3, 4]);
        assert_eq!(written(|b| _ = b.raw(&[1, 2, 3, 4, 5]).align4()), [1, 2, 3, 4, 5, 0, 0, 0]);
    }
}
