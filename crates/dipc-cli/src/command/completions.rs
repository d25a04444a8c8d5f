//! `dipc completions`: completion in a shell. The shell runs this program for each completion, so that profiles and processes
//! are those of the moment.

use clap::CommandFactory as _;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use dipc_client::PROFILES;

use crate::args::Cli;
use crate::exit::{Exit, Failure, Outcome};
use crate::render::escape::escape_controls;
use crate::render::output;

/// The variable by which a shell asks for candidates instead of a run.
const VARIABLE: &str = "DIPC_COMPLETE";

/// Prints the script that makes a shell ask this program.
pub(crate) fn run(shell: Shell) -> Outcome {
    let failed =
        |why: &dyn std::fmt::Display| Failure::new(Exit::Failed, format_args!("completions: {shell}: {why}"));
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string()).ok_or_else(|| failed(&"no such shell"))?;
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, "dipc", "dipc", "dipc", &mut script)
        .map_err(|error| failed(&error))?;
    output::print(String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// Answers a shell that asks for candidates, and ends the program; returns where no shell asks.
pub(crate) fn answer_shell() {
    CompleteEnv::with_factory(Cli::command).var(VARIABLE).complete();
}

/// The profiles.
pub(crate) fn profiles() -> Vec<CompletionCandidate> {
    let candidate = |profile: &dipc_client::Profile| {
        let help = profile.description.lines().next().unwrap_or_default();
        CompletionCandidate::new(profile.name).help(Some(help.into()))
    };
    PROFILES.iter().map(candidate).collect()
}

/// The pids of the processes with an endpoint. Nothing is connected to.
pub(crate) fn pids() -> Vec<CompletionCandidate> {
    let endpoints = dipc_transport::discover().endpoints.into_iter();
    let candidate = |endpoint: dipc_transport::Endpoint| {
        let help = escape_controls(&endpoint.name).into_owned();
        CompletionCandidate::new(endpoint.pid.to_string()).help(Some(help.into()))
    };
    endpoints.map(candidate).collect()
}

/// The names of the same processes. Shells insert candidates as they are: names that a shell would not take literally are left out.
pub(crate) fn names() -> Vec<CompletionCandidate> {
    let endpoints = dipc_transport::discover().endpoints.into_iter();
    let mut names: Vec<_> = endpoints.map(|it| it.name).filter(|name| is_literal(name)).collect();
    names.sort();
    names.dedup();
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// Whether a shell takes the text as one word that means nothing but itself.
fn is_literal(text: &str) -> bool {
    !text.starts_with('-') && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-+".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_shell_would_run_are_not_offered() {
        assert!(is_literal("My.App-2_x+y"));
        for name in ["$(reboot)", "a b", "a;b", "`a`", "-n", "a'b", "a\nb", "ä", "a\u{1b}[2J"] {
            assert!(!is_literal(name), "{name:?}");
        }
    }
}
