//! The names of the packages in the registry.

use std::env;
use std::process::Output;

use anyhow::{Result, bail};

use crate::task::packages::published;
use crate::task::workspace::cargo;

/// Checks that each package's name is free in the registry or has this repository's package.
pub(super) fn check() -> Result<()> {
    let mut faults = Vec::new();
    for package in published()? {
        // Outside of the workspace, so that it is the registry that answers.
        let output = cargo(["info", "--registry", "crates-io", &package.name])
            .current_dir(env::temp_dir())
            .output()?;
        faults.extend(fault(&package.name, package.repository(), &Answer::of(&output)));
    }
    if faults.is_empty() {
        return Ok(());
    }
    bail!("names that the registry does not have for us:\n  {}", faults.join("\n  "))
}

/// The registry's answer to `cargo info`.
enum Answer {
    Free,
    Taken(String),
    Unknown(String),
}

impl Answer {
    fn of(output: &Output) -> Self {
        let error = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            Self::Taken(String::from_utf8_lossy(&output.stdout).into_owned())
        } else if error.contains("error: could not find ") {
            Self::Free
        } else {
            Self::Unknown(error.trim().to_owned())
        }
    }
}

/// Returns the reason why a package cannot have its name. Cargo itself asks for names that differ in `-` and
/// `_` only, which are one name for the registry.
fn fault(name: &str, repository: &str, answer: &Answer) -> Option<String> {
    match answer {
        Answer::Free => None,
        Answer::Taken(info) => {
            let of = info.lines().find_map(|line| line.strip_prefix("repository: "));
            let is_ours = of.is_some_and(|of| of.trim_end_matches('/') == repository.trim_end_matches('/'));
            (!is_ours).then(|| format!("{name}: taken by {}", of.unwrap_or("a package without a repository")))
        }
        Answer::Unknown(error) => Some(format!("{name}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_refused() {
        let ours = "https://example.org/dipc";
        let taken = |repository: &str| Answer::Taken(format!("a #b\ntext\nrepository: {repository}\n"));
        assert_eq!(fault("a", ours, &Answer::Free), None);
        assert_eq!(fault("a", ours, &taken("https://example.org/dipc/")), None);
        let other = fault("a-b", ours, &taken("https://example.org/a_b"));
        assert_eq!(other.as_deref(), Some("a-b: taken by https://example.org/a_b"));
        let nobody = fault("a", ours, &Answer::Taken("a\n".to_owned()));
        assert_eq!(nobody.as_deref(), Some("a: taken by a package without a repository"));
        let offline = fault("a", ours, &Answer::Unknown("error: no network".to_owned()));
        assert_eq!(offline.as_deref(), Some("a: error: no network"));
    }
}
