//! testdata must be what its PROVENANCE.md says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::runtimes::package::sha256;
use crate::workspace;

/// What is opaque to a reader of a diff, and so must have a row.
const OPAQUE: [&str; 7] = ["xz", "dll", "pdb", "zip", "gz", "nettrace", "netperf"];

/// The rows of every table in PROVENANCE.md: path in the first column, checksum in the last.
fn listed(folder: &Path) -> BTreeMap<PathBuf, String> {
    let text = fs::read_to_string(folder.join("PROVENANCE.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let cells = rows.map(|row| row.split(" | ").collect::<Vec<_>>());
    cells
        .map(|cells| (PathBuf::from(cells[0]), cells[cells.len() - 1].to_owned()))
        .filter(|(_, sum)| sum.len() == 64)
        .collect()
}

fn opaque_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            opaque_files(&path, files);
        } else if OPAQUE.iter().any(|extension| path.extension().is_some_and(|it| it == *extension)) {
            files.push(path);
        }
    }
}

#[test]
fn every_opaque_file_is_the_one_whose_provenance_is_stated() {
    let folder = workspace::root().join("testdata");
    let mut listed = listed(&folder);
    let mut files = Vec::new();
    opaque_files(&folder, &mut files);
    assert!(!files.is_empty());
    for file in files {
        let name = file.strip_prefix(&folder).unwrap();
        let stated = listed.remove(name).unwrap_or_else(|| panic!("{} has no row", name.display()));
        assert_eq!(sha256(&file).unwrap(), stated, "{}", name.display());
    }
    assert!(listed.is_empty(), "rows without a file: {listed:?}");
}
