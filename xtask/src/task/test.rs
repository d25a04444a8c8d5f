//! `cargo xtask test`: all checks of a change before it lands.

pub(crate) mod executables;

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::process::Command;
use std::thread;

use anyhow::{Result, bail};

use self::executables::Order;
use crate::arguments::{TestOptions, WINDOWS};
use crate::task::cross;
use crate::task::packages::{array, metadata, text};
use crate::task::runtimes::{self, Setup};
use crate::task::steps::Steps;
use crate::task::workspace::{self, NO_STD, at_lowest_priority, cargo, execute};
use crate::task::{cost, fuzz, licences, msrv, packages, runtimes::REQUIRE_RUNTIMES};

/// The environment variables by which tests fail without a program that they look at.
const REQUIRE_PROGRAMS: [&str; 2] = ["DIPC_REQUIRE_BROWSER", "DIPC_REQUIRE_PROMETHEUS"];

/// The test targets that need real runtimes, a browser or other vendors' clients; `--quick` leaves them out.
const SLOW: [&str; 6] = ["book", "commands", LIVE, "official", "page", "real_runtime"];
/// The target that measures processes.
const LIVE: &str = "live";

pub(crate) fn run(options: &TestOptions) -> Result<()> {
    if options.quick { run_quick() } else { run_all(options) }
}

/// Runs format, lints and every test target that needs nothing from outside the repository.
fn run_quick() -> Result<()> {
    let mut steps = Steps::new(false);
    steps.run("format", format);
    steps.run("clippy", clippy);
    steps.run("crates without std", without_std);
    steps.run("tests that need nothing from outside", || {
        let targets = quick_targets()?;
        let arguments = selection("--test", &targets).chain(["--lib", "--bins"]);
        executables::test(arguments, Order::SideBySide, |test| _ = test.env_remove(REQUIRE_RUNTIMES))
    });
    steps.finish()
}

/// Returns cargo's arguments for targets of these names.
fn selection<'a>(
    option: &'a str,
    targets: impl IntoIterator<Item = &'a (impl AsRef<str> + 'a)>,
) -> impl Iterator<Item = &'a str> {
    targets.into_iter().flat_map(move |target| [option, target.as_ref()])
}

/// Returns the names of the workspace's integration tests without the slow ones.
fn quick_targets() -> Result<BTreeSet<String>> {
    let mut names = tested_targets("test")?;
    names.retain(|name| !SLOW.contains(&&**name));
    Ok(names)
}

/// Returns the names of the workspace's targets of a kind that have tests. Most examples do not: integration
/// tests call them.
fn tested_targets(kind: &str) -> Result<BTreeSet<String>> {
    let metadata = metadata(&["--no-deps"])?;
    let targets = array(&metadata["packages"]).iter().flat_map(|package| array(&package["targets"]));
    let of_kind = targets.filter(|target| array(&target["kind"]).iter().any(|it| it == kind));
    let tested = of_kind.filter(|target| target["test"] == true);
    Ok(tested.map(|target| text(&target["name"]).to_owned()).collect())
}

fn run_all(options: &TestOptions) -> Result<()> {
    let require_runtimes = options.require_runtimes || options.require_all;
    let mut steps = Steps::new(options.require_all);
    let folder = runtimes::folder(None)?;
    // Runtimes are downloaded while compilers run.
    let setups = thread::scope(|scope| {
        let setups = scope.spawn(|| runtimes::set_up_all(&folder, None));
        steps.run("format", format);
        steps.run("clippy", clippy);
        steps.run("crates without std", without_std);
        steps.run("single features", single_features);
        setups.join().unwrap_or_else(|panic| resume_unwind(panic))
    });
    report_runtimes(&mut steps, &setups, require_runtimes);
    let require = |test: &mut Command| {
        test.env(runtimes::RUNTIMES, &folder);
        if require_runtimes {
            test.env(REQUIRE_RUNTIMES, "1");
        }
        if options.require_all {
            test.envs(REQUIRE_PROGRAMS.map(|name| (name, "1")));
        }
    };
    steps.run("tests", || {
        let (targets, examples) = (quick_targets()?, tested_targets("example")?);
        let arguments = selection("--test", &targets).chain(selection("--example", &examples));
        executables::test(arguments.chain(["--lib", "--bins", "--benches"]), Order::SideBySide, require)
    });
    // These tests wait for most of their time: compilers of other steps, at the lowest priority, take it.
    // Tests with real runtimes have the machine for themselves.
    let compiled = thread::scope(|scope| {
        let compiled = scope.spawn(|| compile(options.require_all));
        let others: Vec<_> = SLOW.into_iter().filter(|target| *target != LIVE).collect();
        steps.run("tests with a browser and other clients", || {
            executables::test(selection("--test", &others), Order::OneByOne, require)
        });
        compiled.join().unwrap_or_else(|panic| resume_unwind(panic))
    });
    steps.append(compiled);
    steps.run("tests with real runtimes", || {
        executables::test(selection("--test", &[LIVE]), Order::OneByOne, require)
    });
    cost::check(&mut steps);
    steps.run("doc tests", || {
        execute(&mut cargo(["test", "--workspace", "--doc", "--all-features", "--no-fail-fast"]))
    });
    fuzz::check(&mut steps);
    licences::check(&mut steps);
    steps.run("metadata and files of the packages", packages::check);
    steps.finish()
}

