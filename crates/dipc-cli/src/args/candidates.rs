//! Candidates for the completion of values: profiles and processes of the moment.

use clap_complete::engine::CompletionCandidate;
use dipc_client::PROFILES;

use crate::process::candidates::application_name;
use crate::render::escape::escape_controls;

/// The profiles.
pub(crate) fn profiles() -> Vec<CompletionCandidate> {
    let candidate = |profile: &dipc_client::Profile| {
        let help = profile.description.lines().next().unwrap_or_default();
        CompletionCandidate::new(profile.name).help(Some(help.into()))
    };
    PROFILES.iter().map(candidate).collect()
}

/// The pids of the processes with an endpoint, found without connecting to any.
pub(crate) fn pids() -> Vec<CompletionCandidate> {
    let endpoints = dipc_transport::discover().endpoints.into_iter();
    let candidate = |endpoint: dipc_transport::Endpoint| {
        let name = application_name(endpoint.pid, &endpoint.name);
        let help = escape_controls(&name).into_owned();
        CompletionCandidate::new(endpoint.pid.to_string()).help(Some(help.into()))
    };
    endpoints.map(candidate).collect()
}

/// The names of the same processes; for `dotnet`, the name of its assembly. Shells insert candidates
/// unquoted, so names that a shell would not take literally are left out.
pub(crate) fn names() -> Vec<CompletionCandidate> {
    let endpoints = dipc_transport::discover().endpoints.into_iter();
    let mut names: Vec<_> =
        endpoints.map(|it| application_name(it.pid, &it.name)).filter(|name| is_literal(name)).collect();
    names.sort();
    names.dedup();
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// Returns true if a shell takes the text literally, as one word.
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
