//! `cargo xtask fuzz`: cargo-fuzz on a stable toolchain.

mod seeds;

use std::process::Stdio;

use anyhow::{Result, bail, ensure};
use clap::Args;

use seeds::{InputFormat, header};

use crate::workspace::{self, cargo, execute};

#[derive(Args)]
pub(crate) struct Options {
    /// The target [default: all in turn]
    target: Option<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    time: u64,
    /// Runs this one input through the target instead
    #[arg(long, requires = "target")]
    input: Option<std::path::PathBuf>,
}

/// A fuzz target.
struct Target {
    name: &'static str,
    input: InputFormat,
    /// The folder of testdata that seeds its corpus.
    testdata: &'static str,
}

const fn target(name: &'static str, input: InputFormat, testdata: &'static str) -> Target {
    Target { name, input, testdata }
}

const TARGETS: [Target; 9] = [
    target("clr_events", InputFormat::Recording(&[]), "traces"),
    target("nettrace", InputFormat::Recording(&[]), "traces"),
    target("nettrace_export", InputFormat::Recording(&[]), "traces"),
    target("netperf_v2", InputFormat::Recording(header::NETPERF_V2), "traces"),
    target("netperf_v3", InputFormat::Recording(header::NETPERF_V3), "traces"),
    target("nettrace_v4", InputFormat::Recording(header::NETTRACE_V4), "traces"),
    target("nettrace_v6", InputFormat::Recording(header::NETTRACE_V6), "traces"),
    target("portable_pdb", InputFormat::Symbols, "workload/lines"),
    target("wire", InputFormat::Message, "wire"),
];

pub(crate) fn run(options: &Options) -> Result<()> {
    let chosen = chosen(options.target.as_deref())?;
    workspace::install_cargo_subcommand("fuzz")?;
    ensure!(
        workspace::is_installed("c++", "--version"),
        "libFuzzer needs a C++ compiler (Debian: apt-get install g++)"
    );
    for Target { name, input, testdata } in chosen {
        let corpus = workspace::root().join("fuzz/corpus").join(name);
        let count = seeds::write_corpus(input, testdata, &corpus)?;
        println!("{name}: {count} seeds in {}", corpus.display());
        fuzz(name, options)?;
    }
    Ok(())
}

/// The target of a name, or all.
fn chosen(name: Option<&str>) -> Result<Vec<Target>> {
    let chosen: Vec<_> =
        TARGETS.into_iter().filter(|target| name.is_none_or(|name| name == target.name)).collect();
    if let (Some(name), true) = (name, chosen.is_empty()) {
        bail!("no fuzz target {name}; there are: {}", TARGETS.map(|target| target.name).join(", "));
    }
    Ok(chosen)
}

fn fuzz(target: &str, options: &Options) -> Result<()> {
    let mut command = cargo(["fuzz", "run", target]);
    command.env("RUSTC_BOOTSTRAP", "1").stdin(Stdio::null());
    if let Some(input) = &options.input {
        command.arg(std::path::absolute(input)?);
    } else {
        // The limits report a decoder whose input makes it allocate or loop without bounds.
        command.args(["--", "-rss_limit_mb=2048", "-timeout=10", "-print_final_stats=1"]);
        command.arg(format!("-max_total_time={}", options.time));
    }
    execute(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_is_not_there_is_refused_before_anything_is_installed() {
        let options = Options { target: Some("nosuch".to_owned()), time: 1, input: None };
        let error = run(&options).unwrap_err().to_string();
        assert!(error.starts_with("no fuzz target nosuch; there are: clr_events, "), "{error}");
        assert_eq!(chosen(Some("wire")).unwrap().len(), 1);
        assert_eq!(chosen(None).unwrap().len(), TARGETS.len());
    }
}
