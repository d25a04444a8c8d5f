//! `cargo xtask cross`: checks for other systems.

mod browser;
mod emulated;
pub(crate) mod wine;

use anyhow::Result;

use crate::arguments::{BARE_METAL, BROWSER, CROSS_TARGETS, CrossOptions, WINDOWS};
use crate::task::steps::Steps;
use crate::task::toolchain::Toolchain;
use crate::task::workspace::{NO_STD, at_lowest_priority, execute};

#[cfg(test)]
pub(crate) use self::emulated::linkers;

pub(crate) fn run(options: &CrossOptions) -> Result<()> {
    let mut steps = Steps::new(options.require_all);
    let is_chosen =
        |target: &str| options.targets.is_empty() || options.targets.iter().any(|chosen| chosen == target);
    for target in CROSS_TARGETS.into_iter().filter(|target| is_chosen(target)) {
        type_check(&mut steps, target);
    }
    emulated::run(&mut steps, is_chosen);
    if options.wine {
        wine::run(&mut steps, WINDOWS);
    }
    steps.finish()
}

/// Type-checks for a target, if its standard library is available.
pub(crate) fn type_check(steps: &mut Steps, target: &str) {
    let name = format!("type check for {target}");
    match Toolchain::install_for_target(target) {
        Ok(toolchain) if target == BARE_METAL => steps.run(&name, || without_std(&toolchain)),
        Ok(toolchain) if target == BROWSER => browser::run(steps, &toolchain, target),
        Ok(toolchain) => steps.run(&name, || check(&toolchain, target)),
        Err(missing) => steps.not_run(&name, &missing.to_string()),
    }
}

/// Checks the libraries and programs except xtask, which runs on the developer's system, and the tests of
/// dipc-transport, which has code for each system. Dependencies of other tests may need a C compiler for the
/// target.
fn check(toolchain: &Toolchain, target: &str) -> Result<()> {
    let mut all = toolchain.cargo("check", target);
    all.args(["--workspace", "--exclude", "xtask", "--lib", "--bins"]);
    execute(&mut at_lowest_priority(&all))?;
    let mut transport = toolchain.cargo("check", target);
    transport.args(["-p", "dipc-transport", "--tests", "--examples"]);
    execute(&mut at_lowest_priority(&transport))
}

/// Builds the crates that need only an allocator.
fn without_std(toolchain: &Toolchain) -> Result<()> {
    for package in NO_STD {
        execute(toolchain.cargo("build", BARE_METAL).args([
            "-p",
            package,
            "--no-default-features",
            "--lib",
        ]))?;
    }
    Ok(())
}
