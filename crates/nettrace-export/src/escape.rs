//! Characters that steer a display instead of being shown on it.

/// Whether a character moves the cursor, begins an escape sequence, reorders the text around it, or breaks a line:
///
/// | code points | kind |
/// |---|---|
/// | U+0000–U+001F, U+007F | C0 controls, delete |
/// | U+0080–U+009F | C1 controls; U+009B begins a sequence as `ESC [` does |
/// | U+061C, U+200E, U+200F | bidirectional marks |
/// | U+202A–U+202E, U+2066–U+2069 | bidirectional embeddings, overrides and isolates |
/// | U+2028, U+2029 | line and paragraph separator |
///
/// All are in the basic plane, so that each is one `\uXXXX` in JSON.
///
/// # Source
/// ECMA-48 (C0, C1); Unicode Standard Annex 9 (bidirectional formatting characters).
pub const fn is_control(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}'
        | '\u{7f}'..='\u{9f}'
        | '\u{61c}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
    )
}

/// Whether a character of [`is_control`] may begin with this byte in UTF-8. Quickly answered, and seldom wrong.
pub const fn may_begin_control(byte: u8) -> bool {
    matches!(byte, 0..=0x1f | 0x7f | 0xc2 | 0xd8 | 0xe2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_is_known_by_its_first_byte_and_fits_one_unit() {
        let controls: Vec<char> = ('\0'..=char::MAX).filter(|c| is_control(*c)).collect();
        assert_eq!(controls.len(), 32 + 33 + 3 + 7 + 4);
        assert!(('\0'..=char::MAX).filter(|c| c.is_control()).all(is_control));
        for c in controls {
            assert!(may_begin_control(c.to_string().as_bytes()[0]) && c.len_utf16() == 1, "{c:?}");
        }
    }
}
