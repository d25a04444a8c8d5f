//! `cargo xtask golden`: the tests that compare output with the text committed next to its input.

mod coverage;

use std::process::Command;

use anyhow::Result;

use crate::arguments::GoldenOptions;
use crate::task::workspace::{cargo, execute};

/// The environment variable that makes golden tests rewrite their expectations.
const UPDATE: &str = "DIPC_UPDATE_GOLDEN";

pub(crate) fn run(options: &GoldenOptions) -> Result<()> {
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
