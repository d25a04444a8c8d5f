//! Pieces of text that several formats are made of.

use std::io::{self, Write};

use clr_events::is_control;

/// A JSON string. Only characters that require it and characters that control a terminal are escaped:
/// Perfetto shows `\u003c` literally.
pub(crate) fn json_string(out: &mut dyn Write, text: &str) -> io::Result<()> {
    quoted(out, text, |c| matches!(c, '"' | '\\') || is_control(c))
}

fn quoted(out: &mut dyn Write, text: &str, is_special: fn(char) -> bool) -> io::Result<()> {
    out.write_all(b"\"")?;
    let mut rest = text;
    while let Some(at) = rest.find(is_special) {
        let (plain, special) = rest.split_at(at);
        out.write_all(plain.as_bytes())?;
        let mut characters = special.chars();
        match characters.next() {
            Some('"') => out.write_all(b"\\\"")?,
            Some('\\') => out.write_all(b"\\\\")?,
            Some(other) => escaped(out, other)?,
            None => {}
        }
        rest = characters.as_str();
    }
    out.write_all(rest.as_bytes())?;
    out.write_all(b"\"")
}

/// The character as JSON escapes it.
fn escaped(out: &mut dyn Write, c: char) -> io::Result<()> {
    match c {
        '\n' => out.write_all(b"\\n"),
        '\r' => out.write_all(b"\\r"),
        '\t' => out.write_all(b"\\t"),
        c => write!(out, "\\u{:04x}", u32::from(c)),
    }
}

/// Nanoseconds in units of 10^`digits` of them, exactly.
#[cfg(any(feature = "chromium", feature = "speedscope"))]
pub(super) fn decimal(out: &mut dyn Write, nanoseconds: u64, digits: u32) -> io::Result<()> {
    let unit = 10u64.pow(digits);
    let mut buffer = itoa::Buffer::new();
    out.write_all(buffer.format(nanoseconds / unit).as_bytes())?;
    let fraction = nanoseconds % unit;
    if fraction == 0 {
        return Ok(());
    }
    // A leading 1 keeps the zeros after the point.
    let digits = buffer.format(unit + fraction).trim_end_matches('0');
    out.write_all(b".")?;
    out.write_all(digits.get(1..).unwrap_or_default().as_bytes())
}

/// Text in one line: control characters are escaped, and `separator` becomes `:`.
pub(super) fn one_line(out: &mut dyn Write, text: &str, separator: char) -> io::Result<()> {
    let is_plain = |c: char| !is_control(c) && c != separator;
    let mut rest = text;
    while let Some(at) = rest.find(|c| !is_plain(c)) {
        let (plain, special) = rest.split_at(at);
        out.write_all(plain.as_bytes())?;
        let mut characters = special.chars();
        match characters.next() {
            Some(c) if c == separator => out.write_all(b":")?,
            Some(c) => escaped(out, c)?,
            None => {}
        }
        rest = characters.as_str();
    }
    out.write_all(rest.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_reads_back() {
        for text in ["", "plain", "a\"b\\c</script>\n\u{1}é\u{2028}\u{7f}\u{9b}\u{202e}"] {
            let json = written(|out| json_string(out, text));
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
            assert!(!json.contains(is_control));
        }
    }

    #[test]
    fn names_of_generics_are_not_escaped() {
        assert_eq!(written(|out| json_string(out, "List`1<!0>")), "\"List`1<!0>\"");
    }

    #[test]
    fn decimals_are_exact() {
        for (nanoseconds, digits, text) in [
            (0, 6, "0"),
            (1, 6, "0.000001"),
            (1_500_000, 6, "1.5"),
            (u64::MAX, 6, "18446744073709.551615"),
            (1_020, 3, "1.02"),
        ] {
            assert_eq!(written(|out| decimal(out, nanoseconds, digits)), text);
        }
    }

    #[test]
    fn a_line_stays_one() {
        assert_eq!(written(|out| one_line(out, "a;b\nc;\u{202e}", ';')), r"a:b\nc:\u202e");
    }
}
