//! Base64, as in RFC 4648: text that is safe in a page for any bytes.

use std::io::{self, Write};

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes that are converted at once; a multiple of three.
const PIECE: usize = 3 << 10;

/// Writes bytes as base64.
pub(super) fn write(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    let mut text = Vec::with_capacity(PIECE / 3 * 4);
    for piece in bytes.chunks(PIECE) {
        text.clear();
        for group in piece.chunks(3) {
            let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for (index, shift) in [18, 12, 6, 0].into_iter().enumerate() {
                let digit = DIGITS.get((bits >> shift & 63) as usize).filter(|_| index <= group.len());
                text.push(digit.copied().unwrap_or(b'='));
            }
        }
        out.write_all(&text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    /// The test vectors of RFC 4648, and every digit.
    #[test]
    fn test_vectors() {
        let text = |bytes: &[u8]| {
            let mut out = Vec::new();
            super::write(&mut out, bytes).unwrap();
            String::from_utf8(out).unwrap()
        };
        for (bytes, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(text(bytes.as_bytes()), expected);
        }
        let all: Vec<u8> = (0..64u8)
            .collect::<Vec<_>>()
            .chunks(4)
            .flat_map(|four| {
                let bits = four.iter().fold(0u32, |bits, digit| bits << 6 | u32::from(*digit));
                bits.to_be_bytes()[1..].to_vec()
            })
            .collect();
        assert_eq!(text(&all).as_bytes(), super::DIGITS);
        let long = text(&vec![0; 3 * super::PIECE + 1]);
        assert!(
            long.len() == 4 * super::PIECE + 4
                && long.ends_with("AA==")
                && !long[..long.len() - 2].contains('=')
        );
    }
}
