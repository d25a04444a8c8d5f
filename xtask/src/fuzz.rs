//! `cargo xtask fuzz`: cargo-fuzz on a stable toolchain.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;

use crate::workspace::{self, cargo, execute};

#[derive(Args)]
pub(crate) struct Options {
    /// The target; without it, each in turn
    target: Option<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    time: u64,
    /// Runs this one input through the target instead
    #[arg(long, requires = "target")]
    input: Option<std::path::PathBuf>,
}

/// A target, and the folder of testdata that seeds its corpus.
const TARGETS: [(&str, &str); 6] = [
    ("nettrace", "traces"),
    ("netperf_v2", "traces"),
    ("netperf_v3", "traces"),
    ("nettrace_v4", "traces"),
    ("nettrace_v6", "traces"),
    ("wire", "wire"),
];

/// A seed longer than this only slows the fuzzer down: it mutates small inputs best.
const LONGEST_SEED: u64 = 16 << 10;

pub(crate) fn run(options: &Options) -> Result<()> {
    if !workspace::has_cargo_subcommand("fuzz") {
        println!("cargo-fuzz is not installed: installing it");
        execute(&mut cargo(["install", "cargo-fuzz", "--locked"]))?;
    }
    ensure!(
        workspace::is_installed("c++", "--version"),
        "libFuzzer needs a C++ compiler (Debian: apt-get install g++)"
    );
    let chosen: Vec<_> = TARGETS
        .into_iter()
        .filter(|(name, _)| options.target.as_deref().is_none_or(|chosen| chosen == *name))
        .collect();
    if chosen.is_empty() {
        bail!("no such target; there are: {}", TARGETS.map(|(name, _)| name).join(", "));
    }
    for (target, seeds) in chosen {
        let corpus = workspace::root().join("fuzz/corpus").join(target);
        let seeded = seed(&workspace::root().join("testdata").join(seeds), &corpus)?;
        println!("{target}: {seeded} seeds in {}", corpus.display());
        fuzz(target, options)?;
    }
    Ok(())
}

fn fuzz(target: &str, options: &Options) -> Result<()> {
    let mut command = cargo(["fuzz", "run", target]);
    command.env("RUSTC_BOOTSTRAP", "1").stdin(Stdio::null());
    if let Some(input) = &options.input {
        command.arg(std::path::absolute(input)?);
    } else {
        // The limits make a decoder that is asked to allocate or to loop by its input a finding.
        command.args(["--", "-rss_limit_mb=2048", "-timeout=10", "-print_final_stats=1"]);
        command.arg(format!("-max_total_time={}", options.time));
    }
    execute(&mut command)
}

/// Copies every file under `seeds`, `.xz` ones unpacked and cut, into the corpus; the number of files.
fn seed(seeds: &Path, corpus: &Path) -> Result<usize> {
    fs::create_dir_all(corpus)?;
    let mut count = 0;
    let mut folders = vec![seeds.to_owned()];
    while let Some(folder) = folders.pop() {
        if !folder.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Some(name) = path.file_name() else { continue };
            let mut seed = File::create(corpus.join(name))?;
            let file = File::open(&path)?;
            if path.extension().is_some_and(|extension| extension == "xz") {
                io::copy(&mut lzma_rust2::XzReader::new(file, false).take(LONGEST_SEED), &mut seed)?;
            } else {
                io::copy(&mut file.take(LONGEST_SEED), &mut seed)?;
            }
            count += 1;
        }
    }
    Ok(count)
}
