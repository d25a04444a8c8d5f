//! The licences of everything that the program contains, which its archives must carry.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::programs::TARGETS;
use crate::task::packages::{array, metadata, text as string};

const PREFACE: &str = "\
dipc and dipc-fleet contain the software below, under its licences.

The standard library of Rust: MIT or Apache-2.0, https://www.rust-lang.org/policies/licenses
The programs for Linux contain the GNU C Library, LGPL-2.1-or-later, https://www.gnu.org/software/libc/
(a program with another version of it is made from dipc's sources: cargo build --profile dist --target x86_64-unknown-linux-gnu)
dipc-fleet contains Zstandard, BSD-3-Clause, https://github.com/facebook/zstd
The program for Windows contains parts of the MinGW-w64 runtime, https://www.mingw-w64.org/
";

/// Returns the notices: each licence's text once, below the packages that it is the licence of.
pub(super) fn text() -> Result<String> {
    // The dependencies of dipc-fleet, which contains everything.
    let mut arguments = vec!["--locked", "--all-features"];
    for target in TARGETS {
        arguments.extend(["--filter-platform", target]);
    }
    let metadata = metadata(&arguments)?;
    let linked = linked(&metadata);
    let mut packages_by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut notices = PREFACE.to_owned();
    notices.push_str("\nPackages:\n");
    for package in array(&metadata["packages"]) {
        // Packages without a source are the workspace's own.
        if !linked.contains(string(&package["id"])) || package["source"].is_null() {
            continue;
        }
        let name = format!("{} {}", string(&package["name"]), string(&package["version"]));
        writeln!(notices, "  {name}: {}", string(&package["license"]))?;
        let folder = Path::new(string(&package["manifest_path"])).parent().context("a folder")?;
        for licence in licences_in(folder)? {
            packages_by_text.entry(licence).or_default().push(name.clone());
        }
    }
    for (licence, packages) in packages_by_text {
        write!(notices, "\n{}\n{}\n\n{}\n", "=".repeat(80), packages.join(", "), licence.trim())?;
    }
    Ok(notices)
}

/// Returns the ids of the packages that the program is linked from.
fn linked(metadata: &Value) -> BTreeSet<&str> {
    let nodes: BTreeMap<_, _> =
        array(&metadata["resolve"]["nodes"]).iter().map(|node| (string(&node["id"]), node)).collect();
    let packages = array(&metadata["packages"]);
    let program = packages.iter().find(|package| package["name"] == "dipc-cli");
    let is_macro =
        |package: &&Value| array(&package["targets"]).iter().any(|target| target["kind"][0] == "proc-macro");
    let macros: BTreeSet<_> =
        packages.iter().filter(is_macro).map(|package| string(&package["id"])).collect();
    let mut linked = BTreeSet::new();
    let mut open: Vec<_> = program.map(|package| string(&package["id"])).into_iter().collect();
    while let Some(id) = open.pop() {
        // Macros run when the program is built.
        if macros.contains(id) || !linked.insert(id) {
            continue;
        }
        let Some(node) = nodes.get(id) else { continue };
        for dependency in array(&node["deps"]) {
            let kinds = array(&dependency["dep_kinds"]);
            if kinds.iter().any(|kind| kind["kind"].is_null()) {
                open.push(string(&dependency["pkg"]));
            }
        }
    }
    linked
}

/// Returns the contents of a package's licence files.
fn licences_in(folder: &Path) -> Result<BTreeSet<String>> {
    let mut texts = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let is_licence = ["LICENSE", "LICENCE", "COPYING", "UNLICENSE", "NOTICE"]
            .iter()
            .any(|start| name.starts_with(start));
        if is_licence && entry.file_type()?.is_file() {
            texts.insert(fs::read_to_string(entry.path())?.replace("\r\n", "\n"));
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_linked_is_named() {
        let node = |id: &str, deps: &[(&str, Value)]| {
            let deps: Vec<_> =
                deps.iter().map(|(id, kind)| json!({ "pkg": id, "dep_kinds": [{ "kind": kind }] })).collect();
            json!({ "id": id, "deps": deps })
        };
        let metadata = json!({
            "packages": [
                { "name": "dipc-cli", "id": "cli" },
                { "name": "derive", "id": "derive", "targets": [{ "kind": ["proc-macro"] }] },
            ],
            "resolve": { "nodes": [
                node("cli", &[("a", Value::Null), ("tests", json!("dev"))]),
                node("a", &[("b", Value::Null), ("derive", Value::Null), ("build", json!("build"))]),
                node("b", &[("cli", Value::Null)]),
                node("derive", &[("syntax", Value::Null)]),
                node("other", &[("b", Value::Null)]),
            ] },
        });
        assert_eq!(linked(&metadata), BTreeSet::from(["a", "b", "cli"]));
    }
}
