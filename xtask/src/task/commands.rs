//! `cargo xtask commands`: every command of the diagnostic port, sent to every real runtime.

use anyhow::{Result, bail};

use crate::arguments::CommandsOptions;
use crate::task::golden;
use crate::task::runtimes;
use crate::task::workspace::cargo;

pub(crate) fn run(options: &CommandsOptions) -> Result<()> {
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
