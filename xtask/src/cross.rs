//! `cargo xtask cross`: checks for other systems.

mod browser;
mod emulated;
pub(crate) mod wine;

use anyhow::Result;
use clap::Args;

use crate::steps::Steps;
use crate::test::NO_STD;
use crate::toolchain::Toolchain;
use crate::workspace::execute;

#[cfg(test)]
pub(crate) use self::emulated::linkers;

#[derive(Args)]
pub(crate) struct Options {
    /// Only these targets [default: all]
    #[arg(value_parser = TARGETS)]
    targets: Vec<String>,
    /// Also run Windows programs under Wine: the tests of dipc-transport, and dipc on a real .NET for Windows
    #[arg(long)]
    wine: bool,
    /// Fails where a target or a tool is missing (`cargo xtask setup cross`) instead of reporting it
    #[arg(long)]
    require_all: bool,
}

const WINDOWS: &str = "x86_64-pc-windows-gnu";
/// A target without an operating system, and so without a standard library.
const BARE_METAL: &str = "thumbv7em-none-eabi";
/// WebAssembly without a host's interface, as in a browser.
const BROWSER: &str = "wasm32-unknown-unknown";
const TARGETS: [&str; 8] = [
    WINDOWS,
    "aarch64-unknown-linux-gnu",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "i686-unknown-linux-gnu",
    "s390x-unknown-linux-gnu",
    BROWSER,
    BARE_METAL,
];

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut steps = Steps::new(options.require_all);
    let is_chosen =
        |target: &str| options.targets.is_empty() || options.targets.iter().any(|chosen| chosen == target);
    for target in TARGETS.into_iter().filter(|target| is_chosen(target)) {
        let name = format!("type check for {target}");
        match Toolchain::install_for_target(target) {
            Ok(toolchain) if target == BARE_METAL => steps.run(&name, || without_std(&toolchain)),
            Ok(toolchain) if target == BROWSER => browser::run(&mut steps, &toolchain, target),
            Ok(toolchain) => steps.run(&name, || check(&toolchain, target)),
            Err(missing) => steps.not_run(&name, &missing.to_string()),
        }
    }
    emulated::run(&mut steps, is_chosen);
    if options.wine {
        wine::run(&mut steps, WINDOWS);
    }
    steps.finish()
}

/// Checks the libraries and programs except xtask, which runs on the developer's system, and the tests of dipc-transport, which has
/// code for each system. Dependencies of other tests may need a C compiler for the target.
fn check(toolchain: &Toolchain, target: &str) -> Result<()> {
    let mut all = toolchain.cargo("check", target);
    execute(all.args(["--workspace", "--exclude", "xtask", "--lib", "--bins"]))?;
    execute(toolchain.cargo("check", target).args(["-p", "dipc-transport", "--tests", "--examples"]))
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
