//! The places of recordings and of other readers' results for them. The reference tests of other crates use
//! this file, too.

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
    testdata::bytes_at(path)
}
