//! Limits on the files that are kept, and the files of a run that are subject to them.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Limits on kept entries. The newest entry stays in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// Maximum number of entries.
    pub files: Option<usize>,
    /// Maximum size of all entries, in bytes.
    pub bytes: Option<u64>,
    /// Maximum age of an entry.
    pub age: Option<Duration>,
    /// Minimum free space on the file system, in bytes.
    pub free: Option<u64>,
}

/// An entry that may be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who know each field")]
pub struct Kept<T> {
    /// The entry. Entries of one age are removed in their order.
    pub entry: T,
    /// Size in bytes.
    pub bytes: u64,
    /// The time since it was written.
    pub age: Duration,
}

impl Retention {
    /// With at most this [number](Self::files) of entries.
    #[must_use]
    pub const fn with_files(self, files: Option<usize>) -> Self {
        Self { files, ..self }
    }

    /// With at most these [`bytes`](Self::bytes).
    #[must_use]
    pub const fn with_bytes(self, bytes: Option<u64>) -> Self {
        Self { bytes, ..self }
    }

    /// With this maximum [`age`](Self::age).
    #[must_use]
    pub const fn with_age(self, age: Option<Duration>) -> Self {
        Self { age, ..self }
    }

    /// With at least this [free](Self::free) space.
    #[must_use]
    pub const fn with_free(self, free: Option<u64>) -> Self {
        Self { free, ..self }
    }

    /// Returns true if nothing is limited.
    pub const fn is_none(&self) -> bool {
        self.files.is_none() && self.bytes.is_none() && self.age.is_none() && self.free.is_none()
    }

    /// Removes the oldest entries beyond the limits with `remove`, and returns them. An entry that cannot be
    /// removed stays, and the next one is removed instead. `free` returns the free space in bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use dipc_collect::{Kept, Retention};
    ///
    /// let limits = Retention::default().with_files(Some(2));
    /// let entry = |entry, seconds| Kept { entry, bytes: 10, age: Duration::from_secs(seconds) };
    /// let list = vec![entry("new", 1), entry("oldest", 30), entry("old", 20)];
    /// assert_eq!(limits.apply(list, || None, |_| Ok(())), ["oldest"]);
    /// ```
    pub fn apply<T: Ord>(
        &self,
        mut list: Vec<Kept<T>>,
        free: impl Fn() -> Option<u64>,
        mut remove: impl FnMut(&T) -> io::Result<()>,
    ) -> Vec<T> {
        list.sort_by(|one, other| (Reverse(one.age), &one.entry).cmp(&(Reverse(other.age), &other.entry)));
        let mut bytes = list.iter().fold(0u64, |sum, kept| sum.saturating_add(kept.bytes));
        let mut count = list.len();
        list.pop();
        let mut removed = Vec::new();
        for kept in list {
            let is_beyond = self.files.is_some_and(|max| count > max)
                || self.bytes.is_some_and(|max| bytes > max)
                || self.age.is_some_and(|max| kept.age > max)
                || self.free.is_some_and(|min| free().is_some_and(|free| free < min));
            if !is_beyond {
                break;
            }
            if remove(&kept.entry).is_ok() {
                count = count.saturating_sub(1);
                bytes = bytes.saturating_sub(kept.bytes);
                removed.push(kept.entry);
            }
        }
        removed
    }
}

/// The files that a run has written and not removed, oldest first. Other files are never touched.
#[derive(Debug, Default)]
pub struct KeptFiles(VecDeque<KeptFile>);

#[derive(Debug)]
struct KeptFile {
    /// The file, and the files that belong to it.
    paths: Vec<PathBuf>,
    bytes: u64,
    written: Instant,
}

impl KeptFiles {
    /// Records a file with the files that belong to it, and removes the oldest beyond the limits on number,
    /// size and age. `report` is called with each removed path and the result: files that cannot be removed
    /// are not tried again, and files that are gone count as removed without a report.
    pub fn add(
        &mut self,
        paths: Vec<PathBuf>,
        bytes: u64,
        limits: &Retention,
        mut report: impl FnMut(&Path, io::Result<()>),
    ) {
        let now = Instant::now();
        self.0.push_back(KeptFile { paths, bytes, written: now });
        let list = self.0.iter().enumerate();
        let kept = |(index, file): (usize, &KeptFile)| Kept {
            entry: index,
            bytes: file.bytes,
            age: now.saturating_duration_since(file.written),
        };
        let removed = limits.apply(list.map(kept).collect(), || None, |_| Ok(()));
        for file in self.0.drain(..removed.len().min(self.0.len())) {
            for path in file.paths {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    result => report(&path, result),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of the removed entries of a to e, of 10 bytes each, and each 10 s younger than the
    /// one before.
    fn removed(retention: Retention, free: u64) -> String {
        let kept = |number: u8| Kept {
            entry: char::from(b'a' + number),
            bytes: 10,
            age: Duration::from_secs(50 - u64::from(number) * 10),
        };
        let freed = std::cell::Cell::new(free);
        let list = [3, 0, 4, 1, 2].map(kept).to_vec();
        let removed = retention.apply(
            list,
            || Some(freed.get()),
            |name| {
                if *name == 'b' {
                    return Err(io::ErrorKind::PermissionDenied.into());
                }
                freed.set(freed.get() + 10);
                Ok(())
            },
        );
        removed.into_iter().collect()
    }

    #[test]
    fn the_oldest_entries_are_removed_and_the_newest_stays() {
        let none = Retention::default();
        assert_eq!(removed(none, 0), "");
        assert_eq!(removed(none.with_files(Some(4)), 0), "a");
        // An entry that cannot be removed does not keep the others.
        assert_eq!(removed(none.with_files(Some(3)), 0), "ac");
        assert_eq!(removed(none.with_bytes(Some(45)), 0), "a");
        assert_eq!(removed(none.with_bytes(Some(0)), 0), "acd");
        assert_eq!(removed(none.with_age(Some(Duration::from_secs(25))), 0), "ac");
        assert_eq!(removed(none.with_free(Some(100)), 85), "ac");
        assert_eq!(removed(none.with_free(Some(100)), 100), "");
    }

    fn left(limits: Retention) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let mut files = KeptFiles::default();
        for name in ["a", "b", "c", "d"] {
            let path = folder.path().join(name);
            fs::write(&path, "12345").unwrap();
            files.add(vec![path], 5, &limits, |path, result| result.unwrap_or_else(|_| panic!("{path:?}")));
        }
        let names = fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_written_files_are_removed_and_the_newest_stays() {
        assert_eq!(left(Retention::default()), ["a", "b", "c", "d"]);
        assert_eq!(left(Retention::default().with_files(Some(2))), ["c", "d"]);
        assert_eq!(left(Retention::default().with_bytes(Some(14))), ["c", "d"]);
        assert_eq!(left(Retention::default().with_bytes(Some(1))), ["d"]);
        assert_eq!(left(Retention::default().with_age(Some(Duration::ZERO))), ["d"]);
    }
}
