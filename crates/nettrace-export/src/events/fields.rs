//! The fields of an event as text.

use std::io::Write as _;

use clr_events::{event_fields, json};
use nettrace::Event;

/// Maximum length of a value in columns, in bytes. JSON has all of it.
const MAX_VALUE: usize = 1024;

/// Appends the fields as `name=value`, long values cut. False if they do not cover the payload.
pub(super) fn push_columns(out: &mut Vec<u8>, event: &Event<'_>) -> bool {
    let Some(mut fields) = event_fields(event) else { return false };
    let limit = json::limit(out, event.payload());
    let mut decoded = true;
    for field in fields.by_ref() {
        // Writing into a `Vec` does not fail.
        match field {
            Ok((name, value)) => {
                let _ = write!(out, "  {name}=");
                let start = out.len();
                let is_whole = json::push_within(out, value, limit);
                cut(out, start);
                if !is_whole {
                    let _ = write!(out, "  ({})", json::Incomplete::TooLong);
                    decoded = false;
                    break;
                }
            }
            Err(error) => {
                let _ = write!(out, "  ({error})");
                decoded = false;
            }
        }
    }
    if decoded && let Err(error) = json::left_over(&fields) {
        let _ = write!(out, "  ({error})");
    }
    decoded && fields.rest().is_empty()
}

/// Cuts a value that begins at `start`, between two characters, and says how many bytes it had more.
pub(super) fn cut(out: &mut Vec<u8>, start: usize) {
    let is_continued = |byte: &u8| byte & 0xc0 == 0x80;
    let mut end = start.saturating_add(MAX_VALUE);
    while end > start && out.get(end).is_some_and(is_continued) {
        end = end.saturating_sub(1);
    }
    let more = out.len().saturating_sub(end);
    if more > 0 {
        out.truncate(end);
        let _ = write!(out, "… ({more} more bytes)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_between_characters() {
        let value = |text: &str| {
            let mut out = format!("  Text={text}").into_bytes();
            cut(&mut out, 7);
            String::from_utf8(out).unwrap()
        };
        let (fits, long) = ("x".repeat(MAX_VALUE), "x".repeat(60_000));
        assert_eq!(value(&fits), format!("  Text={fits}"));
        assert_eq!(value(&long), format!("  Text={fits}… (58976 more bytes)"));
        // The last character has three bytes, and begins two bytes before the limit.
        let begin = "x".repeat(MAX_VALUE - 2);
        assert_eq!(value(&format!("{begin}€")), format!("  Text={begin}… (3 more bytes)"));
        assert_eq!(value(&format!("{begin}ö")), format!("  Text={begin}ö"));
        assert_eq!(value(""), "  Text=");
    }
}
