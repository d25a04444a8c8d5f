//! The folder of a ring.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use dipc_transport::{FolderBelow, open_own};

use super::segment::Segment;
use crate::retention::{Kept, Retention};
use crate::staged::{free_bytes, publish_new, write_private};

/// The file that the program which fills a ring has locked.
const LOCK: &str = "lock";
/// The ending of the names of files that are not complete.
const PART: &str = ".part";
/// Maximum number of entries of a folder to inspect.
const MAX_ENTRIES: usize = 1 << 18;
/// Maximum number of segments of the same times: the calendar was set back.
const MAX_SAME: u64 = 100;

/// A segment in the folder of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct StoredSegment {
    /// The times.
    pub segment: Segment,
    /// The size of the file, in bytes.
    pub bytes: u64,
}

/// The folder of a ring, which this program alone fills.
#[derive(Debug)]
pub struct ProfileRing {
    directory: PathBuf,
    limits: Retention,
    /// Locked while this program fills the ring.
    _lock: File,
}

impl ProfileRing {
    /// Opens a ring in a directory, which is created, and takes up the segments of an earlier run: those
    /// beyond the limits are removed, and so are incomplete files.
    ///
    /// # Errors
    /// If the file system fails; [`io::ErrorKind::WouldBlock`] if another program fills it.
    pub fn open(directory: &Path, limits: Retention) -> io::Result<Self> {
        create(directory)?;
        let folder = open(directory)?;
        let lock = open_own(&folder.join(LOCK), OpenOptions::new().create(true).append(true))?;
        lock.try_lock()?;
        for name in names(&folder)? {
            let is_part = name.strip_suffix(PART).and_then(|name| name.strip_prefix('.'));
            if is_part.is_some_and(|name| Segment::of_file_name(name).is_some()) {
                // It takes space alone.
                let _ = fs::remove_file(folder.join(&name));
            }
        }
        let ring = Self { directory: directory.to_owned(), limits, _lock: lock };
        ring.remove_old()?;
        Ok(ring)
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Applies other limits, and removes the oldest segments beyond them.
    ///
    /// # Errors
    /// If the folder cannot be read. The limits apply.
    pub fn set_limits(&mut self, limits: Retention) -> io::Result<()> {
        self.limits = limits;
        self.remove_old()
    }

    /// Writes a segment, and removes the oldest beyond the limits.
    ///
    /// # Errors
    /// If the file system fails. The segment is not in the ring then.
    pub fn store(&self, segment: Segment, bytes: &[u8]) -> io::Result<()> {
        // Somebody may have removed it.
        create(&self.directory)?;
        let folder = open(&self.directory)?;
        let part = folder.join(format!(".{}{PART}", segment.file_name()));
        // A file may have been left over.
        let _ = fs::remove_file(&part);
        let stored = write_private(&part, bytes).and_then(|()| {
            let same = (0..MAX_SAME).map(|more| {
                let end_ms = segment.end_ms.saturating_add(more);
                folder.join(Segment { end_ms, ..segment }.file_name())
            });
            crate::staged::publish_first(same, |name| publish_new(&part, name))
        });
        stored.inspect_err(|_| {
            let _ = fs::remove_file(&part);
        })?;
        self.remove_old()
    }

    /// Removes the oldest segments beyond the limits.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn remove_old(&self) -> io::Result<()> {
        let list = stored_segments(&self.directory)?;
        let list = list.into_iter().map(|StoredSegment { segment, bytes }| Kept {
            age: segment.age(),
            bytes,
            entry: segment,
        });
        let folder = open(&self.directory)?;
        self.limits.apply(
            list.collect(),
            || free_bytes(&self.directory),
            |segment| fs::remove_file(folder.join(segment.file_name())),
        );
        Ok(())
    }
}

