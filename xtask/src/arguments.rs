//! The command line of `cargo xtask`, which is compiled without the packages that the tasks need.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "The development tasks of this workspace")]
#[command(
    after_help = "Durations are for a quiet machine with two processors, once dependencies are downloaded."
)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Subcommand)]
pub(crate) enum Task {
    /// Checks everything: format, lints, all tests, the live tests on real .NET runtimes, docs, and each fuzz
    /// target for a few seconds (about 15 min; with `--quick` up to 3 min after the build)
    ///
    /// The builds take about 5 min of these, the tests 6 min and the fuzz targets 4 min. Without any runtime
    /// the live tests do not run.
    Test(TestOptions),
    /// Runs the checks of `.ci/run`, after its set-up: `test` with every runtime, a browser and Prometheus
    /// required (about 15 min)
    ///
    /// A step that cannot run (fuzzing without cargo-fuzz, types with the oldest Rust without a network) is a
    /// failure here; `.ci/run` reports it.
    Ci,
    /// Installs the programs that tasks start, where they are missing, with apt-get, rustup and cargo
    /// (minutes, by what is missing)
    Setup(SetupOptions),
    /// Sets up the real .NET runtimes for the live tests, and prints where each is (seconds to minutes, by
    /// the network)
    Runtimes(RuntimesOptions),
    /// Fuzzes the parsers with cargo-fuzz, on this toolchain (1 min for each target, or `--time`)
    ///
    /// It installs cargo-fuzz if it is missing (`cargo install cargo-fuzz --locked`, a minute or two;
    /// libFuzzer needs a C++ compiler), sets `RUSTC_BOOTSTRAP=1` for its builds, since sanitizers otherwise
    /// need a nightly toolchain, and seeds the corpus of each target (fuzz/corpus/TARGET, not committed) with
    /// testdata, and with the inputs that earlier fuzzing found and that add coverage
    /// (fuzz/corpora/TARGET.tar.xz, committed; `--minimize` writes it). A crash is written to
    /// fuzz/artifacts/TARGET: rerun it with `cargo xtask fuzz TARGET --input FILE`.
    Fuzz(FuzzOptions),
    /// Runs the random tests with fresh seeds, which are fixed in `cargo xtask test` (1 h, or `--time`)
    ///
    /// Random tests are those in modules of the name `random`; they draw from proptest's seed,
    /// `PROPTEST_RNG_SEED`. All run with one seed after the other until the time is over. For a failure the
    /// command that repeats it is printed; what is found becomes a test of its own, with its input.
    Explore(ExploreOptions),
    /// Compares the readers' output for testdata with the committed expectations, or rewrites these (minutes,
    /// most of them for the build)
    Golden(GoldenOptions),
    /// Counts the instructions of commands on recordings of testdata with valgrind, and compares them with
    /// xtask/cost.txt, or rewrites that (up to a minute after the build)
    ///
    /// The table is of one compiler and one kind of processor, which it names; with others nothing is
    /// compared.
    Cost(CostOptions),
    /// Type-checks for Windows, macOS, aarch64 and WebAssembly, runs the parsers' tests on 32-bit, big-endian
    /// and aarch64 Linux, and the Windows programs under Wine (minutes for each target)
    ///
    /// The tests run natively or under QEMU. A standard library that rustup has not installed is built from
    /// its sources if these are installed, which takes some minutes the first time. A target without either,
    /// or without its linker or emulator, is reported as not run, which is a failure with `--require-all`
    /// only.
    Cross(CrossOptions),
    /// Runs the parsers' unit tests in Miri, which finds undefined behaviour (minutes for each crate)
    Miri(MiriOptions),
    /// Runs the tests of dipc-transport, which has the `unsafe` code, with the address sanitizer (about 1
    /// min)
    Sanitize(SanitizeOptions),
    /// Builds and tests everything with the oldest Rust that the crates promise (`rust-version` in
    /// Cargo.toml; about 15 min)
    Msrv,
    /// Compares the answers of every real runtime to every command with testdata/commands, or rewrites these
    /// (minutes, most of them for the build)
    Commands(CommandsOptions),
    /// Exports the recordings of testdata, and has DuckDB, DataFusion, Spark and ClickHouse answer queries
    /// that `dipc report` answers, too (30 s for `duckdb datafusion`, minutes for all)
    ///
    /// The engines are Python packages, which are installed in target/fleet-venv; Spark needs Java 17. An
    /// engine that cannot be installed is named, and not run.
    Fleet(FleetOptions),
    /// Measures the kernel's samples of real runtimes against the kernel's account, the programs' own clocks,
    /// EventPipe's sampler and perf, and prints tables (about 14 min)
    ///
    /// It needs Linux, the right to sample (root, or kernel.perf_event_paranoid of at most 1), the runtimes
    /// of `cargo xtask runtimes`, python3, and perf for one table. Nothing is judged: figures of a loaded
    /// machine mean little.
    Sampling(SamplingOptions),
    /// Takes core dumps of every kind on the real runtimes, and prints how much of what is known of the
    /// programs 'dipc dump analyze' finds, as a table (Linux; takes python3 and an hour of one processor at
    /// most)
    Dumps(DumpsOptions),
    /// Records a program with one method that is 10 % slower on one side, and prints how often `dipc diff`
    /// names it, and how often it is wrong about recordings of the same program (about 10 min)
    ///
    /// It needs Linux, the right to sample, .NET 9.0.1 of `cargo xtask runtimes`, and python3. The recordings
    /// stay in target/planted, and are used again. Nothing is judged.
    Planted(PlantedOptions),
    /// Generates the code of clr-events from its facts, and the schema of dipc-monitor (about a second)
    Schemas(SchemasOptions),
    /// Checks a release, makes its files in target/release-files, and with `--publish` uploads them (about 1
    /// h)
    ///
    /// The files: packages for the registry, each built and tested alone; static programs, dipc and
    /// dipc-fleet, for Linux (x86-64, aarch64) and Windows, with man pages, completion scripts and licences;
    /// Debian packages; the files of container images; `install.sh`; bills of materials; the bytes that each
    /// dependency adds; the versions of compilers and linkers; SHA256SUMS. All but the last are built twice,
    /// in different folders, and must be the same.
    Release(ReleaseOptions),
    /// Runs a program in virtual machines with other kernels, whose root is this machine's, read-only;
    /// without a program it tries `dipc` next to .NET 9 and 10 (one to two minutes for each machine; the
    /// first time some minutes to download Debian's kernels, and 10 min to build the one with user_events)
    ///
    /// It needs QEMU, which emulates the processor, and Debian's apt-get, which downloads kernels and
    /// busybox; nothing is installed, and no root's rights are needed (`cargo xtask setup vm` installs QEMU
    /// and the kernel's build tools). All is kept in target/vm. The program is root in the machine, and /tmp
    /// and /run are empty. What it writes to /mnt is in target/vm/runs/MACHINE/output afterwards.
    Vm(VmOptions),
    /// Makes the book's web pages in target/book with mdBook, which is installed below target/tools if it is
    /// missing (seconds, or some minutes with mdBook's installation)
    Book,
    /// Builds the page that reads recordings in a browser, target/browser/dipc.html, prints its size, and has
    /// Chromium compare the pages that it makes with those of `dipc convert` (some minutes for the builds)
    Browser,
    /// Runs the criterion benchmarks (minutes for each crate)
    Bench(BenchOptions),
}

