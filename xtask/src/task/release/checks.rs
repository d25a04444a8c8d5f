//! The checks before anything is built.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail, ensure};

use super::changelog::changelog;
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
