//! `cargo xtask miri`: the parsers' unit tests in Miri, an interpreter that finds undefined behaviour and unaligned access.

use std::process::{Command, Stdio};

use anyhow::Result;
use clap::Args;

use crate::steps::Steps;
use crate::workspace::{self, execute};

#[derive(Args)]
pub(crate) struct Options {
    /// Only these crates [default: all]
    #[arg(value_parser = PACKAGES)]
    packages: Vec<String>,
    /// Fails where Miri cannot be installed instead of reporting it
    #[arg(long)]
    require_all: bool,
}

/// The crates that neither speak with processes nor need a C library. Their own code has no `unsafe`; that of their dependencies
/// (hashbrown, memchr) is reached with their data. Not among them: gcdump, some of whose tests fill tables to their limits, more than ten
/// minutes each here; clr-counters, whose tests expect exact logarithms and powers, which Miri makes inexact on purpose; clr-conditions,
/// which has no unit tests.
const PACKAGES: [&str; 5] = ["dipc-wire", "nettrace", "nettrace-writer", "clr-events", "portable-pdb"];

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut steps = Steps::new(options.require_all);
    let is_installed = is_installed() || install();
    for package in PACKAGES {
        if !options.packages.is_empty() && !options.packages.iter().any(|chosen| chosen == package) {
            continue;
        }
        let name = format!("unit tests of {package} in Miri");
        if is_installed {
            steps.run(&name, || execute(&mut command(&["test", "--package", package, "--lib"])));
        } else {
            steps.not_run(&name, "`rustup toolchain install nightly --component miri,rust-src`");
        }
    }
    steps.finish()
}

fn is_installed() -> bool {
    let status = command(&["--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Installs Miri, which only nightly toolchains have. Without a network it fails.
fn install() -> bool {
    let mut install = Command::new("rustup");
    install.args(["toolchain", "install", "nightly", "--profile", "minimal", "--component", "miri,rust-src"]);
    if let Err(error) = execute(&mut install) {
        println!("{error:#}");
    }
    is_installed()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo", "miri"]).args(arguments).current_dir(workspace::root());
    // The cargo that runs this program is another toolchain's.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    // Tests read files. An interpreted test is some hundred times slower.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation").env("PROPTEST_CASES", "4");
    command
}
