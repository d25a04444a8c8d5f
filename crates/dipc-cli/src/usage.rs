//! Errors of the command line, in the form of every other error.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::exit::{Exit, Failure, Outcome};
use crate::render::messages;
use crate::render::output;

/// Commands that the dotnet-* tools have and dipc has not, and the nearest that it has.
const ALTERNATIVES: &[(&str, &str)] = &[
    (
        "collect-linux",
        "dipc trace -p PID records a process over its own port; a recording of dotnet-trace collect-linux is read like any other: dipc stat FILE",
    ),
    (
        "analyze",
        "dipc writes dumps and does not read them: open them with dotnet-dump analyze, lldb or a debugger",
    ),
];

/// Help and version are results; everything else is wrong usage.
pub(crate) fn explain(error: &clap::Error) -> Outcome {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            output::print(error.render().ansi())?;
            Ok(Exit::Done)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            messages::lines(error.render().ansi());
            Ok(Exit::Usage)
        }
        ErrorKind::InvalidSubcommand => Err(unknown_command(error)),
        _ => Err(failure(error, "--help after a command shows its flags")),
    }
}

fn unknown_command(error: &clap::Error) -> Failure {
    let name = text(error, ContextKind::InvalidSubcommand);
    match ALTERNATIVES.iter().find(|(command, _)| *command == name) {
        Some((_, alternative)) => {
            Failure::usage(format_args!("there is no command '{name}'")).with_help(alternative)
        }
        None => failure(error, "dipc --help lists the commands"),
    }
}

fn text(error: &clap::Error, kind: ContextKind) -> &str {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text,
        _ => "",
    }
}

/// The first paragraph of clap's message, joined to a line, with its first tip or else `help`. Each tip and the usage are
/// paragraphs of their own.
fn failure(error: &clap::Error, help: &str) -> Failure {
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n").map(|paragraph| {
        let words: Vec<_> = paragraph.split_whitespace().collect();
        words.join(" ")
    });
    let first = paragraphs.next().unwrap_or_default();
    let tip = paragraphs.find_map(|paragraph| paragraph.strip_prefix("tip: ").map(str::to_owned));
    Failure::usage(first.strip_prefix("error: ").unwrap_or(&first))
        .with_help(tip.unwrap_or_else(|| help.to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

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

    #[test]
    fn commands_that_other_tools_have_are_answered_with_what_there_is() {
        for (command, alternative) in
            [("analyze", "dotnet-dump analyze"), ("collect-linux", "dipc stat FILE")]
        {
            let failure = failure(&["dipc", command, "collect", "-p", "1"]);
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.message.contains(command), "{failure}");
            assert!(failure.help.unwrap().contains(alternative));
        }
        assert!(failure(&["dipc", "trac"]).help.unwrap().contains("'trace'"));
        assert_eq!(failure(&["dipc", "zzz"]).help.unwrap(), "dipc --help lists the commands");
    }
}
