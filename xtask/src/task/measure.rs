//! Chores that measure `dipc` on real runtimes: scripts in Python, which print tables.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::arguments::RUNTIMES;
use crate::task::workspace::{self, cargo, execute};

/// Builds `dipc`, and runs the script `xtask/NAME/NAME.py` with it. Its files are in `target/NAME`.
pub(crate) fn run(
    name: &str,
    release: bool,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<()> {
    let target = workspace::target()?;
    let mut build = cargo(["build", "-p", "dipc-cli"]);
    execute(if release { build.arg("--release") } else { &mut build })?;
    let profile = if release { "release" } else { "debug" };
    let runtimes = std::env::var_os(RUNTIMES).map_or_else(|| target.join("runtimes"), PathBuf::from);
    let mut script = Command::new("python3");
    script
        .arg(workspace::root().join(format!("xtask/{name}/{name}.py")))
        .arg(target.join(profile).join("dipc"))
        .arg(runtimes)
        .arg(workspace::root().join("testdata/workload"))
        .arg(target.join(name));
    execute(script.args(arguments))
}
