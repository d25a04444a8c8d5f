//! `cargo xtask fuzz`: cargo-fuzz on a stable toolchain.

mod seeds;

use std::process::Stdio;

use anyhow::{Result, bail, ensure};
use clap::Args;

use seeds::{Input, header};

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

/// A target, what it takes for input, and the folder of testdata that seeds its corpus.
const TARGETS: [(&str, Input, &str); 8] = [
    ("clr_events", Input::Recording(&[]), "traces"),
    ("nettrace", Input::Recording(&[]), "traces"),
    ("nettrace_export", Input::Recording(&[]), "traces"),
    ("netperf_v2", Input::Recording(header::NETPERF_V2), "traces"),
    ("netperf_v3", Input::Recording(header::NETPERF_V3), "traces"),
    ("nettrace_v4", Input::Recording(header::NETTRACE_V4), "traces"),
    ("nettrace_v6", Input::Recording(header::NETTRACE_V6), "traces"),
    ("wire", Input::Message, "wire"),
];

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
        .filter(|(name, ..)| options.target.as_deref().is_none_or(|chosen| chosen == *name))
        .collect();
    if chosen.is_empty() {
        bail!("no such target; there are: {}", TARGETS.map(|(name, ..)| name).join(", "));
    }
    for (target, input, folder) in chosen {
        let corpus = workspace::root().join("fuzz/corpus").join(target);
        let seeded = seeds::plant(input, folder, &corpus)?;
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
