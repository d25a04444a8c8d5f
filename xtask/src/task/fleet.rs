//! `cargo xtask fleet`: exported recordings queried by SQL engines. The answers must equal the results of
//! `dipc report`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::arguments::FleetOptions;
use crate::task::workspace::{self, cargo, execute};

/// The Python packages of the engines, each with the reason that it may be missing.
const PACKAGES: [(&str, &str); 10] = [
    ("duckdb", ""),
    // DuckDB's program, which `dipc sql` starts.
    ("duckdb_cli", ""),
    ("datafusion", ""),
    // DataFusion's results; Python's tables.
    ("pyarrow", ""),
    ("pyspark", "it needs Java 17"),
    // ClickHouse as a library.
    ("chdb", ""),
    // A server that speaks the protocol of Amazon S3, and a client of it.
    ("moto", ""),
    ("flask", ""),
    ("boto3", ""),
    // Kubernetes' files.
    ("yaml", ""),
];

pub(crate) fn run(options: &FleetOptions) -> Result<()> {
    let folder = workspace::target()?;
    let python = python(&folder.join("fleet-venv"), options.offline)?;
    let mut build = cargo(["build", "-p", "dipc-cli", "--all-features"]);
    execute(if options.release { build.arg("--release") } else { &mut build })?;
    let mut script = Command::new(python);
    script.arg(workspace::root().join("xtask/fleet/fleet.py"));
    let profile = if options.release { "release" } else { "debug" };
    script
        .arg(folder.join(profile).join("dipc"))
        .arg(workspace::root().join("testdata"))
        .arg(folder.join("fleet"));
    script.arg(workspace::root().join("fleet")).arg(options.recordings.to_string());
    execute(script.args(&options.engines))
}

/// Returns the interpreter of an environment with the engines, as far as they can be installed.
fn python(environment: &Path, offline: bool) -> Result<PathBuf> {
    let python = environment.join("bin/python");
    if !python.exists() {
        execute(Command::new("python3").args(["-m", "venv"]).arg(environment)).context("python3 -m venv")?;
    }
    for (package, reason) in PACKAGES {
        let installed = Command::new(&python).args(["-c", &format!("import {package}")]).output()?;
        if installed.status.success() || offline {
            continue;
        }
        if package == "pyspark" && !has_java_17() {
            println!("not installed: {package}: {reason}");
            continue;
        }
        // Built here without a wheel: pyspark is a source package.
        let pip = |packages: &[&str]| {
            let packages = packages.iter().map(|package| match *package {
                "moto" => "moto[iam,s3,server]",
                "yaml" => "pyyaml",
                "duckdb_cli" => "duckdb-cli",
                other => other,
            });
            execute(Command::new(&python).args(["-m", "pip", "install", "-q"]).args(packages))
        };
        let wheel = pip(&[package]).or_else(|_| {
            pip(&["wheel", "setuptools"])?;
            pip(&["--no-build-isolation", package])
        });
        if let Err(error) = wheel {
            println!("not installed: {package}: {error:#}");
        }
    }
    Ok(python)
}

/// Returns true if Spark runs on the installed Java.
fn has_java_17() -> bool {
    let output = Command::new("java").arg("-version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).unwrap_or_default();
    let version = text.split('"').nth(1).and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    version.is_some_and(|version| version >= 17)
}
