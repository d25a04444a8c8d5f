//! A trial of the container image: it must find a runtime outside through a shared temporary folder.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::Build;
use super::programs::Platform;
use crate::steps::Steps;
use crate::workspace::{execute, is_installed};

const STEP: &str = "container image";

pub(super) fn check(steps: &mut Steps, build: &Build<'_>, platforms: &[Platform]) {
    let Some(native) = platforms.iter().find(|platform| platform.is_native()) else {
        return steps.not_run(STEP, "no program of the release runs here");
    };
    if !is_installed("buildah", "--version") {
        return steps.not_run(STEP, "buildah is not installed (Debian: apt-get install buildah)");
    }
    steps.run(STEP, || run(build, native));
}

/// Builds the image with the Containerfile, and runs `dipc ps` in it beside a simulated runtime.
fn run(build: &Build<'_>, native: &Platform) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let name = format!("dipc-{}-container", build.release.version);
    let packed = std::fs::File::open(build.dist.join(format!("{name}.tar.gz")))?;
    tar::Archive::new(flate2::read::GzDecoder::new(packed)).unpack(folder.path())?;
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
    execute(create.arg(folder.path().join(name)).stdout(Stdio::null()))?;
    execute(buildah().args(["from", "--name", "trial", "dipc"]).stdout(Stdio::null()))?;

    let shared = folder.path().join("shared");
    std::fs::create_dir(&shared)?;
    let runtime = Runtime::start(&native.stripped(build), &shared)?;
    let mut ps = buildah();
    // As in a pod with `shareProcessNamespace`, processes are shared.
    ps.args(["run", "--isolation", "chroot", "--env", "TMPDIR=/diagnostics", "--volume"]);
    ps.arg(format!("{}:/diagnostics", shared.display()));
    let output =
        ps.args(["trial", "--", "/dipc", "ps", "--format", "json"]).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "dipc ps in the container: {}", output.status);
    let listing: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let found = crate::packages::array(&listing).iter().find(|process| process["pid"] == runtime.child.id());
    let found = found.with_context(|| format!("dipc ps in the container lists {listing}"))?;
    ensure!(found["error"].is_null(), "dipc ps in the container: {found}");
    println!("dipc ps in the container: {found}");
    Ok(())
}

/// A simulated runtime with its port in a folder, stopped when dropped.
struct Runtime {
    child: Child,
}

impl Runtime {
    fn start(program: &Path, folder: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        // It runs until its standard input is closed.
        command.arg("sim").stdin(Stdio::piped()).stdout(Stdio::piped()).env("TMPDIR", folder);
        let mut runtime = Self { child: command.spawn()? };
        let stdout = runtime.child.stdout.take().context("standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        ensure!(line.starts_with("ready"), "dipc sim: {line:?}");
        Ok(runtime)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
