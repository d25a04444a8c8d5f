//! The entries of directories that are subject to limits.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use dipc_collect::Kept;

/// Maximum number of entries of a directory to inspect.
const MAX_ENTRIES: usize = 100_000;

/// Returns the time since a modification; zero for times in the future.
pub(crate) fn age(modified: SystemTime) -> std::time::Duration {
    SystemTime::now().duration_since(modified).unwrap_or_default()
}

/// The directories in `directory` with names that end in `ending`, with the bytes of their files.
pub(crate) fn directories(directory: &Path, ending: &str) -> Vec<Kept<PathBuf>> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let entries = entries.take(MAX_ENTRIES).flatten();
    let is_kept = |entry: &fs::DirEntry| {
        entry.file_name().to_string_lossy().ends_with(ending) && entry.file_type().is_ok_and(|it| it.is_dir())
    };
    let kept = entries.filter(is_kept).filter_map(|entry| {
        let path = entry.path();
        let files = fs::read_dir(&path).ok()?.take(MAX_ENTRIES).flatten();
        let bytes = files.filter_map(|file| Some(file.metadata().ok()?.len())).sum();
        Some(Kept { age: age(entry.metadata().ok()?.modified().ok()?), entry: path, bytes })
    });
    kept.collect()
}
