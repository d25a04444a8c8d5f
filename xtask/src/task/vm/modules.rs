//! The kernel modules that a machine needs, in the order in which they are loaded.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use object::{Object as _, ObjectSection as _};

use crate::task::workspace;

/// The modules for the root: files of the host by a device of virtio. A kernel may have some built in.
const NEEDED: [&str; 3] = ["virtio_pci", "9pnet_virtio", "9p"];

/// A module's name and its content, unpacked.
pub(super) type Module = (String, Vec<u8>);

/// Returns the modules that [`NEEDED`] and their dependencies are in, each after those that it depends on.
pub(super) fn needed(folder: &Path) -> Result<Vec<Module>> {
    let mut files = BTreeMap::new();
    find(folder, &mut files)?;
    let mut modules = Vec::new();
    for name in NEEDED {
        // What has no file is built in.
        add(name, &mut modules, &|name| files.get(name).map(|path| read(path)).transpose())?;
    }
    Ok(modules)
}

/// Adds a module after its dependencies, unless it is there.
fn add(
    name: &str,
    modules: &mut Vec<Module>,
    content: &impl Fn(&str) -> Result<Option<Vec<u8>>>,
) -> Result<()> {
    if modules.iter().any(|(other, _)| other == name) {
        return Ok(());
    }
    let Some(content_of_this) = content(name)? else { return Ok(()) };
    for dependency in dependencies(&content_of_this).with_context(|| name.to_owned())? {
        add(&dependency, modules, content)?;
    }
    modules.push((name.to_owned(), content_of_this));
    Ok(())
}

/// Finds the files of modules below a folder, by name.
fn find(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        // Links lead to the headers of another package.
        if entry.file_type()?.is_dir() {
            find(&entry.path(), files)?;
        } else if let Some((name, _)) = entry.file_name().to_string_lossy().split_once(".ko") {
            // The kernel's own names have no '-'.
            files.insert(name.replace('-', "_"), entry.path());
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    if path.extension().is_some_and(|extension| !["ko", "xz"].iter().any(|known| extension == *known)) {
        bail!("{}: compressed in an unknown way", path.display());
    }
    let mut content = Vec::new();
    workspace::open_unpacked(path)?.read_to_end(&mut content).with_context(|| path.display().to_string())?;
    Ok(content)
}

/// Returns the names in a module's `depends=`.
fn dependencies(module: &[u8]) -> Result<Vec<String>> {
    let file = object::File::parse(module)?;
    let section = file.section_by_name(".modinfo").context("not a module: without .modinfo")?;
    Ok(dependencies_of(section.data()?))
}

fn dependencies_of(information: &[u8]) -> Vec<String> {
    let mut fields = information.split(|byte| *byte == 0).filter_map(|field| std::str::from_utf8(field).ok());
    let names = fields.find_map(|field| field.strip_prefix("depends=")).unwrap_or_default();
    names.split(',').filter(|name| !name.is_empty()).map(|name| name.replace('-', "_")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_names_of_the_kernel() {
        let information = b"license=GPL\0depends=netfs,9pnet,crc32c-generic\0name=9p\0";
        assert_eq!(dependencies_of(information), ["netfs", "9pnet", "crc32c_generic"]);
        for none in [&b"depends=\0name=netfs\0"[..], b"", b"name=a\0\xff\0"] {
            assert!(dependencies_of(none).is_empty());
        }
    }

    #[test]
    fn what_is_no_module_is_an_error() {
        let content = |name: &str| Ok((name == "9p").then(|| b"text".to_vec()));
        assert!(add("9p", &mut Vec::new(), &content).is_err());
        // Built in.
        let mut modules = Vec::new();
        add("virtio_pci", &mut modules, &content).unwrap();
        assert!(modules.is_empty());
    }
}