/// Lists the segments in the folder of a ring, the oldest first. Other files are not a ring's.
///
/// # Errors
/// If the folder cannot be read.
pub fn stored_segments(directory: &Path) -> io::Result<Vec<StoredSegment>> {
    let folder = open(directory)?;
    let segments = names(&folder)?.into_iter().filter_map(|name| {
        let segment = Segment::of_file_name(&name)?;
        let metadata = fs::symlink_metadata(folder.join(&name)).ok()?;
        metadata.is_file().then_some(StoredSegment { segment, bytes: metadata.len() })
    });
    let mut segments: Vec<_> = segments.collect();
    segments.sort_unstable();
    Ok(segments)
}

/// Opens the file of a segment.
pub(super) fn open_segment(directory: &Path, segment: Segment) -> io::Result<File> {
    open_own(&open(directory)?.join(segment.file_name()), OpenOptions::new().read(true))
}

/// Creates a directory for this user alone: samples have names of programs of all users.
fn create(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    #[cfg_attr(not(unix), allow(unused_mut, reason = "has no mode"))]
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

fn open(directory: &Path) -> io::Result<FolderBelow> {
    FolderBelow::open(directory, Path::new(""))
}

fn names(folder: &FolderBelow) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(folder.join("."))?.take(MAX_ENTRIES).flatten();
    Ok(entries.filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn now_ms() -> u64 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        u64::try_from(now.as_millis()).unwrap()
    }

    fn segment(end_ms: u64) -> Segment {
        Segment { start_ms: end_ms - 1000, end_ms }
    }

    fn ends(directory: &Path) -> Vec<u64> {
        stored_segments(directory).unwrap().iter().map(|stored| stored.segment.end_ms).collect()
    }

    #[test]
    fn the_oldest_segments_make_room_and_a_restart_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("new/ring");
        let now = now_ms();
        let limits = Retention::default().with_bytes(Some(25)).with_age(Some(Duration::from_secs(3600)));
        let ring = ProfileRing::open(&directory, limits).unwrap();
        assert_eq!(ProfileRing::open(&directory, limits).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        for end in [now - 4000, now - 3000, now - 2000] {
            ring.store(segment(end), &[7; 10]).unwrap();
        }
        assert_eq!(ends(&directory), [now - 3000, now - 2000]);
        drop(ring);
        // What a killed program left, and what is not ours.
        let other = directory.join("other.nettrace");
        let part = directory.join(format!(".{}.part", segment(now).file_name()));
        for path in [&other, &part] {
            fs::write(path, "x").unwrap();
        }
        let ring = ProfileRing::open(&directory, limits).unwrap();
        assert!(other.exists() && !part.exists());
        ring.store(segment(now - 1000), &[7; 10]).unwrap();
        assert_eq!(ends(&directory), [now - 2000, now - 1000]);
        drop(ring);
        // The newest stays, however old it is.
        let short = limits.with_age(Some(Duration::ZERO));
        ProfileRing::open(&directory, short).unwrap();
        assert_eq!(ends(&directory), [now - 1000]);
    }

    #[test]
    fn other_limits_apply_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut ring = ProfileRing::open(folder.path(), Retention::default()).unwrap();
        for end in [3000, 4000, 5000] {
            ring.store(segment(end), &[7; 10]).unwrap();
        }
        ring.set_limits(Retention::default().with_bytes(Some(25))).unwrap();
        assert_eq!(ends(folder.path()), [4000, 5000]);
        ring.store(segment(6000), &[7; 10]).unwrap();
        assert_eq!(ends(folder.path()), [5000, 6000]);
    }

    #[test]
    fn a_time_that_occurs_twice_has_two_segments() {
        let folder = tempfile::tempdir().unwrap();
        let ring = ProfileRing::open(folder.path(), Retention::default()).unwrap();
        for content in [b"one", b"two"] {
            ring.store(segment(5000), content).unwrap();
        }
        assert_eq!(ends(folder.path()), [5000, 5001]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_segments() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let ring = ProfileRing::open(&folder.path().join("ring"), Retention::default()).unwrap();
        let secret = folder.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        std::os::unix::fs::symlink(&secret, ring.directory().join(segment(5000).file_name())).unwrap();
        assert!(ends(ring.directory()).is_empty());
        assert!(open_segment(ring.directory(), segment(5000)).is_err());
        assert_eq!(fs::metadata(ring.directory()).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
