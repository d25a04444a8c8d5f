//! Licences, bans and advisories of the dependencies, by cargo-deny (see `deny.toml`).

use crate::steps::Steps;
use crate::workspace::{cargo, execute, has_cargo_subcommand};

const STEP: &str = "dependencies (cargo deny)";

/// Advisories are left out: their database is downloaded, and this must work offline.
const CHECKS: [&str; 3] = ["licenses", "bans", "sources"];

pub(crate) fn check(steps: &mut Steps) {
    if !has_cargo_subcommand("deny") {
        steps.not_run(
            STEP,
            "cargo-deny is not installed (cargo install cargo-deny --locked, two minutes or so)",
        );
        return;
    }
    steps.run(STEP, || {
        for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
            let mut deny = cargo(["deny", "--manifest-path", manifest, "--locked", "check"]);
            execute(deny.args(CHECKS))?;
        }
        Ok(())
    });
}
