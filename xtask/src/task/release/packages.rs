//! The packages for the registry: each is built from its own files, and tested without the rest of the
//! repository.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::Build;
use crate::task::packages::{Package, published};
use crate::task::runtimes::{REQUIRE_RUNTIMES, RUNTIMES};
use crate::task::workspace::{cargo, execute};

/// The profile of these builds. Tests decode megabytes: as in the repository's workspace, they are optimised.
const PROFILE: [(&str, &str); 2] =
    [("CARGO_PROFILE_DEV_OPT_LEVEL", "1"), ("CARGO_PROFILE_DEV_DEBUG", "false")];

/// Creates the packages in `dist`, builds each as its users will, and runs its tests from its files, unpacked
/// into `sources`.
pub(super) fn run(build: &Build<'_>, sources: &Path) -> Result<()> {
    // Remains of an earlier run in this folder: cargo assumes that builds from a registry never change.
    forget_unpacked(&cargo_home()?, &published()?)?;
    for folder in ["package", "debug"] {
        remove(&build.target.join(folder))?;
    }
    // Cargo packages in the order of dependencies, and builds each package with the others as a registry's.
    execute(&mut package_command(build))?;
    collect(build)?;
    test(build, sources)
}

fn cargo_home() -> Result<PathBuf> {
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        return Ok(home.into());
    }
    Ok(std::env::home_dir().context("no home folder for cargo's files")?.join(".cargo"))
}

/// Removes cargo's copies of these packages from earlier runs in the same folder: it unpacks a version only
/// once, even if the package has changed since.
fn forget_unpacked(cargo_home: &Path, packages: &[Package]) -> Result<()> {
    let Ok(registries) = fs::read_dir(cargo_home.join("registry/src")) else { return Ok(()) };
    for registry in registries {
        let registry = registry?;
        // The name of a folder registry does not include a host.
        if !registry.file_name().to_string_lossy().starts_with('-') {
            continue;
        }
        for package in packages {
            remove(&registry.path().join(format!("{}-{}", package.name, package.version)))?;
        }
    }
    Ok(())
}

/// Removes a folder, if it exists.
fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| folder.display().to_string())
        }
        _ => Ok(()),
    }
}

/// Creates the packages in `dist`.
pub(super) fn create(build: &Build<'_>) -> Result<()> {
    execute(package_command(build).arg("--no-verify"))?;
    collect(build)
}

fn package_command(build: &Build<'_>) -> Command {
    let mut package =
        cargo(["package", "--quiet", "--workspace", "--exclude", "xtask", "--locked", "--target-dir"]);
    package.arg(&build.target).current_dir(&build.sources).envs(PROFILE);
    package
}

/// Copies the packages into `dist`.
fn collect(build: &Build<'_>) -> Result<()> {
    for package in published()? {
        let name = file_name(&package);
        let from = build.target.join("package").join(&name);
        fs::copy(&from, build.dist.join(name)).with_context(|| from.display().to_string())?;
    }
    Ok(())
}

fn file_name(package: &Package) -> String {
    format!("{}-{}.crate", package.name, package.version)
}

/// Checks each package's examples with its default features, and runs its own tests with all of them. They
/// see the package's files and, as dependencies, the other packages.
fn test(build: &Build<'_>, sources: &Path) -> Result<()> {
    let packages = published()?;
    unpack(build, sources, &packages)?;
    for package in &packages {
        println!("--- examples and tests of {}", file_name(package));
        for arguments in [&["check", "--quiet", "--examples"][..], &["test", "--quiet", "--all-features"]] {
            let mut command = cargo(arguments.iter().copied());
            // The folder of the builds above: it has the dependencies already.
            command.args(["--package", &package.name, "--target-dir"]).arg(&build.target);
            command.current_dir(sources).envs(PROFILE);
            command.env_remove(RUNTIMES).env_remove(REQUIRE_RUNTIMES).env_remove("DIPC_SHARED");
            execute(&mut command)?;
        }
    }
    Ok(())
}

/// Unpacks the packages into a workspace of their own, in which each replaces the registry's package of its
/// name.
fn unpack(build: &Build<'_>, sources: &Path, packages: &[Package]) -> Result<()> {
    remove(sources)?;
    fs::create_dir_all(sources)?;
    let mut patches = String::new();
    for package in packages {
        let packed = File::open(build.dist.join(file_name(package)))?;
        tar::Archive::new(flate2::read::GzDecoder::new(packed)).unpack(sources)?;
        writeln!(patches, "{0} = {{ path = \"{0}-{1}\" }}", package.name, package.version)?;
    }
    let manifest =
        format!("[workspace]\nresolver = \"3\"\nmembers = [\"*-*\"]\n\n[patch.crates-io]\n{patches}");
    fs::write(sources.join("Cargo.toml"), manifest)?;
    fs::copy(build.sources.join("Cargo.lock"), sources.join("Cargo.lock"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_of_local_registries_are_forgotten() {
        let home = tempfile::tempdir().expect("temporary folder");
        let sources = home.path().join("registry/src");
        let package = &published().expect("packages of the workspace")[0];
        let own = format!("{}-{}", package.name, package.version);
        for folder in ["-0123", "a-registry-0123"] {
            for name in [own.as_str(), "another-1.0.0"] {
                fs::create_dir_all(sources.join(folder).join(name)).expect("folder");
            }
        }
        forget_unpacked(home.path(), std::slice::from_ref(package)).expect("removed");
        let is_there = |folder: &str, name: &str| sources.join(folder).join(name).is_dir();
        assert!(!is_there("-0123", &own));
        assert!(is_there("-0123", "another-1.0.0"));
        assert!(is_there("a-registry-0123", &own));
        assert!(is_there("a-registry-0123", "another-1.0.0"));
    }
}
