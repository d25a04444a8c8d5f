//! Errors of the command line, in the form of every other error.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _, Parser as _};

use crate::cli::{Cli, FIRST_COMMANDS, subcommand};
use crate::command::help;
use crate::exit::{Exit, Failure, Outcome};
use crate::process::candidates;
use crate::render::messages;
use crate::render::output;
use crate::render::shell;

/// Commands of the dotnet-* tools that dipc lacks, and its nearest equivalents.
const ALTERNATIVES: &[(&str, &str)] = &[
    ("record", "dipc trace -p PID records a process, dipc trace -- PROGRAM one from its start"),
    ("monitor", "dipc counters monitor -p PID shows counters, dipc top -p PID what a process does"),
    (
        "collect-linux",
        "dipc trace -p PID --user-events has the runtime write its events to the kernel, which samples threads in the same recording; dipc trace -p PID --cpu has the kernel's samples with a stream, on any kernel",
    ),
    ("analyze", "dipc dump analyze CORE reads a core dump"),
];

/// Commands that only read files.
const READERS: &[&str] = &["stat", "convert", "view", "report", "edit", "merge", "repair"];

/// Parses a command line. `--pid` is the process, unless there is a recording from which it could select a
/// process.
pub(crate) fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(words).or_else(|error| match with_process_id(words) {
        Some(words)
            if matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::MissingRequiredArgument) =>
        {
            // An unknown argument again: the command takes no process.
            Cli::try_parse_from(words)
                .map_err(|second| if second.kind() == ErrorKind::UnknownArgument { error } else { second })
        }
        _ => Err(error),
    })
}

/// Returns the command line with `--process-id` in place of `--pid`; `None` without `--pid`.
fn with_process_id(words: &[OsString]) -> Option<Vec<OsString>> {
    let mut is_found = false;
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (own, program) = words.split_at(end);
    let own = own.iter().map(|word| match word.to_str().and_then(|word| word.strip_prefix("--pid")) {
        Some(value) if value.is_empty() || value.starts_with('=') => {
            is_found = true;
            format!("--process-id{value}").into()
        }
        _ => word.clone(),
    });
    let words = own.chain(program.iter().cloned()).collect();
    is_found.then_some(words)
}

/// Prints help and version, which are results; everything else is a usage error of `words`, the command line.
pub(crate) fn explain(error: &clap::Error, words: &[OsString]) -> Outcome {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            output::print(error.render().ansi())?;
            Ok(Exit::Done)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            match words {
                [] | [_] => messages::lines(FIRST_COMMANDS),
                _ => messages::lines(error.render().ansi()),
            }
            Ok(Exit::Usage)
        }
        ErrorKind::InvalidSubcommand => Err(unknown_command(error)),
        ErrorKind::ValueValidation if text(error, ContextKind::InvalidArg).starts_with("--process-id ") => {
            let value = text(error, ContextKind::InvalidValue);
            let failure =
                Failure::usage(format_args!("'{value}' is not a process id, which is a number of 1 or more"));
            let is_name = !value.is_empty() && !value.starts_with('-') && value.parse::<i64>().is_err();
            Err(if is_name {
                failure.with_help(format_args!("a process is chosen by its name with -n {value}"))
            } else {
                failure.with_help("dipc ps lists the processes that can be reached")
            })
        }
        ErrorKind::UnknownArgument => {
            let near_miss = near_miss(words, text(error, ContextKind::InvalidArg));
            let failure = failure(error, "--help after a command shows its flags");
            Err(match near_miss {
                Some(help) => failure.with_help(help),
                None => failure,
            })
        }
        ErrorKind::InvalidValue if text(error, ContextKind::InvalidArg).starts_with("--process-id ") => {
            let candidates = candidates::lines(&dipc_transport::discover().endpoints);
            Err(failure(error, "the process id follows -p; dipc ps lists the processes")
                .with_candidates(candidates))
        }
        _ if lacks_target(error, words) => {
            let candidates = candidates::lines(&dipc_transport::discover().endpoints);
            Err(failure(error, "--help after a command shows its flags").with_candidates(candidates))
        }
        _ => Err(failure(error, "--help after a command shows its flags")),
    }
}

/// Returns whether the only error of the command line is that it names no process.
pub(crate) fn lacks_target(error: &clap::Error, words: &[OsString]) -> bool {
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => missing.as_slice(),
        _ => &[],
    };
    error.kind() == ErrorKind::MissingRequiredArgument
        && matches!(missing, [one] if one.contains("--process-id "))
        && !words.iter().any(|word| word == "--")
}

