//! The bill of materials of a program: every dependency with version, checksum and licence (CycloneDX).

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Result, ensure};

use super::Build;
use super::programs::{FLEET, Program};
use crate::task::packages::{array, text};
use crate::task::workspace::{cargo, execute, install_cargo_subcommand};

/// Returns the document of a program that cargo-cyclonedx makes, without names of this machine's folders.
pub(super) fn document(build: &Build<'_>, program: &Program) -> Result<Vec<u8>> {
    install_cargo_subcommand("cyclonedx")?;
    let mut command = cargo(["cyclonedx", "--quiet", "--format", "json", "--spec-version", "1.5"]);
    command.args(["--target", "all", "--override-filename", program.name, "--features", program.features]);
    command.args(["--manifest-path", "crates/dipc-cli/Cargo.toml"]);
    command.current_dir(&build.sources).env("SOURCE_DATE_EPOCH", build.release.time.to_string());
    execute(&mut command)?;
    let file = build.sources.join("crates/dipc-cli").join(program.name).with_extension("json");
    let document = fs::read_to_string(file)?;
    let document = document.replace(&*build.sources.to_string_lossy(), "/dipc");
    let parsed: serde_json::Value = serde_json::from_str(&document)?;
    let components: BTreeSet<_> =
        array(&parsed["components"]).iter().map(|component| text(&component["name"])).collect();
    println!("{}: {} components", program.name, components.len());
    ensure!(components.contains("clap"), "the bill of materials of {} has no clap", program.name);
    // Of these, the features decide.
    for name in ["ring", "object_store", "zstd-sys"] {
        ensure!(
            components.contains(name) == (program.name == FLEET.name),
            "the bill of materials of {} is that of other features: {name}",
            program.name
        );
    }
    Ok(document.into_bytes())
}
