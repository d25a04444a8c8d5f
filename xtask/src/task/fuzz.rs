//! `cargo xtask fuzz`: cargo-fuzz on a stable toolchain.

mod brief;
mod corpus;
mod seeds;

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail, ensure};

pub(crate) use brief::{build, check};
use seeds::{InputFormat, header};

use crate::arguments::FuzzOptions;
use crate::task::workspace::{self, cargo, execute};

/// A fuzz target.
struct Target {
    name: &'static str,
    input: InputFormat,
    /// The folder of testdata that seeds its corpus.
    testdata: &'static str,
    /// The number of inputs that `cargo xtask test` runs, including the corpus: a few seconds of them.
    brief_runs: u32,
}

const fn target(name: &'static str, input: InputFormat, testdata: &'static str, brief_runs: u32) -> Target {
    Target { name, input, testdata, brief_runs }
}

const TARGETS: [Target; 35] = [
    target("async_profiler", InputFormat::Random, "wire", 50_000),
    target("client", InputFormat::Answer, "wire/replies", 15_000),
    target("clr_counters", InputFormat::Recording(&[]), "counters", 3_000),
    target("clr_dump", InputFormat::Patches, "cores", 150),
    target("clr_events", InputFormat::Recording(&[]), "traces", 8_000),
    target("conditions", InputFormat::Recording(&[]), "traces", 2_500),
    target("contracts", InputFormat::Descriptor, "wire", 100_000),
    target("counters_export", InputFormat::Recording(&[]), "counters", 1_000),
    target("doctor_facts", InputFormat::Facts, "wire", 225_000),
    target("event_lines", InputFormat::Recording(&[]), "traces", 1_250),
    target("gcdump", InputFormat::Recording(&[]), "gcdump/recordings", 15_000),
    target("gcdump_file", InputFormat::HeapDump, "gcdump/files", 100_000),
    target("netperf_v2", InputFormat::Recording(header::NETPERF_V2), "traces", 2_000),
    target("netperf_v3", InputFormat::Recording(header::NETPERF_V3), "traces", 2_250),
    target("nettrace", InputFormat::Recording(&[]), "traces", 1_500),
    target("nettrace_edit", InputFormat::Recording(&[]), "traces", 1_500),
    target("nettrace_export", InputFormat::Recording(&[]), "traces", 1_500),
    target("nettrace_merge", InputFormat::Recording(&[]), "traces", 2_500),
    target("nettrace_v4", InputFormat::Recording(header::NETTRACE_V4), "traces", 1_750),
    target("nettrace_v6", InputFormat::Recording(header::NETTRACE_V6), "traces", 1_000),
    target("nettrace_writer", InputFormat::Recording(&[]), "traces", 5_000),
    target("owners", InputFormat::Random, "wire", 10),
    target("page", InputFormat::Recording(&[]), "traces", 1_000),
    target("port", InputFormat::Advertised, "wire/replies", 6_000),
    target("portable_pdb", InputFormat::Symbols, "workload/lines", 30_000),
    target("pprof", InputFormat::Text, "wire", 25_000),
    target("program", InputFormat::Program, "workload/nativeaot", 250_000),
    target("reports", InputFormat::Recording(&[]), "traces", 1_500),
    target("rewrite", InputFormat::Recording(&[]), "traces", 4_000),
    target("sampler", InputFormat::Samples, "sampler", 750),
    target("simulator", InputFormat::Request, "wire/requests", 3_500),
    target("synthetic", InputFormat::Random, "wire", 750),
    target("tables", InputFormat::Recording(&[]), "traces", 750),
    target("text", InputFormat::Text, "wire", 100_000),
    target("wire", InputFormat::Message, "wire", 75_000),
];

