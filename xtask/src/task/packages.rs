//! The packages that are published: the metadata, licences and files that a registry's user needs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::task::workspace::{self, cargo};

/// The licence files of every package.
pub(crate) const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
/// The operating systems for which docs.rs builds documentation.
const DOCUMENTED: [&str; 3] = ["-linux-", "-windows-", "-apple-darwin"];
/// Maximum size of a file in a package, in bytes: testdata is larger, source code is not.
const MAX_FILE_SIZE: u64 = 256 * 1024;

/// A package that is published.
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    folder: PathBuf,
    metadata: Value,
}

impl Package {
    /// Returns the address of the repository.
    pub(crate) fn repository(&self) -> &str {
        text(&self.metadata["repository"])
    }

    /// Returns the names of the packages that a registry must have before this one.
    pub(crate) fn required(&self) -> impl Iterator<Item = &str> {
        let dependencies = array(&self.metadata["dependencies"]).iter();
        // A path without a version (`*`) is a development dependency, which no package contains.
        dependencies.filter(|it| text(&it["req"]) != "*").map(|it| text(&it["name"]))
    }
}

/// Returns the workspace's packages that are published, in alphabetical order.
pub(crate) fn published() -> Result<Vec<Package>> {
    let metadata = metadata(&["--no-deps"])?;
    let mut packages = Vec::new();
    for package in array(&metadata["packages"]) {
        // `publish = false` is an empty list of registries.
        if package["publish"].is_null() {
            let manifest = Path::new(text(&package["manifest_path"]));
            packages.push(Package {
                name: text(&package["name"]).to_owned(),
                version: text(&package["version"]).to_owned(),
                folder: manifest.parent().context("a manifest without a folder")?.to_owned(),
                metadata: package.clone(),
            });
        }
    }
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    ensure!(!packages.is_empty(), "the workspace publishes no package");
    Ok(packages)
}

/// Checks the metadata and the files of every published package, and the Rust version of every dependency.
pub(crate) fn check() -> Result<()> {
    let mut faults = Vec::new();
    let packages = published()?;
    for file in ["SECURITY.md", ".github/ISSUE_TEMPLATE/config.yml"] {
        let text = fs::read_to_string(workspace::root().join(file))?;
        if let Some(package) = packages.iter().find(|package| !text.contains(package.repository())) {
            faults.push(format!(
                "{file} does not name {}'s repository {}",
                package.name,
                package.repository()
            ));
        }
    }
    for package in packages {
        let mut found = metadata_faults(&package.metadata);
        found.extend(file_faults(&package)?);
        faults.extend(found.into_iter().map(|fault| format!("{}: {fault}", package.name)));
    }
    faults.extend(rust_version_faults(&metadata(&["--locked", "--all-features"])?));
    if faults.is_empty() {
        return Ok(());
    }
    bail!("not ready to be published:\n  {}", faults.join("\n  "))
}

/// Checks that every package has the version, and requires it of the others, and that the job for exports
/// names it.
pub(crate) fn check_version(version: &str) -> Result<()> {
    const JOB: &str = "fleet/kubernetes-job.yaml";
    let image = format!("/dipc-fleet:{version}");
    let job = fs::read_to_string(workspace::root().join(JOB))?;
    ensure!(job.lines().any(|line| line.ends_with(&image)), "{JOB} names no image that ends with {image}");
    let packages = published()?;
    let names: BTreeSet<_> = packages.iter().map(|package| package.name.as_str()).collect();
    for package in &packages {
        ensure!(package.version == version, "{} has version {}", package.name, package.version);
        for dependency in array(&package.metadata["dependencies"]) {
            let requirement = text(&dependency["req"]);
            // A path without a version (`*`) is a development dependency on itself, which no package
            // contains.
            if names.contains(text(&dependency["name"])) && requirement != "*" {
                let required = requirement == format!("^{version}");
                ensure!(required, "{} requires {} {requirement}", package.name, dependency["name"]);
            }
        }
    }
    Ok(())
}

