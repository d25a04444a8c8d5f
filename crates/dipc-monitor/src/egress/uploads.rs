//! The directory of the queue in which complete artifacts wait for their stores, and for directories that
//! cannot be written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The name of the directory.
pub(super) const NAME: &str = "uploads";
/// The bytes of artifacts from which on further ones are refused.
pub(super) const MAX_BYTES: u64 = 16 << 30;

/// The error of a directory that is full.
pub(super) fn full() -> io::Error {
    let what =
        format!("artifacts of {} GB wait in the queue, and there is no room for more", MAX_BYTES >> 30);
    io::Error::new(io::ErrorKind::StorageFull, what)
}

/// Removes the files of a directory that are not `known` to be of jobs: artifacts of rules that were not
/// complete when the program ended.
pub(super) fn remove_abandoned(directory: &Path, known: &[PathBuf]) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if !known.contains(&entry.path()) {
            // A file that stays only takes space.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The bytes of the files of a directory.
pub(super) fn size_of(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let sizes = entries.flatten().filter_map(|entry| Some(entry.metadata().ok()?.len()));
    sizes.fold(0, u64::saturating_add)
}
