//! The upload of a release.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use super::{Release, checks, dist};
use crate::workspace::{cargo, execute, is_installed};

/// Publishes the packages in the order of their dependencies, then the files with the changelog's section as notes.
pub(super) fn run(release: &Release, dist: &Path) -> Result<()> {
    ensure!(is_installed("gh", "--version"), "gh is not installed (https://cli.github.com)");
    // What is published was built and tested above.
    execute(&mut cargo(["publish", "--workspace", "--exclude", "xtask", "--locked", "--no-verify"]))?;
    let tag = format!("v{}", release.version);
    let notes = checks::changelog(&release.version)?.text;
    let mut create = Command::new("gh");
    create.args(["release", "create", &tag, "--verify-tag", "--title", &tag, "--notes", &notes]);
    create.arg(dist.join(dist::CHECKSUMS));
    create.args(dist::names(dist)?.iter().map(|name| dist.join(name)));
    execute(&mut create)
}