fn unknown_command(error: &clap::Error) -> Failure {
    let name = text(error, ContextKind::InvalidSubcommand);
    match ALTERNATIVES.iter().find(|(command, _)| *command == name) {
        Some((_, alternative)) => {
            Failure::usage(format_args!("no command is called '{name}'")).with_help(alternative)
        }
        None if help::is_symptom(name) => Failure::usage(format_args!("no command is called '{name}'"))
            .with_help(format_args!("dipc help {name} has the commands for this symptom")),
        None => failure(error, "dipc help commands lists them"),
    }
}

/// Returns the help for a word that another tool accepts there, or that belongs elsewhere.
fn near_miss(words: &[OsString], unexpected: &str) -> Option<String> {
    let path = command_path(words);
    let (name, sub_name) = (path.get(1)?.get_name(), path.get(2).map(Command::get_name));
    let has_target = path.last()?.get_arguments().any(|arg| arg.get_long() == Some("process-id"));
    let is_pid = unexpected.parse::<u32>().is_ok();
    match (name, sub_name) {
        (_, _) if is_pid && has_target => Some(format!("a process is chosen with -p {unexpected}")),
        ("trace", None) if unexpected == "collect" => {
            Some("dipc trace records by itself: leave out 'collect'".to_owned())
        }
        ("counters", Some("monitor" | "collect")) if !unexpected.starts_with('-') => {
            Some(format!("counters are chosen with --counters {}", shell::word(unexpected)))
        }
        ("report", Some(report)) if words.windows(3).any(|of| of[0] == "report" && of[2] == unexpected) => {
            Some(format!("the file comes first: dipc report {} {report}", shell::path(Path::new(unexpected))))
        }
        (reader, _) if READERS.contains(&reader) => {
            let target = target(unexpected)?;
            Some(format!(
                "{reader} reads files: record the process with dipc trace {target}, or watch it with dipc top {target}"
            ))
        }
        _ => None,
    }
}

/// Returns the name of the value of a flag that selects a process.
fn target(flag: &str) -> Option<&'static str> {
    match flag {
        "-p" | "--process-id" => Some("-p PID"),
        "-n" | "--name" => Some("-n NAME"),
        _ => None,
    }
}

/// Returns the definitions of the program and of the command and subcommand that `words` begin with.
fn command_path(words: &[OsString]) -> Vec<Command> {
    let mut path = vec![Cli::command()];
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        let found = path.last().and_then(|command| subcommand(command, word));
        path.extend(found);
    }
    path
}

fn text(error: &clap::Error, kind: ContextKind) -> &str {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text,
        _ => "",
    }
}

