//! The test executables of the workspace.
//!
//! `cargo test` runs one after the other, and some wait for most of their time: most run at the same time
//! here, as many as there are processors.

use std::io::Write as _;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::task::packages::{array, text};
use crate::task::workspace::{cargo, command_line, on_all_processors};

/// The number of tests at a time of an executable, on each processor. Most of their time is waiting for
/// runtimes, which send events ten times a second and counters at most once: the 327 of `live` need 126 s of
/// a processor, and last 620 s.
const TESTS_PER_PROCESSOR: usize = 3;
/// The environment variable with the number of tests at a time.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// A test executable.
pub(crate) struct Executable {
    path: PathBuf,
    /// The folder of its package, in which it runs.
    folder: PathBuf,
    /// The package and the target.
    pub(crate) name: String,
    /// The arguments by which `cargo test` runs it alone.
    pub(crate) selection: String,
}

impl Executable {
    /// Returns a command that runs it as cargo does.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder).stdin(Stdio::null());
        command
    }
}

/// Whether executables run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    SideBySide,
    /// For tests of other programs, which answer later on a loaded machine.
    OneByOne,
}

/// Builds the tests that cargo's `selection` chooses, and runs them in the environment that `prepare` sets.
/// All are run, even if some fail.
pub(crate) fn test<'a>(
    selection: impl IntoIterator<Item = &'a str>,
    order: Order,
    prepare: impl Fn(&mut Command) + Sync,
) -> Result<()> {
    let start = Instant::now();
    let executables = build(["--workspace"].into_iter().chain(selection))?;
    println!("{} test executables, built in {:.1} s", executables.len(), start.elapsed().as_secs_f64());
    let failed = Mutex::new(Vec::new());
    let run = |executable: &Executable| {
        if let Some(failures) = run(executable, &prepare)? {
            let failures = format!("{}{failures}", executable.name);
            failed.lock().unwrap_or_else(PoisonError::into_inner).push(failures);
        }
        Ok(())
    };
    match order {
        Order::SideBySide => on_all_processors(&executables, run)?,
        Order::OneByOne => executables.iter().try_for_each(run)?,
    }
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    ensure!(failed.is_empty(), "tests failed: {}", failed.join(", "));
    Ok(())
}

/// Builds the test executables of cargo's `selection`.
pub(crate) fn build<'a>(selection: impl IntoIterator<Item = &'a str>) -> Result<Vec<Executable>> {
    let mut build = cargo(["test", "--all-features", "--no-run"]);
    build.args(selection).arg("--message-format=json-render-diagnostics");
    let output = build.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("{}: {}", command_line(&build), output.status);
    }
    let executables = executables(&output.stdout)?;
    ensure!(!executables.is_empty(), "{}: no test executable was built", command_line(&build));
    Ok(executables)
}

/// Returns the test executables that cargo's messages name.
fn executables(messages: &[u8]) -> Result<Vec<Executable>> {
    let mut executables = Vec::new();
    for message in serde_json::Deserializer::from_slice(messages).into_iter::<Value>() {
        let message = message.context("a message of cargo")?;
        let Some(path) = message["executable"].as_str().filter(|_| message["profile"]["test"] == true) else {
            continue;
        };
        let manifest = PathBuf::from(text(&message["manifest_path"]));
        let folder = manifest.parent().context("a manifest without a folder")?.to_owned();
        let package = folder.file_name().unwrap_or_default().to_string_lossy();
        let (target, kind) = (text(&message["target"]["name"]), &message["target"]["kind"]);
        let is_test = array(kind).iter().any(|kind| kind == "test");
        let name = if is_test { format!("{package}/{target}") } else { format!("{package} ({target})") };
        let option = match text(&kind[0]) {
            kind @ ("test" | "bin" | "example" | "bench") => format!("--{kind} {target}"),
            _ => "--lib".to_owned(),
        };
        let selection = format!("-p {package} {option}");
        executables.push(Executable { path: path.into(), folder, name, selection });
    }
    Ok(executables)
}

/// Runs a test executable, and prints its output when it has ended. Returns the messages of its failures if
/// it failed.
fn run(executable: &Executable, prepare: &impl Fn(&mut Command)) -> Result<Option<String>> {
    let start = Instant::now();
    let mut command = executable.command();
    prepare(&mut command);
    if std::env::var_os(TEST_THREADS).is_none() {
        let processors = available_parallelism().map_or(1, NonZero::get);
        command.env(TEST_THREADS, (processors * TESTS_PER_PROCESSOR).to_string());
    }
    let output = command.output().with_context(|| command_line(&command))?;
    let seconds = start.elapsed().as_secs_f64();
    let result = if output.status.success() { "passed".to_owned() } else { output.status.to_string() };
    let mut report = format!("--- {}: {result} in {seconds:.1} s\n", executable.name).into_bytes();
    report.extend(&output.stdout);
    report.extend(output.stderr);
    std::io::stdout().lock().write_all(&report)?;
    let failures = (!output.status.success()).then(|| failures(&String::from_utf8_lossy(&output.stdout)));
    Ok(failures)
}

/// Returns what failed tests printed, shortened, each line after a line break: a log whose middle is cut off
/// still has it in its summary.
fn failures(output: &str) -> String {
    const MAX_LINES: usize = 30;
    const MAX_CHARACTERS: usize = 400;
    let printed = output.split_once("\nfailures:\n").map_or("", |(_, printed)| printed);
    let lines = printed.lines().filter(|line| !line.is_empty()).take(MAX_LINES);
    lines.fold(String::new(), |mut all, line| {
        all.push_str("\n      ");
        all.extend(line.chars().take(MAX_CHARACTERS));
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_has_the_messages_of_failures() {
        let output = "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\nthread 'a' panicked\n";
        assert_eq!(failures(output), "\n      ---- a stdout ----\n      thread 'a' panicked");
        assert_eq!(failures(&format!("\nfailures:\n{}", "x".repeat(1000))).len(), 407);
        assert_eq!(failures("ended by a signal"), "");
    }

    #[test]
    fn only_test_executables_are_run() {
        let messages = r#"
            {"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"kind":["lib"],"name":"a"},
             "profile":{"test":false},"executable":null}
            {"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"kind":["lib"],"name":"a"},
             "profile":{"test":true},"executable":"/t/a-1"}
            {"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"kind":["test"],"name":"t"},
             "profile":{"test":true},"executable":"/t/t-2"}
            {"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"kind":["bin"],"name":"b"},
             "profile":{"test":false},"executable":"/t/b"}
            {"reason":"build-finished","success":true}"#;
        let found = executables(messages.as_bytes()).unwrap();
        let found: Vec<_> =
            found.iter().map(|it| (it.path.to_str(), it.folder.to_str(), &*it.name)).collect();
        assert_eq!(found, [(Some("/t/a-1"), Some("/w/a"), "a (a)"), (Some("/t/t-2"), Some("/w/a"), "a/t")]);
        assert!(executables(b"no message").is_err());
    }
}
