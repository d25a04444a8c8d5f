//! The words of a line.

use crate::exit::Failure;

/// Splits a line at white space; quotation marks of both kinds keep a word together.
pub(super) fn split(line: &str) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut open: Option<char> = None;
    for character in line.chars() {
        match open {
            Some(mark) if character == mark => open = None,
            None if matches!(character, '"' | '\'') => {
                open = Some(character);
                word.get_or_insert_default();
            }
            None if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    if let Some(mark) = open {
        return Err(Failure::usage(format_args!("a quotation mark is missing: {mark}")));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotation_marks_keep_words_together() {
        for (line, words) in [
            ("", &[][..]),
            ("  heap\t-n 5 ", &["heap", "-n", "5"]),
            ("objects --type 'Dictionary<string, int>'", &["objects", "--type", "Dictionary<string, int>"]),
            ("strings --grep=\"it's\" ''", &["strings", "--grep=it's", ""]),
        ] {
            assert_eq!(split(line).unwrap(), words, "{line}");
        }
        let failure = split("objects --type 'Row").unwrap_err();
        assert_eq!((failure.exit.code(), &*failure.message), (2, "a quotation mark is missing: '"));
    }
}
