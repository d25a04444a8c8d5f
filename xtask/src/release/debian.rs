//! The Debian package of a platform.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::Build;
use super::archive::{Entry, gzip};
use crate::workspace::{execute, is_installed};

/// Makes `dipc_VERSION_ARCHITECTURE.deb`.
pub(super) fn package(
    build: &Build<'_>,
    architecture: &str,
    program: &Entry,
    documents: &[Entry],
) -> Result<()> {
    if !is_installed("dpkg-deb", "--version") {
        bail!("dpkg-deb is not installed (the package dpkg of most distributions)");
    }
    let version = &build.release.version;
    let root = build.target.join("debian").join(architecture);
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    let mut size = program.bytes.len();
    put(&root, "usr/bin/dipc", &program.bytes, 0o755)?;
    for document in documents {
        let Some((path, bytes)) = installed(document)? else { continue };
        size = size.saturating_add(bytes.len());
        put(&root, &path, &bytes, 0o644)?;
    }
    let kilobytes = size.div_ceil(1024).to_string();
    let control = fs::read_to_string(build.sources.join("packaging/debian-control"))?;
    let control = build
        .release
        .fill_in(&control)
        .replace("@ARCHITECTURE@", architecture)
        .replace("@KILOBYTES@", &kilobytes);
    put(&root, "DEBIAN/control", control.as_bytes(), 0o644)?;
    let mut build_package = Command::new("dpkg-deb");
    build_package.env("SOURCE_DATE_EPOCH", build.release.time.to_string());
    build_package.args(["--build", "--root-owner-group", "-Zxz"]).arg(&root);
    execute(build_package.arg(build.dist.join(format!("dipc_{version}_{architecture}.deb"))))
}

/// Returns where a document is installed, and with which bytes.
fn installed(document: &Entry) -> Result<Option<(String, Vec<u8>)>> {
    let bytes = document.bytes.clone();
    let path = match document.path.as_str() {
        "completions/dipc.bash" => "usr/share/bash-completion/completions/dipc".to_owned(),
        "completions/dipc.fish" => "usr/share/fish/vendor_completions.d/dipc.fish".to_owned(),
        "completions/_dipc" => "usr/share/zsh/vendor-completions/_dipc".to_owned(),
        "THIRD-PARTY-NOTICES.txt" => return compressed("usr/share/doc/dipc/THIRD-PARTY-NOTICES.txt", &bytes),
        "CHANGELOG.md" => return compressed("usr/share/doc/dipc/changelog", &bytes),
        "LICENSE-MIT" => "usr/share/doc/dipc/copyright".to_owned(),
        "LICENSE-APACHE" => "usr/share/doc/dipc/LICENSE-APACHE".to_owned(),
        path => match path.strip_prefix("man/") {
            Some(page) => return compressed(&format!("usr/share/man/man1/{page}"), &bytes),
            None => return Ok(None),
        },
    };
    Ok(Some((path, bytes)))
}

fn compressed(path: &str, bytes: &[u8]) -> Result<Option<(String, Vec<u8>)>> {
    Ok(Some((format!("{path}.gz"), gzip(bytes)?)))
}

/// Writes a file of the package, with modes that do not depend on the process's.
fn put(root: &Path, path: &str, bytes: &[u8], mode: u32) -> Result<()> {
    let file = root.join(path);
    fs::create_dir_all(file.parent().context("a folder")?)?;
    fs::write(&file, bytes)?;
    set_mode(&file, mode)?;
    for folder in file.ancestors().skip(1).take_while(|folder| folder.starts_with(root)) {
        set_mode(folder, 0o755)?;
    }
    Ok(())
}

/// Sets the permissions of a file or folder.
#[cfg(unix)]
pub(super) fn set_mode(file: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(fs::set_permissions(file, fs::Permissions::from_mode(mode))?)
}

#[cfg(not(unix))]
pub(super) fn set_mode(_: &Path, _: u32) -> Result<()> {
    bail!("Debian packages are made on Unix")
}