/// The environment variable with the folder of the runtimes; the live tests read it too.
pub(crate) const RUNTIMES: &str = "DIPC_RUNTIMES";
/// The environment variable that makes a missing runtime an error.
pub(crate) const REQUIRE_RUNTIMES: &str = "DIPC_REQUIRE_RUNTIMES";

pub(crate) const WINDOWS: &str = "x86_64-pc-windows-gnu";
/// A target without an operating system, and so without a standard library.
pub(crate) const BARE_METAL: &str = "thumbv7em-none-eabi";
/// WebAssembly without a host's interface, as in a browser.
pub(crate) const BROWSER: &str = "wasm32-unknown-unknown";
pub(crate) const CROSS_TARGETS: [&str; 8] = [
    WINDOWS,
    "aarch64-unknown-linux-gnu",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "i686-unknown-linux-gnu",
    "s390x-unknown-linux-gnu",
    BROWSER,
    BARE_METAL,
];

/// The tasks with programs that can be set up.
pub(crate) const SETUP_TASKS: [&str; 10] =
    ["ci", "test", "msrv", "cross", "miri", "sanitize", "fuzz", "release", "book", "vm"];

/// The crates that neither speak with processes nor need a C library. Their own code does not use `unsafe`;
/// unsafe code of their dependencies (hashbrown, memchr) is reached with their data. Not among them: gcdump,
/// because some of its tests fill tables to their limits, more than ten minutes each here; clr-counters,
/// because its tests expect exact logarithms and powers, which Miri makes inexact on purpose; clr-conditions,
/// which does not have unit tests.
pub(crate) const MIRI_PACKAGES: [&str; 5] =
    ["dipc-wire", "nettrace", "nettrace-writer", "clr-events", "portable-pdb"];

