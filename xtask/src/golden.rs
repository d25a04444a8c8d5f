//! `cargo xtask golden`: the tests that compare output with the text committed beside its input.

mod coverage;

use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::workspace::{cargo, execute};

/// The environment variable that makes golden tests rewrite their expectations.
const UPDATE: &str = "DIPC_UPDATE_GOLDEN";

#[derive(Args)]
pub(crate) struct Options {
    /// Rewrites the expectations; look at the difference before committing it
    #[arg(long)]
    update: bool,
    /// Lists the event types, type codes, block kinds, versions and commands that no golden has, with the reasons
    #[arg(long, conflicts_with = "update")]
    coverage: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if options.coverage {
        return coverage::run();
    }
    let mut test = cargo(["test", "--workspace", "--test", "golden*", "--no-fail-fast"]);
    compare(&mut test, options.update, &["testdata"])
}

/// Runs tests that compare their output with committed files, or rewrite these; then lists the changed files.
pub(crate) fn compare(test: &mut Command, update: bool, committed: &[&str]) -> Result<()> {
    if update {
        test.env(UPDATE, "1");
    } else {
        test.env_remove(UPDATE);
    }
    execute(test)?;
    if update {
        execute(Command::new("git").args(["status", "--short"]).args(committed))?;
    }
    Ok(())
}
