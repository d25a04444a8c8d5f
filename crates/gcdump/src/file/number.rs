//! Numbers in a graph's records: signed, seven bits a byte, the most significant first.

/// The bytes of a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Encoded {
    bytes: [u8; 5],
    length: usize,
}

impl Encoded {
    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Returns the number of bytes that a number takes.
#[inline]
pub(super) const fn length(value: i32) -> usize {
    match value {
        -0x40..=0x3f => 1,
        -0x2000..=0x1fff => 2,
        -0x10_0000..=0xf_ffff => 3,
        -0x800_0000..=0x7ff_ffff => 4,
        _ => 5,
    }
}

/// Returns the bytes of a number.
#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seven bits of it")]
pub(super) fn encode(value: i32) -> Encoded {
    let length = length(value);
    let mut bytes = [0; 5];
    for (byte, after) in bytes.iter_mut().zip((0..length).rev()) {
        let bits = value.wrapping_shr(7_u32.wrapping_mul(after as u32)) as u8 & 0x7f;
        *byte = if after == 0 { bits } else { bits | 0x80 };
    }
    Encoded { bytes, length }
}

/// Reads a number; returns it and the bytes after it. `None` if the bytes end within it, or it has more than
/// five.
#[inline]
pub(super) fn decode(bytes: &[u8]) -> Option<(i32, &[u8])> {
    let (first, mut rest) = bytes.split_first()?;
    // The seventh bit is the sign.
    let mut value = i32::from((first << 1).cast_signed() >> 1);
    let mut byte = *first;
    for _ in 0..4 {
        if byte & 0x80 == 0 {
            return Some((value, rest));
        }
        (byte, rest) = rest.split_first().map(|(byte, rest)| (*byte, rest))?;
        value = value.wrapping_shl(7) | i32::from(byte & 0x7f);
    }
    (byte & 0x80 == 0).then_some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive() {
        let around = |n: i32| [n.wrapping_sub(1), n, n.wrapping_add(1)];
        let edges = (0..32).flat_map(|bit| {
            around(1_i32.wrapping_shl(bit)).into_iter().chain(around(1_i32.wrapping_shl(bit).wrapping_neg()))
        });
        for value in edges.chain([0]) {
            let encoded = encode(value);
            assert_eq!(decode(encoded.as_bytes()), Some((value, &[][..])), "{value}");
            assert_eq!(encoded.as_bytes().len(), length(value));
            for cut in 0..encoded.length {
                assert_eq!(decode(&encoded.as_bytes()[..cut]), None);
            }
        }
        assert_eq!(encode(64).as_bytes(), [0x80, 0x40]);
        assert_eq!(encode(-64).as_bytes(), [0x40]);
        assert_eq!(decode(&[0x80; 5]), None);
    }
}
