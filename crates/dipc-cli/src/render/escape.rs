//! Escaping of untrusted text, so that it cannot control a terminal.
//!
//! Names, paths, command lines, environments, fields and messages are chosen by traced processes, or by the
//! maker of a recording. Two steps keep them from moving the cursor, renaming the window or showing text
//! backwards:
//!
//! - [`escape_controls`] is for a piece of text within a line. Tables, labelled messages, notes and lines of
//!   events call it, so that its width is known and it breaks no line.
//! - [`escape_output`] is for all output, and lets pass only line ends, tabs and the colours that this
//!   program uses. `output::print` and `messages` call it, and clippy forbids other ways to standard output
//!   and error (`clippy.toml`): code that omits the first step can at worst let a name break or colour a
//!   line.
//!
//! Output written piece by piece, through `output::stream`, consists of JSON strings, numbers and escaped
//! lines; `nettrace_export` does the same for profiles.
//!
//! Both write the escapes of JSON, `\u001b`, so that JSON output stays exact, and a character looks the same
//! in tables and in JSON.

use std::borrow::Cow;

pub(crate) use clr_events::escape_controls;
use clr_events::{is_control, push_escaped};

/// Escapes text for output; line ends, tabs and the styles of this program stay.
pub(crate) fn escape_output(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| is_control(c) && c != '\n') {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let style = style_length(rest);
        let (this, after) = rest.split_at(style.unwrap_or(c.len_utf8()));
        if style.is_some() || matches!(c, '\n' | '\t') {
            escaped.push_str(this);
        } else {
            push_escaped(&mut escaped, c);
        }
        rest = after;
    }
    Cow::Owned(escaped)
}

/// Returns the length of the style at the beginning of the text: reset, bold, underlined, or a colour. None
/// of them hides text.
fn style_length(text: &str) -> Option<usize> {
    let (parameters, _) = text.strip_prefix("\u{1b}[")?.split_once('m')?;
    let is_ours = |parameter: &str| {
        parameter.is_empty() || matches!(parameter.parse(), Ok(0 | 1 | 4 | 30..=37 | 90..=97))
    };
    parameters.split(';').all(is_ours).then_some("\u{1b}[".len() + parameters.len() + "m".len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str =
        "a\u{1b}]0;x\u{7}b\u{9b}2Jc\u{7f}d\u{202e}e\u{2066}f\u{61c}g\u{200f}h\u{2028}i\r\n\tj";
    const SHOWN: &str = r"a\u001b]0;x\u0007b\u009b2Jc\u007fd\u202ee\u2066f\u061cg\u200fh\u2028i\r\n\tj";

    #[test]
    fn lines_and_our_own_styles_leave_as_they_are() {
        let ours = "\u{1b}[1m\u{1b}[31merror\u{1b}[0m: x\n\ty\n\u{1b}[1;4mz\u{1b}[m\n";
        assert_eq!(escape_output(ours), ours);
        let bold = anstyle::Style::new().bold().underline();
        let green = anstyle::AnsiColor::BrightGreen.on_default();
        let ours = format!("{bold}x{bold:#}{green}y{green:#}");
        assert_eq!(escape_output(&ours), ours);
        assert_eq!(escape_output(HOSTILE), SHOWN.replace("\\n\\t", "\n\t"));
        for hides in
            ["\u{1b}[8mx", "\u{1b}[1;8mx", "\u{1b}[2Jm", "\u{1b}[?25lm", "\u{1b}[38;5;0mx", "\u{1b}["]
        {
            assert_eq!(escape_output(hides), hides.replace('\u{1b}', "\\u001b"));
        }
    }

    #[test]
    fn json_that_leaves_stays_exact() {
        let json = serde_json::to_string_pretty(&[HOSTILE]).unwrap();
        assert!(json.contains(is_control));
        let escaped = escape_output(&json);
        assert!(!escaped.contains(|c| is_control(c) && c != '\n'));
        assert_eq!(serde_json::from_str::<[String; 1]>(&escaped).unwrap()[0], HOSTILE);
    }
}
