//! The bill of materials of the program: every dependency with version, checksum and licence (CycloneDX).

use std::fs;

use anyhow::{Result, ensure};

use super::Build;
use crate::packages::array;
use crate::workspace::{cargo, execute, install_cargo_subcommand};

/// Returns the document that cargo-cyclonedx makes, without names of this machine's folders.
pub(super) fn document(build: &Build<'_>) -> Result<Vec<u8>> {
    install_cargo_subcommand("cyclonedx")?;
    let mut command = cargo(["cyclonedx", "--quiet", "--format", "json", "--spec-version", "1.5"]);
    command.args(["--target", "all", "--override-filename", "dipc"]);
    command.current_dir(&build.sources).env("SOURCE_DATE_EPOCH", build.release.time.to_string());
    execute(&mut command)?;
    let document = fs::read_to_string(build.sources.join("crates/dipc-cli/dipc.json"))?;
    let document = document.replace(&*build.sources.to_string_lossy(), "/dipc");
    let parsed: serde_json::Value = serde_json::from_str(&document)?;
    let components = array(&parsed["components"]).len();
    ensure!(components > 20, "the bill of materials has {components} components");
    println!("{components} components");
    Ok(document.into_bytes())
}