fn metadata_faults(package: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let mut require = |holds: bool, fault: &str| {
        if !holds {
            faults.push(fault.to_owned());
        }
    };
    let name = text(&package["name"]);
    require(text(&package["description"]).len() >= 20, "`description` is missing");
    require((1..=5).contains(&array(&package["keywords"]).len()), "`keywords` has not 1 to 5 words");
    let words = || array(&package["keywords"]).iter().map(text);
    require(words().all(|word| word.len() <= 20), "a keyword is longer than 20 characters");
    require((1..=5).contains(&array(&package["categories"]).len()), "`categories` has not 1 to 5 entries");
    require(text(&package["license"]) == "MIT OR Apache-2.0", "`license` is not the workspace's");
    require(text(&package["repository"]).starts_with("https://"), "`repository` is missing");
    let documentation = format!("https://docs.rs/{name}");
    require(
        text(&package["documentation"]) == documentation,
        &format!("`documentation` is not {documentation}"),
    );
    require(text(&package["readme"]) == "README.md", "`readme` is missing");
    require(package["rust_version"].is_string(), "`rust-version` is missing");
    let documented = &package["metadata"]["docs"]["rs"];
    // Features that compile C are left out, because a C compiler for targets of other systems is missing.
    require(
        documented["all-features"] == true || documented["features"].is_array(),
        "`package.metadata.docs.rs` has neither all-features = true nor a list of features",
    );
    // A crate of one system is empty elsewhere.
    let systems = if name.starts_with("linux-") { &DOCUMENTED[..1] } else { &DOCUMENTED[..] };
    for system in systems {
        let targets = || array(&documented["targets"]).iter().map(text);
        let fault = format!("`package.metadata.docs.rs` has no target of {}", system.trim_matches('-'));
        require(targets().any(|target| format!("{target}-").contains(*system)), &fault);
    }
    faults
}

/// Returns the faults of the files that cargo packages.
fn file_faults(package: &Package) -> Result<Vec<String>> {
    let output = cargo(["package", "--list", "--allow-dirty", "--package", &package.name]).output()?;
    ensure!(output.status.success(), "cargo package --list: {}", String::from_utf8_lossy(&output.stderr));
    let listing = String::from_utf8(output.stdout)?;
    let files: BTreeSet<_> = listing.lines().collect();
    let mut faults = Vec::new();
    for licence in LICENCES {
        let packaged = fs::read(package.folder.join(licence)).unwrap_or_default();
        if !files.contains(licence) || packaged != fs::read(workspace::root().join(licence))? {
            faults.push(format!("the package has not the workspace's {licence}"));
        }
    }
    if files.contains("README.md") {
        faults
            .extend(readme_faults(&package.metadata, &fs::read_to_string(package.folder.join("README.md"))?));
    } else {
        faults.push("the package has no README.md".to_owned());
    }
    for file in files {
        let path = package.folder.join(file);
        // Files that cargo adds are not in the folder.
        let Ok(attributes) = fs::metadata(&path) else { continue };
        if attributes.len() > MAX_FILE_SIZE {
            faults.push(format!("{file} has {} bytes: exclude testdata", attributes.len()));
        }
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        if is_source && reads_outside(&fs::read_to_string(&path)?) {
            faults.push(format!("{file} reads files that are not in the package: exclude it"));
        }
    }
    Ok(faults)
}

/// Returns the parts missing from a README: the oldest Rust, and the features.
fn readme_faults(package: &Value, readme: &str) -> Vec<String> {
    let version = format!("\nRust {}. ", text(&package["rust_version"]));
    let mut faults = Vec::new();
    if !readme.contains(&version) {
        faults.push(format!("README.md has no line that begins with {:?}", version.trim()));
    }
    let features = package["features"].as_object().into_iter().flat_map(|features| features.keys());
    let rows: Vec<_> = readme.lines().filter(|line| line.starts_with("| `")).collect();
    for feature in features.filter(|feature| *feature != "default") {
        if !rows.iter().any(|row| row.contains(&format!("`{feature}`"))) {
            faults.push(format!("README.md has no row for the feature {feature}"));
        }
    }
    faults
}

/// Returns true if a source file names the workspace's testdata.
fn reads_outside(source: &str) -> bool {
    source.lines().any(|line| {
        !line.trim_start().starts_with("//")
            && (line.contains("../testdata") || line.contains("../../crates"))
    })
}

