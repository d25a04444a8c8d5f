//! The project's development tasks: `cargo xtask` lists them, and `.ci/run` and the workflows call only these.

#![forbid(unsafe_code)]

mod bench;
mod book;
mod checksum;
mod commands;
mod cross;
mod fleet;
mod fuzz;
mod golden;
mod licences;
mod miri;
mod msrv;
mod packages;
mod release;
mod runtimes;
mod sanitize;
mod schemas;
mod setup;
mod steps;
mod test;
#[cfg(test)]
mod testdata;
mod toolchain;
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
    /// Checks everything: format, lints, all tests, the live tests on real .NET runtimes, docs, and each fuzz target for a few seconds
    Test(test::Options),
    /// Runs the checks of `.ci/run`, after its set-up: `test` with every runtime, a browser and Prometheus required
    ///
    /// A step that cannot run (fuzzing without cargo-fuzz, types with the oldest Rust without a network) is a failure here; `.ci/run` reports it.
    Ci,
    /// Installs the programs that tasks start, where they are missing, with apt-get, rustup and cargo
    Setup(setup::Options),
    /// Sets up the real .NET runtimes for the live tests, and prints where each is
    Runtimes(runtimes::Options),
    /// Fuzzes the parsers with cargo-fuzz, on this toolchain
    ///
    /// It installs cargo-fuzz if it is missing (`cargo install cargo-fuzz --locked`, a minute or two; libFuzzer needs a C++
    /// compiler), sets `RUSTC_BOOTSTRAP=1` for its builds, since sanitizers otherwise need a nightly toolchain, and seeds the corpus
    /// of each target (fuzz/corpus/TARGET, not committed) with testdata, and with the inputs that earlier fuzzing found and that add
    /// coverage (fuzz/corpora/TARGET.tar.xz, committed; `--minimize` writes it). A crash is written to fuzz/artifacts/TARGET: rerun it with
    /// `cargo xtask fuzz TARGET --input FILE`.
    Fuzz(fuzz::Options),
    /// Compares the readers' output for testdata with the committed expectations, or rewrites these
    Golden(golden::Options),
    /// Type-checks for Windows, macOS, aarch64 and WebAssembly, runs the parsers' tests on 32-bit, big-endian and aarch64 Linux, and
    /// the Windows programs under Wine
    ///
    /// The tests run natively or under QEMU. A standard library that rustup has not installed is built from its sources if these are installed, which takes some minutes
    /// the first time. A target without either, or without its linker or
    /// emulator, is reported as not run, which is a failure with `--require-all` only.
    Cross(cross::Options),
    /// Runs the parsers' unit tests in Miri, which finds undefined behaviour
    Miri(miri::Options),
    /// Runs the tests of dipc-transport, which has the `unsafe` code, with the address sanitizer
    Sanitize(sanitize::Options),
    /// Builds and tests everything with the oldest Rust that the crates promise (`rust-version` in Cargo.toml)
    Msrv,
    /// Compares the answers of every real runtime to every command with testdata/commands, or rewrites these
    Commands(commands::Options),
    /// Exports the recordings of testdata, and has DuckDB, DataFusion, Spark and ClickHouse answer queries that `dipc report` answers, too
    ///
    /// The engines are Python packages, which are installed in target/fleet-venv; Spark needs Java 17. One that cannot be had is named, and
    /// not run. With all of them it takes some minutes, with `duckdb datafusion` half a minute.
    Fleet(fleet::Options),
    /// Generates the code of clr-events from its table of facts
    Schemas(schemas::Options),
    /// Checks a release, makes its files in target/dist, and with `--publish` uploads them
    ///
    /// The files: packages for the registry, each built and tested alone; static programs, dipc and dipc-fleet, for Linux (x86-64, aarch64) and Windows,
    /// with man pages, completion scripts and licences; Debian packages; the files of container images; `install.sh`; bills of
    /// materials; the bytes that each dependency adds; the versions of compilers and linkers; SHA256SUMS. All but the last are built twice, in different folders, and must
    /// be the same. On two processors it takes most of an hour.
    Release(release::Options),
    /// Makes the book's web pages in target/book with mdBook, which is installed below target/tools if it is missing
    Book,
    /// Runs the criterion benchmarks
    Bench(bench::Options),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Test(options) => test::run(&options),
        Task::Ci => test::run(&test::Options { require_runtimes: true, require_all: true }),
        Task::Setup(options) => setup::run(&options),
        Task::Runtimes(options) => runtimes::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Golden(options) => golden::run(&options),
        Task::Cross(options) => cross::run(&options),
        Task::Miri(options) => miri::run(&options),
        Task::Sanitize(options) => sanitize::run(&options),
        Task::Msrv => msrv::run(),
        Task::Commands(options) => commands::run(&options),
        Task::Fleet(options) => fleet::run(&options),
        Task::Schemas(options) => schemas::run(&options),
        Task::Release(options) => release::run(&options),
        Task::Book => book::run(),
        Task::Bench(options) => bench::run(&options),
    }
}
