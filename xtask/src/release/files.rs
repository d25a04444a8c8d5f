//! The content of a release's files.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::archive::{Entry, tar_gz, zip};
use super::programs::Platform;
use super::{Build, debian, install, notices, sbom, sizes};
use crate::packages::LICENCES;
use crate::workspace::execute;

/// Each shell, and the name of its completion script.
const SHELLS: [(&str, &str); 5] = [
    ("bash", "dipc.bash"),
    ("elvish", "dipc.elv"),
    ("fish", "dipc.fish"),
    ("powershell", "_dipc.ps1"),
    ("zsh", "_dipc"),
];

/// Makes archives, Debian packages and all other files from the programs that are built.
pub(super) fn assemble(build: &Build<'_>, platforms: &[Platform]) -> Result<()> {
    let version = &build.release.version;
    let documents = documents(build, platforms)?;
    let mut container = container_files(build)?;
    for platform in platforms {
        let program = Entry::program(platform.file_name(), fs::read(platform.stripped(build))?);
        if let Some(architecture) = platform.architecture {
            let mut copy = program.clone();
            copy.path = format!("{architecture}/dipc");
            container.push(copy);
            debian::package(build, architecture, &program, &documents)?;
        }
        let entries = documents.iter().cloned().chain([program]).collect();
        pack(build, platform, &format!("dipc-{version}-{}", platform.name), entries)?;
        let fleet = platform.stripped(build).with_file_name(platform.fleet_file_name());
        let fleet = Entry::program(platform.fleet_file_name(), fs::read(fleet)?);
        let texts = documents.iter().filter(|document| !document.path.contains('/')).cloned();
        let entries = texts.chain([fleet]).collect();
        pack(build, platform, &format!("dipc-fleet-{version}-{}", platform.name), entries)?;
    }
    let name = format!("dipc-{version}-container");
    write(build, &format!("{name}.tar.gz"), &tar_gz(&name, container, build.release.time)?)?;
    write(build, &format!("dipc-{version}.cdx.json"), &sbom::document(build)?)?;
    write(build, &format!("dipc-{version}-sizes.txt"), sizes::table(build, platforms)?.as_bytes())?;
    write(build, "install.sh", install::script(build)?.as_bytes())
}

/// Writes an archive of the kind that its platform is used to.
fn pack(build: &Build<'_>, platform: &Platform, name: &str, entries: Vec<Entry>) -> Result<()> {
    if platform.is_windows() {
        write(build, &format!("{name}.zip"), &zip(name, entries)?)
    } else {
        write(build, &format!("{name}.tar.gz"), &tar_gz(name, entries, build.release.time)?)
    }
}

fn write(build: &Build<'_>, name: &str, bytes: &[u8]) -> Result<()> {
    fs::write(build.dist.join(name), bytes).with_context(|| name.to_owned())
}

/// Returns what every archive has beside the program: licences, man pages and completion scripts.
fn documents(build: &Build<'_>, platforms: &[Platform]) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for name in ["README.md", "CHANGELOG.md"].into_iter().chain(LICENCES) {
        entries.push(Entry::new(name, fs::read(build.sources.join(name))?));
    }
    entries.push(Entry::new("THIRD-PARTY-NOTICES.txt", notices::text()?));
    let native = platforms.iter().find(|platform| platform.is_native());
    let native = native
        .context("no program runs here to write its man pages: this needs Linux on x86-64 or aarch64")?;
    let program = native.stripped(build);
    let pages = tempfile::tempdir()?;
    execute(Command::new(&program).arg("man").arg(pages.path()))?;
    for page in fs::read_dir(pages.path())? {
        let page = page?;
        let name = page.file_name().into_string().ok().context("the name of a man page")?;
        entries.push(Entry::new(format!("man/{name}"), fs::read(page.path())?));
    }
    for (shell, file) in SHELLS {
        let output = Command::new(&program).args(["completions", shell]).output()?;
        ensure!(output.status.success() && !output.stdout.is_empty(), "dipc completions {shell}");
        entries.push(Entry::new(format!("completions/{file}"), output.stdout));
    }
    Ok(entries)
}

/// Returns what a container image is built from, but the programs.
fn container_files(build: &Build<'_>) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for name in ["Containerfile", "sidecar.yaml"] {
        let text = fs::read_to_string(build.sources.join("packaging").join(name))?;
        entries.push(Entry::new(name, build.release.fill_in(&text)));
    }
    Ok(entries)
}
