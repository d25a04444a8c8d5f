//! The files of this repository's `testdata`, for tests and benches. Names are paths in that folder; what ends
//! in `.xz` is unpacked.
//!
//! A missing or damaged file is a panic with its path: without it a test has nothing to say.
#![forbid(unsafe_code)]
#![allow(clippy::panic, clippy::missing_panics_doc, reason = "for tests, which fail then")]

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Returns the path of a file or folder of testdata.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// Returns the bytes of a file of testdata, unpacked.
pub fn bytes(name: &str) -> Vec<u8> {
    bytes_at(&path(name))
}

/// Returns the bytes of a file, unpacked if its name ends in `.xz`.
pub fn bytes_at(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_some_and(|extension| extension == "xz") { unpack(&bytes) } else { bytes }
}

/// Returns the content of an xz file.
pub fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = lzma_rust2::XzReader::new(packed, true).read_to_end(&mut bytes);
    read.unwrap_or_else(|error| panic!("not a whole xz file: {error}"));
    bytes
}

/// Writes a file of testdata, unpacked, to another path.
pub fn write(name: &str, to: &Path) {
    fs::write(to, bytes(name)).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
}

#[cfg(test)]
mod tests {
    #[test]
    fn packed_and_plain_files() {
        assert!(super::bytes("traces/net10-all.nettrace.xz").starts_with(b"Nettrace"));
        assert!(super::bytes("PROVENANCE.md").starts_with(b"#"));
    }
}
