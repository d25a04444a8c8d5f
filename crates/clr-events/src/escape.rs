//! Characters that steer a display instead of being shown on it.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

/// Returns true if a character moves the cursor, begins an escape sequence, reorders the text around it, or
/// breaks a line:
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

/// Returns true if a character of [`is_control`] may begin with this byte in UTF-8. Quickly answered, and
/// seldom wrong.
pub const fn may_begin_control(byte: u8) -> bool {
    matches!(byte, 0..=0x1f | 0x7f | 0xc2 | 0xd8 | 0xe2)
}

/// Returns the text in one line of characters that can be seen: controls are escaped as JSON escapes them,
/// `\u001b`.
///
/// ```
/// use clr_events::escape_controls;
///
/// // Names of traced programs may steer a terminal.
/// assert_eq!(escape_controls("Shop\u{1b}[2J\n"), "Shop\\u001b[2J\\n");
/// assert_eq!(escape_controls("Größe"), "Größe");
/// ```
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(may_begin_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len().saturating_add(16));
    for c in text.chars() {
        push_escaped(&mut escaped, c);
    }
    Cow::Owned(escaped)
}

/// Escapes the controls of the text that was appended to a buffer, from `start`.
pub fn escape_controls_from(out: &mut Vec<u8>, start: usize) {
    let text = out.get(start..).unwrap_or_default();
    if !text.iter().copied().any(may_begin_control) {
        return;
    }
    let escaped = escape_controls(&String::from_utf8_lossy(text)).into_owned();
    out.truncate(start);
    out.extend_from_slice(escaped.as_bytes());
}

/// Appends a character, escaped if it is a control.
pub fn push_escaped(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if is_control(c) => {
            // Writing into a `String` does not fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        }
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str =
        "a\u{1b}]0;x\u{7}b\u{9b}2Jc\u{7f}d\u{202e}e\u{2066}f\u{61c}g\u{200f}h\u{2028}i\r\n\tj";
    const SHOWN: &str = r"a\u001b]0;x\u0007b\u009b2Jc\u007fd\u202ee\u2066f\u061cg\u200fh\u2028i\r\n\tj";

    #[test]
    fn controls_are_shown_escaped_and_nothing_else_is() {
        assert_eq!(escape_controls(HOSTILE), SHOWN);
        for text in ["", "plain", r"C:\a", "ü😀 عربي — €", "\u{fffd}"] {
            assert_eq!(escape_controls(text), text);
        }
        let mut line = b"\x1bkept ".to_vec();
        let start = line.len();
        line.extend_from_slice(HOSTILE.as_bytes());
        escape_controls_from(&mut line, start);
        assert_eq!(String::from_utf8(line).unwrap(), format!("\u{1b}kept {SHOWN}"));
    }

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
