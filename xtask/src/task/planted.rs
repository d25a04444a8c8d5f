//! `cargo xtask planted`: what `dipc diff` finds of a slower method that was planted.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::arguments::{PlantedOptions, RUNTIMES};
use crate::task::workspace::{self, cargo, execute};

pub(crate) fn run(options: &PlantedOptions) -> Result<()> {
    let target = workspace::target()?;
    execute(&mut cargo(["build", "-p", "dipc-cli", "--release"]))?;
    let runtimes = std::env::var_os(RUNTIMES).map_or_else(|| target.join("runtimes"), PathBuf::from);
    let mut script = Command::new("python3");
    script
        .arg(workspace::root().join("xtask/planted/planted.py"))
        .arg(target.join("release/dipc"))
        .arg(runtimes)
        .arg(workspace::root().join("testdata/workload"))
        .arg(target.join("planted"));
    execute(script.args([options.runs, options.pairs].map(|number| number.to_string())))
}
