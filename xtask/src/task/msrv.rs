//! `cargo xtask msrv`: the oldest Rust that the crates promise to build with.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::task::packages::{array, metadata, text};
use crate::task::steps::Steps;
use crate::task::workspace::{at_lowest_priority, execute, root, target};

pub(crate) fn run() -> Result<()> {
    let version = version()?;
    install(&version)?;
    execute(cargo(&version)?.args(["test", "--workspace", "--all-features", "--all-targets", "--locked"]))
}

/// The step of `cargo xtask test` that checks the types of crates and programs. Newer compilers take
/// expressions that this one refuses.
pub(crate) fn check(steps: &mut Steps) {
    const STEP: &str = "types with the oldest Rust";
    let version = version();
    if let Err(error) = version.as_ref().map_or(Ok(()), |version| install(version)) {
        return steps.not_run(STEP, &format!("{error:#}"));
    }
    steps.run(STEP, || {
        let mut check = cargo(&version?)?;
        check.args(["check", "--workspace", "--all-features", "--lib", "--bins", "--locked"]);
        execute(&mut at_lowest_priority(&check))
    });
}

/// The version that Cargo.toml states.
fn version() -> Result<String> {
    let metadata = metadata(&["--no-deps"])?;
    let version = array(&metadata["packages"]).first().map(|package| text(&package["rust_version"]));
    let version = version.unwrap_or_default();
    ensure!(!version.is_empty(), "Cargo.toml states no rust-version");
    Ok(version.to_owned())
}

fn install(version: &str) -> Result<()> {
    execute(Command::new("rustup").args(["toolchain", "install", version, "--profile", "minimal"]))
}

fn cargo(version: &str) -> Result<Command> {
    let mut cargo = Command::new("rustup");
    cargo.args(["run", version, "cargo"]).env("CARGO_TARGET_DIR", target()?.join("msrv"));
    // The cargo that runs this program is of another version.
    cargo.current_dir(root()).env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN");
    Ok(cargo)
}
