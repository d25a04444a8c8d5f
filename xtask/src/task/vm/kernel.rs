//! Kernels of machines: Debian's as they are, and one that is built from Debian's source with user_events.

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context as _, Result, bail, ensure};

use super::debian::Packages;
use super::missing;
use super::processor::Processor;
use crate::task::checksum::sha256;
use crate::task::workspace::{self, at_lowest_priority, execute};

/// The package with the source, of Debian 12 (security updates) and 13.
const SOURCE: &str = "linux-source-6.12";

/// The programs and headers that the build needs next to a C compiler, each with its package.
pub(super) const TOOLS: [(&str, &str); 5] = [
    ("make", "make"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("/usr/include/libelf.h", "libelf-dev"),
];

/// The origin of a kernel.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// Built with the options of `xtask/vm/kernel.config`.
    Built,
    /// The newest package of a series.
    Debian { series: &'a str, processor: Processor },
}

/// A kernel that QEMU can start.
pub(super) struct Kernel {
    pub(super) image: PathBuf,
    /// The folder of its modules; `None` if everything is built in.
    pub(super) modules: Option<PathBuf>,
}

impl Source<'_> {
    /// Returns the kernel, downloaded or built unless an earlier run did.
    pub(super) fn prepare(self, folder: &Path) -> Result<Kernel> {
        ensure!(
            cfg!(target_arch = "x86_64") || matches!(self, Self::Debian { processor: Processor::Arm64, .. }),
            "the machines are of x86-64, and their programs of this machine"
        );
        match self {
            Self::Built => Ok(Kernel { image: built(folder)?, modules: None }),
            Self::Debian { series, processor } => {
                let packages = processor.packages(folder)?;
                let package = packages.unpacked(&packages.newest_kernel(series)?)?;
                let image = only_entry(&package.join("boot"), "vmlinuz-")?;
                // Without /lib as a link to /usr/lib, as packages of Debian 12 are.
                let modules = [package.join("lib/modules"), package.join("usr/lib/modules")];
                let modules = modules.iter().find(|folder| folder.exists()).context("a folder of modules")?;
                Ok(Kernel { image, modules: Some(modules.clone()) })
            }
        }
    }
}

/// Returns the entry of a folder whose name begins with `prefix`.
fn only_entry(folder: &Path, prefix: &str) -> Result<PathBuf> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            return Ok(entry.path());
        }
    }
    bail!("no {prefix}* in {}", folder.display())
}

/// Builds the kernel, unless there is one of the same configuration, and returns its image.
fn built(folder: &Path) -> Result<PathBuf> {
    let options = workspace::root().join("xtask/vm/kernel.config");
    let kernels = folder.join("kernels");
    let image = kernels.join(&sha256(&options)?[..16]).join("bzImage");
    if image.exists() {
        return Ok(image);
    }
    let missing = missing(&TOOLS);
    ensure!(missing.is_empty(), "the kernel's build needs packages (Debian: apt-get install {missing})");
    let package = Packages::own(folder).unpacked(SOURCE)?;
    fs::create_dir_all(&kernels)?;
    let building = tempfile::Builder::new().prefix(".building-").tempdir_in(&kernels)?;
    let archive = package.join(format!("usr/src/{SOURCE}.tar.xz"));
    let mut unpack = Command::new("tar");
    unpack.arg("-xJf").arg(&archive).arg("--strip-components=1").arg("-C").arg(building.path());
    execute(&mut at_lowest_priority(&unpack))?;
    println!("building the kernel at the lowest priority, once for each configuration (minutes)");
    let make = |arguments: &[&str]| {
        let mut make = Command::new("make");
        make.arg("-C").arg(building.path()).args(arguments).stdout(Stdio::null());
        // The result is the same for the same configuration.
        make.envs([("KBUILD_BUILD_TIMESTAMP", "1"), ("KBUILD_BUILD_USER", "x"), ("KBUILD_BUILD_HOST", "x")]);
        make.env("KCONFIG_ALLCONFIG", &options);
        execute(&mut at_lowest_priority(&make))
    };
    make(&["--silent", "allnoconfig"])?;
    let configuration = fs::read_to_string(building.path().join(".config"))?;
    let text = fs::read_to_string(&options)?;
    let lost = unapplied(&text, &configuration);
    ensure!(lost.is_empty(), "options without effect on this source: {}", lost.join(", "));
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    make(&["--silent", &format!("-j{processors}"), "bzImage"])?;
    let folder = image.parent().context("a folder")?;
    fs::create_dir_all(folder)?;
    fs::rename(building.path().join("arch/x86/boot/bzImage"), &image)?;
    Ok(image)
}

/// Returns the options that a configuration does not have as they were wanted: their dependencies are
/// missing, or the name is another.
fn unapplied<'a>(wanted: &'a str, configuration: &str) -> Vec<&'a str> {
    let is_applied = |option: &str| match option.strip_suffix("=n") {
        Some(name) => !configuration.lines().any(|line| line.split('=').next() == Some(name)),
        None => configuration.lines().any(|line| line == option),
    };
    wanted.lines().filter(|line| line.starts_with("CONFIG_") && !is_applied(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_without_effect_are_named() {
        let wanted = "# A comment.\nCONFIG_A=y\nCONFIG_B=n\nCONFIG_C=y\nCONFIG_D=n\nCONFIG_E=y\nCONFIG_F=8\n";
        let configuration =
            "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=m\nCONFIG_D=y\nCONFIG_EE=y\nCONFIG_F=8\n";
        assert_eq!(unapplied(wanted, configuration), ["CONFIG_C=y", "CONFIG_D=n", "CONFIG_E=y"]);
    }
}
