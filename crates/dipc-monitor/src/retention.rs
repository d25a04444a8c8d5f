//! Limits on the files that a directory keeps.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The most entries of a directory that are looked at.
const MOST_ENTRIES: usize = 100_000;

/// Limits on what is kept. The newest stays, whatever they say.
///
/// ```
/// use dipc_monitor::Retention;
/// use std::time::Duration;
///
/// let week = Some(Duration::from_secs(7 * 24 * 3600));
/// let retention = Retention { files: Some(20), age: week, ..Retention::default() };
/// assert!(!retention.is_none() && Retention::default().is_none());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct Retention {
    /// The most files, or bundles.
    pub files: Option<usize>,
    /// The most bytes of them.
    pub bytes: Option<u64>,
    /// The time for which they are kept.
    pub age: Option<Duration>,
    /// The bytes that stay free on the file system.
    pub free: Option<u64>,
}

/// Something that may be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) modified: SystemTime,
}

impl Retention {
    /// Whether there is any limit.
    pub const fn is_none(&self) -> bool {
        self.files.is_none() && self.bytes.is_none() && self.age.is_none() && self.free.is_none()
    }

    /// Removes the oldest entries of `list` beyond the limits, with `remove`. `free` returns the bytes that
    /// are free. Returns those that were removed.
    pub(crate) fn apply(
        &self,
        mut list: Vec<Kept>,
        now: SystemTime,
        free: impl Fn() -> Option<u64>,
        remove: impl Fn(&Path) -> io::Result<()>,
    ) -> Vec<PathBuf> {
        list.sort_by(|one, other| (one.modified, &one.path).cmp(&(other.modified, &other.path)));
        let mut bytes = list.iter().fold(0u64, |sum, kept| sum.saturating_add(kept.bytes));
        let mut count = list.len();
        list.pop();
        let mut removed = Vec::new();
        for kept in list {
            let is_old = |age| now.duration_since(kept.modified).is_ok_and(|it| it > age);
            let is_beyond = self.files.is_some_and(|most| count > most)
                || self.bytes.is_some_and(|most| bytes > most)
                || self.age.is_some_and(is_old)
                || self.free.is_some_and(|least| free().is_some_and(|free| free < least));
            if !is_beyond {
                break;
            }
            // What cannot be removed stays, and the next one goes.
            if remove(&kept.path).is_ok() {
                count = count.saturating_sub(1);
                bytes = bytes.saturating_sub(kept.bytes);
                removed.push(kept.path);
            }
        }
        removed
    }
}

/// The directories in `directory` whose names end in `ending`, with the bytes of their files.
pub(crate) fn directories(directory: &Path, ending: &str) -> Vec<Kept> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let entries = entries.take(MOST_ENTRIES).flatten();
    let is_kept = |entry: &fs::DirEntry| {
        entry.file_name().to_string_lossy().ends_with(ending) && entry.file_type().is_ok_and(|it| it.is_dir())
    };
    let kept = entries.filter(is_kept).filter_map(|entry| {
        let path = entry.path();
        let files = fs::read_dir(&path).ok()?.take(MOST_ENTRIES).flatten();
        let bytes = files.filter_map(|file| Some(file.metadata().ok()?.len())).sum();
        Some(Kept { modified: entry.metadata().ok()?.modified().ok()?, path, bytes })
    });
    kept.collect()
}

/// The bytes that are free for this user on the file system of a directory; `None` if the system does not
/// say.
#[cfg(target_os = "linux")]
pub(crate) fn free_bytes(directory: &Path) -> Option<u64> {
    let status = rustix::fs::statvfs(directory).ok()?;
    Some(status.f_bavail.saturating_mul(status.f_frsize))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn free_bytes(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names that are removed of a to e, each of 10 bytes and 10 s younger than the one before.
    fn removed(retention: Retention, free: u64) -> String {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let kept = |number: u64| Kept {
            path: PathBuf::from(char::from(b'a' + u8::try_from(number).unwrap()).to_string()),
            bytes: 10,
            modified: now - Duration::from_secs(50 - number * 10),
        };
        let freed = std::cell::Cell::new(free);
        let list = [3, 0, 4, 1, 2].map(kept).to_vec();
        let paths = retention.apply(
            list,
            now,
            || Some(freed.get()),
            |path| {
                if path == Path::new("b") {
                    return Err(io::ErrorKind::PermissionDenied.into());
                }
                freed.set(freed.get() + 10);
                Ok(())
            },
        );
        paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_oldest_go_and_the_newest_stays() {
        let none = Retention::default();
        assert_eq!(removed(none, 0), "");
        assert_eq!(removed(Retention { files: Some(4), ..none }, 0), "a");
        // One that cannot be removed does not keep the others.
        assert_eq!(removed(Retention { files: Some(3), ..none }, 0), "ac");
        assert_eq!(removed(Retention { bytes: Some(45), ..none }, 0), "a");
        assert_eq!(removed(Retention { bytes: Some(0), ..none }, 0), "acd");
        assert_eq!(removed(Retention { age: Some(Duration::from_secs(25)), ..none }, 0), "ac");
        assert_eq!(removed(Retention { free: Some(100), ..none }, 85), "ac");
        assert_eq!(removed(Retention { free: Some(100), ..none }, 100), "");
    }
}