/// The arguments of `cargo xtask test`.
#[derive(Args)]
pub(crate) struct TestOptions {
    /// Checks format and lints, and runs the tests that need neither a real runtime nor a browser; leaves out
    /// fuzzing, docs, the oldest Rust and the packages (up to 3 min after the build)
    #[arg(long, conflicts_with = "require_all")]
    pub(crate) quick: bool,
    /// Fails if a .NET runtime of the live tests cannot be set up, instead of skipping its tests
    #[arg(long, env = REQUIRE_RUNTIMES, value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) require_runtimes: bool,
    /// Fails where any step cannot run, and where a browser or Prometheus that tests need is missing, instead
    /// of reporting it
    #[arg(long)]
    pub(crate) require_all: bool,
}

/// The arguments of `cargo xtask setup`.
#[derive(Args)]
pub(crate) struct SetupOptions {
    /// Only what this task needs [default: all]
    #[arg(value_parser = SETUP_TASKS)]
    pub(crate) task: Option<String>,
}

/// The arguments of `cargo xtask runtimes`.
#[derive(Args)]
pub(crate) struct RuntimesOptions {
    /// Folder of the runtimes [default: runtimes in cargo's target folder]
    #[arg(long, env = RUNTIMES)]
    pub(crate) dir: Option<PathBuf>,
    /// Folder of packages downloaded before, which is searched first; their checksums are checked too
    #[arg(long)]
    pub(crate) packages: Option<PathBuf>,
}

/// The arguments of `cargo xtask fuzz`.
#[derive(Args)]
pub(crate) struct FuzzOptions {
    /// The targets [default: all, one after the other]
    pub(crate) targets: Vec<String>,
    /// All targets, which is also the default
    #[arg(long, conflicts_with = "targets")]
    pub(crate) all: bool,
    /// Time for each target: seconds, or a number with s, m or h
    #[arg(long, default_value = "60s", value_parser = parse_time)]
    pub(crate) time: Duration,
    /// Afterwards drops the inputs of each corpus that add no coverage, and packs all but the seeds into
    /// fuzz/corpora, to be committed
    #[arg(long)]
    pub(crate) minimize: bool,
    /// Builds quickly, as `cargo xtask test` does: hardly optimised, and without the address sanitizer
    #[arg(long)]
    pub(crate) quick: bool,
    /// Runs this one input through the target instead
    #[arg(long, requires = "targets", conflicts_with = "minimize")]
    pub(crate) input: Option<PathBuf>,
}

/// The arguments of `cargo xtask explore`.
#[derive(Args)]
pub(crate) struct ExploreOptions {
    /// Only these crates [default: all that have random tests]
    pub(crate) crates: Vec<String>,
    /// Time after which no other seed is tried: seconds, or a number with s, m or h
    #[arg(long, default_value = "1h", value_parser = parse_time)]
    pub(crate) time: Duration,
    /// Runs the tests once, with this seed
    #[arg(long, conflicts_with = "time")]
    pub(crate) seed: Option<u64>,
}

/// The arguments of `cargo xtask golden`.
#[derive(Args)]
pub(crate) struct GoldenOptions {
    /// Rewrites the expectations; look at the difference before committing it
    #[arg(long)]
    pub(crate) update: bool,
    /// Lists the event types, type codes, block kinds, versions and commands that no golden has, with the
    /// reasons
    #[arg(long, conflicts_with = "update")]
    pub(crate) coverage: bool,
}

/// The arguments of `cargo xtask cost`.
#[derive(Args)]
pub(crate) struct CostOptions {
    /// Rewrites the table; say in the commit why counts differ
    #[arg(long)]
    pub(crate) update: bool,
}

/// The arguments of `cargo xtask cross`.
#[derive(Args)]
pub(crate) struct CrossOptions {
    /// Only these targets [default: all]
    #[arg(value_parser = CROSS_TARGETS)]
    pub(crate) targets: Vec<String>,
    /// Also run Windows programs under Wine: the tests of dipc-transport, and dipc on a real .NET for Windows
    #[arg(long)]
    pub(crate) wine: bool,
    /// Fails where a target or a tool is missing (`cargo xtask setup cross`) instead of reporting it
    #[arg(long)]
    pub(crate) require_all: bool,
}

