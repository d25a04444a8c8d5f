//! Licences, bans and advisories of the dependencies, by cargo-deny (see `deny.toml`).

use crate::task::steps::Steps;
use crate::task::workspace::{cargo, execute, has_cargo_subcommand};

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

/// Checks for known vulnerabilities, which needs the advisory database.
pub(crate) fn check_advisories(steps: &mut Steps) {
    const STEP: &str = "advisories (cargo deny)";
    if !has_cargo_subcommand("deny") {
        return steps.not_run(STEP, "cargo-deny is not installed (cargo install cargo-deny --locked)");
    }
    if let Err(error) = execute(&mut cargo(["deny", "fetch", "db"])) {
        let reason =
            format!("the advisory database could not be fetched, so nothing was checked ({error:#})");
        return steps.not_run(STEP, &reason);
    }
    steps.run(STEP, || execute(&mut cargo(["deny", "--locked", "check", "advisories"])));
}
