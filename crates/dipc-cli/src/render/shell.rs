//! Quoting of words in printed commands for a shell.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

use clr_events::is_control;

/// Returns a string as one literal shell word, quoted if necessary. Control characters are written as numeric
/// escapes, which bash, zsh and ksh understand, so that none reaches the terminal.
pub(crate) fn word(text: &str) -> Cow<'_, str> {
    let is_plain =
        |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ':' | ',' | '@' | '%');
    if !text.is_empty() && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    if !text.contains(is_control) {
        return Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")));
    }
    let mut quoted = "$'".to_owned();
    for c in text.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            c if is_control(c) => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    // Three digits, so that a following digit is not taken for part of the escape.
                    let _ = write!(quoted, "\\{byte:03o}");
                }
            }
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    Cow::Owned(quoted)
}

/// Returns a path as one word that no command mistakes for a flag.
pub(crate) fn path(path: &Path) -> String {
    let text = path.to_string_lossy();
    let prefix = if text.starts_with('-') && text != "-" { "./" } else { "" };
    word(&format!("{prefix}{text}")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_nothing_but_themselves() {
        for (text, expected) in [
            ("/tmp/a-b_1.nettrace", "/tmp/a-b_1.nettrace"),
            ("naïve.nettrace", "naïve.nettrace"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$(touch x)", "'$(touch x)'"),
            ("it's", r"'it'\''s'"),
            ("~", "'~'"),
            ("a\nb'\\7\u{1b}1", r"$'a\012b\'\\7\0331'"),
            ("\u{202e}x", r"$'\342\200\256x'"),
        ] {
            assert_eq!(word(text), expected);
        }
        assert_eq!(path(Path::new("-rf")), "./-rf");
        assert_eq!(path(Path::new("-")), "-");
    }

    #[test]
    #[cfg(unix)]
    fn quoted_words_survive_bash() {
        for text in ["a b", "$(touch x)", "it's", "a\nb'\\7\u{1b}1\u{202e}", "`x`;&|<>*?[]{}!#~\"\\", "-n"] {
            let script = format!("printf %s {}", word(&format!("./{text}")));
            let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("./{text}"));
        }
    }
}
