//! The lines of the prompt: edited on a terminal, with history and completion, and else as they come.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};

use crate::exit::{Exit, Failure};
use crate::render::output;

/// Maximum number of bytes of a line.
const MAX_LINE: u64 = 1 << 16;
/// The prompt of a terminal.
#[cfg(unix)]
const PROMPT: &str = "dipc> ";

/// A line of the input.
pub(super) enum Line {
    Words(String),
    /// Ctrl-C: the line is given up.
    #[cfg_attr(not(unix), allow(dead_code, reason = "consoles of Windows edit lines themselves"))]
    Cancelled,
    /// The end of the input, or Ctrl-D.
    End,
}

/// The source of lines.
pub(super) enum Input {
    #[cfg(unix)]
    Terminal(Box<terminal::Editor>),
    Lines,
}

impl Input {
    /// Opens standard input. `words` can begin a line; each has the options that can follow.
    pub(super) fn open(words: Vec<(String, Vec<String>)>) -> Result<Self, Failure> {
        #[cfg(unix)]
        if io::stdin().is_terminal() && output::stream().is_terminal() {
            return Ok(Self::Terminal(Box::new(terminal::open(words).map_err(|error| failed(&error))?)));
        }
        drop(words);
        Ok(Self::Lines)
    }

    /// Returns true if a person edits the lines.
    pub(super) const fn is_edited(&self) -> bool {
        match self {
            #[cfg(unix)]
            Self::Terminal(_) => true,
            Self::Lines => false,
        }
    }

    /// Reads a line.
    pub(super) fn next(&mut self) -> Result<Line, Failure> {
        match self {
            #[cfg(unix)]
            Self::Terminal(editor) => terminal::next(editor).map_err(|error| failed(&error)),
            Self::Lines => read_line(&mut io::stdin().lock()),
        }
    }
}

/// Reads a line of a file or a pipe.
fn read_line(input: &mut dyn io::BufRead) -> Result<Line, Failure> {
    let mut bytes = Vec::new();
    let count = input.take(MAX_LINE).read_until(b'\n', &mut bytes).map_err(|error| failed(&error))?;
    if count as u64 >= MAX_LINE {
        return Err(Failure::usage(format_args!("a line of {MAX_LINE} bytes or more is not a command")));
    }
    if count == 0 {
        return Ok(Line::End);
    }
    Ok(Line::Words(String::from_utf8_lossy(&bytes).into_owned()))
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, format_args!("read: standard input: {error}"))
}

#[cfg(unix)]
mod terminal {
    //! The editor of lines. Only the prompt and what the user types reach the terminal through it.

    use rustyline::completion::Completer;
    use rustyline::error::ReadlineError;
    use rustyline::highlight::Highlighter;
    use rustyline::hint::Hinter;
    use rustyline::history::{History as _, MemHistory};
    use rustyline::validate::Validator;
    use rustyline::{CompletionType, Config, Context, Helper, Result};

    use super::{Line, PROMPT};

    pub(in super::super) type Editor = rustyline::Editor<Words, MemHistory>;

    /// Opens the terminal. The history is that of this run: commands can have texts of the core dump.
    pub(super) fn open(words: Vec<(String, Vec<String>)>) -> Result<Editor> {
        let config = Config::builder().completion_type(CompletionType::List).auto_add_history(true);
        let config = config.history_ignore_dups(true)?.build();
        let history = MemHistory::with_config(&config);
        debug_assert!(history.is_empty());
        let mut editor = rustyline::Editor::with_history(config, history)?;
        editor.set_helper(Some(Words(words)));
        Ok(editor)
    }

    pub(super) fn next(editor: &mut Editor) -> Result<Line> {
        match editor.readline(PROMPT) {
            Ok(line) => Ok(Line::Words(line)),
            Err(ReadlineError::Interrupted) => Ok(Line::Cancelled),
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(error) => Err(error),
        }
    }

    /// The words that can begin a line, each with the options that can follow.
    pub(in super::super) struct Words(Vec<(String, Vec<String>)>);

    impl Helper for Words {}
    impl Hinter for Words {
        type Hint = String;
    }
    impl Highlighter for Words {}
    impl Validator for Words {}

    impl Completer for Words {
        type Candidate = String;

        fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> Result<(usize, Vec<String>)> {
            Ok(self.candidates(line.get(..at).unwrap_or(line)))
        }
    }

    impl Words {
        /// The place at which the last word of a line begins, and the words that it can become.
        fn candidates(&self, line: &str) -> (usize, Vec<String>) {
            let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
            let begun = &line[start..];
            let mut before = line[..start].split_whitespace();
            let is_begun = |word: &&String| word.starts_with(begun);
            let views = || self.0.iter().map(|(name, _)| name).filter(is_begun).cloned().collect();
            let candidates = match before.next() {
                None | Some("help") => views(),
                Some(view) => {
                    let options = self.0.iter().find(|(name, _)| name == view).map(|(_, options)| options);
                    options.into_iter().flatten().filter(is_begun).cloned().collect()
                }
            };
            (start, candidates)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn views_and_their_options_are_completed() {
            let owned = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
            let words = Words(vec![
                ("heap".to_owned(), owned(&["--by", "--rows"])),
                ("help".to_owned(), Vec::new()),
                ("locks".to_owned(), Vec::new()),
            ]);
            for (line, start, candidates) in [
                ("", 0, &["heap", "help", "locks"][..]),
                ("he", 0, &["heap", "help"]),
                ("heap --", 5, &["--by", "--rows"]),
                ("heap --r", 5, &["--rows"]),
                ("help l", 5, &["locks"]),
                ("nonsense --r", 9, &[]),
            ] {
                assert_eq!(words.candidates(line), (start, owned(candidates)), "{line}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_the_input_and_have_a_limit() {
        let mut input: &[u8] = b"heap\nlocks";
        let mut next = || match read_line(&mut input) {
            Ok(Line::Words(line)) => Some(line),
            _ => None,
        };
        assert_eq!([next(), next(), next()], [Some("heap\n".to_owned()), Some("locks".to_owned()), None]);
        let long = vec![b'x'; 1 << 17];
        assert!(read_line(&mut &long[..]).is_err());
    }
}
