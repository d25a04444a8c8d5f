//! A trial of the container image: it must find a runtime outside through a shared temporary folder.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::programs::Platform;
use super::{Build, debian};
use crate::task::packages::array;
use crate::task::steps::Steps;
use crate::task::workspace::{execute, is_installed};

const STEP: &str = "container image";
const FLEET_STEP: &str = "files of the container image with dipc-fleet";

pub(super) fn check(steps: &mut Steps, build: &Build<'_>, platforms: &[Platform]) {
    steps.run(FLEET_STEP, || check_fleet(build, platforms));
    let Some(native) = platforms.iter().find(|platform| platform.is_native()) else {
        return steps.not_run(STEP, "no program of the release runs here");
    };
    if !is_installed("buildah", "--version") {
        return steps.not_run(STEP, "buildah is not installed (Debian: apt-get install buildah)");
    }
    steps.run(STEP, || run(build, native));
}

/// Checks that all files that the Containerfile copies exist. The image has a distribution's below it, which
/// is not downloaded for a trial.
fn check_fleet(build: &Build<'_>, platforms: &[Platform]) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let files = unpack(build, "dipc-fleet", folder.path())?;
    ensure!(files.join("kubernetes-job.yaml").is_file(), "no kubernetes-job.yaml");
    let recipe = fs::read_to_string(files.join("Containerfile"))?;
    let copied: Vec<_> = recipe
        .lines()
        .filter_map(|line| line.strip_prefix("COPY "))
        .flat_map(|line| line.split(' ').filter(|word| word.contains("${TARGETARCH}")))
        .collect();
    ensure!(copied.len() == 2, "the Containerfile copies {copied:?}");
    for architecture in platforms.iter().filter_map(|platform| platform.architecture) {
        for path in &copied {
            let file = files.join(path.replace("${TARGETARCH}", architecture));
            ensure!(file.is_file(), "{} is not there", file.display());
        }
    }
    Ok(())
}

/// Unpacks the files of a program's container image, and returns their folder.
fn unpack(build: &Build<'_>, program: &str, folder: &Path) -> Result<PathBuf> {
    let name = format!("{program}-{}-container", build.release.version);
    let packed = File::open(build.dist.join(format!("{name}.tar.gz")))?;
    tar::Archive::new(flate2::read::GzDecoder::new(packed)).unpack(folder)?;
    Ok(folder.join(name))
}

/// Builds the image with the Containerfile, and runs `dipc ps` in it next to another container with a
/// simulated runtime.
fn run(build: &Build<'_>, native: &Platform) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let files = unpack(build, "dipc", folder.path())?;
    let buildah = || {
        let mut command = Command::new("buildah");
        // Images of this trial only, without the kernel's overlay file system.
        command.args(["--storage-driver", "vfs", "--root"]).arg(folder.path().join("images"));
        command.arg("--runroot").arg(folder.path().join("run"));
        command
    };
    let architecture = native.architecture.unwrap_or_default();
    let mut create = buildah();
    create.args(["build", "--quiet", "--tag", "dipc", "--build-arg", &format!("TARGETARCH={architecture}")]);
    execute(create.arg(files).stdout(Stdio::null()))?;
    execute(buildah().args(["from", "--name", "trial", "dipc"]).stdout(Stdio::null()))?;

    let shared = folder.path().join("shared");
    fs::create_dir(&shared)?;
    // Both containers run as the same user, not root.
    debian::set_mode(&shared, 0o777)?;
    let dipc = |arguments: &[&str]| {
        let mut command = buildah();
        // As in a pod with `shareProcessNamespace`, processes are shared.
        command.args(["run", "--isolation", "chroot", "--user", "1654:1654", "--env", "TMPDIR=/diagnostics"]);
        command.arg(format!("--volume={}:/diagnostics", shared.display())).args(["trial", "--", "/dipc"]);
        command.args(arguments);
        command
    };
    let application = Application::start(&mut dipc(&["sim"]))?;
    let output = dipc(&["ps", "--format", "json"]).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "dipc ps in the container: {}", output.status);
    let listing: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let found = array(&listing).iter().find(|process| process["pid"].as_u64() == Some(application.pid));
    let found = found.with_context(|| format!("dipc ps in the container lists {listing}"))?;
    ensure!(found["error"].is_null(), "dipc ps in the container: {found}");
    println!("dipc ps in the container: {found}");
    Ok(())
}

/// A container with a simulated runtime, stopped when dropped.
struct Application {
    child: Child,
    pid: u64,
}

impl Application {
    fn start(command: &mut Command) -> Result<Self> {
        // The runtime ends when its standard input is closed.
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("standard output")?;
        let mut application = Self { child, pid: 0 };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let pid = line.strip_prefix("ready ").and_then(|rest| rest.split(' ').next());
        application.pid = pid.with_context(|| format!("dipc sim in the container: {line:?}"))?.parse()?;
        Ok(application)
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
