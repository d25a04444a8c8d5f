//! `cargo xtask explore`: the random tests with other seeds than `cargo xtask test`.
//!
//! Random tests are in modules of the name `random`. They draw from proptest's seed, which
//! `.cargo/config.toml` sets.

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::arguments::ExploreOptions;
use crate::task::test::executables::{self, Executable};
use crate::task::workspace;

/// The environment variable with the seed of random tests.
const SEED: &str = "PROPTEST_RNG_SEED";
/// The environment variable with the time in milliseconds in which proptest looks for a smaller input.
const SHRINK_TIME: &str = "PROPTEST_MAX_SHRINK_TIME";
/// The part of the names of random tests.
const MODULE: &str = "random::";

pub(crate) fn run(options: &ExploreOptions) -> Result<()> {
    let crates = chosen(&options.crates)?;
    let packages = crates.iter().flat_map(|name| ["--package", name]);
    let mut executables = Vec::new();
    for executable in executables::build(packages.chain(["--tests"]))? {
        if has_random_tests(&executable)? {
            executables.push(executable);
        }
    }
    let start = Instant::now();
    let (mut rounds, mut finds) = (0, Vec::new());
    while rounds == 0 || start.elapsed() < options.time {
        let seed = options.seed.unwrap_or_else(fresh_seed);
        for executable in &executables {
            if !passes(executable, seed)? {
                finds.push(format!(
                    "{SEED}={seed} cargo test --all-features {} {MODULE}",
                    executable.selection
                ));
                println!("to repeat it: {}", finds.last().map_or("", String::as_str));
            }
        }
        rounds += 1;
        println!("seed {seed}: round {rounds} after {}", in_minutes(start.elapsed()));
        if options.seed.is_some() {
            break;
        }
    }
    println!("{} executables with random tests ran with {rounds} seeds", executables.len());
    ensure!(finds.is_empty(), "{} runs failed; to repeat them:\n{}", finds.len(), finds.join("\n"));
    Ok(())
}

/// Returns the crates that have random tests, limited to the given names, if any.
fn chosen(names: &[String]) -> Result<Vec<String>> {
    let crates = crates_with_random_tests()?;
    if let Some(name) = names.iter().find(|name| !crates.contains(name)) {
        bail!("{name} has no random tests; these crates have: {}", crates.join(", "));
    }
    Ok(if names.is_empty() { crates } else { names.to_vec() })
}

fn crates_with_random_tests() -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(workspace::root().join("crates"))? {
        let folder = entry?.path();
        let mut sources = Vec::new();
        rust_files(&folder, &mut sources)?;
        if sources.iter().any(|(_, source)| source.contains("mod random {")) {
            found.push(folder.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
    }
    found.sort();
    Ok(found)
}

/// Collects the Rust files below a folder, with their text.
fn rust_files(folder: &Path, found: &mut Vec<(PathBuf, String)>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            rust_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            found.push((path, text));
        }
    }
    Ok(())
}

fn has_random_tests(executable: &Executable) -> Result<bool> {
    let listed = executable.command().args(["--list", MODULE]).output()?;
    Ok(listed.stdout.split(|byte| *byte == b'\n').any(|line| line.ends_with(b": test")))
}

/// Runs the random tests of an executable with a seed, and prints their output if one fails.
fn passes(executable: &Executable, seed: u64) -> Result<bool> {
    let mut command = executable.command();
    command.arg(MODULE).env(SEED, seed.to_string());
    if std::env::var_os(SHRINK_TIME).is_none() {
        command.env(SHRINK_TIME, "60000");
    }
    let output = command.output()?;
    if !output.status.success() {
        println!("--- {}: {}", executable.name, output.status);
        println!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.status.success())
}

/// Returns a seed of 32 bits: short enough to be typed.
fn fresh_seed() -> u64 {
    // The keys of each hasher differ.
    RandomState::new().hash_one(Instant::now()) >> 32
}

fn in_minutes(time: Duration) -> String {
    format!("{} min {} s", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_random_test_is_in_a_module_that_is_explored() {
        let mut sources = Vec::new();
        rust_files(&workspace::root().join("crates"), &mut sources).unwrap();
        let draws =
            |source: &str| [SEED, "proptest! {", "testdata::seed()"].iter().any(|of| source.contains(of));
        let mut random = 0;
        for (path, source) in
            sources.iter().filter(|(path, source)| draws(source) && !path.ends_with("testdata/src/lib.rs"))
        {
            assert!(
                source.contains("mod random {"),
                "{}: random tests are in a module 'random'",
                path.display()
            );
            random += 1;
        }
        assert!(random > 8, "{random} files with random tests");
    }

    #[test]
    fn crates_without_random_tests_are_refused_by_name() {
        let error = chosen(&["nosuch".to_owned()]).unwrap_err().to_string();
        assert!(
            error.starts_with("nosuch has no random tests; these crates have: clr-dump, clr-events, "),
            "{error}"
        );
        assert_eq!(chosen(&["nettrace".to_owned()]).unwrap(), ["nettrace"]);
    }

    #[test]
    fn the_seed_of_random_tests_is_set_for_cargo() {
        let configuration = fs::read_to_string(workspace::root().join(".cargo/config.toml")).unwrap();
        assert!(configuration.contains(&format!("[env]\n{SEED} = \"0\"\n")), "{configuration}");
    }
}
