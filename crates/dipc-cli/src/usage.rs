//! What is wrong with a command line, in the form of every other error.

use clap::error::ErrorKind;

use crate::exit::{Exit, Failure, Outcome};
use crate::output;

/// Help and version are results; everything else is wrong usage.
pub(crate) fn explain(error: &clap::Error) -> Outcome {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            output::print(error.render().ansi())?;
            Ok(Exit::Done)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            anstream::eprint!("{}", error.render().ansi());
            Ok(Exit::Usage)
        }
        _ => Err(failure(&error.render().to_string())),
    }
}

/// clap writes a paragraph for the error, one for each tip, and the usage; of this the first line is ours to make.
fn failure(text: &str) -> Failure {
    let mut paragraphs = text.split("\n\n").map(|paragraph| {
        let words: Vec<_> = paragraph.split_whitespace().collect();
        words.join(" ")
    });
    let first = paragraphs.next().unwrap_or_default();
    let failure = Failure::usage(first.strip_prefix("error: ").unwrap_or(&first));
    match paragraphs.find_map(|paragraph| paragraph.strip_prefix("tip: ").map(str::to_owned)) {
        Some(tip) => failure.with_help(tip),
        None => failure.with_help("--help after a command shows its flags"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::Parser as _;

    fn failure(words: &[&str]) -> Failure {
        explain(&Cli::try_parse_from(words).unwrap_err()).unwrap_err()
    }

    #[test]
    fn an_error_is_one_line_with_one_line_of_help() {
        let missing = failure(&["dipc", "info"]);
        assert_eq!(missing.exit, Exit::Usage);
        assert!(
            missing.message.starts_with("the following required arguments were not provided: <"),
            "{missing}"
        );
        assert!(!missing.message.contains('\n') && missing.help.is_some());
        let typo = failure(&["dipc", "stat", "--formt", "json", "x"]);
        assert!(typo.help.unwrap().contains("--format"));
    }
}
