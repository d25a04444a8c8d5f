//! Text of recordings in a page.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use crate::text::json_string;
use clr_events::is_control;

/// Writes a JSON string with characters that would control a display escaped, such as `\u202e`.
pub(super) fn text(out: &mut dyn Write, text: &str) -> io::Result<()> {
    json_string(out, &visible(text))
}

fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control(c) {
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}