/// The arguments of `cargo xtask miri`.
#[derive(Args)]
pub(crate) struct MiriOptions {
    /// Only these crates [default: all]
    #[arg(value_parser = MIRI_PACKAGES)]
    pub(crate) packages: Vec<String>,
    /// Fails where Miri cannot be installed instead of reporting it
    #[arg(long)]
    pub(crate) require_all: bool,
}

/// The arguments of `cargo xtask sanitize`.
#[derive(Args)]
pub(crate) struct SanitizeOptions {
    /// Fails on systems that have no sanitizer instead of reporting it
    #[arg(long)]
    pub(crate) require_all: bool,
}

/// The arguments of `cargo xtask commands`.
#[derive(Args)]
pub(crate) struct CommandsOptions {
    /// Rewrites testdata/commands and the table in the README of dipc-client; look at the difference before
    /// committing it
    #[arg(long)]
    pub(crate) update: bool,
}

/// The arguments of `cargo xtask fleet`.
#[derive(Args)]
pub(crate) struct FleetOptions {
    /// Only these engines: duckdb, datafusion, spark, clickhouse
    pub(crate) engines: Vec<String>,
    /// Makes N recordings of simulated processes, and prints how long export and queries take, also by a
    /// Spark cluster of two workers
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) recordings: u32,
    /// Measures the program as a release builds it: figures of a debug build mean nothing
    #[arg(long)]
    pub(crate) release: bool,
    /// Uses the Python packages that are in target/fleet-venv, and installs none
    #[arg(long)]
    pub(crate) offline: bool,
}

/// The tables of `cargo xtask sampling`.
pub(crate) const SAMPLING_PARTS: [&str; 10] =
    ["split", "account", "chains", "waits", "perf", "costs", "machine", "idle", "shares", "churn"];

/// The arguments of `cargo xtask sampling`.
#[derive(Args)]
pub(crate) struct SamplingOptions {
    /// Only these tables [default: all]
    #[arg(value_parser = SAMPLING_PARTS)]
    pub(crate) parts: Vec<String>,
    /// Measures the program as a release builds it: costs of a debug build mean nothing
    #[arg(long)]
    pub(crate) release: bool,
    /// The time of the part `churn`, which runs only if it is named, such as 1h
    #[arg(long, value_parser = parse_time, default_value = "1h")]
    pub(crate) time: Duration,
}

impl SamplingOptions {
    /// The arguments of the script.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = String> + '_ {
        std::iter::once(self.time.as_secs().to_string()).chain(self.parts.iter().cloned())
    }
}

/// The arguments of `cargo xtask planted`.
#[derive(Args)]
pub(crate) struct PlantedOptions {
    /// Recordings of the slower program; of the other, there are twice as many
    #[arg(long, default_value_t = 10)]
    pub(crate) runs: u32,
    /// Comparisons of each kind and size
    #[arg(long, default_value_t = 100)]
    pub(crate) pairs: u32,
}

/// The arguments of `cargo xtask dumps`.
#[derive(Args)]
pub(crate) struct DumpsOptions {
    /// Only these versions [default: all]
    #[arg(value_parser = [
        "9.0.1", "9.0.1 server", "10.0.5", "8.0.28", "8.0.28 server", "3.1.23", "3.1.23 server", "NativeAOT 9",
        "NativeAOT 8",
    ])]
    pub(crate) versions: Vec<String>,
}

/// The arguments of `cargo xtask schemas`.
#[derive(Args)]
pub(crate) struct SchemasOptions {
    /// Changes nothing, and fails if the committed code is not up to date with the facts
    #[arg(long)]
    pub(crate) check: bool,
}

