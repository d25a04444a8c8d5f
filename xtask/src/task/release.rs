//! `cargo xtask release`: the checks of a release, its files in `target/release-files`, and their upload.

mod archive;
mod changelog;
mod checks;
mod container;
mod debian;
mod dist;
mod files;
mod install;
mod linters;
mod names;
mod notices;
mod packages;
mod programs;
mod publish;
mod sbom;
mod sizes;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use self::programs::Platform;
#[cfg(test)]
pub(crate) use self::programs::compilers;
use crate::arguments::ReleaseOptions;
use crate::task::packages::published;
use crate::task::steps::Steps;
use crate::task::workspace;

/// The identity of a release. Apart from the sources and the compiler, its files depend on nothing else.
struct Release {
    version: String,
    /// The address of the repository.
    repository: String,
    commit: String,
    /// The time of the commit, in seconds since 1970: the time of every file.
    time: u64,
}

pub(crate) fn run(options: &ReleaseOptions) -> Result<()> {
    let mut steps = Steps::new(options.publish || options.require_all);
    let release = Release::of_head(options.version.as_deref())?;
    checks::run(&mut steps, &release, options);
    if !options.dry_run && !steps.have_failed() {
        build(&mut steps, &release, options)?;
    }
    if options.publish && !steps.have_failed() {
        steps.run("upload", || publish::run(&release, &distribution()?));
    }
    steps.finish()
}

/// Makes all files of the release in `target/release-files`.
fn build(steps: &mut Steps, release: &Release, options: &ReleaseOptions) -> Result<()> {
    let dist = distribution()?;
    let work = workspace::target()?.join("dist-work");
    let platforms = programs::available(steps);
    let first = Build::new(release, &work.join("first"), dist.clone())?;
    if options.files_only {
        steps.run("packages", || packages::create(&first));
    } else {
        steps.run("packages, each built and tested alone", || packages::run(&first, &work.join("packages")));
    }
    steps.run("programs", || programs::build_all(&first, &platforms));
    if steps.have_failed() {
        return Ok(());
    }
    steps.run("files", || files::assemble(&first, &platforms));
    for platform in &platforms {
        programs::try_out(steps, &first, platform);
    }
    steps.run("Debian packages", || debian::check(&first, &platforms));
    container::check(steps, &first, &platforms);
    steps.run("installation by install.sh", || install::check(&dist));
    if !options.once && !steps.have_failed() {
        steps.run("a second build in another folder gives the same bytes", || {
            let second = Build::new(release, &work.join("the-second-build"), work.join("second-dist"))?;
            build_again(&second, &platforms)?;
            dist::compare(&first, &second)
        });
    }
    steps.run("checksums", || dist::write_checksums(&dist));
    Ok(())
}

fn build_again(build: &Build<'_>, platforms: &[Platform]) -> Result<()> {
    packages::create(build)?;
    programs::build_all(build, platforms)?;
    files::assemble(build, platforms)
}

/// A folder with the release's sources, and the folder that receives the files made from them.
struct Build<'r> {
    release: &'r Release,
    /// A clone of the repository at the release's commit.
    sources: PathBuf,
    /// Cargo's target folder.
    target: PathBuf,
    dist: PathBuf,
}

impl<'r> Build<'r> {
    /// Puts the sources into `folder`, and creates an empty `dist`.
    fn new(release: &'r Release, folder: &Path, dist: PathBuf) -> Result<Self> {
        let sources = folder.join("sources");
        if dist.exists() {
            fs::remove_dir_all(&dist)?;
        }
        fs::create_dir_all(&dist)?;
        checks::check_out(&release.commit, &sources)?;
        Ok(Self { release, target: folder.join("target"), sources, dist })
    }
}

/// Returns the folder of the release's files.
fn distribution() -> Result<PathBuf> {
    Ok(workspace::target()?.join("release-files"))
}

impl Release {
    /// Returns the release of the current commit; without a version, with the workspace's version.
    fn of_head(version: Option<&str>) -> Result<Self> {
        let head = checks::git(&["log", "-1", "--format=%H %ct"])?;
        let (commit, time) = head.trim().split_once(' ').with_context(|| format!("git log: {head:?}"))?;
        let packages = published()?;
        let package = packages.first().context("no package is published")?;
        Ok(Self {
            version: version.unwrap_or(&package.version).to_owned(),
            repository: package.repository().to_owned(),
            commit: commit.to_owned(),
            time: time.parse()?,
        })
    }

    /// Returns a template of `packaging` with the version and the repository's address filled in.
    fn fill_in(&self, template: &str) -> String {
        template.replace("@VERSION@", &self.version).replace("@REPOSITORY@", &self.repository)
    }
}