pub(crate) fn run(options: &FuzzOptions) -> Result<()> {
    let chosen = chosen(&options.targets)?;
    workspace::install_cargo_subcommand("fuzz")?;
    ensure!(has_compiler(), NO_COMPILER);
    for target in chosen {
        let name = target.name;
        let folder = workspace::root().join("fuzz/corpus").join(name);
        write_corpus(&target, &folder)?;
        fuzz(name, options)?;
        if options.minimize {
            execute(fuzz_command("cmin", options.quick)?.arg(name))?;
            let seeds = seeds::seeds(target.input, target.testdata)?;
            let (inputs, bytes) = corpus::pack(name, &folder, &seeds)?;
            println!("{name}: {inputs} inputs are kept, {bytes} bytes packed");
        }
    }
    Ok(())
}

/// The targets of these names, or all.
fn chosen(names: &[String]) -> Result<Vec<Target>> {
    let unknown = names.iter().find(|name| !TARGETS.iter().any(|target| target.name == **name));
    if let Some(name) = unknown {
        bail!("no fuzz target {name}; there are: {}", TARGETS.map(|target| target.name).join(", "));
    }
    let is_chosen = |target: &Target| names.is_empty() || names.iter().any(|name| name == target.name);
    Ok(TARGETS.into_iter().filter(is_chosen).collect())
}

/// The reason why no target can be built without a C++ compiler.
const NO_COMPILER: &str = "libFuzzer needs a C++ compiler (Debian: apt-get install g++)";

fn has_compiler() -> bool {
    workspace::is_installed("c++", "--version")
}

/// Writes the seeds and the kept inputs of a target into a folder.
fn write_corpus(target: &Target, folder: &Path) -> Result<()> {
    let seeds = seeds::write_corpus(target.input, target.testdata, folder)?;
    let kept = corpus::unpack(target.name, folder)?;
    println!("{}: {seeds} seeds and {kept} kept inputs in {}", target.name, folder.display());
    Ok(())
}

/// Returns a command of cargo-fuzz. The targets call `unsafe` code only in well-kept libraries, so a quick
/// build without a sanitizer finds the same faults of this project.
fn fuzz_command(subcommand: &str, quick: bool) -> Result<Command> {
    let mut command = cargo(["fuzz", subcommand]);
    command.env("RUSTC_BOOTSTRAP", "1").stdin(Stdio::null());
    if quick {
        command.args(["--dev", "--sanitizer", "none", "--target-dir"]).arg(workspace::target()?.join("fuzz"));
    }
    Ok(command)
}

fn fuzz(target: &str, options: &FuzzOptions) -> Result<()> {
    let mut command = fuzz_command("run", options.quick)?;
    command.arg(target);
    if let Some(input) = &options.input {
        command.arg(std::path::absolute(input)?);
    } else {
        // The limits report decoders that allocate or loop without bounds.
        command.args(["--", "-rss_limit_mb=2048", "-timeout=10", "-print_final_stats=1"]);
        command.arg(format!("-max_total_time={}", options.time.as_secs()));
    }
    execute(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_is_not_there_is_refused_before_anything_is_installed() {
        let targets = vec!["wire".to_owned(), "nosuch".to_owned()];
        let options = FuzzOptions {
            targets,
            all: false,
            time: std::time::Duration::from_secs(1),
            minimize: false,
            quick: true,
            input: None,
        };
        let error = run(&options).unwrap_err().to_string();
        assert!(
            error.starts_with("no fuzz target nosuch; there are: async_profiler, client, clr_counters, "),
            "{error}"
        );
        assert_eq!(chosen(&["wire".to_owned()]).unwrap().len(), 1);
        assert_eq!(chosen(&[]).unwrap().len(), TARGETS.len());
    }

    #[test]
    fn times_have_units() {
        let seconds = |text| crate::arguments::parse_time(text).map(|time| time.as_secs()).ok();
        assert_eq!(["90", "90s", "10m", "2h"].map(seconds), [Some(90), Some(90), Some(600), Some(7200)]);
        assert_eq!(["", "m", "1d", "-1", "1.5m"].map(seconds), [None; 5]);
    }

    #[test]
    fn each_target_of_the_fuzz_crate_is_listed() {
        let folder = workspace::root().join("fuzz/fuzz_targets");
        let mut names: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names, TARGETS.map(|target| target.name));
    }
}