/// Returns the first paragraph of clap's message, joined into one line, with its first tip or else `help`.
/// Each tip is a line of its own.
fn failure(error: &clap::Error, help: &str) -> Failure {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut tips = text.lines().filter_map(|line| line.trim_start().strip_prefix("tip: "));
    // After `--`, there is a program to start, or nothing.
    let tip = tips.find(|tip| !tip.starts_with("to pass '"));
    Failure::usage(first.strip_prefix("error: ").unwrap_or(&first)).with_help(tip.unwrap_or(help))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn failure(words: &[&str]) -> Failure {
        let error = Cli::try_parse_from(words).unwrap_err();
        let words: Vec<_> = words.iter().map(OsString::from).collect();
        explain(&error, &words).unwrap_err()
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
    fn asks_for_a_process_if_nothing_else_is_missing() {
        let asks = |line: &str| {
            let words: Vec<_> = line.split(' ').map(OsString::from).collect();
            lacks_target(&Cli::try_parse_from(&words).unwrap_err(), &words)
        };
        for line in [
            "dipc top",
            "dipc stack",
            "dipc why",
            "dipc info",
            "dipc trace --duration 1s",
            "dipc counters monitor",
        ] {
            assert!(asks(line), "{line}");
        }
        for line in ["dipc push", "dipc trace --", "dipc stat", "dipc top --zzz", "dipc trace -p 0"] {
            assert!(!asks(line), "{line}");
        }
    }

    #[test]
    fn asks_for_the_number_of_a_process_id() {
        let help = failure(&["dipc", "locks", "-p"]).help.unwrap();
        assert_eq!(help, "the process id follows -p; dipc ps lists the processes");
    }

    #[test]
    fn takes_a_pid_without_a_recording_as_the_process() {
        use crate::cli::Command::Events;

        for command in [
            "events",
            "gcdump collect",
            "gcdump report",
            "gcdump paths --type A",
            "doctor",
            "push --otlp http://x:1",
            "trace",
            "info",
            "stack",
            "heap",
            "memory",
            "why",
            "locks",
            "async",
            "top",
            "profile",
            "env",
            "counters monitor",
            "dump",
            "resume",
        ] {
            for pid in ["--pid 7", "--pid=7"] {
                let line = format!("dipc {command} {pid}");
                let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
                if let Err(error) = parse(&words) {
                    panic!("{line}: {error}");
                }
            }
        }
        // In a recording, it selects a process.
        let words = ["dipc", "events", "a.nettrace", "--pid", "7"].map(OsString::from);
        let Events(events) = parse(&words).unwrap().command else { panic!("{words:?}") };
        assert_eq!(events.filter.pid, [7]);
        for (line, message) in [
            ("dipc gcdump collect --pid abc", "--process-id"),
            ("dipc stat --pid 7", "--pid"),
            ("dipc trace -- app --pid 7 --zzz", ""),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let error = parse(&words).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(message), "{line}: {error}");
        }
    }

    #[test]
    fn a_symptom_leads_to_its_help() {
        for word in ["hang", "oom"] {
            let failure = failure(&["dipc", word]);
            assert_eq!(failure.help.unwrap(), format!("dipc help {word} has the commands for this symptom"));
        }
    }

    #[test]
    fn commands_of_other_tools_suggest_their_counterpart() {
        for (command, alternative) in [
            ("analyze", "dipc dump analyze CORE"),
            ("collect-linux", "dipc trace -p PID --user-events"),
            ("record", "dipc trace -p PID"),
        ] {
            let failure = failure(&["dipc", command, "collect", "-p", "1"]);
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.message.contains(command), "{failure}");
            assert!(failure.help.unwrap().contains(alternative));
        }
        assert!(failure(&["dipc", "trac"]).help.unwrap().contains("'trace'"));
        assert_eq!(failure(&["dipc", "zzz"]).help.unwrap(), "dipc help commands lists them");
    }

    #[test]
    fn a_name_in_the_place_of_a_pid_is_shown_its_flag() {
        for command in ["info", "top", "counters monitor", "gcdump collect", "trace"] {
            let line = format!("dipc {command} -p abc");
            let words: Vec<_> = line.split(' ').collect();
            let failure = failure(&words);
            assert_eq!(failure.message, "'abc' is not a process id, which is a number of 1 or more");
            assert_eq!(failure.help.as_deref(), Some("a process is chosen by its name with -n abc"));
        }
        let zero = failure(&["dipc", "info", "-p", "0"]);
        assert!(zero.message.starts_with("'0' is not a process id"), "{zero}");
        assert_eq!(zero.help.as_deref(), Some("dipc ps lists the processes that can be reached"));
    }

    #[test]
    fn no_tip_is_given_after_two_hyphens() {
        let typo = failure(&["dipc", "trace", "-p", "1", "--provider", "Foo"]);
        assert_eq!(typo.help.unwrap(), "a similar argument exists: '--providers'");
        let unknown = failure(&["dipc", "trace", "-p", "1", "--zzz"]);
        assert_eq!(unknown.help.unwrap(), "--help after a command shows its flags");
    }

    #[test]
    fn words_in_the_wrong_place_are_shown_their_place() {
        for (line, help) in [
            ("dipc trace 1234", "a process is chosen with -p 1234"),
            ("dipc counters monitor 1234", "a process is chosen with -p 1234"),
            ("dipc trace collect -p 1", "dipc trace records by itself: leave out 'collect'"),
            (
                "dipc counters monitor -p 1 System.Runtime",
                "counters are chosen with --counters System.Runtime",
            ),
            ("dipc report topN a.nettrace", "the file comes first: dipc report a.nettrace topN"),
            (
                "dipc report -p 123",
                "report reads files: record the process with dipc trace -p PID, or watch it with dipc top -p PID",
            ),
            (
                "dipc stat -n app",
                "stat reads files: record the process with dipc trace -n NAME, or watch it with dipc top -n NAME",
            ),
            ("dipc report a.nettrace topN 5", "--help after a command shows its flags"),
            ("dipc stat a.nettrace --zzz", "--help after a command shows its flags"),
        ] {
            let words: Vec<_> = line.split(' ').collect();
            assert_eq!(failure(&words).help.as_deref(), Some(help), "{line}");
        }
    }
}
