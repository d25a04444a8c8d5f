use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::refusal::refused;
use crate::sys;

/// A folder somewhere below another one, to which others can write, reached without following links on the
/// way.
///
/// On Linux it stays the same folder while this is open, whatever happens to the names on the way. Elsewhere
/// the names are checked once.
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
    /// Opens the folder that the relative path `below` names; an empty path is `folder` itself, which may be
    /// a link.
    ///
    /// # Errors
    /// Errors of opening, and [`io::ErrorKind::InvalidInput`] if a part of the path is a link, or leads
    /// upwards.
    pub fn open(folder: &Path, below: &Path) -> io::Result<Self> {
        if !below.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(refused("the path leads out of the folder"));
        }
        sys::FolderBelow::open(folder, below, false).map(Self).map_err(|error| explain(folder, below, error))
    }

    /// Opens the folder like [`open`](Self::open), and creates the missing parts of `below`. `folder` has to
    /// exist.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn create(folder: &Path, below: &Path) -> io::Result<Self> {
        if !below.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(refused("the path leads out of the folder"));
        }
        sys::FolderBelow::open(folder, below, true).map(Self).map_err(|error| explain(folder, below, error))
    }

    /// Returns a path to a file in the folder, valid while this is open.
    pub fn join(&self, file_name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(file_name)
    }
}

/// Returns the error for a link on the way: the system says that it is not a folder.
fn explain(folder: &Path, below: &Path, error: io::Error) -> io::Error {
    let mut path = folder.to_owned();
    let mut has_link = below.iter().map(|part| {
        path.push(part);
        fs::symlink_metadata(&path).is_ok_and(|file| file.is_symlink())
    });
    if has_link.any(|is_link| is_link) { refused("a folder in the path is a link") } else { error }
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
    fn missing_folders_are_created_without_following_links() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("folder/a")).unwrap();
        fs::create_dir(at("other")).unwrap();
        std::os::unix::fs::symlink(at("other"), at("folder/link")).unwrap();
        fs::write(at("folder/file"), "").unwrap();
        let create = |below: &str| FolderBelow::create(&at("folder"), Path::new(below));
        fs::write(create("a/b/c").unwrap().join("file"), "own").unwrap();
        assert_eq!(fs::read_to_string(at("folder/a/b/c/file")).unwrap(), "own");
        create("a/b/c").unwrap();
        for below in ["link", "link/sub", "../other/sub", "/tmp"] {
            assert_eq!(create(below).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{below}");
        }
        assert_eq!(create("file/sub").unwrap_err().kind(), io::ErrorKind::NotADirectory);
        assert!(fs::read_dir(at("other")).unwrap().next().is_none());
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
