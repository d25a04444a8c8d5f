//! The content of a release's files.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Error, Result, ensure};

use super::archive::{Entry, tar_gz, zip};
use super::programs::{DIPC, FLEET, Platform};
use super::{Build, debian, install, notices, sbom, sizes, tools};
use crate::task::packages::LICENCES;
use crate::task::workspace::execute;

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
    let mut fleet_container = fleet_container_files(build)?;
    for platform in platforms {
        let program = |it| {
            Ok::<_, Error>(Entry::program(platform.file_name(it), fs::read(platform.stripped(build, it))?))
        };
        let (dipc, fleet) = (program(&DIPC)?, program(&FLEET)?);
        if let Some(architecture) = platform.architecture {
            let placed =
                |entry: &Entry| Entry { path: format!("{architecture}/{}", entry.path), ..entry.clone() };
            container.push(placed(&dipc));
            fleet_container.extend([placed(&dipc), placed(&fleet)]);
            debian::package(build, architecture, &dipc, &documents)?;
            debian::package(build, architecture, &fleet, &documents)?;
        }
        let entries = documents.iter().cloned().chain([dipc]).collect();
        pack(build, platform, &format!("dipc-{version}-{}", platform.name), entries)?;
        let texts = documents.iter().filter(|document| !document.path.contains('/')).cloned();
        let entries = texts.chain([fleet]).collect();
        pack(build, platform, &format!("dipc-fleet-{version}-{}", platform.name), entries)?;
    }
    for (program, files) in [(&DIPC, container), (&FLEET, fleet_container)] {
        let name = format!("{}-{version}-container", program.name);
        write(build, &format!("{name}.tar.gz"), &tar_gz(&name, files, build.release.time)?)?;
        write(build, &format!("{}-{version}.cdx.json", program.name), &sbom::document(build, program)?)?;
        let sizes = sizes::table(build, platforms, program)?;
        write(build, &format!("{}-{version}-sizes.txt", program.name), sizes.as_bytes())?;
    }
    write(build, &format!("dipc-{version}-build.txt"), tools::table(build, platforms)?.as_bytes())?;
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

/// Returns the files of every archive besides the program: licences, man pages and completion scripts.
fn documents(build: &Build<'_>, platforms: &[Platform]) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for name in ["README.md", "CHANGELOG.md"].into_iter().chain(LICENCES) {
        entries.push(Entry::new(name, fs::read(build.sources.join(name))?));
    }
    entries.push(Entry::new("THIRD-PARTY-NOTICES.txt", notices::text()?));
    let native = platforms.iter().find(|platform| platform.is_native());
    let native = native
        .context("no program runs here to write its man pages: this needs Linux on x86-64 or aarch64")?;
    let program = native.stripped(build, &DIPC);
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

/// Returns the sources of a container image, without the programs.
fn container_files(build: &Build<'_>) -> Result<Vec<Entry>> {
    let files = [
        ("Containerfile", "packaging/Containerfile"),
        ("sidecar.yaml", "packaging/sidecar.yaml"),
        ("monitor/dipc-monitor.service", "packaging/monitor/dipc-monitor.service"),
        ("monitor/sidecar.yaml", "packaging/monitor/sidecar.yaml"),
        ("monitor/daemonset.yaml", "packaging/monitor/daemonset.yaml"),
        ("monitor/podmonitor.yaml", "packaging/monitor/podmonitor.yaml"),
        ("monitor/collector.yaml", "packaging/monitor/collector.yaml"),
    ];
    filled_in(build, files)
}

/// Returns the sources of the image with dipc-fleet, without the programs.
fn fleet_container_files(build: &Build<'_>) -> Result<Vec<Entry>> {
    let files = [
        ("Containerfile", "packaging/fleet.Containerfile"),
        ("kubernetes-job.yaml", "fleet/kubernetes-job.yaml"),
    ];
    filled_in(build, files)
}

fn filled_in<const N: usize>(build: &Build<'_>, files: [(&str, &str); N]) -> Result<Vec<Entry>> {
    let read = |(name, path): (&str, &str)| {
        let text = fs::read_to_string(build.sources.join(path)).with_context(|| path.to_owned())?;
        Ok(Entry::new(name, build.release.fill_in(&text)))
    };
    files.into_iter().map(read).collect()
}