/// The arguments of `cargo xtask release`.
#[derive(Args)]
pub(crate) struct ReleaseOptions {
    /// The version to release, as in Cargo.toml and CHANGELOG.md
    #[arg(long, required_unless_present = "dry_run")]
    pub(crate) version: Option<String>,
    /// Runs the checks, and builds nothing
    #[arg(long, conflicts_with_all = ["once", "files_only", "publish"])]
    pub(crate) dry_run: bool,
    /// Builds the files once, without the second build that must give the same bytes
    #[arg(long, conflicts_with = "publish")]
    pub(crate) once: bool,
    /// Makes the files without building and testing each package alone
    #[arg(long, conflicts_with = "publish")]
    pub(crate) files_only: bool,
    /// Uploads the packages to crates.io, and the files to the GitHub release of the tag vVERSION
    ///
    /// Every step must have run and passed. It needs CARGO_REGISTRY_TOKEN and, for the program `gh`,
    /// GH_TOKEN. The files are a draft until all packages are there; the registry takes five new packages at
    /// once, and then one every ten minutes. Run an interrupted task again: it continues with what is
    /// missing.
    #[arg(long)]
    pub(crate) publish: bool,
    /// Fails where a step cannot run instead of reporting it, as `--publish` does
    #[arg(long)]
    pub(crate) require_all: bool,
}

/// The machines of `cargo xtask vm`.
pub(crate) const MACHINES: [&str; 4] = ["user-events", "debian-6.12", "debian-6.1", ARM64_MACHINE];
/// The machine of arm64, which runs only programs that are named.
pub(crate) const ARM64_MACHINE: &str = "arm64";
/// The trials of `cargo xtask vm`: scripts in `xtask/vm`.
pub(crate) const TRIALS: [&str; 4] = ["dipc", "containers", ROOTS, SELINUX];
/// The trial with other C libraries.
pub(crate) const ROOTS: &str = "roots";
/// The trial with SELinux.
pub(crate) const SELINUX: &str = "selinux";

/// The arguments of `cargo xtask vm`.
#[derive(Args)]
pub(crate) struct VmOptions {
    /// Only this machine, may be repeated: a kernel of Debian's source with user_events, or Debian's kernel
    /// of a series as it is, or that of 6.12 for arm64 [default: all but arm64]
    #[arg(long = "machine", value_name = "MACHINE", value_parser = MACHINES)]
    pub(crate) machines: Vec<String>,
    #[command(flatten)]
    pub(crate) settings: VmSettings,
    /// Time limit of a run: seconds, or a number with s, m or h
    #[arg(long, default_value = "10m", value_parser = parse_time)]
    pub(crate) time: Duration,
    /// Fails where a machine cannot be made instead of reporting it
    #[arg(long)]
    pub(crate) require_all: bool,
    /// The trial to run: dipc next to runtimes, or with runtimes in containers, which runc makes, or in roots
    /// with other C libraries, or on a kernel with SELinux in the place of AppArmor
    #[arg(long, default_value = TRIALS[0], value_parser = TRIALS, conflicts_with = "command")]
    pub(crate) trial: String,
    /// The program and its arguments, after `--` [default: the trial]
    #[arg(last = true)]
    pub(crate) command: Vec<OsString>,
}

/// The settings of a machine.
#[derive(Args)]
pub(crate) struct VmSettings {
    /// The version of control groups
    #[arg(long, default_value = "v2", value_parser = ["v1", "v2"])]
    pub(crate) cgroup: String,
    /// The level of kernel.perf_event_paranoid, -1 to 3 [default: the kernel's]
    #[arg(long, value_name = "LEVEL", allow_negative_numbers = true, value_parser = clap::value_parser!(i8).range(-1..=3))]
    pub(crate) perf_event_paranoid: Option<i8>,
}

/// The arguments of `cargo xtask bench`.
#[derive(Args)]
pub(crate) struct BenchOptions {
    /// Only the benchmarks whose name contains this
    pub(crate) filter: Option<String>,
    /// Compares with the results saved under this name, which stay as they are
    #[arg(long)]
    pub(crate) baseline: Option<String>,
    /// Saves the results under this name
    #[arg(long, conflicts_with = "baseline")]
    pub(crate) save_baseline: Option<String>,
}

/// Parses a time in seconds, minutes or hours.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) => (number, &text[number.len()..]),
        None => (text, "s"),
    };
    let seconds = match unit {
        "m" => 60,
        "h" => 3600,
        _ => 1,
    };
    let number =
        number.parse::<u32>().map_err(|_| format!("'{text}' is not a time such as 30, 30s, 10m or 2h"))?;
    Ok(Duration::from_secs(u64::from(number) * seconds))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn each_task_says_how_long_it_takes() {
        for task in Arguments::command().get_subcommands() {
            let about = task.get_about().unwrap().to_string();
            let duration =
                about.rsplit_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or_default();
            let units = ["second", "minute", " s", " min", " h"];
            assert!(units.iter().any(|unit| duration.contains(unit)), "{}: {about}", task.get_name());
        }
    }
}
