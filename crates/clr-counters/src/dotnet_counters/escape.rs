//! Characters that steer terminals or end lines.

use std::fmt::{self, Write as _};

/// Returns true if the character moves a cursor, ends a line or changes the direction of text.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Writes a character, escaped as in JSON if it is a control character.
pub(super) fn write_escaped(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    match c {
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        '\t' => f.write_str("\\t"),
        '\u{8}' => f.write_str("\\b"),
        '\u{c}' => f.write_str("\\f"),
        c if is_control(c) => write!(f, "\\u{:04x}", u32::from(c)),
        c => f.write_char(c),
    }
}

/// A text on one line.
pub(super) struct Escaped<'t>(pub(super) &'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| write_escaped(f, c))
    }
}
