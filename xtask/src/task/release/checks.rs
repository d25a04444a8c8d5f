//! The checks before anything is built.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use super::{Release, linters, names, publish};
use crate::arguments::ReleaseOptions;
use crate::task::steps::Steps;
use crate::task::workspace::{self, cargo, execute, install_cargo_subcommand};
use crate::task::{licences, packages};

pub(super) fn run(steps: &mut Steps, release: &Release, options: &ReleaseOptions) {
    let version = release.version.as_str();
    steps.run("names of the packages in the registry", names::check);
    if options.publish {
        steps.run("logins for the upload", publish::check_logins);
    }
    steps.run("changelog", || {
        let section = changelog(version)?;
        ensure!(!options.publish || section.date.is_some(), "`## {version}` in CHANGELOG.md has no date");
        Ok(())
    });
    steps.run("versions", || packages::check_version(version));
    steps.run("metadata and files of the packages", packages::check);
    if !options.dry_run {
        steps.run("sources", || check_sources(version, options.publish));
    }
    // If it cannot be installed, the checks that need it are not run.
    let _ = install_cargo_subcommand("deny");
    licences::check(steps);
    licences::check_advisories(steps);
    compare_with_last_release(steps, version);
    linters::run(steps);
}

/// A version's section of the changelog.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// `YYYY-MM-DD`; `None` for a version that has not been released.
    pub(super) date: Option<String>,
    pub(super) text: String,
}

/// Returns the version's section of CHANGELOG.md.
pub(super) fn changelog(version: &str) -> Result<Section> {
    let changelog = fs::read_to_string(workspace::root().join("CHANGELOG.md"))?;
    section(&changelog, version).with_context(|| {
        format!("CHANGELOG.md has no section `## {version} - YYYY-MM-DD` (or `- unreleased`) with text")
    })
}

fn section(changelog: &str, version: &str) -> Option<Section> {
    let mut sections = changelog.split("\n## ").skip(1);
    let section = sections.find(|section| section.split_whitespace().next() == Some(version))?;
    let (heading, text) = section.split_once('\n')?;
    let date = heading.split_once(" - ")?.1.trim();
    let is_date = date.len() == 10 && date.chars().all(|c| c.is_ascii_digit() || c == '-');
    if text.trim().is_empty() || !(is_date || date == "unreleased") {
        return None;
    }
    Some(Section { date: is_date.then(|| date.to_owned()), text: text.trim().to_owned() })
}

/// Checks that the release is made of committed files and, if it is published, of a tagged commit.
fn check_sources(version: &str, publish: bool) -> Result<()> {
    let changes = git(&["status", "--porcelain"])?;
    ensure!(changes.is_empty(), "the sources have changes that are not committed:\n{changes}");
    if publish {
        let tags = git(&["tag", "--points-at", "HEAD"])?;
        ensure!(tags.lines().any(|tag| tag == format!("v{version}")), "the commit has no tag v{version}");
    }
    Ok(())
}

/// Checks that crates with breaking API changes have a version that allows them.
fn compare_with_last_release(steps: &mut Steps, version: &str) {
    const STEP: &str = "API against the last release (cargo semver-checks)";
    let tags = match git(&["tag", "--list", "v*", "--sort=-version:refname"]) {
        Ok(tags) => tags,
        Err(error) => return steps.run(STEP, || Err(error)),
    };
    let Some(last) = tags.lines().find(|tag| *tag != format!("v{version}")) else {
        return steps.run(STEP, || {
            println!("no release to compare with: no tag of an earlier version");
            Ok(())
        });
    };
    steps.run(STEP, || {
        install_cargo_subcommand("semver-checks")?;
        let mut check =
            cargo(["semver-checks", "--workspace", "--exclude", "xtask", "--exclude", "dipc-cli"]);
        execute(check.args(["--baseline-rev", last]))
    });
}

/// Puts exactly the repository's files of a commit into a folder. Files that are already there keep their
/// times, so that cargo does not build them again.
pub(super) fn check_out(commit: &str, folder: &Path) -> Result<()> {
    let git = || {
        let mut git = Command::new("git");
        git.arg("-C").arg(folder);
        git
    };
    if folder.join(".git").exists() {
        execute(git().args(["fetch", "--quiet"]).arg(workspace::root()).arg(commit))?;
        execute(git().args(["clean", "--quiet", "-fdx"]))?;
    } else {
        execute(Command::new("git").args(["clone", "--quiet"]).arg(workspace::root()).arg(folder))?;
    }
    execute(git().args(["checkout", "--quiet", "--force", "--detach", commit]))
}

/// Returns what git prints for the workspace.
pub(super) fn git(arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").current_dir(workspace::root()).args(arguments).output()?;
    if !output.status.success() {
        bail!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str =
        "# Changelog\n\n## 0.2.0 - unreleased\n\n- New\n\n## 0.1.0 - 2026-11-22\n\n- First\n";

    #[test]
    fn a_section_has_its_date_and_its_own_text() {
        let first = Section { date: Some("2026-11-22".to_owned()), text: "- First".to_owned() };
        assert_eq!(section(CHANGELOG, "0.1.0"), Some(first));
        let next = Section { date: None, text: "- New".to_owned() };
        assert_eq!(section(CHANGELOG, "0.2.0"), Some(next));
    }

    #[test]
    fn versions_without_section_date_or_text_are_missing() {
        assert_eq!(section(CHANGELOG, "0.1"), None);
        assert_eq!(section("# Changelog\n\n## 0.1.0\n\n- First\n", "0.1.0"), None);
        assert_eq!(section("# Changelog\n\n## 0.1.0 - soon\n\n- First\n", "0.1.0"), None);
        assert_eq!(section("# Changelog\n\n## 0.1.0 - 2026-11-22\n\n## 0.0.1 - 2026-11-21\n", "0.1.0"), None);
    }
}
