//! `cargo xtask commands`: every command of the diagnostic port, sent to every real runtime.

use anyhow::{Result, bail};
use clap::Args;

use crate::golden;
use crate::runtimes;
use crate::workspace::cargo;

#[derive(Args)]
pub(crate) struct Options {
    /// Rewrites testdata/commands and the table in the README of dipc-client; look at the difference before committing it
    #[arg(long)]
    update: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = runtimes::folder(None)?;
    for setup in runtimes::set_up_all(&folder, None) {
        if let Err(error) = setup.path {
            bail!("{} could not be set up: {error:#}", setup.runtime.name);
        }
    }
    let mut test = cargo(["test", "-p", "dipc-client", "--test", "commands"]);
    test.env(runtimes::RUNTIMES, &folder).env(runtimes::REQUIRE_RUNTIMES, "1");
    golden::compare(&mut test, options.update, &["testdata/commands", "crates/dipc-client/README.md"])
}
