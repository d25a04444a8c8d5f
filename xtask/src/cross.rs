//! `cargo xtask cross`: what can be checked of other systems from this one.

mod toolchain;
mod wine;

use anyhow::Result;
use clap::Args;

use self::toolchain::Toolchain;
use crate::steps::Steps;
use crate::test::NO_STD;
use crate::workspace::execute;

#[derive(Args)]
pub(crate) struct Options {
    /// Only these targets [default: all]
    #[arg(value_parser = TARGETS)]
    targets: Vec<String>,
    /// Also run what was built for Windows under Wine: the tests of dipc-transport, and dipc on a real .NET for Windows
    #[arg(long)]
    wine: bool,
}

const WINDOWS: &str = "x86_64-pc-windows-gnu";
/// A machine without an operating system, for which there is no standard library: what builds for it needs none.
const BARE: &str = "thumbv7em-none-eabi";
const TARGETS: [&str; 5] =
    [WINDOWS, "aarch64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-apple-darwin", BARE];

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut steps = Steps::default();
    for target in TARGETS {
        if !options.targets.is_empty() && !options.targets.iter().any(|chosen| chosen == target) {
            continue;
        }
        let name = format!("type check for {target}");
        match Toolchain::for_target(target) {
            Ok(toolchain) if target == BARE => steps.run(&name, || without_std(&toolchain)),
            Ok(toolchain) => steps.run(&name, || check(&toolchain, target)),
            Err(missing) => steps.not_run(&name, &missing.to_string()),
        }
    }
    if options.wine {
        wine::run(&mut steps, WINDOWS);
    }
    steps.finish()
}

/// Everything but xtask, which runs where one develops. What else is needed for tests and benches may want a C compiler
/// for the target; the tests of dipc-transport do not, and have to know every system.
fn check(toolchain: &Toolchain, target: &str) -> Result<()> {
    let mut all = toolchain.cargo("check", target);
    execute(all.args(["--workspace", "--exclude", "xtask", "--lib", "--bins"]))?;
    execute(toolchain.cargo("check", target).args(["-p", "dipc-transport", "--tests", "--examples"]))
}

/// The crates that promise to need no more than an allocator.
fn without_std(toolchain: &Toolchain) -> Result<()> {
    for package in NO_STD {
        execute(toolchain.cargo("build", BARE).args(["-p", package, "--no-default-features", "--lib"]))?;
    }
    Ok(())
}
