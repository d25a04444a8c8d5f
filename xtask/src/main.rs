//! The project's chores: `cargo xtask` lists them, `.ci/run` calls nothing else.

#![forbid(unsafe_code)]

mod bench;
mod commands;
mod cross;
mod fuzz;
mod golden;
mod licences;
mod runtimes;
mod schemas;
mod steps;
mod test;
#[cfg(test)]
mod testdata;
mod workspace;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "Everything that is done to this workspace"
)]
#[command(arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Checks everything: format, lints, all tests, the live tests on real .NET runtimes, docs, fuzz targets
    Test(test::Options),
    /// Does what `.ci/run` does after it has prepared the machine: `test`, with every runtime required
    Ci,
    /// Sets up the real .NET runtimes for the live tests, and prints where each is
    Runtimes(runtimes::Options),
    /// Fuzzes the parsers with cargo-fuzz, on this toolchain
    ///
    /// What it sets up: cargo-fuzz itself where it is missing (`cargo install cargo-fuzz --locked`, a minute or two; libFuzzer
    /// needs a C++ compiler); `RUSTC_BOOTSTRAP=1` for its builds, since sanitizers are else for nightly toolchains only; and the
    /// corpus of each target (fuzz/corpus/TARGET, not committed), seeded with testdata. A crash lands in fuzz/artifacts/TARGET:
    /// rerun it with `cargo xtask fuzz TARGET --input FILE`.
    Fuzz(fuzz::Options),
    /// Compares what the readers say of testdata with the committed expectations, or rewrites these
    Golden(golden::Options),
    /// Type-checks for Windows, macOS and aarch64, and runs the Windows programs under Wine
    ///
    /// A standard library that rustup has not installed is built from its sources, where these are; the first time takes some
    /// minutes. What is missing is named, and not counted as a failure.
    Cross(cross::Options),
    /// Compares what every real runtime answers to every command with testdata/commands, or rewrites that
    Commands(commands::Options),
    /// Makes the code of clr-events from its table of facts
    Schemas(schemas::Options),
    /// Runs the criterion benchmarks
    Bench(bench::Options),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().chore {
        Chore::Test(options) => test::run(&options),
        Chore::Ci => test::run(&test::Options { require_runtimes: true }),
        Chore::Runtimes(options) => runtimes::run(&options),
        Chore::Fuzz(options) => fuzz::run(&options),
        Chore::Golden(options) => golden::run(&options),
        Chore::Cross(options) => cross::run(&options),
        Chore::Commands(options) => commands::run(&options),
        Chore::Schemas(options) => schemas::run(&options),
        Chore::Bench(options) => bench::run(&options),
    }
}
