//! Test that PROVENANCE.md lists the files of testdata with their checksums.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::task::checksum::sha256;
use crate::task::workspace;

/// The extensions of binary files, each of which must have a row.
const BINARY_EXTENSIONS: [&str; 9] = ["so", "xz", "dll", "pdb", "zip", "gz", "nettrace", "gcdump", "netperf"];

/// Returns the rows of every table in PROVENANCE.md: path in the first column, checksum in the last.
fn provenance(folder: &Path) -> BTreeMap<PathBuf, String> {
    let text = fs::read_to_string(folder.join("PROVENANCE.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let cells = rows.map(|row| row.split(" | ").collect::<Vec<_>>());
    cells
        .map(|cells| (PathBuf::from(cells[0]), cells[cells.len() - 1].to_owned()))
        .filter(|(_, sum)| sum.len() == 64)
        .collect()
}

fn binary_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            binary_files(&path, files);
        } else if BINARY_EXTENSIONS
            .iter()
            .any(|extension| path.extension().is_some_and(|it| it == *extension))
        {
            files.push(path);
        }
    }
}

#[test]
fn every_binary_file_has_a_row_with_its_checksum() {
    let folder = workspace::root().join("testdata");
    let listed = provenance(&folder);
    for (name, stated) in &listed {
        let sum = sha256(&folder.join(name)).unwrap_or_else(|error| panic!("{}: {error}", name.display()));
        assert_eq!(&sum, stated, "{}", name.display());
    }
    let mut files = Vec::new();
    binary_files(&folder, &mut files);
    assert!(!files.is_empty());
    for file in files {
        let name = file.strip_prefix(&folder).unwrap();
        assert!(listed.contains_key(name), "{} has no row", name.display());
    }
}