/// Runs the steps that only compile: in build folders of their own, except the docs at the end, after the
/// concurrent tests have been built.
fn compile(require_all: bool) -> Steps {
    let mut steps = Steps::new(require_all);
    msrv::check(&mut steps);
    // Windows differs the most, and nothing else here compiles for it.
    cross::type_check(&mut steps, WINDOWS);
    steps.run("clippy of the fuzz targets", fuzz_targets);
    fuzz::build(&mut steps);
    steps.run("docs", docs);
    steps
}

fn docs() -> Result<()> {
    let mut docs = cargo(["doc", "--workspace", "--all-features", "--no-deps"]);
    execute(&mut at_lowest_priority(docs.env("RUSTDOCFLAGS", "-D warnings")))
}

fn format() -> Result<()> {
    execute(&mut cargo(["fmt", "--all", "--check"]))?;
    execute(&mut cargo(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))
}

fn clippy() -> Result<()> {
    execute(&mut cargo(["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]))
}

/// Checks the crates one by one: cargo would unite the features of several.
fn without_std() -> Result<()> {
    for package in NO_STD {
        execute(&mut cargo(["clippy", "-p", package, "--no-default-features", "--", "-D", "warnings"]))?;
    }
    Ok(())
}

/// Checks the crates with many features without any, and with each alone. What clippy adds to the compiler's
/// warnings is found with all features.
fn single_features() -> Result<()> {
    let of_exporter = [
        "",
        "chromium",
        "csv",
        "events",
        "firefox",
        "flamegraph",
        "folded",
        "html",
        "perfetto",
        "pprof",
        "report",
        "speedscope",
        "svg",
    ];
    let of_dumps = ["", "analysis", "awaits", "copy", "heap-graph", "linux-sampler"];
    for (package, features) in [("nettrace-export", &of_exporter[..]), ("clr-dump", &of_dumps)] {
        for feature in features {
            let check = ["rustc", "--profile", "check", "--lib", "-p", package, "--no-default-features"];
            execute(cargo(check).args(["--features", feature, "--", "-D", "warnings"]))?;
        }
    }
    Ok(())
}

/// Checks `fuzz/`, which is a workspace of its own.
fn fuzz_targets() -> Result<()> {
    let folder = workspace::target()?.join("fuzz");
    let mut clippy: Command = cargo(["clippy", "--manifest-path", "fuzz/Cargo.toml", "--target-dir"]);
    clippy.arg(folder).args(["--locked", "--", "-D", "warnings"]);
    execute(&mut at_lowest_priority(&clippy))
}

fn report_runtimes(steps: &mut Steps, setups: &[Setup], required: bool) {
    for setup in setups {
        let name = format!("live tests on {}", setup.runtime.name);
        match &setup.path {
            Ok(path) => println!("{} is in {}", setup.runtime.name, path.display()),
            Err(error) if required => steps.run(&name, || bail!("the runtime is required: {error:#}")),
            Err(error) => steps.not_run(&name, &format!("{error:#}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_tests_are_those_of_every_crate_without_the_slow_ones() {
        let targets = quick_targets().unwrap();
        for quick in ["golden", "hostile", "profiles", "sim", "terminal"] {
            assert!(targets.contains(quick), "{quick}: {targets:?}");
        }
        for slow in SLOW {
            assert!(!targets.contains(slow), "{slow}");
            let files = [format!("{slow}.rs"), format!("{slow}/main.rs")];
            let crates = std::fs::read_dir(workspace::root().join("crates")).unwrap();
            let mut folders = crates.map(|entry| entry.unwrap().path().join("tests"));
            let exists = folders.any(|folder| files.iter().any(|file| folder.join(file).is_file()));
            assert!(exists, "no crate has a test target {slow}");
        }
    }
}
