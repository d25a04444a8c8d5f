//! `dipc mcp`: commands of this program as the tools of an agent, by the Model Context Protocol.

#[cfg(feature = "mcp")]
mod answer;
#[cfg(feature = "mcp")]
mod arguments;
#[cfg(feature = "mcp")]
mod child;
#[cfg(feature = "mcp")]
mod folders;
#[cfg(feature = "mcp")]
mod server;
#[cfg(feature = "mcp")]
mod tools;

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::exit::Outcome;

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// A folder whose recordings, dumps and heaps the tools may read, and into which they write new ones; may
    /// be given several times. Without it, the tools read no files
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: Vec<PathBuf>,
    /// Also offer what stops or changes a process: dumps, stops for exact stacks and heaps, collections
    #[arg(long)]
    pub(crate) allow_control: bool,
    /// Keep back texts that may hold secrets: command lines, contents of objects, events and counters, and of
    /// recordings also paths, user names, messages of exceptions, SQL and URLs
    #[arg(long)]
    pub(crate) privacy: bool,
}

/// Serves the tools on standard input and output until the agent closes them.
#[cfg(feature = "mcp")]
pub(crate) fn run(args: &McpArgs) -> Outcome {
    server::run(args)
}

/// Runs the program that was built with the protocol.
#[cfg(not(feature = "mcp"))]
pub(crate) fn run(_: &McpArgs) -> Outcome {
    crate::process::companion::run_fleet("mcp", "the Model Context Protocol")
}
