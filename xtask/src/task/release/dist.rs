//! The folder of a release's files, and their checksums.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::Build;
use crate::task::checksum::sha256;

/// The file with the checksums of all others.
pub(super) const CHECKSUMS: &str = "SHA256SUMS";

/// Checks that two builds have the same files with the same bytes.
pub(super) fn compare(first: &Build<'_>, second: &Build<'_>) -> Result<()> {
    let names = names(&first.dist)?;
    let others = self::names(&second.dist)?;
    ensure!(names == others, "the first build has {names:?}, the second {others:?}");
    let mut different = Vec::new();
    for name in &names {
        let sums = [&first.dist, &second.dist].map(|dist| sha256(&dist.join(name)));
        let [one, other] = sums;
        let (one, other) = (one?, other?);
        println!("{one}  {other}  {name}");
        if one != other {
            different.push(name.as_str());
        }
    }
    ensure!(different.is_empty(), "these differ between the builds: {}", different.join(", "));
    Ok(())
}

/// Writes and prints the checksums, after the files' sizes.
pub(super) fn write_checksums(dist: &Path) -> Result<()> {
    let mut sums = String::new();
    for name in names(dist)? {
        let file = dist.join(&name);
        let sum = sha256(&file)?;
        println!("{:>10}  {sum}  {name}", fs::metadata(&file)?.len());
        writeln!(sums, "{sum}  {name}")?;
    }
    fs::write(dist.join(CHECKSUMS), sums)?;
    Ok(())
}

/// Returns the names of the release's files, without that of the checksums.
pub(super) fn names(dist: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(dist)? {
        let name = entry?.file_name().into_string().ok().context("the name of a file")?;
        if name != CHECKSUMS {
            names.insert(name);
        }
    }
    Ok(names)
}
