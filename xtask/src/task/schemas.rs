//! `cargo xtask schemas`: the code of `clr-events` that is generated from its table of facts, and that of
//! `dipc-monitor` from the schema of configurations.

mod configuration;
mod enums;
mod facts;
mod ids;
mod names;
mod tables;
mod views;
mod waits;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::arguments::SchemasOptions;
use crate::task::workspace;
use facts::Facts;

pub(crate) fn run(options: &SchemasOptions) -> Result<()> {
    for (path, code) in generated()? {
        let committed = fs::read_to_string(&path).unwrap_or_default();
        if committed == code {
            continue;
        }
        if options.check {
            bail!("{} is not up to date: run `cargo xtask schemas`", path.display());
        }
        fs::write(&path, code).with_context(|| path.display().to_string())?;
        println!("wrote {}", path.display());
    }
    Ok(())
}

/// Returns the path and the text of every generated file.
fn generated() -> Result<Vec<(PathBuf, String)>> {
    let crate_folder = workspace::root().join("crates/clr-events");
    let facts = Facts::read(&crate_folder.join("facts"))?;
    let folder = crate_folder.join("src/generated");
    let monitor = workspace::root().join("crates/dipc-monitor");
    Ok(vec![
        (folder.join("providers.rs"), tables::providers(&facts)),
        (folder.join("enums.rs"), enums::code(&facts)),
        (folder.join("schemas.rs"), tables::schemas(&facts)?),
        (folder.join("views.rs"), views::code(&facts)?),
        (folder.join("ids.rs"), ids::code(&facts)?),
        (folder.join("sets.rs"), ids::sets(&facts)?),
        (folder.join("waits.rs"), waits::code(&facts)?),
        (
            monitor.join("src/configuration/generated/schema.rs"),
            configuration::code(&monitor.join("schema"))?,
        ),
    ])
}

/// Returns the first lines of a generated file.
fn heading(what: &str) -> String {
    format!(
        "//! {what}\n//!\n//! Made by `cargo xtask schemas` from `facts`: change these, not this file.\n\n"
    )
}

#[test]
fn committed_code_is_up_to_date() {
    for (path, code) in generated().unwrap() {
        assert!(
            fs::read_to_string(&path).unwrap_or_default() == code,
            "{}: run `cargo xtask schemas`",
            path.display()
        );
    }
}
