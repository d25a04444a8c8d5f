//! The files of this repository's `testdata`, for tests and benches. Names are paths in that folder; what
//! ends in `.xz` is unpacked.
//!
//! A missing or damaged file is a panic with its path: without it a test has nothing to say.
#![forbid(unsafe_code)]
#![allow(clippy::panic, clippy::missing_panics_doc, reason = "for tests, which fail then")]

mod single_file;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

pub use single_file::{single_file_program, single_file_program_with_pdb};

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

/// Returns the seed of the random tests that draw their own numbers: that of proptest, which is the same in
/// every run (`.cargo/config.toml`) but in those of `cargo xtask explore`.
pub fn seed() -> u64 {
    std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_default()
}

/// Writes a file of testdata, unpacked, to another path.
pub fn write(name: &str, to: &Path) {
    fs::write(to, bytes(name)).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
}

/// Writes a program of testdata, unpacked, to another path, where every user may run it. Several processes
/// may do the same: the file appears whole.
///
/// A program that is open for writing cannot be run, and children that other threads start have the open
/// files of this process until they run their own program. So a child writes it (`install`, on Unix).
pub fn install(name: &str, program: &Path) {
    install_bytes(&bytes(name), program);
}

/// The same for the content of a file.
pub fn install_bytes(content: &[u8], program: &Path) {
    let beside = |kind: &str| program.with_extension(format!("{}.{kind}", process::id()));
    let (staged, whole) = (beside("staged"), beside("whole"));
    fs::write(&staged, content).unwrap_or_else(|error| panic!("{}: {error}", staged.display()));
    let installed = Command::new("install").args(["-m", "755"]).args([&staged, &whole]).status();
    assert!(installed.is_ok_and(|status| status.success()), "install {}", whole.display());
    let moved = fs::rename(&whole, program).and_then(|()| fs::remove_file(&staged));
    moved.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(unix)]
    fn an_installed_program_is_whole_and_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = std::env::temp_dir().join(format!("testdata-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let program = folder.join("program");
        super::install("PROVENANCE.md", &program);
        assert_eq!(std::fs::read(&program).unwrap(), super::bytes("PROVENANCE.md"));
        assert_eq!(std::fs::metadata(&program).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn packed_and_plain_files() {
        assert!(super::bytes("traces/net10-all.nettrace.xz").starts_with(b"Nettrace"));
        assert!(super::bytes("PROVENANCE.md").starts_with(b"#"));
    }
}
