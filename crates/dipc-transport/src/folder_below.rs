use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::regular_file::refused;
use crate::sys;

/// A folder somewhere below another one, to which others can write, reached without following links on the way.
///
/// On Linux it stays the same folder while this is open, whatever happens to the names on the way. Elsewhere the
/// names are checked once.
///
/// ```
/// use dipc_transport::FolderBelow;
///
/// let recordings = tempfile::tempdir()?;
/// std::fs::create_dir(recordings.path().join("today"))?;
/// let today = FolderBelow::open(recordings.path(), "today".as_ref())?;
/// std::fs::write(today.join("note"), "kept")?;
/// assert!(recordings.path().join("today/note").is_file());
/// assert!(FolderBelow::open(recordings.path(), "../elsewhere".as_ref()).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct FolderBelow(sys::FolderBelow);

impl FolderBelow {
    /// Opens the folder that the relative path `below` names; an empty one is `folder` itself, which may be a
    /// link.
    ///
    /// # Errors
    /// Those of opening, and [`io::ErrorKind::InvalidInput`] if a part of the path is a link, or leads upwards.
    pub fn open(folder: &Path, below: &Path) -> io::Result<Self> {
        if !below.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(refused("the path leads out of the folder"));
        }
        sys::FolderBelow::open(folder, below).map(Self).map_err(|error| {
            // The system says that a link is not a folder.
            let mut path = folder.to_owned();
            let mut has_link = below.iter().map(|part| {
                path.push(part);
                fs::symlink_metadata(&path).is_ok_and(|file| file.is_symlink())
            });
            if has_link.any(|is_link| is_link) { refused("a folder in the path is a link") } else { error }
        })
    }

    /// Returns a path to a file in the folder, valid while this is open.
    pub fn join(&self, file_name: &str) -> PathBuf {
        self.0.path().join(file_name)
    }
}

/// A folder whose parts were no links when they were looked at.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(crate) struct CheckedFolder(PathBuf);

#[cfg(not(target_os = "linux"))]
impl CheckedFolder {
    pub(crate) fn open(folder: &Path, below: &Path) -> io::Result<Self> {
        let mut path = fs::canonicalize(folder)?;
        for part in below {
            path.push(part);
            if !fs::symlink_metadata(&path)?.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
        }
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn links_on_the_way_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("own/a/b")).unwrap();
        fs::create_dir(at("other")).unwrap();
        fs::write(at("other/file"), "other").unwrap();
        fs::write(at("own/a/b/file"), "own").unwrap();
        std::os::unix::fs::symlink(at("other"), at("own/a/link")).unwrap();
        std::os::unix::fs::symlink(at("own"), at("folder")).unwrap();
        let open = |below: &str| FolderBelow::open(&at("folder"), Path::new(below));
        assert_eq!(fs::read_to_string(open("a/b").unwrap().join("file")).unwrap(), "own");
        assert!(fs::symlink_metadata(open("").unwrap().join("a")).unwrap().is_dir());
        for below in ["a/link", "..", "a/../../other", "/"] {
            assert_eq!(open(below).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{below}");
        }
        assert_eq!(open("a/none").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(open("a/b/file").unwrap_err().kind(), io::ErrorKind::NotADirectory);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn it_stays_the_same_folder() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("a")).unwrap();
        fs::create_dir(at("other")).unwrap();
        fs::write(at("a/file"), "own").unwrap();
        let below = FolderBelow::open(folder.path(), Path::new("a")).unwrap();
        fs::rename(at("a"), at("moved")).unwrap();
        std::os::unix::fs::symlink(at("other"), at("a")).unwrap();
        fs::remove_file(below.join("file")).unwrap();
        assert!(!at("moved/file").exists());
    }
}
