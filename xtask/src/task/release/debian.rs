//! The Debian packages of a platform.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use super::Build;
use super::archive::{Entry, gzip};
use super::programs::{DIPC, FLEET, Platform, check_version, export};
use crate::task::workspace::{command_line, execute, is_installed};

/// Makes `PROGRAM_VERSION_ARCHITECTURE.deb`.
pub(super) fn package(
    build: &Build<'_>,
    architecture: &str,
    program: &Entry,
    documents: &[Entry],
) -> Result<()> {
    if !is_installed("dpkg-deb", "--version") {
        bail!("dpkg-deb is not installed (the package dpkg of most distributions)");
    }
    let name = program.path.as_str();
    let root = build.target.join("debian").join(architecture).join(name);
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    let mut size = program.bytes.len();
    put(&root, &format!("usr/bin/{name}"), &program.bytes, 0o755)?;
    for document in documents {
        let Some((path, bytes)) = installed(document, name)? else { continue };
        size = size.saturating_add(bytes.len());
        put(&root, &path, &bytes, 0o644)?;
    }
    let kilobytes = size.div_ceil(1024).to_string();
    let control = build.sources.join("packaging").join(format!("{name}.debian-control"));
    let control = fs::read_to_string(&control).with_context(|| control.display().to_string())?;
    let control = build
        .release
        .fill_in(&control)
        .replace("@ARCHITECTURE@", architecture)
        .replace("@KILOBYTES@", &kilobytes);
    put(&root, "DEBIAN/control", control.as_bytes(), 0o644)?;
    let mut build_package = Command::new("dpkg-deb");
    build_package.env("SOURCE_DATE_EPOCH", build.release.time.to_string());
    build_package.args(["--build", "--root-owner-group", "-Zxz"]).arg(&root);
    execute(build_package.arg(build.dist.join(file_name(build, name, architecture))))
}

fn file_name(build: &Build<'_>, program: &str, architecture: &str) -> String {
    format!("{program}_{}_{architecture}.deb", build.release.version)
}

/// Unpacks the packages as dpkg does, checks their metadata and, if their programs run here, runs these.
pub(super) fn check(build: &Build<'_>, platforms: &[Platform]) -> Result<()> {
    let folder = tempfile::tempdir()?;
    for platform in platforms {
        let Some(architecture) = platform.architecture else { continue };
        let root = folder.path().join(architecture);
        for program in [DIPC, FLEET] {
            let package = build.dist.join(file_name(build, program.name, architecture));
            check_fields(build, &package, program.name, architecture)?;
            // Two packages with a file in common could not be installed together.
            let files = print(Command::new("dpkg-deb").arg("--fsys-tarfile").arg(&package))?;
            for path in tar::Archive::new(files.as_slice()).entries()? {
                let path = path?.path()?.into_owned();
                ensure!(
                    !root.join(&path).is_file(),
                    "{} has a file of the other package: {}",
                    program.name,
                    path.display()
                );
            }
            execute(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&root))?;
        }
        let page = fs::File::open(root.join("usr/share/man/man1/dipc.1.gz"))?;
        let mut text = String::new();
        flate2::read::GzDecoder::new(page).read_to_string(&mut text)?;
        ensure!(text.contains(".TH dipc 1"), "dipc.1 is not a man page");
        for file in ["doc/dipc/copyright", "doc/dipc-fleet/copyright", "bash-completion/completions/dipc"] {
            ensure!(root.join("usr/share").join(file).is_file(), "no usr/share/{file}");
        }
        if platform.is_native() {
            let dipc = root.join("usr/bin/dipc");
            check_version(build, || Command::new(&dipc))?;
            // The program starts the other package's program, which is next to it.
            export(build, &dipc)?;
        }
    }
    Ok(())
}

