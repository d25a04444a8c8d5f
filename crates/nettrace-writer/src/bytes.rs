//! Values as recordings store them, appended to a buffer.

use alloc::vec::Vec;

/// Appends an unsigned variable-length integer: 7 bits a byte, the lowest first.
#[inline]
pub(crate) fn varuint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed variable-length integer, zigzag.
pub(crate) fn varint(out: &mut Vec<u8>, value: i64) {
    varuint(out, (value << 1 ^ value >> 63).cast_unsigned());
}

/// Appends UTF-16 with a NUL. Text after a NUL of its own cannot be expressed and is left out.
pub(crate) fn string16(out: &mut Vec<u8>, text: &str) {
    for unit in text.encode_utf16().take_while(|unit| *unit != 0) {
        out.extend_from_slice(&unit.to_le_bytes());
    }
    out.extend_from_slice(&[0, 0]);
}

/// Appends UTF-8 after its length.
pub(crate) fn string8(out: &mut Vec<u8>, text: &[u8]) {
    varuint(out, text.len() as u64);
    out.extend_from_slice(text);
}

pub(crate) fn u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use nettrace::raw::Cursor;

    #[test]
    fn variable_length_integers_read_back() {
        for value in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            super::varuint(&mut out, value);
            assert_eq!(Cursor::new(&out).varuint64(), Ok(value));
            for signed in [value.cast_signed(), value.cast_signed().wrapping_neg()] {
                let mut out = Vec::new();
                super::varint(&mut out, signed);
                assert_eq!(Cursor::new(&out).varint64(), Ok(signed));
            }
        }
    }
}
