//! The directory in which artifacts wait for their stores.

use std::fs;
use std::path::{Path, PathBuf};

use super::job::Job;

/// Removes the files of a directory that no job has: artifacts of rules that were not complete when the program
/// ended.
pub(super) fn remove_abandoned(directory: &Path, jobs: &[Job]) {
    let known: Vec<PathBuf> = jobs.iter().filter_map(|job| Some(job.places().ok()?.part)).collect();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if !known.contains(&entry.path()) {
            // One that stays takes space, and nothing else.
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
