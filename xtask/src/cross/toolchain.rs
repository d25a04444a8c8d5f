//! A Rust compiler that can build for a target.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::workspace;

pub(super) struct Toolchain {
    /// The folder of `cargo` and `rustc`; none for those that run us.
    folder: Option<PathBuf>,
    /// There is no standard library for the target: it is built from its sources.
    builds_std: bool,
}

impl Toolchain {
    /// The one that runs us, if it has the target's standard library or the sources to build it from; else a
    /// distribution's, which may have the sources where rustup's has not.
    pub(super) fn for_target(target: &str) -> Result<Self> {
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

    /// `cargo SUBCOMMAND --target TARGET`, with a target folder apart from that of this system's builds.
    pub(super) fn cargo(&self, subcommand: &str, target: &str) -> Command {
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
        if let Ok(folder) = Self::target_folder() {
            command.arg("--target-dir").arg(folder);
        }
        if self.builds_std {
            // `-Zbuild-std` is for nightly toolchains, and those told to be like one.
            let libraries = if target.contains("-none-") { "-Zbuild-std=core,alloc" } else { "-Zbuild-std" };
            command.arg(libraries).env("RUSTC_BOOTSTRAP", "1");
        }
        command
    }

    /// Where `cargo` of this toolchain puts what it builds.
    pub(super) fn target_folder() -> Result<PathBuf> {
        Ok(workspace::target()?.join("cross"))
    }
}

const STD_SOURCES: &str = "lib/rustlib/src/rust/library/Cargo.lock";

fn sysroot(folder: Option<&Path>) -> Option<PathBuf> {
    let mut command = match folder {
        // cargo names the compiler that goes with it only to build scripts; the same PATH leads to it.
        None => Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())),
        Some(folder) => {
            let mut command = Command::new(folder.join("rustc"));
            command.env_remove("RUSTUP_TOOLCHAIN");
            command
        }
    };
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

/// The first of some programs that is installed.
pub(super) fn program(candidates: &[&str], install: &str) -> Result<PathBuf> {
    let found = candidates.iter().find(|program| workspace::is_installed(program, "--version"));
    found.map(PathBuf::from).with_context(|| format!("{} is not installed ({install})", candidates[0]))
}
