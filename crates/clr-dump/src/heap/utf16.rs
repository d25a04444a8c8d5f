//! Strings of UTF-16 as text.

use std::fmt::Write as _;

/// Decodes UTF-16. A surrogate without its other half is written as `\uD800`: different strings stay
/// different.
pub(crate) fn decode(bytes: &[u8]) -> String {
    let units = bytes.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit));
    let mut text = String::new();
    for character in char::decode_utf16(units) {
        match character {
            Ok(character) => text.push(character),
            Err(lone) => {
                let _ = write!(text, "\\u{:04X}", lone.unpaired_surrogate());
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::decode;

    fn text(units: &[u16]) -> String {
        decode(&units.iter().flat_map(|unit| unit.to_le_bytes()).collect::<Vec<_>>())
    }

    #[test]
    fn writes_lone_surrogates_by_their_numbers() {
        assert_eq!(text(&[0x61, 0xd83d, 0xde00]), "a\u{1f600}");
        let different = [0xd800, 0xd801, 0xfffd].map(|unit| text(&[unit, 0x79]));
        assert_eq!(different, ["\\uD800y", "\\uD801y", "\u{fffd}y"]);
    }
}
