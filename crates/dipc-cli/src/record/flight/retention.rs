//! The retention of a recorder's files.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::render::messages;

/// Limits on the files that are kept. Only files of this run are ever removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Retention {
    pub(crate) files: Option<usize>,
    pub(crate) bytes: Option<u64>,
    pub(crate) age: Option<Duration>,
}

/// The files that were written and not removed, oldest first.
#[derive(Debug, Default)]
pub(crate) struct KeptFiles {
    files: VecDeque<KeptFile>,
}

#[derive(Debug)]
struct KeptFile {
    /// The file, and those that belong to it.
    paths: Vec<PathBuf>,
    bytes: u64,
    written: Instant,
}

impl KeptFiles {
    /// Records a file with those that belong to it, and removes the oldest beyond the limits. The newest
    /// always stays.
    pub(crate) fn add(&mut self, paths: Vec<PathBuf>, bytes: u64, limits: &Retention) {
        self.files.push_back(KeptFile { paths, bytes, written: Instant::now() });
        while self.files.len() > 1 && self.is_beyond(limits) {
            let Some(oldest) = self.files.pop_front() else { return };
            for path in oldest.paths {
                match std::fs::remove_file(&path) {
                    Ok(()) => messages::detail(format_args!("Removed        : {}", path.display())),
                    // It has already been removed by someone else.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => messages::warning(format_args!("remove: {}: {error}", path.display())),
                }
            }
        }
    }

    fn is_beyond(&self, limits: &Retention) -> bool {
        let bytes: u64 = self.files.iter().map(|file| file.bytes).sum();
        limits.files.is_some_and(|most| self.files.len() > most)
            || limits.bytes.is_some_and(|most| bytes > most)
            || limits
                .age
                .is_some_and(|most| self.files.front().is_some_and(|file| file.written.elapsed() > most))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn left(limits: Retention) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = KeptFiles::default();
        for name in ["a", "b", "c", "d"] {
            let path = folder.path().join(name);
            fs::write(&path, "12345").unwrap();
            kept.add(vec![path], 5, &limits);
        }
        let mut names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_files_go_and_the_newest_stays() {
        assert_eq!(left(Retention::default()), ["a", "b", "c", "d"]);
        assert_eq!(left(Retention { files: Some(2), ..Retention::default() }), ["c", "d"]);
        assert_eq!(left(Retention { bytes: Some(14), ..Retention::default() }), ["c", "d"]);
        assert_eq!(left(Retention { bytes: Some(1), ..Retention::default() }), ["d"]);
        assert_eq!(left(Retention { age: Some(Duration::ZERO), ..Retention::default() }), ["d"]);
    }
}
