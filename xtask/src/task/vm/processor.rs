//! The processors of machines: that of this machine, and arm64.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::debian::Packages;
use crate::task::workspace::execute;

/// A processor that QEMU emulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Processor {
    X86_64,
    Arm64,
}

/// The packages of the root of an arm64 machine: a shell, and the libraries that .NET needs to start.
const PACKAGES: [&str; 5] = ["busybox-static", "libc6", "libgcc-s1", "libstdc++6", "zlib1g"];
/// The folders that `init.sh` mounts something on.
const MOUNTED: [&str; 7] = ["dev", "mnt", "proc", "run", "sys", "tmp", "workspace"];
/// Commands of busybox.
const COMMANDS: [&str; 20] = [
    "cat", "cp", "echo", "env", "grep", "gzip", "head", "kill", "ls", "mkdir", "mkfifo", "mount", "ps", "rm",
    "sh", "sleep", "sync", "tar", "uname", "wc",
];

impl Processor {
    /// The emulator, and its Debian package.
    pub(super) const fn emulator(self) -> (&'static str, &'static str) {
        match self {
            Self::X86_64 => ("qemu-system-x86_64", "qemu-system-x86"),
            Self::Arm64 => ("qemu-system-aarch64", "qemu-system-arm"),
        }
    }

    /// The kind of board, which only arm64 has to choose.
    pub(super) const fn board(self) -> &'static [&'static str] {
        match self {
            Self::X86_64 => &[],
            Self::Arm64 => &["-machine", "virt"],
        }
    }

    /// The model of the processor: all that QEMU emulates. Its vector registers of arm64 (SVE) would have
    /// 2,048 bits, which no processor has, and with which the runtime of .NET 10.0.9 ends in an access
    /// violation after some sessions.
    pub(super) const fn model(self) -> &'static str {
        match self {
            Self::X86_64 => "max",
            Self::Arm64 => "max,sve-max-vq=1",
        }
    }

    /// The options of the kernel: its console, and on x86-64 no check of timers. On a busy machine a timer of
    /// an emulated processor is late, which the kernel takes for a broken one.
    pub(super) const fn kernel_options(self) -> &'static str {
        match self {
            Self::X86_64 => "console=ttyS0 no_timer_check",
            Self::Arm64 => "console=ttyAMA0",
        }
    }

    /// The packages of the processor.
    pub(super) fn packages(self, folder: &Path) -> Result<Packages> {
        match self {
            Self::X86_64 => Ok(Packages::own(folder)),
            Self::Arm64 => Packages::arm64(folder),
        }
    }

    /// Returns the folder that becomes the root: that of this machine, or one made of packages.
    pub(super) fn root(self, folder: &Path) -> Result<PathBuf> {
        match self {
            Self::X86_64 => Ok(PathBuf::from("/")),
            Self::Arm64 => arm64_root(folder),
        }
    }
}

/// Makes the root of an arm64 machine, unless an earlier run did.
fn arm64_root(folder: &Path) -> Result<PathBuf> {
    let root = folder.join("arm64-root");
    if root.exists() {
        return Ok(root);
    }
    let packages = Packages::arm64(folder)?;
    let making = tempfile::Builder::new().prefix(".making-").tempdir_in(folder)?;
    let made = making.path().join("root");
    for name in MOUNTED.into_iter().chain(["usr/bin", "usr/lib"]) {
        fs::create_dir_all(made.join(name))?;
    }
    for package in PACKAGES {
        let content = packages.unpacked(package)?;
        execute(Command::new("cp").arg("-a").arg(content.join(".")).arg(&made))?;
    }
    // Packages of Debian 13 have them below /usr alone.
    for name in ["bin", "lib"] {
        if !made.join(name).exists() {
            symlink(Path::new("usr").join(name), made.join(name))?;
        }
    }
    for command in COMMANDS {
        symlink("busybox", made.join("bin").join(command))?;
    }
    fs::rename(&made, &root)?;
    Ok(root)
}
