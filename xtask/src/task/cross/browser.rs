//! WebAssembly: the crates that read recordings, and the page in `examples/browser`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::task::steps::Steps;
use crate::task::toolchain::{Toolchain, program};
use crate::task::workspace::{self, execute};

/// The crates that read and convert recordings.
const PACKAGES: [&str; 5] = ["nettrace", "clr-events", "clr-activity", "portable-pdb", "nettrace-export"];

/// The golden recording that the page's module reads here.
const RECORDING: &str = "testdata/traces/net10-exceptions";

pub(super) fn run(steps: &mut Steps, toolchain: &Toolchain, target: &str) {
    steps.run(&format!("type check for {target}"), || {
        let mut check = toolchain.cargo("check", target);
        execute(check.arg("--lib").args(PACKAGES.iter().flat_map(|package| ["-p", *package])))
    });
    steps.run("the module of examples/browser", || {
        let manifest = workspace::root().join("examples/browser/Cargo.toml");
        execute(
            toolchain.cargo("build", target).args(["--release", "--locked", "--manifest-path"]).arg(manifest),
        )
    });
    let name = "examples/browser reads a recording";
    match program(&["node"], "Debian: apt-get install nodejs") {
        Ok(node) => steps.run(name, || read_recording(Command::new(node), target)),
        Err(missing) => steps.not_run(name, &format!("{missing:#}")),
    }
}

/// Reads a recording with the module, and compares the result with the golden's counts.
fn read_recording(mut node: Command, target: &str) -> Result<()> {
    let built = Toolchain::target_folder()?.join(target);
    let recording = built.join("recording.nettrace");
    let compressed = File::open(workspace::root().join(RECORDING).with_extension("nettrace.xz"))?;
    io::copy(&mut lzma_rust2::XzReader::new(compressed, true), &mut File::create(&recording)?)?;
    node.arg(workspace::root().join("examples/browser/check.mjs"));
    node.arg(built.join("release/browser_example.wasm")).arg(recording);
    let output = node.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "check.mjs: {}", output.status);
    let result = String::from_utf8(output.stdout)?;
    print!("{result}");
    let expected =
        golden_counts(&fs::read_to_string(workspace::root().join(RECORDING).with_extension("txt"))?)?;
    ensure!(!expected.is_empty() && result == expected, "the golden has\n{expected}");
    Ok(())
}

/// Returns the lines `COUNT PROVIDER` from a golden's lines `COUNT events BYTES bytes PROVIDER …`.
fn golden_counts(golden: &str) -> Result<String> {
    let mut counts = BTreeMap::<&str, u64>::new();
    for line in golden.lines() {
        let words = line.split_whitespace().collect::<Vec<_>>();
        if let [count, "events", _, "bytes", provider, ..] = words[..] {
            *counts.entry(provider).or_default() += count.parse::<u64>().context("count")?;
        }
    }
    let lines: Vec<_> = counts.iter().map(|(provider, count)| format!("{count} {provider}\n")).collect();
    Ok(lines.concat())
}
