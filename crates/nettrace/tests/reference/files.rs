//! The places of recordings and of other readers' results for them. The reference tests of other crates use
//! this file, too.

use std::io::Read;
use std::path::{Path, PathBuf};

pub(crate) fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// The larger collection; where it is missing that is said.
pub(crate) fn shared() -> Option<PathBuf> {
    let shared = std::env::var_os("DIPC_SHARED").map(PathBuf::from);
    if shared.is_none() {
        println!("not run: DIPC_SHARED does not name the larger collection");
    }
    shared
}

/// The bytes of a file, unpacked if it is packed.
pub(crate) fn bytes_of(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_some_and(|extension| extension == "xz") {
        let mut unpacked = Vec::new();
        lzma_rust2::XzReader::new(&bytes[..], true).read_to_end(&mut unpacked).expect("a whole xz file");
        bytes = unpacked;
    }
    bytes
}
