//! The folders of the workspace, and the programs that run in it.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{iter, thread};

use anyhow::{Context as _, Result, bail};

/// The crates that work without the standard library.
pub(crate) const NO_STD: [&str; 4] = ["dipc-wire", "nettrace", "nettrace-writer", "clr-events"];

/// Returns the root of the workspace: the folder above this crate.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in a folder of the workspace")
}

/// Opens a file, and unpacks it if it is an xz archive.
pub(crate) fn open_unpacked(path: &Path) -> Result<Box<dyn Read>> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    if path.extension().is_some_and(|extension| extension == "xz") {
        return Ok(Box::new(lzma_rust2::XzReader::new(file, false)));
    }
    Ok(Box::new(file))
}

/// Returns cargo's target folder, which the environment or a configuration file may set.
pub(crate) fn target() -> Result<PathBuf> {
    let output = cargo(["metadata", "--no-deps", "--format-version=1"]).stderr(Stdio::inherit()).output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    metadata["target_directory"]
        .as_str()
        .map(PathBuf::from)
        .context("cargo metadata names no target_directory")
}

/// Returns a command for the cargo that runs this program, in the root of the workspace.
pub(crate) fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    // These are of this program, not of the build. Build scripts that look at them (ring's) would run again,
    // and everything that uses their crates would be compiled again, whenever a manual build follows one from
    // here.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Returns true if a program can be started; its exit code does not matter.
pub(crate) fn is_installed(program: &str, probe: &str) -> bool {
    Command::new(program)
        .arg(probe)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

/// Returns true if `cargo NAME` is a subcommand that is installed.
pub(crate) fn has_cargo_subcommand(name: &str) -> bool {
    cargo([name, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Installs the subcommand `cargo NAME` if it is missing.
pub(crate) fn install_cargo_subcommand(name: &str) -> Result<()> {
    if !has_cargo_subcommand(name) {
        println!("cargo-{name} is not installed: installing it");
        execute(&mut cargo(["install", "--locked", &format!("cargo-{name}")]))?;
    }
    Ok(())
}

/// Returns a command that takes only the processor time that others leave, on systems with `nice`.
pub(crate) fn at_lowest_priority(command: &Command) -> Command {
    if !is_installed("nice", "--version") {
        return copy_of(command, Command::new(command.get_program()));
    }
    let mut nice = Command::new("nice");
    nice.args(["-n", "19"]).arg(command.get_program());
    copy_of(command, nice)
}

/// Adds the arguments, environment and folder of a command to another.
fn copy_of(command: &Command, mut copy: Command) -> Command {
    copy.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => copy.env(name, value),
            None => copy.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        copy.current_dir(folder);
    }
    copy
}

/// Runs a command to its end, with the output of this program; an error contains the command line.
pub(crate) fn execute(command: &mut Command) -> Result<()> {
    let line = command_line(command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("{line}: {status}"),
        Err(error) if error.kind() == ErrorKind::NotFound => bail!("{line}: the program is not installed"),
        Err(error) => Err(error).context(line),
    }
}

/// Returns the command line, without its environment.
pub(crate) fn command_line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let mut line = program.to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

/// Does some work for each item, for as many at once as there are processors. The first error of a processor
/// ends its part of the work.
pub(crate) fn on_all_processors<T: Sync>(items: &[T], work: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let some = || items.get(next.fetch_add(1, Ordering::Relaxed)).map(&work);
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let workers: Vec<_> =
            (0..processors).map(|_| scope.spawn(|| iter::from_fn(some).collect::<Result<()>>())).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}
