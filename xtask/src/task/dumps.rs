//! `cargo xtask dumps`: core dumps of programs whose state is known, and how much of it is found in them.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::arguments::{DumpsOptions, RUNTIMES};
use crate::task::workspace::{self, cargo, execute};

pub(crate) fn run(options: &DumpsOptions) -> Result<()> {
    let target = workspace::target()?;
    execute(&mut cargo(["build", "-p", "dipc-cli"]))?;
    let runtimes = std::env::var_os(RUNTIMES).map_or_else(|| target.join("runtimes"), PathBuf::from);
    let mut script = Command::new("python3");
    script
        .arg(workspace::root().join("xtask/dumps/dumps.py"))
        .arg(target.join("debug/dipc"))
        .arg(runtimes)
        .arg(workspace::root().join("testdata/workload"))
        .arg(target.join("dumps"));
    execute(script.args(&options.versions))
}