fn check_fields(build: &Build<'_>, package: &Path, program: &str, architecture: &str) -> Result<()> {
    let fields = print(Command::new("dpkg-deb").arg("--field").arg(package))?;
    let fields = String::from_utf8(fields)?;
    print!("{fields}");
    let lines: BTreeSet<_> = fields.lines().collect();
    let version = &build.release.version;
    let mut expected = vec![
        format!("Package: {program}"),
        format!("Version: {version}"),
        format!("Architecture: {architecture}"),
    ];
    if program == FLEET.name {
        expected.push(format!("Depends: dipc (= {version})"));
    }
    for line in expected {
        ensure!(lines.contains(line.as_str()), "{} has no field `{line}`", package.display());
    }
    Ok(())
}

/// Returns the output of a command.
fn print(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output()?;
    ensure!(
        output.status.success(),
        "{}: {}",
        command_line(command),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}

/// Returns the installation path and the bytes of a package's document.
fn installed(document: &Entry, package: &str) -> Result<Option<(String, Vec<u8>)>> {
    let bytes = document.bytes.clone();
    let texts = format!("usr/share/doc/{package}");
    let path = match document.path.as_str() {
        "THIRD-PARTY-NOTICES.txt" => return compressed(&format!("{texts}/THIRD-PARTY-NOTICES.txt"), &bytes),
        "CHANGELOG.md" => return compressed(&format!("{texts}/changelog"), &bytes),
        "LICENSE-MIT" => format!("{texts}/copyright"),
        "LICENSE-APACHE" => format!("{texts}/LICENSE-APACHE"),
        // dipc's man pages and completions are shared by both.
        _ if package != DIPC.name => return Ok(None),
        "completions/dipc.bash" => "usr/share/bash-completion/completions/dipc".to_owned(),
        "completions/dipc.fish" => "usr/share/fish/vendor_completions.d/dipc.fish".to_owned(),
        "completions/_dipc" => "usr/share/zsh/vendor-completions/_dipc".to_owned(),
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

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests {
    use super::super::Release;
    use super::*;
    use crate::task::workspace;

    /// Makes packages with scripts in place of the programs, and checks them.
    fn make_and_check(version: &str, page: &str) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let release = Release {
            version: "9.8.7".to_owned(),
            repository: "https://example.org/dipc".to_owned(),
            commit: String::new(),
            time: 0,
        };
        let build = Build {
            release: &release,
            sources: workspace::root().to_owned(),
            target: folder.path().join("target"),
            dist: folder.path().to_owned(),
        };
        let script = |export: &str| {
            format!("#!/bin/sh\ncase $1 in\n--version) echo 'dipc {version}' ;;\nexport) {export} ;;\nesac\n")
        };
        let mut documents = vec![Entry::new("man/dipc.1", page)];
        for text in [
            "completions/dipc.bash",
            "CHANGELOG.md",
            "LICENSE-MIT",
            "LICENSE-APACHE",
            "THIRD-PARTY-NOTICES.txt",
        ] {
            documents.push(Entry::new(text, *b"text"));
        }
        let dipc = script("exec \"$(dirname \"$0\")/dipc-fleet\" \"$@\"");
        package(&build, "amd64", &Entry::program("dipc", dipc), &documents)?;
        package(
            &build,
            "amd64",
            &Entry::program("dipc-fleet", script("mkdir \"$4/recordings\"")),
            &documents,
        )?;
        check(&build, &[Platform::native()])
    }

    #[test]
    fn packages_are_unpacked_and_tried() {
        make_and_check("9.8.7", ".TH dipc 1\n").unwrap();
    }

    #[test]
    fn a_program_of_another_version_and_a_text_that_is_no_man_page_are_found() {
        let version = make_and_check("9.8.6", ".TH dipc 1\n").unwrap_err().to_string();
        assert!(version.contains("expected \"dipc 9.8.7\""), "{version}");
        let page = make_and_check("9.8.7", "text").unwrap_err().to_string();
        assert_eq!(page, "dipc.1 is not a man page");
    }
}
