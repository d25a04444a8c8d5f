//! `cargo xtask book`: the chapters of `crates/dipc-cli/help` as web pages, by mdBook.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::task::workspace::{self, cargo, execute};

/// The features that a build needs: no server, which watches files and takes most of the time to compile.
const FEATURES: [&str; 3] = ["--no-default-features", "--features", "search"];

pub(crate) fn run() -> Result<()> {
    let target = workspace::target()?;
    let pages = target.join("book");
    let mut build = Command::new(mdbook()?);
    build.current_dir(workspace::root()).arg("build").arg("--dest-dir").arg(&pages).arg("docs");
    execute(&mut build)?;
    println!("the book is in {}", pages.join("index.html").display());
    Ok(())
}

/// Returns mdBook: the user's, or a copy installed below `target/tools`.
fn mdbook() -> Result<PathBuf> {
    if workspace::is_installed("mdbook", "--version") {
        return Ok("mdbook".into());
    }
    let tools = workspace::target()?.join("tools");
    let program = tools.join("bin/mdbook").with_extension(std::env::consts::EXE_EXTENSION);
    if !program.exists() {
        println!("mdbook is not installed: installing it into {} (some minutes)", tools.display());
        execute(cargo(["install", "mdbook", "--locked"]).args(FEATURES).arg("--root").arg(&tools))?;
    }
    Ok(program)
}
