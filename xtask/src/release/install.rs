//! The script `install.sh`, with the checksums of the release's archives in it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Result, ensure};

use super::Build;
use super::dist::names;
use crate::checksum::sha256;

/// Returns the script for the archives in `dist`.
pub(super) fn script(build: &Build<'_>) -> Result<String> {
    let template = fs::read_to_string(build.sources.join("packaging/install.sh"))?;
    render(&build.release.fill_in(&template), &build.release.version, &build.dist)
}

/// Returns the template with the checksums of the archives in `dist`.
fn render(template: &str, version: &str, dist: &Path) -> Result<String> {
    let mut script = template.to_owned();
    for name in names(dist)?.iter().filter(|name| name.ends_with("-linux.tar.gz")) {
        let system = name.trim_start_matches(&format!("dipc-{version}-")).trim_end_matches(".tar.gz");
        script = script.replace(&format!("@SHA256 {system}@"), &sha256(&dist.join(name))?);
    }
    Ok(script)
}

/// Installs the release into an empty folder, and checks that a changed archive is refused.
pub(super) fn check(dist: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let from = format!("file://{}", dist.display());
    let output = install(&dist.join("install.sh"), &from, folder.path())?;
    let text =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "install.sh --from {from}: {}: {text}", output.status);
    let version = Command::new(folder.path().join("bin/dipc")).arg("--version").output()?;
    ensure!(version.status.success(), "the installed program: {}", version.status);
    print!("{text}{}", String::from_utf8_lossy(&version.stdout));
    Ok(())
}

fn install(script: &Path, from: &str, to: &Path) -> Result<Output> {
    Ok(Command::new("sh").arg(script).args(["--from", from, "--to"]).arg(to).output()?)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::archive::{Entry, tar_gz};
    use super::*;

    /// A folder with a release for every system, whose program is a script.
    fn release() -> tempfile::TempDir {
        let dist = tempfile::tempdir().unwrap();
        for system in ["x86_64-linux", "aarch64-linux"] {
            let name = format!("dipc-9.8.7-{system}");
            let entries = vec![
                Entry::program("dipc", *b"#!/bin/sh\necho ran\n"),
                Entry::new("man/dipc.1", *b"page"),
                Entry::new("completions/dipc.bash", *b"bash"),
                Entry::new("completions/dipc.fish", *b"fish"),
                Entry::new("completions/_dipc", *b"zsh"),
            ];
            fs::write(dist.path().join(format!("{name}.tar.gz")), tar_gz(&name, entries, 0).unwrap())
                .unwrap();
        }
        let template = include_str!("../../../packaging/install.sh").replace("@VERSION@", "9.8.7");
        let script = render(&template, "9.8.7", dist.path()).unwrap();
        fs::write(dist.path().join("install.sh"), script).unwrap();
        dist
    }

    fn from(folder: &Path) -> String {
        folder.display().to_string()
    }

    #[test]
    fn the_program_its_pages_and_its_completions_are_installed() {
        let dist = release();
        let to = tempfile::tempdir().unwrap();
        let output = install(&dist.path().join("install.sh"), &from(dist.path()), to.path()).unwrap();
        assert!(output.status.success(), "{output:?}");
        let ran = Command::new(to.path().join("bin/dipc")).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "ran\n");
        for (file, text) in [
            ("share/man/man1/dipc.1", "page"),
            ("share/bash-completion/completions/dipc", "bash"),
            ("share/fish/vendor_completions.d/dipc.fish", "fish"),
            ("share/zsh/site-functions/_dipc", "zsh"),
        ] {
            assert_eq!(fs::read_to_string(to.path().join(file)).unwrap(), text, "{file}");
        }
    }

    #[test]
    fn a_changed_archive_is_refused_and_nothing_is_installed() {
        let dist = release();
        for system in ["x86_64-linux", "aarch64-linux"] {
            let entries = vec![Entry::program("dipc", *b"#!/bin/sh\necho changed\n")];
            let name = format!("dipc-9.8.7-{system}");
            fs::write(dist.path().join(format!("{name}.tar.gz")), tar_gz(&name, entries, 0).unwrap())
                .unwrap();
        }
        let to = tempfile::tempdir().unwrap();
        let output = install(&dist.path().join("install.sh"), &from(dist.path()), to.path()).unwrap();
        assert_eq!(output.status.code(), Some(1));
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.contains("SHA-256") && message.contains("expected"), "{message}");
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_missing_archive_is_named() {
        let dist = release();
        let script = dist.path().join("install.sh");
        let output = install(&script, "/nonexistent/release", &dist.path().join("to")).unwrap();
        assert_eq!(output.status.code(), Some(1));
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.starts_with("error: /nonexistent/release/dipc-9.8.7-"), "{message}");
    }
}
