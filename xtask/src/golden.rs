//! `cargo xtask golden`: the tests that compare a reading with the text committed beside its input.

use anyhow::Result;
use clap::Args;

use crate::workspace::{cargo, execute};

/// The one switch that makes golden tests rewrite what they expect.
pub(crate) const UPDATE: &str = "DIPC_UPDATE_GOLDEN";

#[derive(Args)]
pub(crate) struct Options {
    /// Rewrites the expectations; look at the difference before committing it
    #[arg(long)]
    update: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut test = cargo(["test", "--workspace", "--test", "golden*", "--no-fail-fast"]);
    if options.update {
        test.env(UPDATE, "1");
    } else {
        test.env_remove(UPDATE);
    }
    execute(&mut test)?;
    if options.update {
        execute(std::process::Command::new("git").args(["status", "--short", "testdata"]))?;
    }
    Ok(())
}
