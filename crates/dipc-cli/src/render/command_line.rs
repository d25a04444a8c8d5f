//! Command lines for people.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr as _;

use crate::render::width;

/// The width up to which a word stays whole: paths are shorter, encoded scripts and tokens are longer.
const WORD: usize = 160;
/// The width to which a longer word is cut.
const START: usize = 40;

/// Returns a command line with long words cut: a base64 script may have kilobytes.
pub(crate) fn shortened(line: &str) -> Cow<'_, str> {
    if line.split(' ').all(|word| word.width() <= WORD) {
        return Cow::Borrowed(line);
    }
    let word = |word: &str| if word.width() <= WORD { word.to_owned() } else { width::cut(word, START) };
    Cow::Owned(line.split(' ').map(word).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_cut() {
        let line = "dotnet /srv/My App.dll  --urls http://localhost:5000";
        assert!(matches!(shortened(line), Cow::Borrowed(it) if it == line));
        let script = "QQB".repeat(700);
        let short = shortened(&format!("pwsh -EncodedCommand {script} -x")).into_owned();
        assert_eq!(short, format!("pwsh -EncodedCommand {}… -x", &script[..39]));
    }
}
