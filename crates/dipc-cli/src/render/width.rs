//! Fitting lines to the width of the terminal.

use std::io;

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Returns the width of standard output in characters. `None` if it is not a terminal: lines are then not
/// cut.
pub(crate) fn of_output() -> Option<usize> {
    // Tests compare whole lines, wherever they run.
    if cfg!(test) {
        return None;
    }
    #[allow(clippy::disallowed_methods, reason = "its size is asked for, nothing is written")]
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// Returns the height of standard output in lines; `None` if it is not a terminal.
pub(crate) fn height_of_output() -> Option<usize> {
    if cfg!(test) {
        return None;
    }
    #[allow(clippy::disallowed_methods, reason = "its size is asked for, nothing is written")]
    terminal_size::terminal_size_of(io::stdout()).map(|(_, height)| usize::from(height.0))
}

/// The same as [`of_output`] for standard error.
pub(crate) fn of_errors() -> Option<usize> {
    if cfg!(test) {
        return None;
    }
    #[allow(clippy::disallowed_methods, reason = "its size is asked for, nothing is written")]
    terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| usize::from(width.0))
}

/// Returns a line, cut if it does not fit.
pub(crate) fn cut(line: &str, width: usize) -> String {
    if line.width() <= width {
        return line.to_owned();
    }
    prefix(line, width.saturating_sub(1)).to_owned() + "…"
}

/// Returns the longest prefix of a string that fits in `width` columns. Grapheme clusters, such as a letter
/// and its accents, are not split.
pub(crate) fn prefix(text: &str, width: usize) -> &str {
    let mut room = width;
    let mut end = 0;
    for (at, character) in text.grapheme_indices(true) {
        let Some(left) = room.checked_sub(character.width()) else { break };
        room = left;
        end = at + character.len();
    }
    text.get(..end).unwrap_or_default()
}

/// Breaks long lines between words; continuation lines are indented. Headings stay whole: they are as wide as
/// their table.
pub(crate) fn wrapped(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut wrapped = String::new();
    for line in text.lines() {
        if line.width() <= width || line.starts_with('\u{1b}') {
            wrapped.push_str(line);
            wrapped.push('\n');
            continue;
        }
        let mut long = 0;
        for word in line.split_whitespace() {
            let takes = word.width();
            if long > 0 && long + 1 + takes > width {
                wrapped.push_str("\n ");
                long = 1;
            }
            if long > 0 {
                wrapped.push(' ');
                long += 1;
            }
            wrapped.push_str(word);
            long += takes;
        }
        wrapped.push('\n');
    }
    wrapped
}

/// Splits a string into lines of this width at word boundaries. A longer word has a line of its own.
pub(crate) fn filled(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut() {
        assert_eq!(cut("µµµµ", 4), "µµµµ");
        assert_eq!(cut("µµµµµ", 4), "µµµ…");
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        // Two characters that are displayed as one.
        assert_eq!(cut("ae\u{301}bc", 3), "ae\u{301}…");
        assert_eq!(cut("ae\u{301}bc", 2), "a…");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three\n", Some(7)), "one two\n  three\n");
        assert_eq!(wrapped("one two three\n", Some(8)), "one two\n  three\n");
        assert_eq!(wrapped("one two three\nx\n", None), "one two three\nx\n");
        // A word that is too long is not broken.
        assert_eq!(wrapped("µµµµµµµµµ 1\n", Some(4)), "µµµµµµµµµ\n  1\n");
    }
}
