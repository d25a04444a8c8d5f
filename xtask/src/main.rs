//! The project's development tasks: `cargo xtask` lists them, and `.ci/run` and the workflows call only
//! these.
//!
//! `cargo xtask` compiles this program without the feature `tasks`, and so without all packages but clap. It
//! lists the tasks and explains their arguments; to run a task, it has cargo compile and run the program with
//! the feature.

#![forbid(unsafe_code)]

mod arguments;
#[cfg(feature = "tasks")]
mod task;

use clap::Parser as _;

use crate::arguments::Arguments;

#[cfg(feature = "tasks")]
fn main() -> anyhow::Result<()> {
    task::run(Arguments::parse().task)
}

#[cfg(not(feature = "tasks"))]
fn main() -> std::io::Result<std::process::ExitCode> {
    let Arguments { task: _ } = Arguments::parse();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = std::process::Command::new(cargo);
    command.args(["run", "--quiet", "--package", "xtask", "--features", "tasks", "--"]);
    let status = command.args(std::env::args_os().skip(1)).status()?;
    // A task ended by a signal does not have an exit code.
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(std::process::ExitCode::from(code))
}
