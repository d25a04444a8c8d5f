//! A Rust toolchain for a target.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::task::workspace::{self, execute};

pub(crate) struct Toolchain {
    /// The folder of `cargo` and `rustc`; `None` for the toolchain that runs this program.
    folder: Option<PathBuf>,
    /// True if the standard library is built from its sources.
    builds_std: bool,
}

impl Toolchain {
    /// Returns a toolchain that has the target's standard library, or else its sources: the toolchain that
    /// runs this program, or the distribution's.
    pub(crate) fn for_target(target: &str) -> Result<Self> {
        let candidates = || [None, Some(PathBuf::from("/usr/bin"))].into_iter();
        let sysroots = || candidates().filter_map(|folder| Some((sysroot(folder.as_deref())?, folder)));
        let with_std = sysroots().find(|(sysroot, _)| has_std(sysroot, target));
        if let Some((_, folder)) = with_std {
            return Ok(Self { folder, builds_std: false });
        }
        let with_sources = sysroots().find(|(sysroot, _)| sysroot.join(STD_SOURCES).exists());
        if let Some((_, folder)) = with_sources {
            return Ok(Self { folder, builds_std: true });
        }
        bail!(
            "no Rust toolchain here has the standard library of {target}, or its sources: `rustup target add {target}`, \
             `rustup component add rust-src`, or on Debian `apt-get install rustc-web cargo-web rust-web-src`"
        )
    }

    /// Returns a toolchain as `for_target` does, after rustup has installed the standard library if every
    /// toolchain lacks it.
    pub(crate) fn install_for_target(target: &str) -> Result<Self> {
        let present = sysroot(None).is_some_and(|sysroot| has_std(&sysroot, target));
        if !present && workspace::is_installed("rustup", "--version") {
            // Without a network it fails; the sources of a standard library may be there.
            if let Err(error) = execute(Command::new("rustup").args(["target", "add", target])) {
                println!("{error:#}");
            }
        }
        Self::for_target(target)
    }

    /// Returns the command `cargo SUBCOMMAND --target TARGET`, with a target folder that all these commands
    /// share.
    pub(crate) fn cargo(&self, subcommand: &str, target: &str) -> Command {
        let mut command = self.command(subcommand, target);
        if let Ok(folder) = Self::target_folder() {
            command.arg("--target-dir").arg(folder);
        }
        command
    }

    /// Returns the command `cargo SUBCOMMAND --target TARGET`.
    pub(crate) fn command(&self, subcommand: &str, target: &str) -> Command {
        let mut command = workspace::cargo([]);
        if let Some(folder) = &self.folder {
            command = Command::new(folder.join("cargo"));
            command.current_dir(workspace::root()).env("RUSTC", folder.join("rustc"));
            command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
            let path = env::var_os("PATH").unwrap_or_default();
            let path = env::join_paths(std::iter::once(folder.clone()).chain(env::split_paths(&path)));
            command.env("PATH", path.unwrap_or_default());
        }
        command.args([subcommand, "--quiet", "--target", target]);
        if self.builds_std {
            // `-Zbuild-std` needs a nightly toolchain, or this variable.
            let libraries = if target.contains("-none-") { "-Zbuild-std=core,alloc" } else { "-Zbuild-std" };
            command.arg(libraries).env("RUSTC_BOOTSTRAP", "1");
        }
        command
    }

    /// Returns the folder of the sources that the standard library was, or is, built from.
    pub(crate) fn std_sources(&self) -> Option<PathBuf> {
        Some(sysroot(self.folder.as_deref())?.join("lib/rustlib/src/rust"))
    }

    /// Returns the command of the compiler.
    pub(crate) fn rustc(&self) -> Command {
        rustc(self.folder.as_deref())
    }

    /// Returns the target folder of the builds of `cargo xtask cross`.
    pub(crate) fn target_folder() -> Result<PathBuf> {
        Ok(workspace::target()?.join("cross"))
    }
}

const STD_SOURCES: &str = "lib/rustlib/src/rust/library/Cargo.lock";

fn rustc(folder: Option<&Path>) -> Command {
    match folder {
        // Cargo sets RUSTC for build scripts only; PATH has the same compiler.
        None => Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())),
        Some(folder) => {
            let mut command = Command::new(folder.join("rustc"));
            command.env_remove("RUSTUP_TOOLCHAIN");
            command
        }
    }
}

fn sysroot(folder: Option<&Path>) -> Option<PathBuf> {
    let mut command = rustc(folder);
    let output =
        command.args(["--print", "sysroot"]).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|path| PathBuf::from(path.trim_end()))
}

fn has_std(sysroot: &Path, target: &str) -> bool {
    let libraries = std::fs::read_dir(sysroot.join("lib/rustlib").join(target).join("lib"));
    libraries.is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("liballoc-"))
    })
}

/// Returns the first of the programs that is installed.
pub(crate) fn program(candidates: &[&str], install: &str) -> Result<PathBuf> {
    let found = candidates.iter().find(|program| workspace::is_installed(program, "--version"));
    found.map(PathBuf::from).with_context(|| format!("{} is not installed ({install})", candidates[0]))
}
