//! `cargo xtask msrv`: the oldest Rust that the crates promise to build with.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::packages::{array, metadata, text};
use crate::workspace::{execute, root, target};

pub(crate) fn run() -> Result<()> {
    let metadata = metadata(&["--no-deps"])?;
    let version = array(&metadata["packages"])
        .first()
        .map(|package| text(&package["rust_version"]))
        .unwrap_or_default();
    ensure!(!version.is_empty(), "Cargo.toml states no rust-version");
    execute(Command::new("rustup").args(["toolchain", "install", version, "--profile", "minimal"]))?;
    let mut test = Command::new("rustup");
    test.args([
        "run",
        version,
        "cargo",
        "test",
        "--workspace",
        "--all-features",
        "--all-targets",
        "--locked",
    ]);
    test.arg("--target-dir").arg(target()?.join("msrv"));
    // The cargo that runs this program is of another version.
    execute(test.current_dir(root()).env_remove("CARGO").env_remove("RUSTC"))
}
