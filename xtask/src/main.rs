//! The project's development tasks: `cargo xtask` lists them, and `.ci/run` calls only these.

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
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "The development tasks of this workspace")]
#[command(arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Checks everything: format, lints, all tests, the live tests on real .NET runtimes, docs, fuzz targets
    Test(test::Options),
    /// Runs the checks of `.ci/run`: `test`, with every runtime required
    Ci,
    /// Sets up the real .NET runtimes for the live tests, and prints where each is
    Runtimes(runtimes::Options),
    /// Fuzzes the parsers with cargo-fuzz, on this toolchain
    ///
    /// It installs cargo-fuzz if it is missing (`cargo install cargo-fuzz --locked`, a minute or two; libFuzzer needs a C++
    /// compiler), sets `RUSTC_BOOTSTRAP=1` for its builds, since sanitizers otherwise need a nightly toolchain, and seeds the corpus
    /// of each target (fuzz/corpus/TARGET, not committed) with testdata. A crash is written to fuzz/artifacts/TARGET: rerun it with
    /// `cargo xtask fuzz TARGET --input FILE`.
    Fuzz(fuzz::Options),
    /// Compares the readers' output for testdata with the committed expectations, or rewrites these
    Golden(golden::Options),
    /// Type-checks for Windows, macOS and aarch64, and runs the Windows programs under Wine
    ///
    /// A standard library that rustup has not installed is built from its sources if these are installed, which takes some minutes
    /// the first time. A target without either is reported as not run, which is no failure.
    Cross(cross::Options),
    /// Compares the answers of every real runtime to every command with testdata/commands, or rewrites these
    Commands(commands::Options),
    /// Generates the code of clr-events from its table of facts
    Schemas(schemas::Options),
    /// Runs the criterion benchmarks
    Bench(bench::Options),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Test(options) => test::run(&options),
        Task::Ci => test::run(&test::Options { require_runtimes: true }),
        Task::Runtimes(options) => runtimes::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Golden(options) => golden::run(&options),
        Task::Cross(options) => cross::run(&options),
        Task::Commands(options) => commands::run(&options),
        Task::Schemas(options) => schemas::run(&options),
        Task::Bench(options) => bench::run(&options),
    }
}