/// Returns the dependencies that need a newer Rust than the workspace promises.
fn rust_version_faults(metadata: &Value) -> Vec<String> {
    let packages = array(&metadata["packages"]);
    let ours = packages.iter().find(|package| package["name"] == "dipc-cli");
    let promised = ours.map(|package| minor(text(&package["rust_version"]))).unwrap_or_default();
    let newer = packages.iter().filter(|package| minor(text(&package["rust_version"])) > promised);
    newer.map(|package| format!("{} needs Rust {}", package["name"], package["rust_version"])).collect()
}

/// Returns the second number of a Rust version, `1.MINOR`; 0 where none is stated.
fn minor(version: &str) -> u32 {
    version.split('.').nth(1).and_then(|minor| minor.parse().ok()).unwrap_or(0)
}

/// Returns the output of `cargo metadata`.
pub(crate) fn metadata(arguments: &[&str]) -> Result<Value> {
    let output = cargo(["metadata", "--format-version=1"]).args(arguments).output()?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("cargo metadata")
}

pub(crate) fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn complete() -> Value {
        json!({
            "name": "nettrace", "description": "Reader of .NET EventPipe recordings", "keywords": ["dotnet"],
            "categories": ["no-std"], "license": "MIT OR Apache-2.0", "repository": "https://example.org/dipc",
            "documentation": "https://docs.rs/nettrace", "readme": "README.md", "rust_version": "1.89",
            "metadata": { "docs": { "rs": { "all-features": true, "targets":
                ["x86_64-unknown-linux-gnu", "x86_64-pc-windows-msvc", "aarch64-apple-darwin"] } } },
        })
    }

    #[test]
    fn complete_metadata_has_no_fault() {
        assert_eq!(metadata_faults(&complete()), Vec::<String>::new());
    }

    #[test]
    fn each_missing_field_is_a_fault() {
        for field in ["description", "keywords", "categories", "license", "repository", "documentation"] {
            let mut package = complete();
            package[field] = Value::Null;
            let faults = metadata_faults(&package);
            assert!(faults.len() == 1 && faults[0].starts_with(&format!("`{field}`")), "{field}: {faults:?}");
        }
    }

    #[test]
    fn documentation_of_each_system_is_required() {
        let mut package = complete();
        package["metadata"]["docs"]["rs"]["targets"] = json!(["x86_64-unknown-linux-gnu"]);
        let expected = ["windows", "apple-darwin"]
            .map(|system| format!("`package.metadata.docs.rs` has no target of {system}"));
        assert_eq!(metadata_faults(&package), expected);
    }

    #[test]
    fn readmes_state_the_oldest_rust_and_every_feature() {
        let package =
            json!({ "rust_version": "1.89", "features": { "default": ["std"], "std": [], "svg": [] } });
        let readme = "# A\n\n| `std` (default) | the standard library |\n\nRust 1.88. It is raised.\n";
        let faults = readme_faults(&package, readme);
        assert_eq!(
            faults,
            [
                "README.md has no line that begins with \"Rust 1.89.\"",
                "README.md has no row for the feature svg"
            ]
        );
        for package in published().unwrap() {
            let readme = fs::read_to_string(package.folder.join("README.md")).unwrap();
            assert_eq!(readme_faults(&package.metadata, &readme), [""; 0], "{}", package.name);
            let Ok(front) = fs::read_to_string(package.folder.join("src/lib.rs")) else { continue };
            // Names of private modules mean nothing to users: docs/modules.md has them.
            let text = front.replace("\n//!", "");
            let parts = ["**Use it** to ", "**Not for** ", " Features: ", "Rust 1.89 or later."];
            let is_complete = parts.iter().all(|part| text.contains(part)) && !text.contains(" # Modules");
            assert!(is_complete, "the front page of {}", package.name);
        }
    }

    #[test]
    fn a_test_that_reads_testdata_does_not_belong_into_a_package() {
        assert!(reads_outside("    Path::new(ROOT).join(\"../../testdata/traces\")"));
        assert!(!reads_outside("//! Compared with ../../testdata/traces by another test."));
    }

    #[test]
    fn dependencies_with_a_newer_rust_are_named() {
        let metadata = json!({ "packages": [
            { "name": "dipc-cli", "rust_version": "1.89" },
            { "name": "old", "rust_version": null },
            { "name": "same", "rust_version": "1.89.1" },
            { "name": "new", "rust_version": "1.90" },
        ] });
        assert_eq!(rust_version_faults(&metadata), ["\"new\" needs Rust \"1.90\""]);
    }
}
