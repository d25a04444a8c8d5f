//! `cargo xtask miri`: the parsers' unit tests in Miri, an interpreter that finds undefined behaviour and
//! unaligned access.

use std::process::{Command, Stdio};

use anyhow::Result;

use crate::arguments::{MIRI_PACKAGES, MiriOptions};
use crate::task::steps::Steps;
use crate::task::workspace::{self, execute};

pub(crate) fn run(options: &MiriOptions) -> Result<()> {
    let mut steps = Steps::new(options.require_all);
    let is_installed = is_installed() || install();
    for package in MIRI_PACKAGES {
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
