//! `cargo xtask sampling`: the kernel's samples beside what others measure.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::arguments::{RUNTIMES, SamplingOptions};
use crate::task::workspace::{self, cargo, execute};

pub(crate) fn run(options: &SamplingOptions) -> Result<()> {
    let target = workspace::target()?;
    let mut build = cargo(["build", "-p", "dipc-cli"]);
    execute(if options.release { build.arg("--release") } else { &mut build })?;
    let profile = if options.release { "release" } else { "debug" };
    let runtimes = std::env::var_os(RUNTIMES).map_or_else(|| target.join("runtimes"), PathBuf::from);
    let mut script = Command::new("python3");
    script
        .arg(workspace::root().join("xtask/sampling/sampling.py"))
        .arg(target.join(profile).join("dipc"))
        .arg(runtimes)
        .arg(workspace::root().join("testdata/workload"))
        .arg(target.join("sampling"));
    execute(script.args(&options.parts))
}
